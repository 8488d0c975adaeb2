"""Measured pairs: how well the graph of a recording predicts a change whose effect was measured without a profiler.

Each pair is a training before and after a change. The recordings say how much less time what the change is about takes
afterwards; the graph of the first one says how long its step would then be. Truth is the ratio of the two medians that
`pair_worker.py` measured in turns.
"""

from __future__ import annotations

import itertools
import json
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kinetoscope_tb.critical_path.explanation import path_explanation
from kinetoscope_tb.measures.time.step_subset import counted_steps
from kinetoscope_tb.reader import read
from kinetoscope_tb.trace import Trace

LOADER, REDUCTION, ACTIVATION = r"enumerate\(DataLoader\)", r"gloo:all_?reduce", r"aten::(gelu|mul|add|tanh)"
READS, PRODUCTS = r"aten::(item|select|_local_scalar_dense)", r"aten::(matmul|mm)"
CHANGE = 0.02  # of a step: less is noise, without a sign
MOST_NOISE = 0.05  # of a step, between the two halves of a measurement: with more, it says nothing about predictions


@dataclass(frozen=True)
class Pair:
    """A change of a job; `target`: the names of what takes less time afterwards."""

    name: str
    target: str
    before: dict[str, Any]
    after: dict[str, Any]


@dataclass(frozen=True)
class Prediction:
    """Steps in milliseconds, as measured and as predicted; `noise`: the larger difference of a side's two halves."""

    pair: Pair
    before_ms: float
    after_ms: float
    predicted_ms: float
    noise: float

    @property
    def error(self) -> float:
        """How far the predicted step is from the measured one, as a share of that."""
        return abs(self.predicted_ms - self.after_ms) / self.after_ms

    @property
    def has_wrong_sign(self) -> bool:
        """Whether a change that is more than noise was predicted to go the other way."""
        measured, predicted = (1 - step / self.before_ms for step in (self.after_ms, self.predicted_ms))
        return abs(measured) > CHANGE and measured * predicted < 0


def all_pairs() -> Iterator[Pair]:
    """Sixty pairs, mixed, so that the first ones are of all kinds."""
    kinds = [_loading(), _payloads(), _buckets(), _ranks(), _overlaps(), _activations(), _reads(), _products()]
    for row in itertools.zip_longest(*kinds):
        yield from filter(None, row)


def _loading() -> Iterator[Pair]:
    for ms, (few, more), layers in itertools.product((20, 40, 60), ((1, 2), (1, 4), (2, 4)), (2, 12)):
        job = {"loading_ms": ms, "layers": layers}
        yield Pair(f"workers_{ms}_{few}_{more}_{layers}", LOADER, {**job, "workers": few}, {**job, "workers": more})


def _payloads() -> Iterator[Pair]:
    for (many, few), layers in itertools.product(((8, 4), (8, 1), (4, 1), (4, 2)), (2, 12)):
        job = {"ranks": 2, "layers": layers}
        yield Pair(
            f"payload_{many}_{few}_{layers}", REDUCTION, {**job, "payload": many << 20}, {**job, "payload": few << 20}
        )


def _buckets() -> Iterator[Pair]:
    for (many, few), layers in itertools.product(((64, 8), (256, 8), (256, 32)), (2, 12)):
        job = {"ranks": 2, "layers": layers, "payload": 1 << 18}
        yield Pair(f"buckets_{many}_{few}_{layers}", REDUCTION, {**job, "buckets": many}, {**job, "buckets": few})


def _ranks() -> Iterator[Pair]:
    for payload, layers in itertools.product((1, 4), (4, 12)):
        job = {"layers": layers, "payload": payload << 20}
        yield Pair(f"ranks_{payload}_{layers}", REDUCTION, {**job, "ranks": 2}, {**job, "ranks": 1})


def _overlaps() -> Iterator[Pair]:
    for payload, layers in itertools.product((1, 4), (12, 24)):
        job = {"ranks": 2, "layers": layers, "payload": payload << 20}
        yield Pair(f"overlap_{payload}_{layers}", REDUCTION, job, {**job, "overlaps": True})


def _activations() -> Iterator[Pair]:
    for width, layers in itertools.product((300_000, 1_000_000, 3_000_000, 6_000_000), (2, 12)):
        job = {"layers": layers, "width": width}
        yield Pair(f"fused_{width}_{layers}", ACTIVATION, {**job, "is_fused": False}, job)


def _reads() -> Iterator[Pair]:
    for count, layers in itertools.product((500, 2_000, 8_000), (2, 12)):
        job = {"layers": layers}
        yield Pair(f"reads_{count}_{layers}", READS, {**job, "reads": count}, {**job, "reads": 1})


def _products() -> Iterator[Pair]:
    for hidden, layers in itertools.product((384, 512, 768), (4, 12)):
        yield Pair(
            f"batch_{hidden}_{layers}",
            PRODUCTS,
            {"hidden": hidden, "layers": layers, "batch": 256},
            {"hidden": hidden, "layers": layers, "batch": 96},
        )


