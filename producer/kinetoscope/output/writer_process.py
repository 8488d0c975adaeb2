"""Writes traces during the training, in a separate process, without torch and at low priority.

It works through a spool (`spool`): merges, compresses and renames each trace, uploads it, prunes old ones, and writes
the process's status for `run.json`. It has its own session, so that a signal to the training's process group doesn't
end it; it ignores SIGTERM and the like, since its work is to save the rest. When the training has ended, it finishes
the remaining jobs and ends; if the training was killed, it reports that.

A job that fails stays in the spool for the next attempt, at the end of the training or by `kinetoscope recover`: a disk
may have room again, and a server may be back.

Only the recording program, or the user who recovers, decides where copies may go: other URLs in files are ignored.
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

from ..atomic_write import partial_name, replace_file, write_json
from ..child_process import lower_priority
from ..errors import SaveError
from ..naming import journal_name
from ..path_below import LeadsOutside, PathBelow
from ..process_id import is_running
from ..untrusted_files import read_json
from . import manifest
from .commit import commit_snapshot, commit_trace
from .process_watch import ProcessWatch
from .redaction import redacted_urls
from .ring import content_of, ring_file
from .scratch import check_private
from .spool import MAX_PROGRAM_EVENTS_BYTES, SNAPSHOT, STATE, TRACE, Job, Spool, is_count
from .upload import is_allowed, upload
from .window_records import death_message, is_unchanged, kind_of, new_window, validate_window

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ..atomic_write import AtomicFile

MAX_SPOOLED_BYTES = 1 << 30
"""How many bytes of raw files stay on the machine's disk for traces that couldn't be written."""

MAX_PRUNED_RECORDS = 100
"""How many windows stay in the records after their traces were deleted: a recording may last for months."""

_MAX_ATTEMPTS = 3  # after the writer process has died this often in a job, the job is given up
_LOOK_S = 2.0
_FROZEN_S = 2.5  # a training touches its journal every two seconds
_PF_EXITING = 0x4  # linux/sched.h


class SpoolWriter:
    """Works on one spool.

    Args:
        spool: The jobs.
        notify: Called when the outcome of a window changes.
        url_prefixes: The allowed prefixes of the URLs of copies.
        output: The folder of the traces, instead of the run's.
    """

    def __init__(
        self, spool: Spool, notify: Any = None, *, url_prefixes: Collection[str] = (), output: Path | None = None
    ) -> None:
        self._spool, self._notify, self._url_prefixes, self._output = spool, notify, url_prefixes, output
        state = read_json(spool.folder / STATE)
        state = state if isinstance(state, dict) else {}
        windows, pruned_to, death = state.get("windows"), state.get("pruned_to"), state.get("death")
        valid = (validate_window(window) for window in (windows if isinstance(windows, list) else ()))
        self._windows: dict[int, dict[str, Any]] = {window["window"]: window for window in valid if window}
        self._pruned_to: int = pruned_to if is_count(pruned_to) else -1
        self._attempted: set[int] = set()
        self.death: dict[str, Any] | None = death if isinstance(death, dict) else None
        """How the training ended, as far as it is known, if it was killed; see `ProcessWatch.facts`."""
        self.has_listener = True
        """Whether the program still receives outcomes, if it needs them."""
        self._reported: object = None
        self._process: dict[str, Any] | None = None
        self._earlier: list[dict[str, Any]] | None = None
        self._earlier_records: dict[str, list[dict[str, Any]]] = {}

    def work(self) -> None:
        """Do all possible jobs: write all traces first, then upload. A failed job isn't retried."""
        while True:
            jobs = [job for job in self._spool.jobs() if job.number not in self._attempted]
            for job in jobs:
                self._windows.setdefault(job.number, new_window(job))
            if not jobs:
                self._give_up_orphans()
                self.prune_acknowledged()
            self.report()
            if not jobs:
                return
            job = min(jobs, key=lambda job: (job.path is not None, job.number))
            self._run_job(job)

    def _give_up_orphans(self) -> None:
        """Report windows whose files were removed as lost."""
        if self._spool.refused_jobs():
            return
        job_numbers = {job.number for job in self._spool.jobs()}
        for number, window in self._windows.items():
            if window["state"] in (manifest.SAVING, manifest.KEPT) and number not in job_numbers:
                problem = f"its raw file was removed from {self._spool.folder}"
                window |= {"state": manifest.LOST, "problem": problem}
                window.pop("raw", None)

    def retry(self) -> None:
        """Retry the failed jobs."""
        self._attempted.clear()
        self.work()

    def _run_job(self, job: Job) -> None:
        record = self._windows[job.number]
        try:
            if job.lost is not None:
                raise SaveError(job.lost)
            if job.path is None:
                self._commit(job, record)
            if job.remote is None:
                self.report()  # before the job is gone: a process that is killed here leaves no doubt
                self._spool.remove(job)
            elif is_allowed(job.remote, self._url_prefixes):
                self._upload(job, record)
            else:
                self._attempted.add(job.number)
                record["upload"] = {"url": job.remote, "state": "waiting"}
            self._prune(Path(job.folder), job.keep)
        except Exception as error:  # noqa: BLE001  an error in one job must not prevent the others
            self._on_failure(job, record, str(error) or type(error).__name__)

    def _commit(self, job: Job, record: dict[str, Any]) -> None:
        folder, raw = self._output or Path(job.folder), Path(job.raw)
        target = PathBelow.of(folder / job.file, folder)
        file = _published_before(job, target)
        if file is None:
            if job.attempts >= _MAX_ATTEMPTS:
                raise SaveError(f"the process that should write it died {job.attempts} times")
            job.attempts += 1
            self._spool.put(job)
            if not raw.exists():
                if record["state"] in (manifest.SAVED, manifest.PARTIAL):  # the spool was removed and created again
                    job.path = record["path"]
                    return
                job.lost = f"its raw file {raw} is gone"
                raise SaveError(job.lost)
            file = self._write(job, raw, target)
        path, problem = file
        record |= {"state": manifest.PARTIAL if job.is_partial else manifest.SAVED, "problem": problem or None}
        record |= {"file": path.relative_to(folder).as_posix(), "bytes": path.stat().st_size, "path": str(path)}
        record |= {"saved_ns": time.time_ns()}
        record.pop("raw", None)
        job.path = str(path)
        if job.remote is not None:
            record["upload"] = {"url": job.remote, "state": "waiting"}
            if self._output is not None:  # the job remains until the trace is copied
                self._spool.put(replace(job, path=None, complete=None, attempts=max(0, job.attempts - 1)))
                return
            self._spool.put(job)
        raw.unlink(missing_ok=True)  # the spool may have been removed meanwhile

    def _write(self, job: Job, raw: Path, target: PathBelow) -> tuple[Path, str]:
        """Write the trace or the snapshot; return its path, and what was wrong with the raw file."""

        def note(file: AtomicFile, problem: str) -> None:
            status = os.fstat(file.stream.fileno())
            job.complete = {"name": file.name, "inode": status.st_ino, "bytes": status.st_size, "problem": problem}
            with contextlib.suppress(OSError):  # the disk is full, but has the trace
                self._spool.update(job)

        options: dict[str, Any] = {"owner": self._spool.folder.name, "overwrite": job.overwrite}
        if job.kind == SNAPSHOT:
            return commit_snapshot(raw, target, before_publishing=note, **options), ""
        own = read_json(self._spool.program_events_file(job.number), MAX_PROGRAM_EVENTS_BYTES)
        path, damage = commit_trace(raw, target, job.metadata, own, before_publishing=note, **options)
        return path, str(damage)

    def _upload(self, job: Job, record: dict[str, Any]) -> None:
        self.report()  # the trace exists, even if its copy fails
        path, url = Path(str(job.path)), str(job.remote)
        try:
            upload(path, url, overwrite=job.overwrite)
        except (SaveError, OSError) as error:
            self._attempted.add(job.number)
            record["upload"] = {"url": url, "state": "failed", "problem": str(error)}
            return
        record["upload"] = {"url": url, "state": "uploaded"}
        self._spool.remove(job)
        self.report()
        self._mirror()

    def _on_failure(self, job: Job, record: dict[str, Any], problem: str) -> None:
        """Retain the raw file for another attempt, while there is room for it."""
        self._attempted.add(job.number)
        raw = Path(job.raw)
        spooled_bytes = sum(Path(j.raw).stat().st_size for j in self._spool.jobs() if Path(j.raw).exists())
        is_hopeless = job.lost is not None or job.attempts >= _MAX_ATTEMPTS or not raw.exists()
        if is_hopeless or spooled_bytes > MAX_SPOOLED_BYTES:
            record |= {"state": manifest.LOST, "problem": problem}
            self._spool.remove(job)
            self._remove_partial_file(job)
        else:
            job.attempts -= 1  # it counts only attempts in which the process died
            with contextlib.suppress(OSError):
                self._spool.put(job)
            record |= {"state": manifest.KEPT, "problem": problem, "raw": str(raw)}

    def _remove_partial_file(self, job: Job) -> None:
        """Remove the unfinished file of a process that died in a job that is given up."""
        with contextlib.suppress(OSError):  # it never had a valid name, or its folder is gone
            target = PathBelow.of(Path(job.folder) / job.file, Path(job.folder))
            target.with_name(partial_name(target.name, self._spool.folder.name)).unlink()

    def prune_acknowledged(self) -> None:
        """Delete the traces that stayed only until the program knew their outcome."""
        process = self._process_facts() or {}
        if "heard_to" in process and is_count(process.get("keep")):
            with contextlib.suppress(OSError):  # the next window tries again
                self._prune(Path(process["folder"]), process["keep"])

    def _acknowledged_to(self) -> float:
        """Return up to which window the program knows all outcomes that it waits for."""
        record = (self._process_facts() or {}).get("heard_to")
        return record if self.has_listener and isinstance(record, int) else math.inf

    def _prune(self, folder: Path, keep: int) -> None:
        """Delete all but the newest `keep` traces and as many snapshots.

        One that isn't copied, or that the program doesn't know, stays.
        """
        if keep < 0 or self._output is not None:
            return
        present = [w for _, w in sorted(self._windows.items()) if w.get("path") and not w.get("pruned")]
        for kind in (TRACE, SNAPSHOT):
            self._prune_kind(kind, folder, keep, [window for window in present if kind_of(window) == kind])
        pruned_numbers = [number for number, window in sorted(self._windows.items()) if window.get("pruned")]
        for number in pruned_numbers[:-MAX_PRUNED_RECORDS]:
            window = self._windows.pop(number)
            if kind_of(window) == TRACE:
                self._pruned_to = max(self._pruned_to, window["span"])

    def _prune_kind(self, kind: str, folder: Path, keep: int, present: list[dict[str, Any]]) -> None:
        """Delete all but the newest `keep` of the present files of a kind."""
        heard_to = self._acknowledged_to()
        self._prune_earlier(kind, folder, keep - len(present), {Path(w["path"]) for w in present})
        for window in present[: max(0, len(present) - keep)]:
            if window["window"] > heard_to:
                break
            if (window.get("upload") or {}).get("state", "uploaded") == "uploaded":
                with contextlib.suppress(LeadsOutside):
                    PathBelow.of(Path(window["path"]), folder).unlink()
                window["pruned"] = True

    def _prune_earlier(self, kind: str, folder: Path, room: int, own: set[Path]) -> None:
        """Delete the oldest files of a kind that this rank's earlier attempts left in the folder, as `keep` requires.

        Only files that are still those that the attempt wrote are deleted: a file that replaced one stays.
        """
        others = [file for file in self._earlier or () if kind_of(file) != kind]
        earlier = [f for f in self._earlier or () if kind_of(f) == kind and is_unchanged(folder, f, own)]
        for trace in earlier[: max(0, len(earlier) - max(0, room))]:
            PathBelow.of(folder / trace["file"], folder).unlink()
            earlier.remove(trace)
        self._earlier = [*others, *earlier]

    def report(self) -> None:
        """Write the outcomes of the windows, for the training, the run's manifest and the next writer process."""
        process = self._process_facts()
        windows = [self._windows[number] for number in sorted(self._windows)]
        now = (process, windows, self.death)
        if now == self._reported and (self._spool.folder / STATE).exists():
            return
        with contextlib.suppress(OSError):
            state = {"windows": windows, "pruned_to": self._pruned_to, "death": self.death}
            write_json(self._spool.folder / STATE, state)
        self._reported = (process, [dict(window) for window in windows], self.death)
        if process is not None:
            self._write_status(process, windows)
        if self._notify is not None:
            self._notify()

    def _write_status(self, process: dict[str, Any], windows: list[dict[str, Any]]) -> None:
        folder, private = (
            Path(process["folder"]),
            ("folder", "folder_problem", "remote", "is_alone", "heard_to", "keep", "writer", "ring"),
        )
        facts = {key: value for key, value in process.items() if key not in private}
        status = {**facts, "queue": str(self._spool.folder), "updated_ns": time.time_ns()}
        if self._earlier is None:
            self._earlier = manifest.earlier_traces(folder, process["global_rank"], process.get("attempt"))
            self._earlier_records = manifest.earlier_records(folder, process["global_rank"], status)
        status |= {"earlier": self._earlier, **self._earlier_records}
        status["pruned_to"] = self._pruned_to
        if self.death is not None:
            problem = death_message(process, self.death)
            status |= {"state": manifest.KILLED, "problem": problem, "ending": self.death}
        status["windows"] = _public_records(window for window in windows if kind_of(window) == TRACE)
        status["snapshots"] = _public_records(window for window in windows if kind_of(window) == SNAPSHOT)
        with contextlib.suppress(OSError):  # the traces can't be written either, which is logged
            manifest.write_status(folder, process["global_rank"], status)

    def _mirror(self) -> None:
        """Upload the run's manifest next to the traces' copies."""
        process = self._process_facts()
        if process is not None and process.get("remote") and is_allowed(process["remote"], self._url_prefixes):
            with contextlib.suppress(SaveError, OSError):
                upload(Path(process["folder"]) / manifest.NAME, process["remote"], overwrite=True, tries=1)

    def _process_facts(self) -> dict[str, Any] | None:
        """Return the facts about the whole process, even if the spool was removed meanwhile."""
        self._process = self._spool.process() or self._process
        return self._process

    def has_ended(self) -> bool:
        """Whether the training has reported its end."""
        process = self._process_facts()
        return process is None or process.get("state") == manifest.ENDED

    def close(self) -> list[dict[str, Any]]:
        """Report the end; return the outcomes of the windows."""
        self.report()
        self._mirror()
        return [self._windows[number] for number in sorted(self._windows)]


