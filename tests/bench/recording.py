"""What recording costs a training: a small real one with and without the Tracer, in turn, in one process.

Each pair is two short loops of the same steps, one after the other, each first in every second pair, so that a machine
that warms up or is busy for a while favors neither. What is said of all pairs is the median of their ratios.

One Tracer is open all the time, as in a training. So the loop that it isn't told of has its threads beside it, too:
what they use meanwhile is taken off that loop's time, as if all of it had held the training up.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

os.environ.setdefault("KINETO_LOG_LEVEL", "99")

import torch
from torch.profiler import ProfilerAction, profile, record_function, tensorboard_trace_handler

from bounds import line, quartiles
from kinetoscope import Tracer, cyclic

MOST_OUTSIDE, MOST_INSIDE, MOST_HELD = 1.005, 1.02, 0.3
MOST_WITH_EVERYTHING, MOST_STEP_WITH_EVERYTHING_US = 1.002, 60
STEP_S = 0.015  # of a training that is watched with everything on
MOST_STEP_US, MOST_MARKER_US = 25, 5
MARKERS = 2000  # of each kind in a row
BATCH, WIDTH, LAYERS = 64, 256, 8
WARMUP = 1
UNMEASURED = 3  # steps at the beginning of each loop, whose caches are another's
WAITS_S = 60.0

T = TypeVar("T")


class Training:
    """Steps of a perceptron on one thread, of a few milliseconds each."""

    def __init__(self) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(0)
        layers = [layer for _ in range(LAYERS) for layer in (torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU())]
        self._model = torch.nn.Sequential(*layers)
        self._optimizer = torch.optim.AdamW(self._model.parameters())
        self._data = torch.randn(BATCH, WIDTH)

    def step(self) -> None:
        """One step."""
        loss = self._model(self._data).square().mean()
        loss.backward()
        self._optimizer.step()
        self._optimizer.zero_grad()


class Repeated:
    """A training whose step is several of another one's, so that it lasts a given time.

    Args:
        training: The other one.
        seconds: How long a step is to last.
    """

    def __init__(self, training: Training, seconds: float) -> None:
        self._training = training
        self._times = max(1, round(seconds / loop(training, 50, nothing).a_step))

    def step(self) -> None:
        """One step."""
        for _ in range(self._times):
            self._training.step()


class Cost(NamedTuple):
    """What a step of a loop took, in seconds.

    Args:
        a_step: All of it.
        boundary: What is called after it.
        threads: The processor's time that the Tracer's threads used meanwhile.
        cpu: The processor's time of the training's thread.
    """

    a_step: float
    boundary: float
    threads: float
    cpu: float


class Window(NamedTuple):
    """What a window cost, in seconds.

    Args:
        a_step: A recorded step.
        held: How long its end held the training.
        held_cpu: The processor's time of the training's thread meanwhile, which other programs disturb little.
        freeing: The processor's time that freeing its events took on another thread.
    """

    a_step: Cost
    held: float
    held_cpu: float
    freeing: float = 0


class Windows:
    """A schedule that records nothing until it is told to."""

    def __init__(self) -> None:
        self._actions: deque[ProfilerAction] = deque()

    def __call__(self, _step: int) -> ProfilerAction:
        """Return what to do in the next step."""
        return self._actions.popleft() if self._actions else ProfilerAction.NONE

    def begin(self, steps: int) -> None:
        """Record so many steps, after a warm-up."""
        schedule = one_window(steps)
        self._actions.extend(schedule(step) for step in range(WARMUP + steps))


def one_window(steps: int) -> Callable[[int], ProfilerAction]:
    """A schedule of one window of so many steps, after the warm-up."""
    return torch.profiler.schedule(wait=0, warmup=WARMUP, active=steps, repeat=1)


def nothing() -> None:
    """What a bare loop calls after each step."""


def threads_s(name: str = "kinetoscope") -> float:
    """The processor's time that the Tracer's threads have used, or those whose names begin so."""
    own = [thread for thread in threading.enumerate() if thread.name.startswith(name)]
    return sum(time.clock_gettime(time.pthread_getcpuclockid(thread.ident or 0)) for thread in own)


def loop(training: Training | Repeated, steps: int, boundary: Callable[[], object]) -> Cost:
    """What a step costs, with what is called after each."""
    for _ in range(UNMEASURED):
        training.step()
        boundary()
    clock, at_boundary, threads, cpu = time.perf_counter, 0.0, threads_s(), time.thread_time()
    began = clock()
    for _ in range(steps):
        training.step()
        ended = clock()
        boundary()
        at_boundary += clock() - ended
    a_step, cpu = (clock() - began) / steps, (time.thread_time() - cpu) / steps
    return Cost(a_step, at_boundary / steps, (threads_s() - threads) / steps, cpu)


def window(training: Training, steps: int, boundary: Callable[[], object]) -> Window:
    """What a window costs."""
    for _ in range(WARMUP):
        training.step()
        boundary()
    cost = loop(training, steps - UNMEASURED - 1, boundary)
    training.step()
    began, began_cpu = time.perf_counter(), time.thread_time()
    boundary()
    return Window(cost, time.perf_counter() - began, time.thread_time() - began_cpu)


def ours(training: Training, steps: int, tracer: Tracer, windows: Windows) -> Window:
    """A window of the Tracer's."""
    saved, freeing = len(tracer.saved_traces), threads_s("kinetoscope-free")
    windows.begin(steps)
    tracer.step()
    costs = window(training, steps, tracer.step)
    # The file is finished by another process, beside which nothing is measured.
    waited_for(lambda: len(tracer.saved_traces) > saved)
    return costs._replace(freeing=threads_s("kinetoscope-free") - freeing)


