"""`kinetoscope compare`: two recordings side by side, and rules that fail on regressions."""

from __future__ import annotations

import math
import shlex
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import click

from ..answer.recording import recording_answer
from ..answer.run_change import run_side, with_runs
from ..compare.changes import ID as CHANGES
from ..compare.changes import Changes
from ..compare.headline import MANIFOLD
from ..compare.rules import compared_column, judge, parse_rule
from ..compare.step_difference import ID as STEP_DIFFERENCE
from ..compare.step_difference import ROWS_ID, StepDifference, StepDifferenceRows
from ..engine.answers import Missing, cached_frames
from ..engine.comparisons import compute_changes, compute_comparison, compute_step_difference
from ..errors import BadParameter, NotFound
from ..measures.calls.kernel_names import labels_of_kernels
from ..measures.recording.contents import has_snapshot_alone
from ..names.text import few_digits, memory_size, signed_percent, visible
from ..text_table import MISSING, TextColumn, display_order, text_column, text_columns
from ..views import EVERY_VIEW
from ..web import encode, encode_comparison
from ..web.json_text import json_text
from .completion import PATH
from .options import capture_option, communication_option
from .print_rows import print_table
from .ranks import answer_of_worker, side_by_side
from .traces import LEVELS, choose_file, list_files, open_trace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from ..answer.model import Answer
    from ..compare.changes import ChangeList
    from ..compare.comparison import Comparison
    from ..compare.rules import Rule, Verdict
    from ..compare.step_difference import Difference
    from ..discovery import Listing, TraceFile
    from ..table import Column
    from ..trace import Trace
    from ..view import Subject, View

BROKEN = 2  # the exit status when a rule is broken
MOST_NAMED = 5  # rows that break a rule
SIDES = ("base", "new")
_WHY_UNJUDGED = (
    "but one recording a side doesn't tell a change from another run. kinetoscope gate compares several; "
    "--within-recording lets what exceeds the steps of these two break a rule."
)
DEFAULT_OF_RULES = "operators"  # the view of a rule that names only a row
OF_SNAPSHOTS, AT_THE_END = "snapshot_alive", {"at": "end"}  # what two memory snapshots are compared by


def _options() -> list[click.Parameter]:
    sides = []
    for level in ("run", "worker", "span"):
        sides.append(
            click.Option(
                [f"--{level}"],
                help=f"Which {level} of both sides; by default the {'first' if level == 'worker' else 'newest'}.",
            )
        )
        sides.append(click.Option([f"--base-{level}"], help=f"Which {level} of the base."))
        sides.append(click.Option([f"--new-{level}"], help=f"Which {level} of the new side."))
    forms = click.Choice(["text", "json", "csv"])
    return [
        click.Argument(["base"], type=PATH),
        click.Argument(["new"], required=False, type=PATH),
        click.Option(
            ["--view", "view_id"],
            help="Which view to compare; by default what changed most, of any kind, or what memory snapshots hold. "
            "step_difference says why a step takes longer, across different code; step_difference_rows, by which work.",
        ),
        click.Option(
            ["--columns"], help="Which columns of it, separated by commas; by default the weight and the calls."
        ),
        click.Option(["--set", "settings"], multiple=True, metavar="NAME=VALUE", help="A parameter of the view."),
        *sides,
        click.Option(["--fail-if", "rules"], multiple=True, metavar="RULE", help="Exit with status 2 if it holds."),
        click.Option(
            ["--within-recording"],
            is_flag=True,
            help="Let times and shares break a rule if they differ by more than the steps of these two recordings do. "
            "Another recording of the same code may differ as much.",
        ),
        click.Option(["--ignore-noise"], is_flag=True, help="Let any difference beyond the limit break a rule."),
        *map(capture_option, SIDES),
        communication_option(),
        click.Option(["--format", "form"], type=forms, default="text", show_default=True, help="Output format."),
    ]


