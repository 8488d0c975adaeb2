"""What must be true of a run after anything that happened to it: one oracle, for all the torture.

What is in the folder is whole and readable, nothing is left half done, nobody is still alive, and `kinetoscope check`,
`status` and `recover` say what is so, no more and no less.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import select
import signal
import time
import unittest.mock
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import kinetoscope_tb
from kinetoscope.naming import parse
from kinetoscope_tb.cli import main
from support.processes import steps_of, traces_in

LIMIT_S = 300  # a busy machine is no failure
_EXITING = 0x4  # the flag of a process that ends (include/linux/sched.h)
ALLOWED = re.compile(  # what may be below a run's folder, next to its traces
    r"run\.json"
    r"|\.work(/status|/plans|/done)?"
    r"|\.work/attempt"
    r"|\.work/rank[0-9]+\.ring"
    r"|\.work/status/rank[0-9]+\.json"
    r"|\.work/plans/.*"
    r"|\.work/rank[0-9]+(\.left-[0-9]+)?(\.1)?\.(jsonl|recovered)"
    r"|hang(/rank[0-9]+\.([0-9]+|end)\.json)?"
)


class OneOf(tuple):
    """Equal to each of some values: where two processes race, it's not for us to say who is first."""

    __slots__ = ()
    __hash__ = tuple.__hash__

    def __new__(cls, *values):
        return super().__new__(cls, values)

    def __eq__(self, other):
        return other in tuple(self)

    def __ne__(self, other):
        return not self == other


@dataclass(frozen=True)
class Window:
    """One trace that must be there.

    Args:
        steps: The steps in it.
        reason: What ended the window: one, or `OneOf` some.
        is_complete: Whether it ended where it should have.
    """

    steps: tuple[int, ...]
    reason: str | OneOf = "schedule"
    is_complete: bool = True


@dataclass(frozen=True)
class Rank:
    """One process of the job, as `status` must show it.

    Args:
        state: `ended` or `dead`.
        reason: Why it ended.
        completed: How many steps it completed; None where it completed none.
        recovered: How many steps `recover` brings back from its journal; None where there is nothing to bring back.
    """

    state: str = "ended"
    reason: str | OneOf | None = "end"
    completed: int | None = None
    recovered: int | None = None


@dataclass(frozen=True)
class Truth:
    """What is true of a run.

    Args:
        windows: The traces, by rank and span.
        ranks: The processes, by rank.
        lost: How many recordings were lost.
        names: What `check` says of them: patterns that its words must hold.
        finished: The traces that `recover` makes of what lies in the scratch folder, by rank and span.
        deleted: Traces that were saved and then deleted, by rank and span.
        lost_after: How many are lost for good, after `recover`.
        leaves_queue: Whether an empty queue may stay until `recover`: the launcher's signal came after the writer's end
            and before the training could clear up.
        leaves_nothing: Whether there is no folder at all: it was over before anything was known.
    """

    windows: dict[tuple[int, int], Window] = field(default_factory=dict)
    ranks: dict[int, Rank] = field(default_factory=lambda: {0: Rank()})
    lost: int = 0
    names: tuple[str, ...] = ()
    finished: dict[tuple[int, int], Window] = field(default_factory=dict)
    deleted: frozenset[tuple[int, int]] = frozenset()
    lost_after: int | None = None
    leaves_queue: bool = False
    leaves_nothing: bool = False


@dataclass(frozen=True)
class CommandResult:
    """The result of a command: its exit status and output."""

    status: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """All of it."""
        return self.out + self.err


def run_command(*arguments: object, scratch: Path | None = None) -> CommandResult:
    """Run one of our commands in this process, with a folder for temporary files."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        unittest.mock.patch("tempfile.tempdir", None if scratch is None else str(scratch)),
    ):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as left:
            status = int(left.code or 0)
    assert "Traceback" not in out.getvalue() + err.getvalue()
    return CommandResult(status, out.getvalue(), err.getvalue())


def processes(is_chosen: Callable[[Path], bool]) -> list[int]:
    """The processes that are chosen by their folder of /proc."""
    pids = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                if is_chosen(folder):
                    pids.append(int(folder.name))
    return pids


def processes_of(mark: str) -> list[int]:
    """The processes whose environment holds a text, as far as they are alive; this one's is never changed."""
    return processes(lambda folder: mark.encode() in (folder / "environ").read_bytes())


def dying_processes() -> list[int]:
    """The processes that end: their environment is gone before their files and locks are."""

    def is_ending(folder: Path) -> bool:
        state, *fields = (folder / "stat").read_text().rpartition(")")[2].split()
        return state not in "ZX" and bool(int(fields[5]) & _EXITING)

    return processes(is_ending)


def kill(mark: str) -> None:
    """Kill what is left of a job, when its test is over."""
    for pid in processes_of(mark):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_until_gone(mark)


def wait_until_gone(mark: str, limit_s: float = LIMIT_S) -> None:
    """Wait for the processes of a job to end; those that outlive a training have things to finish."""
    deadline = time.monotonic() + limit_s
    while alive := processes_of(mark) or dying_processes():
        for pid in alive:
            with contextlib.suppress(ProcessLookupError):
                ending = os.pidfd_open(pid)
                try:
                    is_gone = select.select([ending], [], [], max(0.0, deadline - time.monotonic()))[0]
                finally:
                    os.close(ending)
                command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ") if not is_gone else b""
                assert is_gone, f"a process of the job doesn't end: {command.decode()}"


