"""Judge advice by recordings whose cause is known: `make bench ARGS=--verdicts`.

The headline is the first row. It is right if a fair expert would accept its rule; it abstains if its confidence is
`cannot_tell`. A wrong headline of high or medium confidence is confident and wrong.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from planted import peers
from planted.catalog import catalog
from planted.generator import generator
from planted.recording import Recording
from planted.runs import RECORDED, run_advice_rows

RIGHT, AMONG_THREE, ABSTAINED, WRONG, CONFIDENT = "right", "among three", "abstained", "wrong", "confident, wrong"
OUTCOMES = (RIGHT, AMONG_THREE, ABSTAINED, WRONG, CONFIDENT)
CANNOT_TELL, FAULTS = "cannot_tell", "recording_faults"
HEALTHY = {"healthy", "hidden_communication", "efficient", "cpu_healthy", "gloo_balanced", "many_ranks_even"}


CONTRADICTION = re.compile(r"The view `(\w+)` contradicts this: ")


@dataclass
class Verdict:
    """What was said of one recording.

    Attributes:
        outcome: One of OUTCOMES: "among three" is a wrong headline with a right one in the next two rows.
        is_confident_wrong: The headline is wrong, of high or medium confidence.
        has_alarm: Advice names faults of the recording.
        peer: What torch-tb-profiler's recommendations amount to, if it was asked.
        is_found: Whether its fault is in advice or health; None if it has none that must be found.
        stopped: (rule, view) of each claim that the view contradicts.
    """

    name: str
    cause: str
    must_abstain: bool
    may_abstain: bool
    accepted: tuple[str, ...]
    has_fault: bool
    rules: list[tuple[str, str, float | None]] = field(default_factory=list)
    title: str = ""
    outcome: str = WRONG
    is_confident_wrong: bool = False
    has_alarm: bool = False
    is_found: bool | None = None
    error: str = ""
    peer: str = ""
    stopped: tuple[tuple[str, str], ...] = ()


def _stopped(rows: list[dict[str, Any]]) -> tuple[tuple[str, str], ...]:
    """(rule, view) of each claim that the view contradicts."""
    found = ((row["rule"], CONTRADICTION.search(row["evidence"])) for row in rows)
    return tuple((rule, view[1]) for rule, view in found if view)


def _advice_rows(path: Path, *, is_run: bool) -> list[dict[str, Any]]:
    from kinetoscope_tb.reader import read
    from kinetoscope_tb.views.overview.advice import advice

    if is_run:
        return run_advice_rows(path)
    return advice(read(path)).to_dicts()


def _health_counts(path: Path) -> Counter[str]:
    from kinetoscope_tb.reader import read
    from kinetoscope_tb.views.overview.health import health

    return Counter(dict(health(read(path)).select("rule", "count").rows()))


def classify(recording: Recording, rows: list[dict[str, Any]], verdict: Verdict) -> None:
    """What the rows of advice amount to."""
    verdict.stopped = _stopped(rows)
    verdict.rules = [(r["rule"], r["confidence"], r["saving_frac"]) for r in rows[:4]]
    verdict.is_confident_wrong = False
    verdict.has_alarm = any(r["rule"] == FAULTS for r in rows)
    if not rows:
        verdict.outcome = ABSTAINED
        return
    first = rows[0]
    verdict.title = first["title"]
    if first["confidence"] == CANNOT_TELL:
        verdict.outcome = ABSTAINED
        return

    def is_right(row: dict[str, Any]) -> bool:
        text = f"{row['title']} {row['evidence']}"
        named = not recording.evidence or any(each in text for each in recording.evidence)
        return row["rule"] in recording.accepted and row["confidence"] != CANNOT_TELL and named

    if is_right(first):
        verdict.outcome = RIGHT
        return
    is_sure = first["confidence"] in ("high", "medium")
    verdict.is_confident_wrong = is_sure
    among = any(is_right(row) for row in rows[1:3] if row["rule"] != "nothing_to_fix")
    verdict.outcome = AMONG_THREE if among else CONFIDENT if is_sure else WRONG


def judge(seed: int, number: int, folder: Path, *, keep: bool, peer: str | None = None) -> Verdict:
    """Make one recording and judge what is said of it."""
    recording = catalog(seed)[number]
    verdict = Verdict(
        recording.name, recording.cause, recording.must_abstain, recording.may_abstain,
        tuple(sorted(recording.accepted)), recording.clean is not None,
    )  # fmt: skip
    path = folder / f"{recording.name}.pt.trace.json"
    try:
        path = recording.make(generator(seed, recording.name), path)
        rows = _advice_rows(path, is_run=recording.is_run)
        classify(recording, rows, verdict)
        if recording.also and verdict.outcome not in (RIGHT, ABSTAINED):
            more = recording.also(generator(seed, recording.name))
            classify(dataclasses.replace(recording, accepted=recording.accepted | more), rows, verdict)
            verdict.accepted = tuple(sorted(recording.accepted | more))
        if peer and not recording.is_run:
            sentences = peers.recommendations(peer, path)
            verdict.peer = peers.classify(sentences, recording.accepted, must_abstain=recording.must_abstain)
        if recording.clean:
            clean = folder / f"{recording.name}.clean.pt.trace.json"
            more = _health_counts(path) - _health_counts(recording.clean(generator(seed, recording.name), clean))
            verdict.is_found = bool(more) or verdict.has_alarm
            clean.unlink()
    except Exception:  # noqa: BLE001 - one recording must not stop the others; it counts as wrong
        verdict.error = traceback.format_exc(limit=-3)
    if not keep and path.is_file():
        path.unlink()
    return verdict


def run(
    seed: int, *, only: str | None = None, folder: Path | None = None, peer: str | None = None, processes: int = 2
) -> list[Verdict]:
    """Judge all recordings of a seed, in processes of their own; `peer` is the Python of the peers' environment."""
    numbers = [at for at, r in enumerate(catalog(seed)) if only is None or r.cause == only or r.name == only]
    context = multiprocessing.get_context("spawn")
    os.environ["KINETOSCOPE_CACHE"] = "off"
    with (
        tempfile.TemporaryDirectory() as temporary,
        concurrent.futures.ProcessPoolExecutor(processes, mp_context=context) as pool,
    ):
        target = folder or Path(temporary)
        if only is None or only.startswith(("cpu_", "gloo_")):
            _record(target / RECORDED, seed)
        target.mkdir(parents=True, exist_ok=True)
        jobs = [pool.submit(judge, seed, number, target, keep=folder is not None, peer=peer) for number in numbers]
        return [job.result() for job in jobs]