def torchs(training: Training, steps: int, folder: Path, *, with_stack: bool) -> Window:
    """A window of torch's own profiler with the same options."""
    handler = tensorboard_trace_handler(str(folder), use_gzip=True)
    options = {"record_shapes": True, "with_stack": with_stack}
    with profile(schedule=one_window(steps), on_trace_ready=handler, **options) as profiler:
        return window(training, steps, profiler.step)


def waited_for(is_true: Callable[[], bool], meanwhile: Callable[[], object] = lambda: time.sleep(0.01)) -> None:
    """Wait until something is true.

    Raises:
        TimeoutError: It didn't become true.
    """
    until = time.monotonic() + WAITS_S
    while not is_true():
        if time.monotonic() > until:
            raise TimeoutError("The Tracer's other processes didn't do their work.")
        meanwhile()


def pairs(rounds: int, first: Callable[[], T], second: Callable[[], T]) -> Iterator[tuple[T, T]]:
    """Both, in turn; who begins changes."""
    for number in range(rounds):
        if number % 2:
            later, earlier = second(), first()
            yield earlier, later
        else:
            yield first(), second()


def outside(
    training: Training | Repeated, rounds: int, steps: int, folder: Path, **options: str
) -> list[tuple[Cost, Cost]]:
    """Steps that a Tracer is told of and doesn't record, and bare ones."""
    schedule = None if "budget" in options else cyclic(wait=1 << 40)
    with Tracer(folder, schedule=schedule, **options) as tracer:

        def traced_loop() -> Cost:
            return loop(training, steps, tracer.step)

        waited_for(lambda: any(folder.rglob("events.out.tfevents*")), traced_loop)  # all its processes have started
        return list(pairs(rounds, traced_loop, lambda: loop(training, steps, nothing)))


def inside(
    training: Training, rounds: int, steps: int, folder: Path, *, with_stack: bool = False
) -> list[tuple[Window, Window]]:
    """Windows of a Tracer, and of torch.profiler.

    Without curves, each of which would be summed up by another process while the next window is measured; what a step
    costs with them is in `outside`.
    """
    windows = Windows()
    with Tracer(folder, schedule=windows, keep=1, scalars=False, with_stack=with_stack) as tracer:

        def one_of_ours() -> Window:
            return ours(training, steps, tracer, windows)

        def one_of_torchs() -> Window:
            return torchs(training, steps, folder / "torch", with_stack=with_stack)

        one_of_ours()
        one_of_torchs()
        return list(pairs(rounds, one_of_ours, one_of_torchs))


def a_call_us(function: Callable[[], object]) -> float:
    """The processor's time that a call takes this thread, of many in a row."""
    began = time.thread_time_ns()
    for _ in range(MARKERS):
        function()
    return (time.thread_time_ns() - began) / MARKERS / 1e3


def markers(rounds: int, folder: Path, schedule: Callable[[int], ProfilerAction] | None) -> list[tuple[float, float]]:
    """What a range costs, a marker and torch's own, with such a schedule."""
    with Tracer(folder, schedule=schedule, max_window_s=WAITS_S, scalars=False) as tracer:
        marker = tracer.marker("part")

        def ours() -> None:
            with marker:
                pass

        def torchs() -> None:
            with record_function("part"):
                pass

        return list(pairs(rounds, lambda: a_call_us(ours), lambda: a_call_us(torchs)))


def shown(values: list[float], scale: float, digits: int) -> str:
    """The median of some values, and their quartiles."""
    low, middle, high = (f"{value * scale:.{digits}f}" for value in quartiles(values))
    return f"{middle} ({low} to {high})"


