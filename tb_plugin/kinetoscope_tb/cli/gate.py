"""`kinetoscope gate`: whether something became slower, judged by several recordings a side."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from fnmatch import fnmatchcase
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from ..compare.gate.comment import comment
from ..compare.gate.conditions import conditions_of, problems
from ..compare.gate.decision import Decision, Question, Sample, decide
from ..compare.gate.explanation import ChangedRows, changed_rows, explaining_rows
from ..compare.gate.numbers import parse_number
from ..compare.gate.picture import picture
from ..compare.gate.recordings import Recording, by_process, notes, why_uncertain
from ..compare.gate.words import lines
from ..compare.workload import Workload
from ..errors import BadParameter, TraceError
from ..measures.time.step_subset import has_steps
from ..names.text import visible
from ..text_table import text_columns
from ..trace.model import EARLIEST_CLOCK_NS
from ..views import EVERY_VIEW
from ..web import encode
from ..web.json_text import json_text
from .completion import PATH
from .gate_record import record
from .options import communication_option
from .output_file import open_output
from .print_rows import print_table
from .traces import LEVELS, list_files, open_trace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from ..compare.gate.numbers import Number
    from ..discovery import TraceFile
    from ..trace import Trace

SIDES = ("base", "new")
EXIT_STATUS = {"no regression": 0, "improvement": 0, "regression": 2, "cannot tell": 3}
_RANK = re.compile(r"rank\d+")  # workers of one job, also where the file doesn't say so
_WORST_FIRST = ("regression", "cannot tell", "no regression", "improvement")


def _options() -> list[click.Parameter]:
    patterns = [
        click.Option([f"--{side}-{level}"], metavar="PATTERN", help=f"Which {level}s of {side}, such as 'main-*'.")
        for side in SIDES
        for level in LEVELS
    ]
    return [
        click.Argument(["base"], type=PATH),
        click.Argument(["new"], required=False, type=PATH),
        *patterns,
        *_question_options(),
        click.Option(["--comment"], metavar="OUT.md", help="Also write Markdown, and a picture next to it: OUT.svg."),
        communication_option(),
        click.Option(["--format", "form"], type=click.Choice(["text", "json"]), default="text", show_default=True),
    ]


def _question_options() -> list[click.Parameter]:
    """What to decide, and at which rate."""
    find, rate = click.FloatRange(0.01, 1000), click.FloatRange(0.001, 20)
    return [
        click.Option(
            ["--number", "names"],
            multiple=True,
            help="What is gated, such as step, overview[Communication] or operators.device_self_ns[aten::mm]; by "
            "default step. Several share the rate.",
        ),
        click.Option(["--less-is-worse"], is_flag=True, help="A decrease is the regression, as of utilization."),
        click.Option(["--find"], type=find, default=3.0, show_default=True, help="Regression to find, in %."),
        click.Option(["--rate"], type=rate, default=1.0, show_default=True, help="Most false alarms, in %."),
        click.Option(
            ["--count-windows"],
            is_flag=True,
            help="Count windows of one process as recordings. The answer is then about these processes, not about the "
            "next ones.",
        ),
    ]


def _gate(base: str, new: str | None, names: Sequence[str], form: str, comment: str | None, **options: Any) -> None:
    numbers = [parse_number(name, EVERY_VIEW) for name in dict.fromkeys(names or ("step",))]
    question = Question(options["find"] / 100, options["rate"] / 100, options["less_is_worse"])
    sides = _sides(base, new, numbers, options)
    samples = [Sample(number.name, *(_values(side, nth) for side in sides)) for nth, number in enumerate(numbers)]
    decisions = decide(samples, question, why_uncertain(*sides))
    outcome = min((decision.outcome for decision in decisions), key=_WORST_FIRST.index)
    rows = changed_rows(*([recording.rows for recording in side] for side in sides))
    answers = lines(decisions, [number.unit(EVERY_VIEW) for number in numbers], question, notes(*sides))
    if comment:
        _write_comment(comment, outcome, answers, rows, (decisions[0], numbers[0]))
    if form == "json":
        click.echo(json_text(_json(outcome, decisions, question, sides, answers, rows)))
    else:
        _print(answers, rows)
    raise click.exceptions.Exit(EXIT_STATUS[outcome])


def _values(side: Sequence[Recording], nth: int) -> Any:
    return np.array([recording.values[nth] for recording in side])


def _sides(
    base: str, new: str | None, numbers: Sequence[Number], options: Mapping[str, Any]
) -> tuple[list[Recording], list[Recording]]:
    """The recordings of both sides, by process.

    Raises:
        BadParameter: A recording is on both sides, or one of them has none.
    """
    groups = [
        _files(path, {level: options[f"{side}_{level}"] for level in LEVELS}, options["communication"])
        for side, path in zip(SIDES, (base, new or base), strict=True)
    ]
    keys = [{file.key for file in group} for group in groups]
    if both := keys[0] & keys[1]:
        raise BadParameter(
            f"{min(both)[0]} is on both sides. Name a second path, or choose by --base-run and --new-run: "
            "kinetoscope gate LOGDIR --base-run 'main-*' --new-run 'branch-*'."
        )
    windows = [_read(group, numbers, is_per_window=options["count_windows"]) for group in groups]
    for side, side_windows in zip(SIDES, windows, strict=True):
        if not side_windows:
            raise BadParameter(f"No recording of {side} can be read.")
    recordings = _with_problems([*windows[0], *windows[1]])
    return by_process(recordings[: len(windows[0])]), by_process(recordings[len(windows[0]) :])


def _files(path: str, patterns: Mapping[str, str | None], communication: Sequence[str]) -> list[TraceFile]:
    """The files of one side: of a folder, of one file, or of all that a pattern names.

    Raises:
        BadParameter: There is none.
    """
    is_pattern = "://" not in path and not Path(path).exists()
    paths = (sorted(glob(path, recursive=True)) if is_pattern else []) or [path]  # noqa: PTH207  # any root
    files = {file.key: file for name in paths for file in list_files(name, communication).files}
    files_of_side = [
        file
        for file in files.values()
        if all(fnmatchcase(getattr(file, level), pattern or "*") for level, pattern in patterns.items())
    ]
    if not files_of_side:
        criteria = ", ".join(f"{level} {pattern!r}" for level, pattern in patterns.items() if pattern)
        raise BadParameter(f"{path} has no recording of {criteria}." if criteria else f"{path} has no recording.")
    return files_of_side


def _read(files: Sequence[TraceFile], numbers: Sequence[Number], *, is_per_window: bool) -> list[Recording]:
    """A recording per window; of a job of several ranks, those of its first one. What can't be read is reported."""
    recordings = []
    workers: dict[tuple[str, str], str] = {}  # the only worker to read, of jobs of several ranks
    for file in files:
        job = file.path.rpartition("/")[0], file.run
        if workers.get(job, file.worker) != file.worker:
            continue
        try:
            with open_trace(file, is_quiet=True) as trace:
                process = "\0".join((*job, file.worker, file.span if is_per_window else ""))
                recordings.append(_recording(file, process, trace, numbers))
                if (trace.meta.world_size or 1) > 1 or _RANK.fullmatch(file.worker):
                    workers[job] = file.worker
        except TraceError as error:
            click.echo(visible(f"left out: {error}"), err=True)
    return recordings