def _record(folder: Path, seed: int) -> None:
    """Let real processes record: nothing else runs meanwhile."""
    folder.mkdir(parents=True, exist_ok=True)
    tests = Path(__file__).parents[1]
    paths = os.pathsep.join([str(tests), *filter(None, [os.environ.get("PYTHONPATH")])])
    for module in ("planted.cpu", "planted.gloo"):
        command = [sys.executable, "-m", module, str(folder), str(seed)]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": paths}, stderr=subprocess.DEVNULL)


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:5.1f} % ({part} of {whole})" if whole else "–"


def is_right(verdict: Verdict) -> bool:
    """Whether the headline is what it should be: an accepted rule, or silence where nothing can be said."""
    return verdict.outcome == RIGHT or (verdict.outcome == ABSTAINED and (verdict.must_abstain or verdict.may_abstain))


def bars(verdicts: list[Verdict]) -> dict[str, tuple[int, int, str]]:
    """The bars of the benchmark: (how many, of how many, the bar)."""
    answerable = [v for v in verdicts if not v.must_abstain]
    healthy = [v for v in verdicts if v.cause in HEALTHY]
    must = [v for v in verdicts if v.must_abstain]
    need_not = [v for v in answerable if not v.may_abstain]
    faults = [v for v in verdicts if v.has_fault]
    clean = [v for v in verdicts if not v.has_fault and not v.must_abstain and "negligible" not in v.name]
    clean = [v for v in clean if v.cause != "profiler_overhead"]  # which is a cause and a fault
    return {
        "first answer right": (sum(map(is_right, answerable)), len(answerable), "≥ 90 %"),
        "confident and wrong": (sum(v.is_confident_wrong for v in verdicts), len(verdicts), "≤ 1 %"),
        "healthy told otherwise": (sum(v.outcome not in (RIGHT, ABSTAINED) for v in healthy), len(healthy), "≤ 2 %"),
        "abstains where it must": (sum(v.outcome == ABSTAINED for v in must), len(must), "≥ 95 %"),
        "abstains where it needn't": (sum(v.outcome == ABSTAINED for v in need_not), len(need_not), "≤ 5 %"),
        "faults found": (sum(bool(v.is_found) for v in faults), len(faults), "≥ 99 %"),
        "alarms without a fault": (sum(v.has_alarm for v in clean), len(clean), "0"),
        "errors": (sum(bool(v.error) for v in verdicts), len(verdicts), "0"),
    }


def table(verdicts: list[Verdict]) -> Iterable[str]:
    """Per cause, the bars, and each miss."""
    yield f"{'cause':<26}{'all':>5}" + "".join(f"{outcome:>18}" for outcome in OUTCOMES)
    for cause in dict.fromkeys(v.cause for v in verdicts):
        own = [v for v in verdicts if v.cause == cause]
        counts = Counter(v.outcome for v in own)
        must = " (must abstain)" if any(v.must_abstain for v in own) else ""
        yield f"{cause:<26}{len(own):>5}" + "".join(f"{counts[o] or '·':>18}" for o in OUTCOMES) + must
    yield ""
    for name, (part, whole, bar) in bars(verdicts).items():
        yield f"{name:<28}{_share(part, whole):<26}bar {bar}"
    yield ""
    if alarms := [v.name for v in verdicts if v.has_alarm and not v.has_fault and not v.must_abstain]:
        yield f"alarms: {', '.join(alarms)}"
    yield from peers.table(verdicts)
    for verdict in verdicts:
        if not is_right(verdict) or verdict.error or verdict.is_found is False:
            yield from _miss(verdict)


def _miss(verdict: Verdict) -> Iterable[str]:
    expected = "cannot tell" if verdict.must_abstain else " or ".join(verdict.accepted)
    rules = ", ".join(
        f"{rule} ({sure}{f', {100 * part:.0f} %' if part is not None else ''})" for rule, sure, part in verdict.rules
    )
    found = " FAULT NOT FOUND" if verdict.is_found is False else ""
    yield f"{verdict.name}: {verdict.outcome}{found}; expected {expected}; got {rules}"
    yield f"    {verdict.error or verdict.title}"