def report_steps(what: str, both: list[tuple[Cost, Cost]], most: float, other: str) -> None:
    """Print how two kinds of steps compare; the Tracer's threads count against the first kind, whenever they ran."""
    quicker = [second.a_step - second.threads for _, second in both]
    ratios = [first.a_step / alone for (first, _), alone in zip(both, quicker, strict=True)]
    added = [first.a_step - alone for (first, _), alone in zip(both, quicker, strict=True)]
    print(line(what, ratios, most, "×"))
    print(f"    {other}: {shown([second.a_step for _, second in both], 1e3, 3)} ms")
    print(f"    added to it: {shown(added, 1e6, 1)} µs")
    print(
        f"    inside tracer.step(): {shown([first.boundary for first, _ in both], 1e6, 1)} µs,"
        f" there: {shown([second.boundary for _, second in both], 1e6, 1)} µs"
    )
    print(f"    the Tracer's threads: {shown([first.threads for first, _ in both], 1e6, 1)} µs a step")
    sys.stdout.flush()


def report_markers(what: str, both: list[tuple[float, float]]) -> None:
    """Print what a marker costs, and how that compares with torch's own range."""
    print(line(what, [ours for ours, _ in both], MOST_MARKER_US, "µs"))
    print(f"    record_function there: {shown([theirs for _, theirs in both], 1, 1)} µs,")
    print(f"    marker / record_function: {shown([ours / theirs for ours, theirs in both], 1, 2)}×")
    sys.stdout.flush()


def report_everything(training: Training, rounds: int, folder: Path) -> None:
    """Measure and print what steps cost with all that watches them: the ring, hang reports, a budget and all curves.

    The budget is so small that nothing is recorded.
    """
    both = outside(Repeated(training, STEP_S), rounds, 20, folder, budget="0.001%", scalars="all")
    report_steps("a step of 15 ms with everything on / a bare one", both, MOST_WITH_EVERYTHING, "a bare step")
    calls = [first.boundary * 1e6 for first, _ in both]
    print(line("tracer.step() with everything on", calls, MOST_STEP_WITH_EVERYTHING_US, "µs"))
    added = [(first.cpu + first.threads - second.cpu) * 1e6 for first, second in both]
    print(line("  added by CPU time of all threads", added, MOST_STEP_WITH_EVERYTHING_US, "µs"))
    shares = [(first.boundary + first.threads) / first.cpu for first, _ in both]
    print(f"    tracer.step() and the Tracer's threads: {shown(shares, 100, 2)} % of a step's CPU time")
    repeated = Repeated(training, STEP_S)
    bare = list(pairs(rounds, *[lambda: loop(repeated, 20, nothing)] * 2))
    noise = [abs(first.cpu / second.cpu - 1) for first, second in bare]
    print(f"    two bare loops differ by {shown(noise, 100, 2)} % of their CPU time, which is the noise of a pair")
    print(f"    {len(both)} pairs, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    sys.stdout.flush()


def report_recording(rounds: int, steps: int) -> None:
    """Measure and print all of it."""
    logging.getLogger("kinetoscope").setLevel(logging.ERROR)
    training = Training()
    loop(training, steps, nothing)
    with tempfile.TemporaryDirectory() as name:
        costs = outside(training, rounds * 4, steps, Path(name, "outside"))
        report_steps("a step outside a window / a bare one", costs, MOST_OUTSIDE, "a bare step")
        print(line("tracer.step() outside a window", [first.boundary * 1e6 for first, _ in costs], MOST_STEP_US, "µs"))
        report_everything(training, rounds * 8, Path(name, "everything"))
        idle = markers(rounds, Path(name, "idle"), cyclic(wait=1 << 40))
        report_markers("a marker outside a window", idle)
        report_markers("a marker in a window", markers(rounds, Path(name, "markers"), None))
        both = inside(training, rounds, steps, Path(name, "inside"))
        stacks = inside(training, rounds, steps, Path(name, "stacks"), with_stack=True)
    costs = [(a.a_step, b.a_step) for a, b in both]
    report_steps("a recorded step / torch.profiler's", costs, MOST_INSIDE, "a step that torch.profiler records")
    report_saves("held by a save / torch's handler (use_gzip=True)", both, steps)
    report_saves("the same with_stack=True", stacks, steps)


def report_saves(what: str, both: list[tuple[Window, Window]], steps: int) -> None:
    """Print how long the ends of two kinds of windows hold the training."""
    print(line(what, [ours.held / torchs.held for ours, torchs in both], MOST_HELD, "×"))
    print(
        line("  by CPU time of that thread", [ours.held_cpu / torchs.held_cpu for ours, torchs in both], MOST_HELD, "×")
    )
    held = [shown([pair[place].held for pair in both], 1e3, 1) for place in (0, 1)]
    print(f"    a window of {steps} steps holds the training for {held[0]} ms, torch's for {held[1]} ms")
    freeing = shown([ours.freeing for ours, _ in both], 1e3, 1)
    print(f"    freeing its events on another thread takes {freeing} ms; torch does so when its next window begins")
    sys.stdout.flush()