def _published_before(job: Job, target: PathBelow) -> tuple[Path, str] | None:
    """The trace's path, and what was wrong with the raw file, if a process that was killed then had published it."""
    if job.complete is None:
        return None
    try:
        file = target.with_name(job.complete["name"])
        status = file.stat()
    except OSError:
        return None
    is_it = (status.st_ino, status.st_size) == (job.complete["inode"], job.complete["bytes"])
    return (file.path, job.complete["problem"]) if is_it else None


def _public_records(records: Iterable[dict[str, Any]]) -> Any:
    """Return the records as the run's manifest has them."""
    private = ("path", "window", "kind")
    return redacted_urls([{k: v for k, v in record.items() if k not in private} for record in records])


def finish_spool(
    folder: Path, *, url_prefixes: Collection[str] = (), output: Path | None = None
) -> list[dict[str, Any]] | None:
    """Finish the jobs of a spool whose writer process is gone; return the outcomes of its windows.

    None if a writer process is still running, or the folder doesn't exist. The folder is removed when no job is left
    and its process is gone.

    Args:
        folder: The spool, which must be private to this user.
        url_prefixes: The allowed prefixes of the URLs of copies.
        output: The folder of the traces, instead of the run's.

    Raises:
        OSError: The folder can't be read.
    """
    if not folder.is_dir():
        return None
    spool = Spool(folder)
    lock = spool.lock()
    if lock is None:
        return None
    try:
        writer, has_died = SpoolWriter(spool, url_prefixes=url_prefixes, output=output), not is_alive(spool)
        writer.has_listener = not has_died
        if has_died and not writer.has_ended():
            writer.death = writer.death or {}
        writer.work()
        windows = writer.close()
    finally:
        os.close(lock)
    if has_died and spool.is_empty():
        spool.discard()
    return windows


