"""A small training that is killed in several ways, and what is left of it."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Timer
from typing import IO, TYPE_CHECKING, Any

from ..job.rank_info import without_launcher
from ..journal.recover import finish_spools, recover_journals
from ..journal.status import rank_statuses
from ..output.manifest import LOST, NAME
from ..untrusted_files import read_json
from .results import Result, result_of
from .steps import AFTER_WINDOW, BETWEEN, IN_WINDOW, STEPS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .results import Outcome

_PAUSE_S, _MOST_TEXT = 0.05, 300
_ENDS = "Use another disk for the logdir."
_IN_WINDOW = "The last steps of killed jobs are lost here: record short windows."
_TERMINATED = "Let the launcher wait longer between SIGTERM and SIGKILL."
_WRITING = "Set KINETOSCOPE_SCRATCH to a folder that stays, and call `kinetoscope recover` after a job was killed."
_FULL = "Watch the disk's room, and let `kinetoscope prune` make some."
_HANGING = "`kinetoscope why` then needs dumps of torch's flight recorder."


Case = Callable[[], tuple[bool, str]]
"""Tries something: whether all survived that should, and what did."""


class Deadline:
    """When a test must end.

    Args:
        seconds: From now on.
    """

    def __init__(self, seconds: float) -> None:
        self._end_s = time.monotonic() + seconds

    @property
    def left_s(self) -> float:
        """Seconds that are left."""
        return max(0.0, self._end_s - time.monotonic())

    def wait_for(self, is_true: Callable[[], object], what: str) -> None:
        """Wait until something is true.

        Raises:
            TimeoutError: The time is over.
        """
        while not is_true():
            if not self.left_s:
                raise TimeoutError(f"{what} didn't happen in time")
            time.sleep(_PAUSE_S)


class Child:
    """A training in a process of its own.

    Args:
        arguments: Of `python`.
        deadline: When it must have ended.
        log: Gets its messages.
    """

    def __init__(self, arguments: Sequence[str], deadline: Deadline, log: IO[str]) -> None:
        self._deadline = deadline
        self.process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
            env=without_launcher(os.environ),
        )

    def wait_for_line(self, beginning: str) -> list[str]:
        """Let it go on until it prints a line that begins so; return the words of the line.

        Raises:
            TimeoutError: It ended before.
        """
        for line in _stream(self.process.stdout):
            if line.startswith(beginning):
                return line.split()
            self.go_on()
        raise TimeoutError(f"the training ended with status {self.wait()} before {beginning!r}")

    def go_on(self) -> None:
        """Let it go on from where it waits."""
        with suppress(BrokenPipeError):
            stream = self.process.stdin
            if stream is not None:
                stream.write("\n")
                stream.flush()

    def finish(self) -> int:
        """Let it go on to its end; return its exit status."""
        for _ in range(STEPS):
            self.go_on()
        return self.wait()

    def wait(self) -> int:
        """Wait for its end; return its exit status.

        Raises:
            TimeoutError: It doesn't end in time.
        """
        try:
            return self.process.wait(self._deadline.left_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError("the training didn't end in time") from None


def _stream(stream: IO[str] | None) -> IO[str]:
    if stream is None:
        raise ValueError("no pipe")
    return stream


@contextmanager
def training(arguments: Sequence[str], deadline: Deadline, log: Path) -> Iterator[Child]:
    """Start a training; whatever happens, its processes have ended after the block."""
    with log.open("w") as messages:
        child = Child(arguments, deadline, messages)
    timer = _kill_at(deadline, child)
    try:
        yield child
    finally:
        timer.cancel()
        _kill_group(child.process.pid)  # its own
        child.process.wait()
        for stream in (child.process.stdin, child.process.stdout):
            with suppress(BrokenPipeError):
                _close(stream)


def _close(stream: IO[str] | None) -> None:
    if stream is not None:
        stream.close()


def _kill_at(deadline: Deadline, child: Child) -> Timer:
    timer = Timer(deadline.left_s, lambda: _kill_group(child.process.pid))
    timer.daemon = True
    timer.start()
    return timer


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


class Deaths:
    """Trainings into a logdir, each of which something happens to.

    Args:
        logdir: The folder.
        deadline: When all must have ended.
    """

    def __init__(self, logdir: Path, deadline: Deadline) -> None:
        self._logdir, self._deadline = logdir, deadline

    def results(self, *, is_quick: bool) -> Iterator[Result]:
        """Yield what survives."""
        cases: list[tuple[str, Case, str]] = [
            ("training: ends", self._end, _ENDS),
            ("training: SIGKILL in a window", self._kill_in_window, _IN_WINDOW),
            ("training: SIGTERM in a window", self._terminate, _TERMINATED),
            ("training: SIGKILL while a trace is written", self._kill_after_window, _WRITING),
            ("training: SIGKILL of its writer", self._kill_writer, _WRITING),
            ("training: its disk is full", self._fill_disk, _FULL),
            ("job: a rank hangs, and is killed", self._hang, _HANGING),
        ]
        self._logdir.mkdir(exist_ok=True)
        for what, case, advice in cases[: 2 if is_quick else None]:
            if self._deadline.left_s:
                yield self._with_message(result_of(what, partial(_outcome, case)), advice)
            else:
                yield Result(what, "not tried", "no time was left", "Try again when the machine is less busy.")

    def _with_message(self, result: Result, advice: str) -> Result:
        """Return a failure with the last message of its training, and what to do about it."""
        if result.outcome != "FAILED":
            return result
        lines = self._log.read_text(errors="replace").split("\n") if self._log.exists() else []
        last = next((line.strip()[:_MOST_TEXT] for line in reversed(lines) if line.strip()), "none")
        return replace(result, detail=f"{result.detail}; its last message: {last.rstrip('.')}", advice=advice)

    @property
    def _log(self) -> Path:
        return self._logdir / "messages"

    def _train(self, run: str, launcher: Sequence[str] = ()) -> AbstractContextManager[Child]:
        words = [*launcher, "-m", "kinetoscope.selftest.training", str(self._logdir), run]
        return training(words, self._deadline, self._log)

    def _end(self) -> tuple[bool, str]:
        with self._train("ends") as child:
            status = child.finish()
        whole = whole_traces(self._logdir / "ends")
        return (status == 0 and len(whole) >= 2, f"{len(whole)} whole traces, exit status {status}")

    def _kill_in_window(self) -> tuple[bool, str]:
        run = self._logdir / "killed-in-window"
        with self._train(run.name) as child:
            child.wait_for_line(f"step {IN_WINDOW} ")
            self._deadline.wait_for(lambda: _step_count(run) >= IN_WINDOW, "the journal of the last step")
            child.process.kill()
            child.wait()
        self._deadline.wait_for(lambda: _state(run) == "killed", "the report of the death")
        journals = [journal for journal in recover_journals(run) if journal.trace is not None]
        steps = sum(journal.steps for journal in journals)
        detail = f"named in run.json; `recover` made a trace of {steps} steps"
        return (bool(journals) and steps >= IN_WINDOW, detail)

    def _terminate(self) -> tuple[bool, str]:
        run = self._logdir / "terminated"
        with self._train(run.name) as child:
            child.wait_for_line(f"step {IN_WINDOW} ")
            child.process.terminate()
            status = child.wait()
        whole = whole_traces(run)
        return (len(whole) == 1 and status == -signal.SIGTERM, f"{len(whole)} trace of the open window")

    def _kill_after_window(self) -> tuple[bool, str]:
        run = self._logdir / "killed-after-window"
        with self._train(run.name) as child:
            child.wait_for_line(f"step {AFTER_WINDOW} ")
            child.process.kill()
            child.wait()
            self._deadline.wait_for(lambda: whole_traces(run) and _state(run) == "killed", "the trace of the window")
        return (len(whole_traces(run)) == 1, "the writer process finished the trace")

    def _kill_writer(self) -> tuple[bool, str]:
        run = self._logdir / "killed-writer"
        with self._train(run.name) as child:
            writer = int(child.wait_for_line(f"step {AFTER_WINDOW} ")[2])
            if writer <= 1:
                return False, "there was no writer process"
            os.kill(writer, signal.SIGKILL)
            status = child.finish()
        finish_spools(run)
        whole = whole_traces(run)
        return (status == 0 and len(whole) >= 2, f"{len(whole)} whole traces, exit status {status}")

    def _fill_disk(self) -> tuple[bool, str]:
        run = self._logdir / "full-disk"
        with self._train(run.name) as child:
            child.wait_for_line(f"step {BETWEEN} ")
            status = child.finish()
        losses = [outcome for outcome in _outcomes(run) if outcome.get("state") == LOST]
        whole = whole_traces(run)
        detail = f"the training went on; {len(whole)} whole trace, and {len(losses)} named as lost"
        return (status == 0 and len(whole) == 1 and bool(losses), detail)

    def _hang(self) -> tuple[bool, str]:
        run = self._logdir / "ranks"
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        with self._train(run.name, launcher) as child:
            pid = int(child.wait_for_line("hangs ")[1])
            self._deadline.wait_for(lambda: len(_hang_files(run)) >= 2, "what both ranks wrote while they hung")
            os.kill(pid, signal.SIGKILL)
            child.wait()
        self._deadline.wait_for(lambda: {rank.get("state") for rank in _ranks(run)} == {"killed", "ended"}, "both ends")
        whole = whole_traces(run)
        detail = f"both wrote where they hung; {len(whole)} whole traces; the killed rank is named"
        return (len(whole) == 2, detail)


def _outcome(case: Case) -> tuple[Outcome, str, str]:
    is_right, detail = case()
    return "ok" if is_right else "FAILED", detail, ""


def whole_traces(run: Path) -> list[Path]:
    """Return the traces of a run that are whole: valid compression, and JSON with events."""
    return [path for path in sorted(run.glob("*.pt.trace.json.gz")) if _is_whole(path)]


def _is_whole(path: Path) -> bool:
    try:
        trace = json.loads(gzip.decompress(path.read_bytes()))
    except (OSError, EOFError, ValueError, zlib.error):
        return False
    return isinstance(trace, dict) and bool(trace.get("traceEvents")) and "kinetoscope" in trace


def _manifest(run: Path) -> dict[str, Any]:
    manifest = read_json(run / NAME)
    return manifest if isinstance(manifest, dict) else {}


def _ranks(run: Path) -> list[dict[str, Any]]:
    return list(_manifest(run).get("ranks", ()))


def _state(run: Path) -> str | None:
    return next((rank.get("state") for rank in _ranks(run)), None)


def _outcomes(run: Path) -> list[dict[str, Any]]:
    return [outcome for window in _manifest(run).get("windows", ()) for outcome in window["ranks"].values()]


def _step_count(run: Path) -> int:
    return max((rank.completed or 0 for rank in rank_statuses(run)), default=0)


def _hang_files(run: Path) -> set[str]:
    return {path.name.split(".")[0] for path in (run / "hang").glob("rank*.json")}