def _recording(file: TraceFile, process: str, trace: Trace, numbers: Sequence[Number]) -> Recording:
    return Recording(
        file.shown if file.shown.startswith(file.run) else f"{file.run}/{file.shown}",
        process,
        tuple(number.value(EVERY_VIEW, trace) for number in numbers),
        explaining_rows(EVERY_VIEW, trace),
        Workload.of(trace),
        trace.origin_ns if trace.origin_ns > EARLIEST_CLOCK_NS else file.started_ns,
        has_steps(trace),
        path=file.path,
    )


def _with_problems(recordings: Sequence[Recording]) -> list[Recording]:
    """The recordings with what was wrong while they were made, as far as `gate record` noted it."""
    sentences_of_each = problems([conditions_of(recording.path) for recording in recordings])
    return [
        replace(recording, problems=tuple(sentences))
        for recording, sentences in zip(recordings, sentences_of_each, strict=True)
    ]


def _write_comment(
    out: str, outcome: str, answers: Sequence[str], rows: pl.DataFrame, first: tuple[Decision, Number]
) -> None:
    """Write the Markdown, and the picture of the first number next to it."""
    image = Path(out).with_suffix(".svg")
    for path, text in (
        (str(image), picture(first[0], answers[0], first[1].unit(EVERY_VIEW))),
        (out, comment(outcome, answers, rows, image.name)),
    ):
        with open_output(path) as file:
            file.write(text.encode(errors="backslashreplace"))


def _print(answers: Sequence[str], rows: pl.DataFrame) -> None:
    for answer in answers:
        click.echo(visible(answer))
    if rows.height:
        print_table(text_columns(ChangedRows.columns, rows))


def _json(
    outcome: str,
    decisions: Sequence[Decision],
    question: Question,
    sides: Sequence[Sequence[Recording]],
    answers: Sequence[str],
    rows: pl.DataFrame,
) -> dict[str, Any]:
    """The answer as JSON values."""
    return {
        "state": "ready",
        "outcome": outcome,
        "exit_status": EXIT_STATUS[outcome],
        "find_frac": question.find,
        "rate_frac": question.rate,
        "answers": list(answers),
        "numbers": [_decision_json(decision) for decision in decisions],
        "recordings": [
            {
                "side": side,
                "name": recording.name,
                "windows": recording.windows,
                "values": list(recording.values),
                "host": recording.work.host or None,
                "started_ns": recording.started_ns or None,
                "problems": list(recording.problems),
            }
            for side, recordings in zip(SIDES, sides, strict=True)
            for recording in recordings
        ],
        "rows": encode.without_nan(rows).rows(named=True),
    }


def _decision_json(decision: Decision) -> dict[str, Any]:
    return {
        "number": decision.sample.number,
        "outcome": decision.outcome,
        "reason": decision.reason,
        "growth_frac": decision.growth_frac,
        "spread_frac": None if math.isnan(decision.spread_frac) else decision.spread_frac,
        "p_worse": decision.p_worse,
        "p_better": decision.p_better,
        "needed": decision.needed_a_side,
        "finds_frac": decision.finds_frac,
        "base": decision.sample.base.tolist(),
        "new": decision.sample.new.tolist(),
    }


class _Gate(click.Command):
    """The command; `gate record` is another one."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """The context of the command that the first argument names."""
        if args[:1] == ["record"]:
            return record.make_context(f"{info_name} record", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


gate = _Gate(
    "gate",
    callback=_gate,
    params=_options(),
    help="""Judge by several recordings a side whether NEW became slower than BASE, with a stated rate of false alarms.

    BASE and NEW are folders, files, or patterns in quotes; without NEW both are in BASE, chosen by --base-run and
    --new-run. Windows of one process count once. `kinetoscope gate record` makes recordings by turns. Exit status:
    0 no regression, 2 a regression, 3 cannot tell, 1 failed.
    """,
)