def record_pairs(pairs: Sequence[Pair], out: Path, seconds: float) -> None:
    """Measure and record pairs on two processes, as many as the time allows."""
    out.mkdir(parents=True, exist_ok=True)
    listing = out / "pairs.json"
    listing.write_text(json.dumps([{"name": pair.name, "before": pair.before, "after": pair.after} for pair in pairs]))
    worker = Path(__file__).with_name("pair_worker.py")
    command = [sys.executable, str(worker), str(listing), str(out), str(seconds)]
    subprocess.run(command, check=True, timeout=seconds + 600)


def typical_recording(out: Path, name: str, usual_ns: float) -> Trace:
    """Of the recordings of a job on rank 0 the one whose steps are most like those that were measured."""
    traces = [read(path) for path in sorted(out.glob(f"{name}.*.0.json"))]
    return min(
        traces, key=lambda trace: abs(float((trace.steps["end_ns"] - trace.steps["start_ns"]).median()) / usual_ns - 1)
    )


def target_ns(trace: Trace, target: str) -> float:
    """How long what a pattern names takes in a counted step, each instant of a thread once."""
    host, steps = trace.host_events, counted_steps(trace)
    bounds = trace.steps["start_ns"][steps[0]], trace.steps["end_ns"][steps[-1]]
    rows = _rows_of(trace, target)
    inside = [row for row in rows if bounds[0] <= host["start_ns"][row] < bounds[1]]
    return sum(int(host["dur_ns"][row]) for row in inside) / len(steps)


def _rows_of(trace: Trace, target: str) -> list[int]:
    """The outermost ranges that a pattern names."""
    names, parents = trace.host_events["name"].to_list(), trace.host_events["parent"].to_list()
    fits = [re.match(target, name) is not None for name in names]
    rows = []
    for row, is_fit in enumerate(fits):
        parent = parents[row]
        while is_fit and parent is not None and parent >= 0:
            is_fit, parent = not fits[parent], parents[parent]
        if is_fit:
            rows.append(row)
    return rows


def predicted_frac(trace: Trace, target: str, percent: int) -> float:
    """The step, as a share of the recorded one, if the target took so many percent less."""
    explained = path_explanation(trace)
    nodes = explained.graph.nodes
    boundaries, host = nodes.boundaries, trace.host_events
    percents = np.zeros(nodes.time.size, np.uint8)
    for row in _rows_of(trace, target):
        percents[boundaries.start[row] + 1 : boundaries.end[row] + 1] = percent
    assert boundaries.start.size >= host.height
    counted = counted_steps(trace)
    saved = explained.what_if.saved_together(percents)[counted].mean()
    return float(1 - saved / explained.what_if.recorded[counted].mean())


def prediction(pair: Pair, out: Path) -> Prediction:
    """What the graph says about a pair, next to what was measured."""
    times = json.loads((out / f"{pair.name}.times.json").read_text())
    medians = {side: statistics.median(seconds) for side, seconds in times.items()}
    before, after = (typical_recording(out, f"{pair.name}.{side}", medians[side] * 1e9) for side in ("before", "after"))
    spent = target_ns(before, pair.target)
    less = 1 - target_ns(after, pair.target) / spent if spent else 0
    step_ms = medians["before"] * 1000
    frac = predicted_frac(before, pair.target, round(100 * min(1, max(0, less))))
    noise = max(map(difference_of_halves, times.values()))
    return Prediction(pair, step_ms, medians["after"] * 1000, step_ms * frac, noise)


def difference_of_halves(seconds: Sequence[float]) -> float:
    """How far the medians of the first and the second half are apart, as a share of the median."""
    half = len(seconds) // 2
    return abs(statistics.median(seconds[:half]) - statistics.median(seconds[half:])) / statistics.median(seconds)


def table(predictions: Sequence[Prediction]) -> list[str]:
    """Lines: each pair, and the errors of those that could be measured."""
    lines = [f"{'pair':<26} {'before':>9} {'after':>9} {'predicted':>10} {'error':>7} {'noise':>7}"]
    for item in predictions:
        note = " left out" if item.noise > MOST_NOISE else " wrong sign" if item.has_wrong_sign else ""
        steps = f"{item.before_ms:>6.1f} ms {item.after_ms:>6.1f} ms {item.predicted_ms:>7.1f} ms"
        lines.append(f"{item.pair.name:<26} {steps} {item.error:>7.1%} {item.noise:>7.1%}{note}")
    measured = [item for item in predictions if item.noise <= MOST_NOISE]
    lines.append(
        f"{len(measured)} pairs, and {len(predictions) - len(measured)} whose steps vary too much on this machine now"
    )
    if measured:
        errors, wrong = [item.error for item in measured], sum(item.has_wrong_sign for item in measured)
        lines.append(
            f"median error {np.median(errors):.1%}, 95th percentile {np.quantile(errors, 0.95):.1%}, {wrong} wrong signs"
        )
    return lines


def run(out: Path, seconds: float) -> list[Prediction]:
    """Record pairs for so long, and predict each."""
    pairs = list(all_pairs())
    record_pairs(pairs, out, seconds)
    return [prediction(pair, out) for pair in pairs if (out / f"{pair.name}.times.json").exists()]
