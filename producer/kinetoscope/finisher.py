"""Finishes recordings beside the training: in a process of its own, without torch and at low priority.

It works through a queue (`jobs`): splices, compresses and renames each trace, uploads it, prunes old ones, and writes
the process's status for `run.json`. It is in a session of its own, so that a signal to the training's group doesn't
end it; it ignores polite signals, since what it does is to save what is left. When the training is gone, it finishes
what there is and ends, and says so if the training had no time to say good-bye.

A job that fails stays in the queue for the next attempt, at the end of the training or by `kinetoscope recover`: a disk
may have room again, and a server may be back.

Where copies may go, the program says that records, or whoever recovers: a URL that only a file names gets none.
"""

from __future__ import annotations

import contextlib
import gc
import math
import os
import select
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import manifest
from .errors import SaveError
from .jobs import MOST_OWN_BYTES, STATE, Job, Queue, is_count
from .plain_files import is_below, read_json, write_json
from .redaction import redacted_urls
from .scratch import check_private
from .uploads import is_allowed, upload
from .window_records import check_target, checked_window, is_as_written, last_words, new_window
from .writer import publish, unfinished_file

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

MOST_KEPT_BYTES = 1 << 30
"""How much of raw files stays on the machine's disk, for traces that couldn't be written."""

MOST_PRUNED = 100
"""How many windows are still told of after their traces were deleted again: a recording may go on for months."""

_MOST_ATTEMPTS = 3  # a job in which the finisher itself died so often is given up
_LOOK_S = 2.0
_PF_EXITING = 0x4  # linux/sched.h