def _compare(base: str, new: str | None, view_id: str | None, form: str, **options: Any) -> None:
    is_of_all = view_id in (None, CHANGES, STEP_DIFFERENCE, ROWS_ID)
    rows_of = DEFAULT_OF_RULES if is_of_all else str(view_id)
    if rows_of not in EVERY_VIEW:
        raise NotFound("view", rows_of, [CHANGES, STEP_DIFFERENCE, ROWS_ID, *EVERY_VIEW])
    view = EVERY_VIEW[rows_of]
    rules = [parse_rule(rule, EVERY_VIEW, rows_of) for rule in options["rules"]]
    columns = [name for name in (options["columns"] or "").split(",") if name]
    with ExitStack() as both:
        captures = [options[f"{side}_captures"] for side in SIDES]
        chosen_files = _files(base, new, options, is_of_run=view.scope != "recording")
        sides = [_Side(both, *pair, its_own) for pair, its_own in zip(chosen_files, captures, strict=True)]
        settings = _settings(options["settings"])
        if view_id is None and all(has_snapshot_alone(side.trace) for side in sides):
            is_of_all, view, settings = False, EVERY_VIEW[OF_SNAPSHOTS], AT_THE_END | settings
        is_of_steps = view_id in (STEP_DIFFERENCE, ROWS_ID)
        if is_of_all and ((settings and view_id != ROWS_ID) or (columns and not is_of_steps)):
            raise BadParameter("--columns and --set need a view: pass --view, such as --view operators.")
        arguments = view.arguments({} if is_of_all else settings)
        verdicts = _verdicts(rules, EVERY_VIEW, sides, options)
        if is_of_all:
            traces = [side.trace for side in sides]
            labels = labels_of_kernels(*traces)
            if view_id == STEP_DIFFERENCE:
                _print_step_difference(compute_step_difference(*traces), verdicts, form, columns, labels)
            elif view_id == ROWS_ID:
                _print_rows_of_terms(compute_step_difference(*traces), settings, verdicts, form, columns, labels)
            else:
                result = compute_changes(EVERY_VIEW, *traces)
                if _are_runs(sides, options):
                    result = _with_runs(result, sides)
                _print_changes(result, verdicts, form, labels)
        else:
            labels = labels_of_kernels(*(side.trace for side in sides)) if view.scope == "recording" else {}
            _print(view, _comparison(view, sides, arguments, columns), verdicts, form, labels)
    if any(not verdict.broken.is_empty() for verdict in verdicts):
        raise click.exceptions.Exit(BROKEN)


@dataclass
class _Side:
    """One side: its trace, and its ranks for views of whole runs, each read when it is first needed.

    Args:
        stack: Closes what is opened.
        listing: The recordings under its path.
        file: The chosen one.
        captures: Recordings that say what its graphs launch.
    """

    stack: ExitStack
    listing: Listing
    file: TraceFile
    captures: Sequence[str]

    @cached_property
    def trace(self) -> Trace:
        """The trace in the chosen file."""
        return self.stack.enter_context(open_trace(self.file, captures=self.captures))

    def subject(self, view: View) -> Subject:
        """What the view is about."""
        return self.trace if view.scope == "recording" else side_by_side(self.listing, self.file, view.scope)


def _files(
    base: str, new: str | None, options: Mapping[str, Any], *, is_of_run: bool
) -> list[tuple[Listing, TraceFile]]:
    """The listings and the files of both sides.

    Raises:
        BadParameter: Both are the same file, though only one path is given.
    """
    paths = [list_files(path, options["communication"]) for path in dict.fromkeys((base, new or base))]
    selections = [{n: options[f"{side}_{n}"] or options[n] for n in LEVELS} for side in SIDES]
    if new is None:
        newest, choices = paths[0].newest(**selections[0])
        if newest.path == paths[0].newest(**selections[1])[0].path:
            raise BadParameter(_two_are_needed(base, choices))
    levels = ("run", "span") if is_of_run else LEVELS
    return [
        (paths[index], choose_file(paths[index], selections[i], f"{side}-", levels))
        for i, (side, index) in enumerate(zip(SIDES, (0, -1), strict=True))
    ]


def _are_runs(sides: Sequence[_Side], options: Mapping[str, Any]) -> bool:
    """Whether both sides are different runs of several ranks, of which no worker is asked for."""
    is_of_worker = any(options[name] for name in ("worker", "base_worker", "new_worker"))
    is_same = sides[0].listing is sides[1].listing and sides[0].file.run == sides[1].file.run
    return not is_of_worker and not is_same and all(len(side.listing.ranks(side.file.run)) > 1 for side in sides)


