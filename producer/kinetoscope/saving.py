"""Where the windows of one process go: which files, in which run, with which facts about themselves.

What happens on the training's thread is only what nobody else can do: the profiler writes its raw file to the machine's
own disk. The rest is the finisher's.
"""

from __future__ import annotations

import logging
import shutil
import sys
import time
import uuid
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import __version__
from .attempts import DOUBT
from .destination import Destination
from .errors import SaveError
from .finishing import Finishing
from .identity import Place, Run, current_place, is_distributed, local_world_size
from .jobs import Job
from .manifest import ENDED, KEPT, LOST, NAME, RECORDING
from .metadata import Recording, Window, process_facts
from .plain_files import write_json
from .redaction import redacted_arguments
from .selection import Selection
from .template import formatted, place_values, variables
from .uploads import object_url
from .writer import check_raw

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from .losses import Losses

_LOG = logging.getLogger("kinetoscope")

CLOSE_S = 120.0
"""How long the end of a training waits for its traces; the finisher goes on alone after that."""
SIGNAL_S = 20.0
"""How long it waits when a signal ends it: launchers kill half a minute after they have asked."""

_MOST_LEFT_OUT = 20
_LEAST_ROOM_BYTES = 32 << 20


class Saving:
    """Saves one process's windows. Nothing in it raises but KeyboardInterrupt and its like.

    Args:
        logdir: Where runs have their folders.
        run: The run that all processes belong to.
        losses: Takes what goes wrong.
        facts: What every trace of this process says of its recording: `schedule`.
        destination: Where traces are put.
        on_saved: Is called with each trace's path, and what the manifest says of it, on the training's thread. The
            trace is there until then, however few stay.
        selection: Which ranks record. Of one that doesn't nothing is told, and no process is started for it.
    """

    def __init__(
        self,
        logdir: Path,
        run: Run,
        losses: Losses,
        facts: Mapping[str, Any],
        destination: Destination | None = None,
        on_saved: Callable[[Path, Mapping[str, Any]], None] | None = None,
        selection: Selection | None = None,
    ) -> None:
        self.selection = selection or Selection()
        """Which ranks record."""
        self._logdir, self._run, self._losses, self._facts = logdir, run, losses, facts
        self._destination, self._on_saved = destination or Destination(), on_saved
        self._place: Place | None = None
        self._settled: tuple[Place, Path] | None = None
        self._window_start: tuple[int | None, int | None] = (None, None)
        self._window_ranks: Collection[int] | None = None
        self._has_begun = False
        self._left_out: list[dict[str, Any]] = []
        waits_for = -1 if on_saved is None else self._destination.kept
        self._finishing = Finishing(self._became, self._destination.places, keep=waits_for)
        self._largest_bytes = 0
        self._files: set[str] = set()
        self._is_ended = False
        self._started_ns = time.time_ns()
        self.recorded = 0
        """How many windows ended."""
        self._unsaved: set[int] = set()
        self._failures = 0
        self.reason = "schedule"
        """What ends the next window."""
        self.options: Mapping[str, Any] = {}
        """What the profiler was told to record in the next window."""
        self.saved: list[Path] = []
        """The files, oldest first."""
        self.last_outcome: Mapping[str, Any] | None = None
        """What became of the window of which something was heard last."""
        if self._destination.kept != self._destination.keep:
            _LOG.warning("keep=0 without a remote place would lose every trace: the newest one stays.")

    def settle(self) -> None:
        """Learn rank and run while torch.distributed can tell: it may be gone when the last window is saved."""
        if self._place is None and is_distributed():
            with self._losses.kept_away("The ranks couldn't agree on a run"):
                self._place = current_place()
                self._describe(state=RECORDING)
                _LOG.debug("Recording %s of run %s.", self._place, self._run.name)

    def settled(self, *, is_late: bool = False) -> tuple[Place, Path] | None:
        """Return this process's place and the run's folder; None while they may still change.

        Args:
            is_late: Whether a process that isn't in a group yet may be taken for one that will never be.
        """
        if self._settled is None:
            self.settle()
            if self._place is not None or is_late:
                place = self._place or current_place()
                self._settled = (place, self._logdir / self._run.name)
                if self._place is None:  # else it was told
                    with self._losses.kept_away("The run's manifest couldn't be begun"):
                        self._describe(state=RECORDING)
        return self._settled

    @property
    def attempt(self) -> str:
        """What the processes of this attempt of the run have in common; empty before that is settled."""
        return self._run.token

    @property
    def doubt(self) -> str | None:
        """Why it isn't sure that the attempt's processes are those of one job; None if it is."""
        return None if self._run.is_sure else DOUBT

    def trace_id(self, window: str) -> str:
        """Return an id that all ranks give to a window, in the form of torch's own, without asking one another.

        Whoever doesn't know yet which run this is gives it one of its own.

        Args:
            window: What tells it from the others of this attempt on all ranks alike: the step that it begins with.
        """
        known = self.settled()
        told = uuid.uuid4() if known is None else uuid.uuid5(uuid.NAMESPACE_OID, f"{self.attempt}/{window}")
        return f"{told.int:032X}"

    def begin_window(self, step: int, options: Mapping[str, Any], ranks: Collection[int] | None = None) -> None:
        """A window begins now.

        Args:
            step: Its first step.
            options: What the profiler was told to record.
            ranks: The ranks that were asked by their number; None for those that are chosen.
        """
        self.options, self._window_ranks, self._has_begun = options, ranks, True
        self._window_start = (step, time.time_ns())
        if self._settled is not None:
            with self._losses.kept_away("The beginning of a window couldn't be told"):
                self._describe(recording_since_step=step)

    @property
    def is_unwanted(self) -> bool:
        """Whether the window began before it was known that this rank isn't chosen, and nobody asked for it."""
        return self._window_ranks is None and not self.selection.is_here

    def told_to_end(self, signal: str) -> None:
        """A signal told the process to end, and nobody answers it. Another thread may say so: the training's hangs."""
        if self._settled is not None:
            self._describe(reason=signal)

    def left_out(self, step: int, problem: str) -> None:
        """A window that was to begin about a step isn't recorded."""
        self._failures += 1
        self._left_out = [*self._left_out, {"step": step, "problem": problem}][-_MOST_LEFT_OUT:]
        if self._settled is not None:
            with self._losses.kept_away("That a window is left out couldn't be told"):
                self._describe()

    @property
    def is_pending(self) -> bool:
        """Whether something is still to be heard of a window."""
        return self._finishing.is_pending

    def own_events(self, job: Job) -> Path:
        """Return where the program's own events of a window are, while it isn't a trace."""
        return self._finishing.queue.own(job.number)

    @property
    def lost(self) -> int:
        """How many recordings there are no traces of, as far as anything was heard of them."""
        return self._failures + len(self._unsaved)

    def listen(self) -> None:
        """Hear what became of windows; to be called now and then."""
        if self._finishing.is_pending:
            with self._losses.kept_away("What became of a window is unknown"):
                self._finishing.listen()

    def save(
        self,
        export: Callable[[str], object],
        steps_completed: int,
        *,
        is_whole: bool,
        is_complete: bool,
        values: Mapping[str, Any] | None = None,
        told: Mapping[str, Any] | None = None,
        own: Mapping[str, Any] | None = None,
        on_exported: Callable[[Job], None] | None = None,
    ) -> None:
        """Save the window that ends now.

        Args:
            export: Writes what the profiler recorded into the file that it is given.
            steps_completed: How many steps the training has completed.
            is_whole: Whether the window ends with a complete step.
            is_complete: Whether the window ends where it was meant to.
            values: More of `template`'s variables.
            told: More of what the trace says about its recording; see `Recording`.
            own: What the program says itself, from `EventLog.taken`, and as `metadata` its keys at the file's top.
            on_exported: Is called when the profiler's file is there, or lost, before somebody makes a trace of it.
        """
        self._failures += 1  # until somebody has it who will say what became of it
        with self._losses.kept_away("A recording was lost"):
            window = self._window(steps_completed, is_whole=is_whole, is_complete=is_complete)
            job = self._job(window, told or {}, dict(values or {}))
            try:
                self._export(export, job, own)
            except (SaveError, OSError, RuntimeError, ValueError) as error:  # RuntimeError is what kineto raises
                job.lost = str(error)
            if on_exported is not None:
                on_exported(job)
            self._describe(state=RECORDING, recording_since_step=None)
            self._finishing.put(job)
            self._failures -= 1

    def _job(self, window: Window, told: Mapping[str, Any], values: dict[str, Any]) -> Job:
        settled = self.settled(is_late=True)
        if settled is None:
            raise SaveError("nobody knows its rank")
        place, folder = settled
        self.recorded += 1
        ranks = self.selection.among(place) if self._window_ranks is None else sorted(self._window_ranks)
        told = {**told, "ranks": ranks}
        recording = Recording(
            run=self._run.name, place=place, window=window, options=self.options, told=told, **self._facts
        )
        values = {"batch": window.steps_completed, **values, **place_values(place, self._run.name, local_world_size())}
        file, remote = self._names(place, values)
        if file in self._files:  # the next window was cut off in its first step: it is the beginning of that one
            file, remote = self._names(place, {**values, "batch": window.steps_completed + 1})
        self._files.add(file)
        return Job(
            number=window.window,
            raw=str(self._finishing.queue.folder / f"{window.window:04d}.raw.json"),
            folder=str(folder),
            file=file,
            metadata=recording.to_json(),
            is_partial=not window.is_complete,
            overwrite=self._destination.overwrite,
            remote=remote,
            keep=self._destination.kept,
        )

    def _names(self, place: Place, values: dict[str, Any]) -> tuple[str, str | None]:
        destination = self._destination
        file = formatted(destination.file, values).lstrip("/")
        if place.world_size > 1 and "rank" not in variables(destination.file):
            head, slash, tail = file.rpartition("/")
            file = f"{head}{slash}rank{place.global_rank}.{tail}"  # else the ranks would replace each other's files
        if destination.remote_file is not None:
            return file, formatted(destination.remote_file, values)
        if destination.remote is not None:
            return file, object_url(self._remote_folder(values), file)
        return file, None

    def _remote_folder(self, values: Mapping[str, Any]) -> str:
        return object_url(formatted(str(self._destination.remote), values), self._run.name)

    def _scratch(self, folder: Path) -> Path:
        """Where the raw file has room: on the machine's own disk, else beside the traces."""
        needed = max(_LEAST_ROOM_BYTES, self._largest_bytes * 5 // 4)
        own = self._finishing.queue.folder
        if shutil.disk_usage(own).free >= needed:
            return own
        other = self._finishing.queue.make_in_run(folder)
        if shutil.disk_usage(other).free >= needed:
            return other
        raise SaveError(f"neither {own} nor {other} has room for its {needed >> 20} MiB")

    def _export(self, export: Callable[[str], object], job: Job, own: Mapping[str, Any] | None) -> None:
        raw = self._scratch(Path(job.folder)) / Path(job.raw).name
        job.raw = str(raw)
        export(job.raw)
        check_raw(raw)
        self._largest_bytes = max(self._largest_bytes, raw.stat().st_size)
        if own is not None:
            write_json(self._finishing.queue.own(job.number), own)

    def _describe(self, **news: Any) -> None:
        """Tell the finisher what is true of the process."""
        if not self.selection.is_here and not self._has_begun:
            return
        place = self._place or current_place()
        facts = {
            "ranks": self.selection.among(place),
            "folder": str(self._logdir / self._run.name),
            "version": __version__,
            "run": self._run.name,
            "attempt": self._run.token,
            "doubt": self.doubt,
            **asdict(place),
            **process_facts(),
            **self._facts,
            "options": self.options,
            "argv": redacted_arguments(sys.argv),
            "started_ns": self._started_ns,
            "left_out": self._left_out,
        }
        if self._destination.remote is not None:
            values = place_values(place, self._run.name, local_world_size())
            facts["remote"] = object_url(self._remote_folder(values), NAME)
        self._finishing.describe({**facts, **news})

    def _became(self, window: Mapping[str, Any]) -> None:
        """Take the news of what became of a window."""
        problem, upload = window.get("problem"), window.get("upload") or {}
        self.last_outcome = window
        if window["state"] in (LOST, KEPT):
            self._unsaved.add(window["window"])
        else:
            self._unsaved.discard(window["window"])
        if window["state"] == LOST:
            self._losses.note(f"A recording was lost: {window['file']} wasn't written: {problem}.")
        elif window["state"] == KEPT:
            advice = f"What was recorded stays in {window['raw']}; `kinetoscope recover` tries again."
            self._losses.note(f"{window['file']} wasn't written: {problem}. {advice}")
        else:
            self._was_saved(Path(window["path"]), window)
            if problem:
                _LOG.warning("%s: %s.", window["path"], problem)
            if upload.get("state") == "failed":
                _LOG.warning("%s", upload["problem"])

    def _was_saved(self, path: Path, window: Mapping[str, Any]) -> None:
        if path in self.saved:
            return
        self.saved.append(path)
        _LOG.info("Saved %s.", path)
        if self._on_saved is not None:
            with self._losses.kept_away("on_saved failed"):
                self._on_saved(path, window)

    def _window(self, steps_completed: int, *, is_whole: bool, is_complete: bool) -> Window:
        first, started_ns = self._window_start
        return Window(
            window=self.recorded,
            step_first=first,
            step_last=max(first or 0, steps_completed - is_whole) if first is not None or steps_completed else None,
            is_last_step_whole=is_whole,
            steps_completed=steps_completed,
            reason=self.reason,
            is_complete=is_complete,
            started_ns=started_ns,
            ended_ns=time.time_ns(),
        )

    def end(self, **news: Any) -> None:
        """Say good-bye, once: there will be no more windows.

        Args:
            news: What the manifest says of the process's end.
        """
        with self._losses.kept_away("The end couldn't be told"):
            if not self._is_ended:
                self._is_ended = True
                self._describe(state=ENDED, recording_since_step=None, **news)

    def close(self, timeout_s: float | None = None) -> None:
        """Wait for what is being written, but no longer than `timeout_s`, by default `CLOSE_S` or `SIGNAL_S`."""
        self.end()
        with self._losses.kept_away("What is being written couldn't be waited for"):
            usual_s = SIGNAL_S if self.reason.startswith("sig") else CLOSE_S
            left = self._finishing.close(usual_s if timeout_s is None else timeout_s)
            if left:
                what = "1 trace is" if left == 1 else f"{left} traces are"
                _LOG.warning("%s still being written, by a process that outlives this one.", what)
