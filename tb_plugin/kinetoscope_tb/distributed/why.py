"""Why a job stands still or died: one answer, from the dumps of its ranks and from how they ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kinetoscope.journal.status import RankStatus

from ..reader.flight_recorder.files import DumpFolder, Problem
from .deaths import evidence as death_evidence
from .deaths import sentences as death_sentences
from .deaths.deaths import ABORT, KILLED, STOPPED, UNKNOWN
from .deaths.evidence import EndRow
from .deaths.exceptions import TIMEOUT
from .deaths.verdict import (
    ABSENT,
    CANNOT_TELL,
    CULPRIT,
    NOBODY,
    STOPPED_FROM_OUTSIDE,
    DeathVerdict,
    death_verdict,
)
from .hangs import evidence as hang_evidence
from .hangs import sentences as hang_sentences
from .hangs.evidence import Row
from .hangs.titles import ranks_title
from .hangs.verdict import NOTHING_OPEN, SLOW_WORK, Verdict, verdict
from .last_minutes import MinutesRow, minutes_rows

__all__ = ["CANNOT_TELL", "CULPRIT", "NOTHING_OPEN", "SLOW_WORK", "STOPPED_FROM_OUTSIDE", "Answer", "answer_why"]


SUSPENDED, SILENT = "suspended", "silent"
"""The rules for processes that don't even write their journals."""


@dataclass(frozen=True)
class Answer:
    """Why a job stands still or died.

    Args:
        outcome: CULPRIT, CANNOT_TELL, SLOW_WORK, NOTHING_OPEN or STOPPED_FROM_OUTSIDE.
        kind: Which rule decided.
        culprits: The ranks that hold up the others, or that ended first; none if that is unknown.
        suspects: Without culprits, those that may be.
        sentence: The answer.
        rows: A row per rank.
        evidence: What it rests on, and what to do.
        problems: Files that aren't used.
        minutes: The last minutes of the ranks that left them.
    """

    outcome: str
    kind: str
    culprits: tuple[int, ...]
    suspects: tuple[int, ...]
    sentence: str
    rows: Sequence[Row] | Sequence[EndRow]
    evidence: tuple[str, ...]
    problems: tuple[Problem, ...] = ()
    minutes: tuple[MinutesRow, ...] = ()


def answer_why(folder: DumpFolder) -> Answer:
    """The answer for the dumps of a folder, or for a run."""
    return replace(_answer(folder), minutes=tuple(minutes_rows(folder.minutes)))


def _answer(folder: DumpFolder) -> Answer:
    deaths, hang = death_verdict(folder.statuses), verdict(folder) if folder.dumps else None
    if deaths is not None and (hang is None or not _was_first(hang, folder, deaths)):
        mismatch = _mismatch_at_end(folder, deaths)
        if mismatch is None:
            return _of_deaths(deaths, folder.problems)
        return _of_hang(mismatch, [death_sentences.what_followed(deaths)])
    states = {status.state for status in folder.statuses}
    is_past = hang is not None and hang.outcome == NOTHING_OPEN and (states == {"ended"} or "silent" in states)
    if hang is None or (is_past and deaths is None):
        return _of_living(folder.statuses)
    then = "" if deaths is None else death_sentences.what_followed(deaths)
    return _of_hang(hang, [then] if then else [])


def _was_first(hang: Verdict, folder: DumpFolder, deaths: DeathVerdict) -> bool:
    """Whether ranks hung before the first one ended, for another reason than that rank.

    A signal to a rank in a collective makes it write such a file too, so only those of steps that last too long count.
    A rank that hangs is often killed in the end, by a watchdog or a user; its writer process says so soon, or is killed
    with it.
    """
    first_ns = min(death.ns for death in deaths.deaths)
    reports = [dump.report for dump in folder.dumps if dump.report is not None and dump.report.reason == "step"]
    is_earlier = any(report.written_ns < first_ns for report in reports)
    is_failure = deaths.outcome == CULPRIT and deaths.kind not in (ABSENT, KILLED, STOPPED, UNKNOWN)
    is_other = not is_failure or not set(hang.culprits) <= set(deaths.ranks)
    return hang.outcome == CULPRIT and is_earlier and is_other


def _mismatch_at_end(folder: DumpFolder, deaths: DeathVerdict) -> Verdict | None:
    """How the ranks called different collectives, if that is why they ended: gloo then ends one that called the right.

    It aborts the process that receives more than it has room for.
    """
    if not folder.ends or deaths.kind not in (ABORT, TIMEOUT, NOBODY):
        return None
    at_end = verdict(replace(folder, dumps=folder.ends))
    return at_end if at_end.mismatch is not None else None


def _of_hang(hang: Verdict, more: Sequence[str]) -> Answer:
    suspects = () if hang.culprits else hang.ranks
    return Answer(
        hang.outcome,
        hang.kind,
        hang.culprits,
        suspects,
        hang_sentences.sentence(hang),
        hang_evidence.rows(hang),
        (*hang_evidence.evidence(hang), *more),
        hang.problems,
    )


def _of_deaths(deaths: DeathVerdict, problems: tuple[Problem, ...]) -> Answer:
    is_culprit = deaths.outcome == CULPRIT
    return Answer(
        deaths.outcome,
        deaths.kind,
        deaths.ranks if is_culprit else (),
        deaths.ranks if deaths.outcome == CANNOT_TELL else (),
        death_sentences.sentence(deaths),
        death_evidence.rows(deaths),
        tuple(death_evidence.evidence(deaths)),
        problems,
    )


def _of_living(statuses: Sequence[RankStatus]) -> Answer:
    """A run of which no rank has ended badly, and none is in a step that lasts too long."""
    rows = death_evidence.rows(DeathVerdict(NOTHING_OPEN, "", (), tuple(statuses)))
    alive = [status.rank for status in statuses if status.state != "ended"]
    silent = tuple(status for status in statuses if status.state == "silent")
    if silent:
        return _of_silent(silent, rows)
    if alive:
        sentence = f"No rank has ended badly or hangs: {ranks_title(alive)} {'runs' if len(alive) == 1 else 'run'}."
        return Answer(NOTHING_OPEN, "running", (), (), sentence, rows, ())
    return Answer(NOTHING_OPEN, "ended", (), (), "The job ended well: all ranks closed their recordings.", rows, ())


def _of_silent(silent: Sequence[RankStatus], rows: Sequence[EndRow]) -> Answer:
    """Ranks whose processes do nothing, not even write their journals."""
    ranks, first = tuple(status.rank for status in silent), silent[0]
    who, verb = ranks_title(ranks), "has" if len(ranks) == 1 else "have"
    clause = f"{who} {verb} written nothing for {first.age_s:.0f} s"
    if all(status.is_stopped for status in silent):
        sentence = f"{clause}, being stopped: by SIGSTOP, by a debugger, or by Ctrl-Z in a terminal."
        return Answer(CULPRIT, SUSPENDED, ranks, (), sentence[:1].upper() + sentence[1:], rows, ())
    host = "on its machine" if len({status.host for status in silent}) == 1 else "on their machines"
    sentence = (
        f"Cannot tell: {clause}. Code in C holds Python's lock, the process is stopped, or its machine or disk does "
        f"not answer: {host}, /proc/{first.pid}/status and py-spy tell."
    )
    return Answer(CANNOT_TELL, SILENT, (), ranks, sentence, rows, ())