def _with_runs(result: ChangeList, sides: Sequence[_Side]) -> ChangeList:
    """The changes with what changed between all ranks of both runs."""
    runs = []
    for side in sides:
        of_worker = partial(answer_of_worker, side.listing, side.file, _answer_of_file)
        runs.append(run_side(side.file.worker, side_by_side(side.listing, side.file, "run"), EVERY_VIEW, of_worker))
    return with_runs(result, *runs)


def _answer_of_file(file: TraceFile) -> Answer:
    with open_trace(file) as trace:
        return recording_answer(trace, EVERY_VIEW, cached_frames).of_file(file, file.path)


def _two_are_needed(path: str, choices: Mapping[str, Sequence[str]]) -> str:
    """What to do if one path stands for both sides: the first level with a second recording to choose."""
    needs = "A comparison needs two recordings"
    for level in LEVELS:
        names = choices.get(level, ())
        if len(names) > 1:
            newest_name, other = names[:2]
            return (
                f"{needs}. {path} has {len(names)} {level}s: compare {newest_name} with another one by "
                f"--base-{level} {shlex.quote(other)}, or name a second path."
            )
    return f"{needs}, and {path} holds only one. Name a second trace or logdir: kinetoscope compare BASE NEW."


def _settings(settings: Sequence[str]) -> dict[str, str]:
    for setting in settings:
        if "=" not in setting:
            raise BadParameter(f"{setting!r} isn't NAME=VALUE.")
    return dict(setting.split("=", 1) for setting in settings)


def _comparison(view: View, sides: Sequence[_Side], arguments: Mapping[str, object], columns: Sequence[str]) -> Any:
    return compute_comparison(view, sides[0].subject(view), sides[1].subject(view), arguments, columns)


def _verdicts(
    rules: Sequence[Rule], views: Mapping[str, View], sides: Sequence[_Side], options: Mapping[str, Any]
) -> list[Verdict]:
    """The verdict of each rule, from a comparison of its own column."""
    verdicts = []
    for rule in rules:
        view = views[rule.view]
        comparison = _comparison(view, sides, {}, [compared_column(rule, view).name])
        if isinstance(comparison, Missing):
            raise BadParameter(f"{rule.text!r} can't be checked: neither recording has the data. {comparison.hint}")
        verdicts.append(
            judge(
                rule,
                comparison,
                ignores_noise=options["ignore_noise"],
                is_within_recording=options["within_recording"],
            )
        )
    return verdicts


def _print(
    view: View, result: Any, verdicts: Sequence[Verdict], form: str, labels: Mapping[str, str]
) -> None:  # Comparison | Missing
    if form == "json":
        verdict_values = {"rules": [_verdict_json(verdict) for verdict in verdicts]} if verdicts else {}
        click.echo(json_text(encode_comparison.comparison(view, result) | verdict_values))
        return
    if isinstance(result, Missing):
        click.echo(f"{view.title}: nothing to compare. {result.hint}", err=True)
    elif form == "csv":
        click.echo(encode.csv(result.frame), nl=False)
    else:
        click.echo(_totals_of_snapshots(result) or result.basis.words)
        print_table(_with_values(_columns(result, labels)))
    for verdict in verdicts:
        click.echo("\n".join(visible(line) for line in _lines(verdict)), err=form == "csv")


def _totals_of_snapshots(result: Comparison) -> str:
    """How much memory two snapshots hold, and what the new one holds that the base doesn't; empty for anything else."""
    frame, basis = result.frame, result.basis
    if (
        result.view.id != OF_SNAPSHOTS
        or "delta_alive_bytes" not in frame
        or basis.is_base_missing
        or basis.is_new_missing
    ):
        return ""
    base, new, more = (
        memory_size(int(frame[name].clip(lower_bound=0).sum()))
        for name in ("base_alive_bytes", "new_alive_bytes", "delta_alive_bytes")
    )
    return f"Alive: {base} → {new}. The new snapshot holds {more} that the base doesn't."


