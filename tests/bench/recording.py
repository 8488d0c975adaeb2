"""What recording costs a training: a small real one with and without the Tracer, in turn, in one process.

Both of a pair run one after the other, each first in every second pair, so that a machine that warms up or is busy for
a while favours neither. What is said of all pairs is the median of their ratios.
"""

from __future__ import annotations

import logging
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ.setdefault("KINETO_LOG_LEVEL", "99")

import torch
from torch.profiler import ProfilerAction, profile, tensorboard_trace_handler

from kinetoscope import Tracer

MOST_OUTSIDE, MOST_INSIDE, MOST_HELD = 1.005, 1.02, 0.5
BATCH, WIDTH, LAYERS = 64, 512, 8
WARMUP = 1


class Training:
    """Steps of a perceptron on one thread, of some 10 ms each."""

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


def never(_step: int) -> ProfilerAction:
    """A schedule that records nothing."""
    return ProfilerAction.NONE


def one_window(steps: int) -> Callable[[int], ProfilerAction]:
    """A schedule of one window of so many steps, after the warm-up."""
    return torch.profiler.schedule(wait=0, warmup=WARMUP, active=steps, repeat=1)


def seconds_a_step(training: Training, steps: int, boundary: Callable[[], object] | None = None) -> float:
    """How long a step takes, with what is called after each."""
    began = time.perf_counter()
    for _ in range(steps):
        training.step()
        if boundary is not None:
            boundary()
    return (time.perf_counter() - began) / steps


def outside(training: Training, steps: int, folder: Path) -> float:
    """Seconds a step with a Tracer that isn't recording."""
    with Tracer(folder, schedule=never) as tracer:
        return seconds_a_step(training, steps, tracer.step)


def window(training: Training, steps: int, boundary: Callable[[], object]) -> tuple[float, float]:
    """Seconds a recorded step, and seconds that the end of the window holds the training."""
    for _ in range(WARMUP + 1):
        training.step()
        boundary()
    a_step = seconds_a_step(training, steps - 2, boundary)
    training.step()
    began = time.perf_counter()
    boundary()
    return a_step, time.perf_counter() - began


def ours(training: Training, steps: int, folder: Path) -> tuple[float, float]:
    """A window of the Tracer's."""
    with Tracer(folder, schedule=one_window(steps)) as tracer:
        return window(training, steps, tracer.step)  # the file is finished when the `with` ends, outside of the measure


def torchs(training: Training, steps: int, folder: Path) -> tuple[float, float]:
    """A window of torch's own profiler with the same options."""
    handler = tensorboard_trace_handler(str(folder), use_gzip=True)
    with profile(schedule=one_window(steps), on_trace_ready=handler, record_shapes=True) as profiler:
        return window(training, steps, profiler.step)


def pairs(rounds: int, first: Callable[[], object], second: Callable[[], object]) -> Iterator[tuple[object, object]]:
    """Both, in turn; who begins changes."""
    for number in range(rounds):
        if number % 2:
            later, earlier = second(), first()
            yield earlier, later
        else:
            yield first(), second()


def report(what: str, ratios: list[float], most: float) -> None:
    """Print a median with its quartiles, and whether it is within its bound."""
    low, middle, high = statistics.quantiles(ratios, n=4)
    verdict = "ok" if middle <= most else "TOO MUCH"
    print(f"{what:58} {middle:7.4f}× ({low:.4f} to {high:.4f}, {len(ratios)} pairs; at most {most}×) {verdict}")


def report_recording(rounds: int, steps: int) -> None:
    """Measure and print all three."""
    logging.getLogger("kinetoscope").setLevel(logging.ERROR)
    training = Training()
    seconds_a_step(training, steps)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ratios = [
            with_it / bare
            for with_it, bare in pairs(
                rounds, lambda: outside(training, steps, folder), lambda: seconds_a_step(training, steps)
            )
        ]
        report("a step outside a window / a bare one", ratios, MOST_OUTSIDE)
        both = list(
            pairs(rounds, lambda: ours(training, steps, folder), lambda: torchs(training, steps, folder / "torch"))
        )
    report("a recorded step / torch.profiler's", [a[0] / b[0] for a, b in both], MOST_INSIDE)
    report("held by a save / tensorboard_trace_handler(use_gzip=True)", [a[1] / b[1] for a, b in both], MOST_HELD)
    held = statistics.median(a[1] for a, _ in both), statistics.median(b[1] for _, b in both)
    print(f"a save of {steps} steps holds the training for {held[0]:.3f} s, torch's for {held[1]:.3f} s")
    sys.stdout.flush()