def files_in(folder: Path) -> dict[str, bytes]:
    """The content of each file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def assert_truth(run: Path, scratch: Path, truth: Truth) -> None:
    """Hold that a run is what it should be, and that our commands say so.

    Args:
        run: Its folder.
        scratch: The temporary folder of its processes, which is no one else's.
        truth: What is true of it.
    """
    if truth.leaves_nothing:
        assert not run.exists()
        assert list(scratch.glob("kinetoscope*")) == []
        return
    if not truth.finished and not truth.leaves_queue:  # else `recover` has it to tidy up
        assert_tidy(run, scratch)
    assert_windows(run, truth.windows)
    assert_manifest(run, {*truth.windows, *truth.deleted}, truth)
    assert_check(run, scratch, truth.lost, truth.names)
    assert_status(run, truth.ranks)
    assert_recover(run, scratch, truth)
    assert_tidy(run, scratch)


def assert_tidy(run: Path, scratch: Path) -> None:
    """Nothing is left unfinished, neither next to the traces nor in the scratch folder."""
    below = [path.relative_to(run).as_posix() for path in run.rglob("*")]
    odd = [name for name in below if ALLOWED.fullmatch(name) is None and parse(name) is None]
    assert odd == []
    assert [str(path) for path in scratch.rglob("kinetoscope*/**/*")] == []
    assert list(scratch.glob("kinetoscope*")) == []


def windows_in(run: Path) -> dict[tuple[int, int], Window]:
    """The windows of a run that were saved, by rank and span, each opened with all that opens traces."""
    windows = {}
    for (worker, span), trace in traces_in(run).items():
        metadata, path = trace["kinetoscope"], run / f"{worker}.{span}.pt.trace.json.gz"
        if not metadata.get("is_recovered"):
            window = Window(tuple(steps_of(trace)), metadata["reason"], metadata["is_complete"])
            windows[int(worker.removeprefix("rank")), span] = window
            assert any(event.get("cat") == "cpu_op" for event in trace["traceEvents"])
        assert kinetoscope_tb.open(path).steps["step"].to_list() == [str(step) for step in steps_of(trace)]
    return windows


def assert_windows(run: Path, windows: dict[tuple[int, int], Window]) -> None:
    """Every window is there, whole, and no other trace is."""
    assert windows_in(run) == windows
    assert len(traces_in(run)) == len(windows)


def assert_manifest(run: Path, keys: set[tuple[int, int]], truth: Truth) -> None:
    """`run.json` lists as saved exactly the traces that exist, or existed until they were deleted."""
    if truth.finished and not (run / "run.json").exists():  # everybody was killed before the first word
        return
    manifest = json.loads((run / "run.json").read_text())
    states = {
        (int(rank), window["span"]): outcome
        for window in manifest["windows"]
        for rank, outcome in window["ranks"].items()
    }
    saved = {key: outcome for key, outcome in states.items() if outcome["state"] in ("saved", "partial")}
    assert set(saved) == keys
    for key, outcome in saved.items():
        if key not in truth.deleted:
            assert (outcome["state"] == "saved") == {**truth.windows, **truth.finished}[key].is_complete
            assert (run / outcome["file"]).stat().st_size == outcome["bytes"]


def assert_check(run: Path, scratch: Path, lost: int, names: tuple[str, ...]) -> None:
    """It fails if and only if something was lost; it names it and counts it."""
    answer = run_command("check", run, scratch=scratch)
    if not any(run.glob("*.gz")):
        assert answer.status == 1, answer.text
        assert names or "There is no trace in" in answer.text
    else:
        assert (answer.status, bool(answer.text)) == (int(lost > 0), True), answer.text
    for name in names:
        assert re.search(name, answer.text), answer.text
    counted = [
        int(number.replace(",", ""))
        for number in re.findall(r"([0-9,]+) recordings? (?:is|are|was|were) lost", answer.text)
    ]
    assert set(counted) <= {lost}, answer.text
    assert "more than one file" not in answer.text, answer.text


def assert_status(run: Path, ranks: dict[int, Rank]) -> None:
    """Each process's state, why it ended, and how far it came."""
    status_by_rank = {
        rank["rank"]: rank for rank in json.loads(run_command("status", run, "--format", "json").out)["ranks"]
    }
    assert {
        number: (rank["state"], rank["reason"], rank["completed"], rank["is_recording"] and rank["state"] == "ended")
        for number, rank in status_by_rank.items()
    } == {number: (rank.state, rank.reason, rank.completed, False) for number, rank in ranks.items()}
    words = run_command("status", run).out
    for number, rank in ranks.items():
        assert f"rank {number}: {rank.state}" in words, words


def assert_recover(run: Path, scratch: Path, truth: Truth) -> None:
    """It brings back what can be, does nothing the second time, and `check` is right afterwards."""
    answer = run_command("recover", run, scratch=scratch)
    assert answer.status == 0, answer.text
    assert windows_in(run) == {**truth.windows, **truth.finished}
    recovered = {
        int(re.match(r"rank([0-9]+)", worker)[1]): len(steps_of(trace))
        for (worker, _), trace in traces_in(run).items()
        if trace["kinetoscope"].get("is_recovered")
    }
    assert recovered == {n: rank.recovered for n, rank in truth.ranks.items() if rank.recovered is not None}
    files = files_in(run)
    again = run_command("recover", run, scratch=scratch)
    assert (again.status, files_in(run)) == (0, files), again.text
    assert "Nothing to recover" in again.text
    assert_status(run, truth.ranks)
    assert_check(run, scratch, truth.lost if truth.lost_after is None else truth.lost_after, ())
    for span in json.loads((run / "run.json").read_text())["windows"]:
        assert not any(outcome["state"] in ("saving", "kept") for outcome in span["ranks"].values())