def _print_changes(result: ChangeList, verdicts: Sequence[Verdict], form: str, labels: Mapping[str, str]) -> None:
    if form == "json":
        verdict_values = {"rules": [_verdict_json(verdict) for verdict in verdicts]} if verdicts else {}
        click.echo(json_text(encode_comparison.changes(result) | verdict_values))
        return
    if form == "csv":
        click.echo(encode.csv(result.frame), nl=False)
    else:
        click.echo(f"{result.headline}\n{result.basis.words}")
        print_table(_with_values(_change_columns(result.frame, labels)))
    for verdict in verdicts:
        click.echo("\n".join(visible(line) for line in _lines(verdict)), err=form == "csv")


def _print_step_difference(
    result: Difference, verdicts: Sequence[Verdict], form: str, names: Sequence[str], labels: Mapping[str, str]
) -> None:
    if form == "json":
        verdict_values = {"rules": [_verdict_json(verdict) for verdict in verdicts]} if verdicts else {}
        click.echo(json_text(encode_comparison.step_difference(result) | verdict_values))
        return
    if form == "csv":
        click.echo(encode.csv(result.frame), nl=False)
    else:
        click.echo(f"{result.headline}\n{result.coverage}")
        _print_terms(StepDifference, result.frame, names, labels)
    for verdict in verdicts:
        click.echo("\n".join(visible(line) for line in _lines(verdict)), err=form == "csv")


def _print_terms(
    table: type[StepDifference | StepDifferenceRows],
    frame: pl.DataFrame,
    names: Sequence[str],
    labels: Mapping[str, str],
) -> None:
    """The rows with the columns that are asked for; by default all with a value."""
    if unknown_names := [name for name in names if name not in frame.columns]:
        raise BadParameter(f"--columns: there is no {unknown_names[0]!r}; choose some of {', '.join(frame.columns)}.")
    columns = [column for column in table.columns if not names or column.name in (*table.key, *names)]
    texts = text_columns(columns, frame, labels)
    print_table(_with_values(display_order(texts, [column.name for column in columns], table.weight)))


def _print_rows_of_terms(
    result: Difference,
    term: Mapping[str, str],
    verdicts: Sequence[Verdict],
    form: str,
    names: Sequence[str],
    labels: Mapping[str, str],
) -> None:
    if form == "json":
        verdict_values = {"rules": [_verdict_json(verdict) for verdict in verdicts]} if verdicts else {}
        click.echo(json_text(encode_comparison.step_difference_rows(result, term) | verdict_values))
        return
    rows = result.rows(term)
    if form == "csv":
        click.echo(encode.csv(rows), nl=False)
    else:
        click.echo(result.headline)
        _print_terms(StepDifferenceRows, rows, names, labels)
    for verdict in verdicts:
        click.echo("\n".join(visible(line) for line in _lines(verdict)), err=form == "csv")


def _change_columns(frame: pl.DataFrame, labels: Mapping[str, str]) -> list[TextColumn]:
    """Kind, base, new, difference and growth, and the name; all times or shares in one unit."""
    unit, kind = ("ns", "duration") if frame["delta_ns"].is_not_null().any() else ("frac", "fraction")
    values = {part: frame[f"{part}_{unit}"].to_list() for part in ("base", "new", "delta")}
    all_values = [value for part in values.values() for value in part]
    kind_of_row = TextColumn("kind", [Changes.kind.words.get(kind, kind) for kind in frame["kind"]])
    by_part = {}
    for part, numbers in values.items():
        column = text_column(f"{part}_{unit}", kind, numbers, all_values)
        facts = frame[f"{part}_value"].to_list() if part != "delta" else [None] * frame.height
        cells = [cell if fact is None else visible(fact) for cell, fact in zip(column.cells, facts, strict=True)]
        by_part[part] = TextColumn(column.header, cells, is_number=True)
    change = TextColumn("change", [_growth(ratio) for ratio in frame["ratio"].to_list()], is_number=True)
    verdict, names = TextColumn("verdict", frame["verdict"].to_list()), frame["name"].to_list()
    name = TextColumn("name", [visible(labels.get(name, name)) for name in names])
    return [kind_of_row, by_part["base"], by_part["new"], change, verdict, by_part["delta"], name]