def prune_spool(folder: Path) -> None:
    """Delete the traces that stayed until the program knew their outcome, once its writer process has ended."""
    spool = Spool(folder)
    lock = spool.lock() if folder.is_dir() else None
    if lock is not None:
        try:
            writer = SpoolWriter(spool)
            writer.prune_acknowledged()
            writer.report()
        finally:
            os.close(lock)


def is_alive(spool: Spool) -> bool:
    """Whether the training is still running; a spool is always on its machine."""
    return is_running((spool.process() or {}).get("pid") or os.getpid())


def main(folder: str, parent: int, url_prefixes: Collection[str] = ()) -> None:
    """Work on the spool until the training has ended.

    Args:
        folder: The spool.
        parent: The training's process.
        url_prefixes: The allowed prefixes of the URLs of copies, from the training.
    """
    _give_way()
    spool = Spool(Path(folder))
    check_private(spool.folder)
    lock = spool.lock()
    if lock is None:
        return
    writer, watch = SpoolWriter(spool, _notify, url_prefixes=url_prefixes), ProcessWatch(parent)
    minutes = _LastMinutes(spool)
    watch.begin()
    while True:
        lock = _renew_lock(spool, lock)
        writer.work()
        if _wait_for_news(parent):
            break
        minutes.save_if_frozen()
    is_alone = (spool.process() or {}).get("is_alone", False)
    writer.has_listener = writer.has_ended() and not is_alone and not _is_gone(parent)
    if not writer.has_ended():
        writer.death = watch.facts()
        minutes.save()
    writer.retry()
    writer.close()
    is_alone = (spool.process() or {}).get("is_alone", False)
    # A training that has reported its end waits, and cleans up.
    if (is_alone or not writer.has_ended() or _is_gone(parent)) and spool.is_empty():
        spool.discard()


