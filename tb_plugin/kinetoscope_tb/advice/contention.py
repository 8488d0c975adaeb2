"""What the main thread competes for with others: the lock of Python's interpreter, and cores.

Python runs one thread at a time (the GIL). While another one does, the main thread waits at whatever it calls, so its
own functions look slow and aren't. Each time it has released the lock, it gets it back after up to
`sys.getswitchinterval()`, 5 ms unless the program sets another.

For how long a thread was ready to run, but had no core, the kernel counts; our recorder writes it. Without that,
operators show it that take far longer than any core needs for their work (operator_pace.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays.intervals import Intervals, Ints, merge, without
from ..measures.python.whereabouts import Location, locations
from ..measures.recording.processor_use import ProcessorTime, ProcessorUse, ThreadTime
from ..measures.time.threads import autograd_threads, main_thread
from ..names import text
from ..names.python_frames import function_name, is_wait
from ..trace.results import once_per_trace
from .facts import LARGE_SHARE, Facts
from .model import Advice, Candidate, ClearedTopic

_MOST = 0.7  # of the time
_MOSTLY_WAITING = 0.5  # of the main thread's time: it may wait for that thread's result
_USES_A_CORE = 0.9
_HOLDS_LOCK = re.compile(
    r"\.py\(\d+\): "
    r"|^<built-in function (?:all|any|filter|format|hash|isinstance|iter|len|map|max|min|next|repr|sorted|sum)>"
    r"|^<built-in method \w+ of (?:str|bytes|bytearray|list|tuple|dict|set|frozenset|int|float|re\.Pattern|_json\.\w+) "
)
"""Python itself, and functions in C that keep the lock; others may have released it, as those of files and of NumPy."""

LOCK_REMEDY = (
    "Run it in another process (`multiprocessing`, a worker of the `DataLoader`), or less of it. "
    "`sys.setswitchinterval(0.0005)` shortens each wait for the lock."
)

FULL = 0.9  # of all cores in use: then a thread that is ready waits for one
_NEARLY_ALL = 0.75  # of the cores
_OFF_CORES = ("loading", "communicating", "waiting")
"""Parts of the host's time (measures/time/host_time.py) in which the main thread isn't ready to run."""
_OWN_THREADS = (
    "Run fewer threads at once: `torch.set_num_threads`, `OMP_NUM_THREADS`, no pools of threads within operators that "
    "run at the same time; or give the process more cores."
)
_OWN_RANKS = (
    "Give each rank cores of its own (`numactl`, `taskset`), as many threads as that are (`OMP_NUM_THREADS`), and run "
    "fewer ranks or loader workers on this machine."
)
_OTHERS = (
    "Find what else runs there, workers of a `DataLoader` first: they and the training need a core each. Stop it, or "
    "raise the job's limit (cgroup `cpu.max`, Kubernetes `limits.cpu`, `--cpus-per-task`)."
)


class LockHolder(NamedTuple):
    """The thread that runs Python for most of some time.

    Attributes:
        function: The function of the program that it is in most.
        share: For which share of the time it runs Python.
    """

    function: str
    share: float

    @property
    def words(self) -> str:
        """What it does, as the end of a sentence."""
        return f"competes with `{function_name(self.function)}` of another thread for Python's lock (GIL)"

    @property
    def evidence(self) -> str:
        """For how much of the time, and what follows from it, as sentences."""
        return (
            f" For {text.percent(self.share)} of that time another thread runs Python, most of it in "
            f"`{function_name(self.function)}`: only one thread runs Python at a time, so it slows the main thread's "
            "functions."
        )


def lock_holder(facts: Facts, spans: Intervals) -> LockHolder | None:
    """The thread that runs Python for most of some time in which the main thread isn't known to wait; None: no such."""
    trace, main = facts.trace, main_thread(facts.trace)
    if trace.python_calls.is_empty() or _share(locations(trace, main, spans), waits=True) >= _MOSTLY_WAITING:
        return None
    others = trace.python_calls["thread"].unique().to_numpy()
    others = np.sort(others[(others != main) & ~autograd_threads(trace)[others]])
    holders = []
    for thread in others[_may_run(facts, others)]:
        of_thread = [entry for entry in locations(trace, int(thread), spans) if _HOLDS_LOCK.search(entry[0].frame)]
        share = _share(of_thread, waits=False)
        if share >= _MOST:
            holders.append(LockHolder(_function(of_thread), share))
    return max(holders, key=lambda holder: holder.share, default=None)


@once_per_trace
def processor_use(facts: Facts) -> ProcessorUse | None:
    """How many cores the process and the machine used in the steps that count; None if counters don't tell."""
    windows, is_counted = facts.windows, facts.is_counted
    return ProcessorUse.of(facts.trace, windows.start[is_counted], windows.end[is_counted])