class Finisher:
    """Works on one queue.

    Args:
        queue: The jobs.
        tell: Is called when something has become of a window.
        places: Where copies may go: what their URLs begin with.
        output: Where traces are put, instead of the run's folder.
    """

    def __init__(
        self, queue: Queue, tell: Any = None, *, places: Collection[str] = (), output: Path | None = None
    ) -> None:
        self._queue, self._tell, self._places, self._output = queue, tell, places, output
        state = read_json(queue.folder / STATE)
        state = state if isinstance(state, dict) else {}
        windows, pruned_to = state.get("windows"), state.get("pruned_to")
        valid = (checked_window(window) for window in (windows if isinstance(windows, list) else ()))
        self._windows: dict[int, dict[str, Any]] = {window["window"]: window for window in valid if window}
        self._pruned_to: int = pruned_to if is_count(pruned_to) else -1
        self._tried: set[int] = set()
        self.has_listener = True
        """Whether the program still hears of its traces, if it wants to."""
        self._reported: object = None
        self._process: dict[str, Any] | None = None
        self._earlier: list[dict[str, Any]] | None = None

    def work(self) -> None:
        """Do all that can be done: first what makes traces, then uploads. A job that failed isn't tried again."""
        while True:
            jobs = [job for job in self._queue.jobs() if job.number not in self._tried]
            for job in jobs:
                self._windows.setdefault(job.number, new_window(job))
            if not jobs:
                self._give_up_those_without_a_job()
                self.prune_heard()
            self.report()
            if not jobs:
                return
            job = min(jobs, key=lambda job: (job.path is not None, job.number))
            self._do(job)

    def _give_up_those_without_a_job(self) -> None:
        """Say of windows whose files somebody removed that they are lost."""
        if self._queue.refused():
            return
        remaining = {job.number for job in self._queue.jobs()}
        for number, window in self._windows.items():
            if window["state"] in (manifest.SAVING, manifest.KEPT) and number not in remaining:
                problem = f"somebody removed its raw file from {self._queue.folder}"
                window |= {"state": manifest.LOST, "problem": problem}
                window.pop("raw", None)

    def try_again(self) -> None:
        """Do what failed before once more."""
        self._tried.clear()
        self.work()

    def _do(self, job: Job) -> None:
        told = self._windows[job.number]
        try:
            if job.lost is not None:
                raise SaveError(job.lost)
            if job.path is None:
                self._publish(job, told)
            if job.remote is None:
                self._queue.remove(job)
            elif is_allowed(job.remote, self._places):
                self._upload(job, told)
            else:
                self._tried.add(job.number)
                told["upload"] = {"url": job.remote, "state": "waiting"}
            self._prune(Path(job.folder), job.keep)
        except Exception as error:  # noqa: BLE001  whatever is wrong with one job, the others are to be done
            self._failed(job, told, str(error) or type(error).__name__)

    def _publish(self, job: Job, told: dict[str, Any]) -> None:
        if job.attempts >= _MOST_ATTEMPTS:
            raise SaveError(f"the process that should write it died {job.attempts} times")
        job.attempts += 1
        self._queue.put(job)
        raw, own = Path(job.raw), read_json(self._queue.own(job.number), MOST_OWN_BYTES)
        if not raw.exists():
            if told["state"] in (manifest.SAVED, manifest.PARTIAL):  # before the queue was removed and made again
                job.path = told["path"]
                return
            job.lost = f"its raw file {raw} is gone"
            raise SaveError(job.lost)
        folder = self._output or Path(job.folder)
        target = folder / job.file
        check_target(target, job.file, folder)
        path, damage = publish(raw, target, job.metadata, own, owner=self._queue.folder.name, overwrite=job.overwrite)
        told |= {"state": manifest.PARTIAL if job.is_partial else manifest.SAVED, "problem": str(damage) or None}
        told |= {"file": path.relative_to(folder).as_posix(), "bytes": path.stat().st_size, "path": str(path)}
        told |= {"saved_ns": time.time_ns()}
        told.pop("raw", None)
        job.path = str(path)
        if job.remote is not None:
            told["upload"] = {"url": job.remote, "state": "waiting"}
            if self._output is not None:  # until it is copied it remains to be done
                self._queue.put(replace(job, path=None, attempts=job.attempts - 1))
                return
            self._queue.put(job)
        raw.unlink(missing_ok=True)  # somebody may have removed the queue meanwhile

    def _upload(self, job: Job, told: dict[str, Any]) -> None:
        self.report()  # the trace is there, whatever becomes of its copy
        path, url = Path(str(job.path)), str(job.remote)
        try:
            upload(path, url, overwrite=job.overwrite)
        except (SaveError, OSError) as error:
            self._tried.add(job.number)
            told["upload"] = {"url": url, "state": "failed", "problem": str(error)}
            return
        told["upload"] = {"url": url, "state": "uploaded"}
        self._queue.remove(job)
        self.report()
        self._mirror()

    def _failed(self, job: Job, told: dict[str, Any], problem: str) -> None:
        """Keep the raw file for another attempt, while there is room for it."""
        self._tried.add(job.number)
        raw = Path(job.raw)
        kept = sum(Path(j.raw).stat().st_size for j in self._queue.jobs() if Path(j.raw).exists())
        is_hopeless = job.lost is not None or job.attempts >= _MOST_ATTEMPTS or not raw.exists()
        if is_hopeless or kept > MOST_KEPT_BYTES:
            told |= {"state": manifest.LOST, "problem": problem}
            self._queue.remove(job)
            self._remove_unfinished(job)
        else:
            job.attempts -= 1  # it counts the attempts that nobody survived
            with contextlib.suppress(OSError):
                self._queue.put(job)
            told |= {"state": manifest.KEPT, "problem": problem, "raw": str(raw)}

    def _remove_unfinished(self, job: Job) -> None:
        """Remove what a process left that died over a job which nobody will do any more."""
        target, folder = Path(job.folder) / job.file, Path(job.folder)
        if is_below(target, folder):
            with contextlib.suppress(OSError):
                unfinished_file(target, self._queue.folder.name).unlink(missing_ok=True)

    def prune_heard(self) -> None:
        """Delete what stayed only until the program has heard of it."""
        process = self._known_process() or {}
        if "heard_to" in process and is_count(process.get("keep")):
            with contextlib.suppress(OSError):  # the next window's turn tries again
                self._prune(Path(process["folder"]), process["keep"])

    def _heard_to(self) -> float:
        """Up to which window the program has heard of all that it wants to hear of."""
        told = (self._known_process() or {}).get("heard_to")
        return told if self.has_listener and isinstance(told, int) else math.inf

    def _prune(self, folder: Path, keep: int) -> None:
        """Delete the oldest traces but for `keep`; one that shall be elsewhere, or heard of, stays until it is."""
        if keep < 0 or self._output is not None:
            return
        heard_to = self._heard_to()
        present = [w for _, w in sorted(self._windows.items()) if w.get("path") and not w.get("pruned")]
        self._prune_earlier(folder, keep - len(present), {Path(w["path"]) for w in present})
        for window in present[: max(0, len(present) - keep)]:
            if window["window"] > heard_to:
                break
            if (window.get("upload") or {}).get("state", "uploaded") == "uploaded":
                if is_below(Path(window["path"]), folder):
                    Path(window["path"]).unlink(missing_ok=True)
                window["pruned"] = True
        gone = [number for number, window in sorted(self._windows.items()) if window.get("pruned")]
        for number in gone[:-MOST_PRUNED]:
            self._pruned_to = max(self._pruned_to, self._windows.pop(number)["span"])

    def _prune_earlier(self, folder: Path, room: int, own: set[Path]) -> None:
        """Delete the oldest traces of this rank's earlier attempts in the same folder but for as many as there is room.

        Only what still is the file that such an attempt wrote: what the program or somebody else has put in its place
        stays.
        """
        earlier = [each for each in self._earlier or () if is_as_written(folder, each, own)]
        for each in earlier[: max(0, len(earlier) - max(0, room))]:
            (folder / each["file"]).unlink(missing_ok=True)
            earlier.remove(each)
        self._earlier = earlier

    def report(self, *, is_killed: bool = False) -> None:
        """Write down what became of the windows, for the training, the run's manifest and the next finisher."""
        process = self._known_process()
        windows = [self._windows[number] for number in sorted(self._windows)]
        now = (process, windows, is_killed)
        if now == self._reported and (self._queue.folder / STATE).exists():
            return
        with contextlib.suppress(OSError):
            write_json(self._queue.folder / STATE, {"windows": windows, "pruned_to": self._pruned_to})
        self._reported = (process, [dict(window) for window in windows], is_killed)
        if process is not None:
            self._publish_status(process, windows, is_killed=is_killed)
        if self._tell is not None:
            self._tell()

    def _publish_status(self, process: dict[str, Any], windows: list[dict[str, Any]], *, is_killed: bool) -> None:
        folder, private = Path(process["folder"]), ("folder", "remote", "is_alone", "heard_to", "keep")
        if self._earlier is None:
            self._earlier = manifest.earlier_traces(folder, process["global_rank"], process.get("attempt"))
        facts = {key: value for key, value in process.items() if key not in private}
        status = {**facts, "queue": str(self._queue.folder), "updated_ns": time.time_ns(), "earlier": self._earlier}
        status["pruned_to"] = self._pruned_to
        if is_killed:
            status |= {"state": manifest.KILLED, "problem": last_words(process)}
        shown = redacted_urls([{k: v for k, v in window.items() if k not in ("path", "window")} for window in windows])
        with contextlib.suppress(OSError):  # the traces can't be written either, which is said in the log
            manifest.write_status(folder, process["global_rank"], {**status, "windows": shown})

    def _mirror(self) -> None:
        """Copy the run's manifest to where the traces are copied to."""
        process = self._known_process()
        if process is not None and process.get("remote") and is_allowed(process["remote"], self._places):
            with contextlib.suppress(SaveError, OSError):
                upload(Path(process["folder"]) / manifest.NAME, process["remote"], overwrite=True, tries=1)

    def _known_process(self) -> dict[str, Any] | None:
        """What is true of the whole process, also if somebody has removed the queue meanwhile."""
        self._process = self._queue.process() or self._process
        return self._process

    def has_ended(self) -> bool:
        """Whether the training has said good-bye."""
        process = self._known_process()
        return process is None or process.get("state") == manifest.ENDED

    def close(self, *, is_killed: bool = False) -> list[dict[str, Any]]:
        """Say that all is done; return what became of the windows."""
        self.report(is_killed=is_killed)
        self._mirror()
        return [self._windows[number] for number in sorted(self._windows)]