class _LastMinutes:
    """Saves the last minutes of a training that can't: this process holds them, too.

    Args:
        spool: The training's.
    """

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._journal_ns = self._saved_ns = 0
        self._changed_s = 0.0

    def save(self) -> None:
        """Save them if they are known."""
        process = self._spool.process() or {}
        if is_count(process.get("ring")):
            with contextlib.suppress(OSError):
                replace_file(ring_file(Path(process["folder"]), process["global_rank"]), content_of(process["ring"]))

    def save_if_frozen(self) -> None:
        """Save them once the training doesn't touch its journal any more: it is stopped, or code holds Python's lock.

        Its journal may lack its last steps then.
        """
        process = self._spool.process() or {}
        if not is_count(process.get("ring")):
            return
        rank = process["global_rank"]
        try:
            journal_ns = ring_file(Path(process["folder"]), rank).with_name(journal_name(rank)).stat().st_mtime_ns
        except OSError:  # there is none yet
            return
        if journal_ns != self._journal_ns:
            self._journal_ns, self._changed_s = journal_ns, time.monotonic()
        elif journal_ns != self._saved_ns and time.monotonic() - self._changed_s >= _FROZEN_S:
            self._saved_ns = journal_ns
            self.save()


def _is_gone(parent: int) -> bool:
    """Whether the training has ended or is exiting: tearing down a large process takes a while.

    Its pipes are closed then, but it is still the parent. Linux sets a flag before all that: proc(5), fields 9 and 2.
    """
    if os.getppid() != parent:
        return True
    try:
        stat = Path(f"/proc/{parent}/stat").read_text(encoding="utf-8", errors="replace")
        return bool(int(stat.rpartition(")")[2].split()[6]) & _PF_EXITING)
    except (OSError, ValueError, IndexError):  # another system
        return False


def _renew_lock(spool: Spool, lock: int) -> int:
    """Return the lock, or a new one if the spool was removed and created again."""
    new_lock = spool.lock() if spool.folder.is_dir() and not spool.owns_lock(lock) else None
    if new_lock is None:
        return lock
    os.close(lock)
    return new_lock


def _give_way() -> None:
    """Ignore the signals that end the training, and leave it the processor."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    lower_priority()
    gc.disable()  # checking JSON makes many objects without reference cycles


def _notify() -> None:
    with contextlib.suppress(OSError):
        os.write(sys.stdout.fileno(), b"\n")


def _wait_for_news(parent: int) -> bool:
    """Wait for a message of the training; return whether it has ended.

    Its end closes the pipe, unless a process that it forked still has it open; then the parent has changed.
    """
    descriptor = sys.stdin.fileno()
    ready: Iterable[int] = select.select([descriptor], [], [], _LOOK_S)[0]
    return (bool(ready) and not os.read(descriptor, 1 << 16)) or os.getppid() != parent
