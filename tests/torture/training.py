"""A small real training with two recorded windows, in whose phases things happen to it.

Steps 2 to 4 are one window, steps 7 to 9 the other. `Training.run` is called in a process that `server` forked.
"""

import ctypes
import os
import resource
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path

import torch
from torch.profiler import profile

from kinetoscope import Tracer, cyclic
from kinetoscope.output import trace_writer, writer_client
from kinetoscope.session.memory_recorder import MemoryRecorder
from support.allocators import FakeAllocator
from support.waiting import wait_for

PLAN = {"wait": 1, "warmup": 1, "active": 3, "repeat": 2}
STEPS = 12
STEP_OF = {"wait": 0, "warmup": 1, "window": 3, "last step": 4, "merging": 5, "between": 5, "second window": 8}
STEP_OF["copying"] = 5
RANK = int(os.environ.get("RANK", "0"))


def remove(folder):
    """Delete a folder, which must be one of this training's own: below the folder that its test made for it alone."""
    path, own = folder.resolve(strict=True), Path(os.environ["TORTURE"]).resolve(strict=True)
    if own not in path.parents or not (own / "belongs to one training").is_file():
        raise AssertionError(f"{path} isn't the training's own")
    wait_for(lambda: is_removed(path))


def is_removed(path):
    """Delete a folder; whether that was possible, and nothing was put into it meanwhile."""
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def segfault():
    """Read where no memory is."""
    ctypes.string_at(0)


def fork_and_leave():
    """Fork a process that leaves the training's blocks in good order, as one of Python's does that raises or exits."""
    pid = os.fork()
    if not pid:
        sys.exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def fork_and_raise():
    """Fork a process that dies of an exception of its own."""
    pid = os.fork()
    if not pid:
        raise KeyError("of the forked process")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    assert "KeyError" in Path("stderr").read_text()