def finish_left_over(
    folder: Path, *, places: Collection[str] = (), output: Path | None = None
) -> list[dict[str, Any]] | None:
    """Finish the jobs of a queue whose finisher is gone; return what became of its windows.

    None if a finisher is still at work, or there is no such folder. The folder goes when nothing is left in it to do
    and its process is gone.

    Args:
        folder: The queue, of which is known that nobody else may write to it.
        places: Where copies may go: what their URLs begin with.
        output: Where traces are put, instead of the run's folder.

    Raises:
        OSError: The folder can't be read.
    """
    if not folder.is_dir():
        return None
    queue = Queue(folder)
    lock = queue.lock()
    if lock is None:
        return None
    try:
        finisher, has_died = Finisher(queue, places=places, output=output), not is_alive(queue)
        finisher.has_listener = not has_died
        finisher.work()
        windows = finisher.close(is_killed=not finisher.has_ended() and has_died)
    finally:
        os.close(lock)
    if has_died and queue.is_empty():
        queue.discard()
    return windows


def prune_left_over(folder: Path) -> None:
    """Delete what stayed until the program has heard of it, when its finisher has ended."""
    queue = Queue(folder)
    lock = queue.lock() if folder.is_dir() else None
    if lock is not None:
        try:
            finisher = Finisher(queue)
            finisher.prune_heard()
            finisher.report()
        finally:
            os.close(lock)