def _columns(comparison: Comparison, labels: Mapping[str, str]) -> list[Any]:
    """For each compared column: base, new and difference in one unit, the ratio, and whether it is noise."""
    frame, by_name = comparison.frame, {c.name: c for c in comparison.table.columns}
    key_names = comparison.frame.columns[: comparison.frame.columns.index("only_in") + 1]
    texts = text_columns([by_name[name] for name in key_names], frame, labels)
    for column in comparison.columns:
        parts = [n for n in (f"{p}_{column.name}" for p in ("base", "new", "delta")) if n in by_name]
        others = [value for name in parts for value in frame[name].to_list() if by_name[name].kind.suffix]
        texts += [text_column(n, by_name[n].kind.name, frame[n].to_list(), others) for n in parts]
        if f"{column.name}_ratio" in by_name:
            bare = column.name.removesuffix(column.kind.suffix)
            ratios = frame[f"{column.name}_ratio"].to_list()
            texts.append(TextColumn(f"{bare} change", [_growth(ratio) for ratio in ratios], is_number=True))
        rest = [n for n in (f"{column.name}_verdict",) if n in by_name]
        texts += text_columns([by_name[name] for name in rest], frame)
    return texts


def _with_values(columns: Sequence[TextColumn]) -> list[TextColumn]:
    """The columns with a value in any row; all if there is no row."""
    return [column for column in columns if not (column.cells and column.is_empty)]


def _growth(ratio: float | None) -> str:
    """Such as +1.9 %, or ×12.3 where percents are hard to read."""
    if ratio is None or not math.isfinite(ratio):
        return MISSING
    return f"×{few_digits(ratio, 1)}" if ratio >= MANIFOLD else signed_percent(ratio - 1)


def _verdict_json(verdict: Verdict) -> dict[str, Any]:
    """A verdict as JSON values."""
    values = encode.without_nan(verdict.broken).rows(named=True)
    return {
        "rule": verdict.rule.text,
        "is_broken": bool(values),
        "rows": values,
        "in_noise": verdict.in_noise,
        "unjudged": encode.without_nan(verdict.unjudged).rows(named=True),
    }


def _lines(verdict: Verdict) -> list[str]:
    """A verdict as text: one line, and one for each of the first rows that break the rule."""
    within_noise = f" ({verdict.in_noise} more would break it, but may be noise)" if verdict.in_noise else ""
    if not verdict.names and verdict.unjudged.height:
        rows = "one row exceeds" if verdict.unjudged.height == 1 else f"{verdict.unjudged.height} rows exceed"
        return [f"not judged: {verdict.rule.text}{within_noise}: {rows} it, {_WHY_UNJUDGED}"]
    if not verdict.names:
        return [f"holds: {verdict.rule.text}{within_noise}"]
    lines = [f"BROKEN: {verdict.rule.text}{within_noise}"]
    for name, row in zip(verdict.names[:MOST_NAMED], verdict.broken.rows(named=True), strict=False):
        lines.append(f"  {name}: {_change(verdict.column, row)}")
    more = len(verdict.names) - MOST_NAMED
    return [*lines, f"  and {more} rows more"] if more > 0 else lines


def _change(column: Column, row: Mapping[str, Any]) -> str:
    """A change as text, in one unit, with its noise."""
    values = [row[f"{part}_{column.name}"] for part in ("base", "new", "delta", "noise")]
    text = text_column("", column.kind.name if column.kind.suffix else "number", values)
    base, new, delta, uncertainty = text.cells
    ratio = row[f"{column.name}_ratio"]
    share = "" if ratio is None else f", {signed_percent(ratio - 1)}"
    margin = "noise unknown" if values[3] is None else f"noise ±{uncertainty}"
    return f"{base} → {new}{text.header} ({delta}{share}; {margin})"


compare = click.Command(
    "compare",
    callback=_compare,
    params=_options(),
    help="""Compare two recordings: BASE and NEW are trace files or logdirs; without NEW both are in BASE.

    Of two memory snapshots, it compares what was alive when each was taken, by line: --set by=stack, --set at=peak.

    Amounts are per complete step. A rule is a subject, > or <, and a limit: `step>5%` (the average step became 5 %
    longer), `operators.device_self_ns>10% and 50us` (any operator), `aten::mm>1ms` (a row of the view),
    `gpus.utilization_frac<5pp`. One recording a side doesn't tell how much another run of the same code differs, so
    times and shares break a rule only with --within-recording; counts and bytes do.
    kinetoscope gate judges several recordings a side, with a stated rate of false alarms.
    Exit status: 0 fine, 2 a rule is broken, 1 failed.
    """,
)