def fork_and_kill():
    """Fork a process that is killed."""
    pid = os.fork()
    if not pid:
        signal.pause()
    os.kill(pid, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


def leave():
    """Exit with a status."""
    sys.exit(3)


def fail():
    """Raise."""
    raise KeyError("of the training")


class Training:
    """One training, and what happens to it.

    Args:
        at: The phase in which something happens.
        event: What: a function's or a signal's name, or that of a method here.
        first: What happens before, in the step after the first window.
        logdir: Where it records.
        name: The run's name; None for the default one.
        options: More arguments of the Tracer.
        close_s: How long its end waits for the process that writes.
        holds_writer: Whether the process that writes stops inside a trace until this one ends.
        own: The signals for which the program has handlers that only take note.
        default: The signals that do what the system does by default, though Python or a parent has them ignored.
        has_device: Whether it uses a device whose allocator has a history.
    """

    def __init__(
        self,
        at=None,
        event=None,
        first=None,
        logdir="logdir",
        name="job",
        options=None,
        close_s=None,
        holds_writer=False,
        own=(),
        default=(),
        has_device=False,
    ):
        self.at, self.event, self.logdir, self.name, self.options = at, event, logdir, name, options or {}
        self.own, self.took, self.first = own, [], first
        for number in own:
            signal.signal(getattr(signal, number), lambda received, _frame: self.took.append(received))
        for number in default:
            signal.signal(getattr(signal, number), signal.SIG_DFL)
        if close_s is not None:
            trace_writer.CLOSE_S = trace_writer.SIGNAL_S = close_s
        if at == "merging" or holds_writer:
            writer_client._PROGRAM = "from held_writer import main; main(*sys.argv[1:])"
        self.allocator = FakeAllocator() if has_device else None
        if self.allocator is not None:
            self.allocator.install()
        if at == "copying":
            writer_client._PROGRAM = "from held_writer import hold_snapshots; hold_snapshots(*sys.argv[1:])"
        if at == "snapshot":
            MemoryRecorder._write = self.half_written(MemoryRecorder._write)
        if at == "export":
            profile.export_chrome_trace = self.exported(profile.export_chrome_trace)
        if at == "closing":
            writer_client.WriterClient.close = self.closed(writer_client.WriterClient.close)
        self.tracer = None

    def run(self):
        """Train."""
        learned = 0.0
        with Tracer(self.logdir, run=self.name, schedule=cyclic(**PLAN), system=(), **self.options) as self.tracer:
            for step in range(STEPS):
                learned += float(torch.ones(8, 8).relu().sum())
                if self.allocator is not None:
                    self.allocator.allocate(1 << 20)
                if step == STEP_OF["between"] and self.first is not None:
                    wait_for(lambda: self.tracer.saved_traces)
                    getattr(self, self.first)()
                if step == STEP_OF.get(self.at):
                    self.happens()
                self.meet()
                self.tracer.step()
        if self.at == "after":
            self.happens()
        assert learned == STEPS * 64
        assert len(self.took) == len([name for name in self.own if name == self.event]), self.took

    def meet(self):
        """Do what the ranks do together."""

    def exported(self, export):
        """Let it happen when half of the profiler's file is written, the first time."""

        def half(profiler, path):
            export(profiler, path)
            if self.at == "export":
                content = Path(path).read_bytes()
                os.truncate(path, len(content) // 2)
                self.happens()
                self.at = None
                if Path(path).exists():
                    Path(path).write_bytes(content)

        return half

    def half_written(self, write):
        """Let it happen when half of a memory snapshot is written, and the trace of its window is saved."""

        def half(recorder, facts, details, path):
            write(recorder, facts, details, path)
            os.truncate(path, path.stat().st_size // 2)
            wait_for(lambda: self.tracer.saved_traces)
            self.happens()

        return half

    def closed(self, close):
        """Let it happen when the end waits for the process that writes."""

        def closes(writing, timeout_s):
            self.happens()
            return close(writing, timeout_s)

        return closes

    def happens(self):
        """Let it happen, when the journal has all steps that are complete, and the writer is where it should be."""
        self.wait_for_journal()
        if self.at in ("merging", "copying"):
            wait_for(Path("merging").exists)
        event = self.event
        if event.startswith("SIG"):
            os.kill(os.getpid(), getattr(signal, event))
        elif event.startswith("writer "):
            wait_for(lambda: self.at != "second window" or self.tracer.saved_traces)
            os.kill(self.writer, getattr(signal, event.removeprefix("writer ")))
        else:
            getattr(self, event, None)() if hasattr(self, event) else globals()[event]()

    def wait_for_journal(self):
        """Wait until the journal holds the last complete step."""
        if self.tracer.completed_steps and self.at not in ("closing", "after"):
            wait_for(self.has_journal)

    def has_journal(self):
        """Whether the journal holds the last complete step; it is opened here if the logdir answered too late.

        Otherwise it would be opened half a second later, between two steps, of which there are none while this waits.
        """
        self.tracer._supervisor.open_journal()
        last = f'["s",{self.tracer.completed_steps - 1},'
        return any(last in text and f'"pid":{os.getpid()},' in text for text in self.journals())

    def journals(self):
        """What the journals of this rank hold, of all runs in the logdir."""
        for file in Path(self.logdir).glob(f"*/.work/rank{RANK}.jsonl"):
            with suppress(FileNotFoundError):
                yield file.read_text()

    def wait_until_saved(self):
        """After the first window, wait until it is saved."""
        wait_for(lambda: self.at not in ("between", "second window") or self.tracer.saved_traces)

    @property
    def writer(self):
        """The number of the process that writes."""
        return self.tracer._trace_writer._client._process.pid

    def both_killed(self):
        """The machine runs out of memory: all processes of the training are killed."""
        os.kill(self.writer, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    def limit_own_files(self):
        """The scratch disk is full: nothing of some length can be written by the training."""
        wait_for(lambda: self.tracer.saved_traces)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 12, resource.RLIM_INFINITY))

    def limit_writer_s_files(self):
        """The disk of the traces is full: nothing of some length can be written by the process that writes."""
        wait_for(lambda: self.tracer.saved_traces)
        resource.prlimit(self.writer, resource.RLIMIT_FSIZE, (1 << 10, resource.RLIM_INFINITY))

    def die_when_saved(self):
        """The process is killed after its window is saved, but before the journal has more than the window's start."""
        self.tracer._supervisor._background.end()
        self.at, self.event, self.wait_for_journal = "between", "SIGKILL", self.wait_until_saved

    def exit_at_once(self):
        """Leave without any good-bye."""
        os._exit(3)

    def abort(self):
        """End as the interpreter does on a fatal error."""
        os.abort()

    def pause(self):
        """Wait until the test goes on."""
        Path("paused").touch()
        wait_for(Path("go on").exists)

    def pause_when_saved(self):
        """Wait until the test goes on, when the first window is saved."""
        self.wait_until_saved()
        self.pause()

    def remove_logdir(self):
        """Somebody deletes the folder of all runs, when all that was recorded so far is in it."""
        self.wait_until_saved()
        remove(Path(self.logdir))

    def remove_scratch(self):
        """A cleaner of temporary files deletes what lies there."""
        self.wait_until_saved()
        for path in Path("scratch").iterdir():
            remove(path)

    def remove_scratch_itself(self):
        """The temporary folder itself goes."""
        self.wait_until_saved()
        remove(Path("scratch"))

    def deny_logdir(self):
        """The logdir can't be written to any more."""
        self.wait_until_saved()
        for folder in (Path(self.logdir, self.name, ".work", "status"), Path(self.logdir, self.name, ".work")):
            folder.chmod(0o555)
        Path(self.logdir, self.name).chmod(0o555)