def _may_run(facts: Facts, threads: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Whether each of some threads can be said to run the function that it is in.

    A thread of which no call ended while the profiler ran may not be traced, and sleep in that function. Then the
    counters must show that the process used a core all the time.
    """
    calls = facts.trace.python_calls
    start, dur, thread = (calls[name].to_numpy() for name in ("start_ns", "dur_ns", "thread"))
    is_open = start + dur >= facts.trace.window[1]
    traced_threads = np.unique(thread[~is_open])
    use = processor_use(facts)
    return np.isin(threads, traced_threads) | (use is not None and use.cores >= _USES_A_CORE)


def _share(shares: list[tuple[Location, float]], *, waits: bool) -> float:
    """The share of the places at which a thread waits, or doesn't."""
    return sum(share for location, share in shares if _waits(location) == waits)


def _waits(location: Location) -> bool:
    return bool(location.function) or is_wait(location.frame)


def _function(shares: list[tuple[Location, float]]) -> str:
    """The function of the program, or else of a library, that most of the time is in."""
    sums: dict[str, float] = {}
    for location, share in shares:
        if not _waits(location):
            name = location.caller or location.frame
            sums[name] = sums.get(name, 0.0) + share
    return max(sums, key=sums.__getitem__)


class _MainThread(NamedTuple):
    """What the recorder counted of the main thread, and of the process that it is in."""

    cpu: ProcessorTime
    time: ThreadTime

    @classmethod
    def of(cls, facts: Facts) -> _MainThread | None:
        """None if the recorder didn't count it."""
        cpu, thread = ProcessorTime.of(facts.trace.meta), main_thread(facts.trace)
        if cpu is None or cpu.used_cores is None or thread < 0:
            return None
        tid = facts.trace.threads["tid"][thread]
        time = next((entry for entry in cpu.threads if str(entry.tid) == tid), None)
        return None if time is None else cls(cpu, time)

    @property
    def waiting_share(self) -> float:
        """For which share of the window it waits for a core."""
        return min(1.0, self.time.waited_ns / self.cpu.window_ns)


def core_waits(facts: Facts) -> Iterator[Advice | ClearedTopic]:
    """The main thread waits for a core."""
    main = _MainThread.of(facts)
    if main is None:
        return
    lengths = core_waits_of_steps(facts)
    if cleared_topic := facts.cleared_topic("waits for a core", lengths, "waiting for a core", LARGE_SHARE):
        yield cleared_topic
        return
    words, action = _competitors(main.cpu)
    yield Advice(
        "core_waits",
        f"The main thread waits for a core for {facts.of_steps(lengths)}.",
        f"It was ready to run, but had no core, for {text.percent(main.waiting_share)} of the recording, by the "
        f"kernel's count: {facts.part_of(lengths)}. {words}",
        action,
        None,
        "medium",
        "steps",
        "",
        facts.mean(lengths),
        core_waits_candidate(facts),
    )


def core_waits_of_steps(facts: Facts) -> Ints:
    """For how long the main thread waits for a core in each step, as if it did so evenly; 0 if that isn't known."""
    main = _MainThread.of(facts)
    return (facts.length * (main.waiting_share if main else 0.0)).astype(np.int64)


class OffProcessor(NamedTuple):
    """Time per step in which the process ran on no core, though no recorded wait explains it.

    Attributes:
        use: What the counters say.
        waits: The part that may lie in time of which nothing is recorded, if cores were free then.
        held_up: The part that doesn't: operators, and Python between them, whose thread didn't run.
    """

    use: ProcessorUse
    waits: Ints
    held_up: Ints


def off_processor(facts: Facts) -> OffProcessor | None:
    """None if the counters don't tell; a process that used c < 1 cores ran none of its threads for 1 − c or more.

    Where the recorder knows for how long the main thread waited for a core, that is a topic of its own.
    """
    use = processor_use(facts)
    if use is None or use.machine is None:
        return None
    parts = facts.host_time.lengths
    off = (facts.length * max(0.0, 1 - use.cores)).astype(np.int64) - core_waits_of_steps(facts)
    unexplained_ns = np.maximum(off - parts["waiting"] - parts["loading"] - parts["communicating"], 0)
    in_rest = np.minimum(unexplained_ns, parts["rest"])
    waits = in_rest if use.machine < FULL else np.zeros_like(in_rest)
    return OffProcessor(use, waits, np.minimum(unexplained_ns - in_rest, parts["operators"] + parts["calling"]))


def _competitors(cpu: ProcessorTime) -> tuple[str, str]:
    """Who has the cores, and what to do about it."""
    cores = cpu.used_cores or 0.0
    words = f"The process used {text.digits(cores)}"
    if not cpu.cores:
        return f"{words} cores.", _OTHERS
    words = f"{words} of the {text.times(cpu.cores, 'core')} that it may use"
    if cores >= _NEARLY_ALL * cpu.cores:
        return f"{words}.", _OWN_THREADS
    if cpu.is_shared and (cpu.busy_share or 0.0) >= _NEARLY_ALL:
        return f"{words}, as each of the job's {cpu.processes} processes on this machine may.", _OWN_RANKS
    return f"{words}: other processes had the rest, or a limit holds it back.", _OTHERS


def core_waits_candidate(facts: Facts) -> Candidate | None:
    """What the main thread does, in that part of the time which it would save with a core of its own; None: unknown."""
    main = _MainThread.of(facts)
    if main is None or not main.time.waited_ns:
        return None
    less = main.time.waited_ns / (main.time.used_ns + main.time.waited_ns)
    return Candidate(
        "the main thread's waits for a core",
        spans=_on_cores(facts),
        less=np.array([less]),  # the claim's size is that part alone
        threads=(main_thread(facts.trace),),
    )


def _on_cores(facts: Facts) -> Intervals:
    """When the main thread runs or is ready to; waits for devices are known to the graph."""
    steps = merge([(facts.windows.start, facts.windows.end)])
    if facts.has_device:
        return steps
    spans = facts.host_time.spans
    return without(steps, merge([spans[part] for part in _OFF_CORES if part in spans]))