def is_alive(queue: Queue) -> bool:
    """Whether the training still runs; a queue is on its machine."""
    try:
        os.kill((queue.process() or {}).get("pid") or os.getpid(), 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    return True


def main(folder: str, parent: int, places: Collection[str] = ()) -> None:
    """Attend the queue until the training is gone.

    Args:
        folder: The queue.
        parent: The training's process.
        places: Where copies may go, as the training says.
    """
    _be_modest()
    queue = Queue(Path(folder))
    check_private(queue.folder)
    lock = queue.lock()
    if lock is None:
        return
    finisher = Finisher(queue, _tell, places=places)
    while True:
        lock = _renewed(queue, lock)
        finisher.work()
        if _is_over(parent):
            break
    is_alone = (queue.process() or {}).get("is_alone", False)
    finisher.has_listener = finisher.has_ended() and not is_alone and not _is_gone(parent)
    finisher.try_again()
    finisher.close(is_killed=not finisher.has_ended())
    is_alone = (queue.process() or {}).get("is_alone", False)
    # Who has said good-bye waits, and clears up.
    if (is_alone or not finisher.has_ended() or _is_gone(parent)) and queue.is_empty():
        queue.discard()


def _is_gone(parent: int) -> bool:
    """Whether the training is gone, or going: it takes the system a while to take a large process down.

    Its pipes are closed then, but it still is the parent. Linux marks it before all that; proc(5), fields 9 and 2.
    """
    if os.getppid() != parent:
        return True
    try:
        stat = Path(f"/proc/{parent}/stat").read_text(encoding="utf-8", errors="replace")
        return bool(int(stat.rpartition(")")[2].split()[6]) & _PF_EXITING)
    except (OSError, ValueError, IndexError):  # another system
        return False


def _renewed(queue: Queue, lock: int) -> int:
    """The lock, or another one where the queue was removed and made again."""
    renewed = queue.lock() if queue.folder.is_dir() and not queue.holds(lock) else None
    if renewed is None:
        return lock
    os.close(lock)
    return renewed


def _be_modest() -> None:
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    with contextlib.suppress(OSError, AttributeError):
        os.nice(10)
    gc.disable()  # checking JSON makes many values, none of them in a cycle


def _tell() -> None:
    with contextlib.suppress(OSError):
        os.write(sys.stdout.fileno(), b"\n")


def _is_over(parent: int) -> bool:
    """Wait for the training to say something; return whether it is gone.

    Its end closes the pipe, unless a process that it forked still holds it; then it isn't the parent any more.
    """
    descriptor = sys.stdin.fileno()
    ready: Iterable[int] = select.select([descriptor], [], [], _LOOK_S)[0]
    return (bool(ready) and not os.read(descriptor, 1 << 16)) or os.getppid() != parent
