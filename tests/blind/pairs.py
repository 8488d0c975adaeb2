"""Measured pairs: how well the graph of a recording predicts a change whose effect was measured without a profiler.

Each pair is a training before and after a change. The recordings say how much less time the part that the change is
about takes afterwards; the graph of the first one says how long its step would then be. Truth is the ratio of the two
jobs' steps that `pair_worker.py` measured in turns: the median over turns.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinetoscope_tb.advice.candidates import percents
from kinetoscope_tb.advice.contention import core_waits_candidate
from kinetoscope_tb.advice.facts import Facts
from kinetoscope_tb.advice.model import Candidate
from kinetoscope_tb.advice.saving_range import OF_HOST, Change, range_of_delays
from kinetoscope_tb.critical_path.boundaries import host_boundaries
from kinetoscope_tb.critical_path.explanation import Explanation, path_explanation
from kinetoscope_tb.measures.recording.processor_use import ProcessorTime
from kinetoscope_tb.measures.time.step_subset import counted_steps
from kinetoscope_tb.reader import read
from kinetoscope_tb.trace import Trace

from .pair_noise import noise

REDUCTION = r"reduction|gloo:all_?reduce"
LOADER = r"enumerate\(DataLoader\)"
CHANGE = 0.02  # of a step: less is noise, without a sign
MOST_NOISE = 0.05  # of a measured ratio: with more, it says nothing about predictions


@dataclass(frozen=True)
class Pair:
    """A change of a job.

    Attributes:
        name: Its own.
        target: The name of what takes less time afterwards: a part of the step.
        before: The job.
        after: The job with the change.
        hides: Whether the change is that the part runs while the rest of the step does.
        frees_cores: Whether others that competed for cores are gone, too.
    """

    name: str
    target: str
    before: dict[str, Any]
    after: dict[str, Any]
    hides: bool = False
    frees_cores: bool = False


@dataclass(frozen=True)
class Measurement:
    """What a change did to a job on some machine.

    Attributes:
        name: That of the pair.
        target: What takes less time afterwards.
        hides: Whether it still takes its time, but while the rest of the step runs.
        before_ms: A step before the change, without a profiler: the median over turns.
        after_ms: A step after it: the same times the median ratio of a turn's two sides.
        noise: Two standard errors of that ratio, as a share of it.
        less: By which share the target takes less time, as recorded.
        frees_cores: Whether others that competed for cores are gone, too.
    """

    name: str
    target: str
    hides: bool
    before_ms: float
    after_ms: float
    noise: float
    less: float
    frees_cores: bool = False


@dataclass(frozen=True)
class Prediction:
    """What the graph of the recording before the change says, as shares of the step.

    Attributes:
        measured: What happened.
        saved: What the change saves.
        least: The least that it may save.
        most: The most that it may save.
    """

    measured: Measurement
    saved: float
    least: float
    most: float

    @property
    def predicted_ms(self) -> float:
        """A step after the change."""
        return self.measured.before_ms * (1 - self.saved)

    @property
    def error(self) -> float:
        """How far the predicted step is from the measured one, as a share of that."""
        return abs(self.predicted_ms / self.measured.after_ms - 1)

    @property
    def has_wrong_sign(self) -> bool:
        """Whether a change that is more than noise was predicted to go the other way."""
        saved = self._saved
        return abs(saved) > CHANGE + self.measured.noise and saved * self.saved < 0

    @property
    def is_in_range(self) -> bool:
        """Whether the saving lies within its bounds; a step that takes longer afterwards saved nothing."""
        return self.least <= max(0.0, self._saved) <= self.most

    @property
    def _saved(self) -> float:
        return 1 - self.measured.after_ms / self.measured.before_ms


def all_pairs() -> Iterator[Pair]:
    """Some ninety pairs, mixed, so that the first ones are of all kinds."""
    kinds = [
        *(_loading(), _payloads(), _buckets(), _ranks(), _overlaps()),
        *(_activations(), _reads(), _products(), _words()),
    ]
    for row in itertools.zip_longest(*kinds):
        yield from filter(None, row)


def _loading() -> Iterator[Pair]:
    for ms, (few, more), layers in itertools.product((20, 40), ((1, 2), (1, 4), (2, 4)), (4, 12)):
        job = {"loading_ms": ms, "layers": layers}
        yield Pair(f"workers_{ms}_{few}_{more}_{layers}", LOADER, {**job, "workers": few}, {**job, "workers": more})


def _payloads() -> Iterator[Pair]:
    for (many, few), layers in itertools.product(((4, 1), (4, 2), (2, 1), (6, 2)), (4, 12)):
        job = {"ranks": 2, "layers": layers}
        before, after = ({**job, "payload": millions << 20} for millions in (many, few))
        yield Pair(f"payload_{many}_{few}_{layers}", REDUCTION, before, after)


def _buckets() -> Iterator[Pair]:
    for (many, few), layers in itertools.product(((32, 2), (32, 4), (16, 1), (16, 2)), (4, 12)):
        job = {"ranks": 2, "layers": layers, "payload": 4 << 20}
        yield Pair(f"buckets_{many}_{few}_{layers}", REDUCTION, {**job, "buckets": many}, {**job, "buckets": few})


def _ranks() -> Iterator[Pair]:
    for payload, layers in itertools.product((1, 2, 4), (4, 12)):
        job = {"layers": layers, "payload": payload << 20}
        before, after = ({**job, "ranks": ranks} for ranks in (2, 1))
        yield Pair(f"ranks_{payload}_{layers}", REDUCTION, before, after, frees_cores=True)


def _overlaps() -> Iterator[Pair]:
    for payload, layers in itertools.product((1, 2, 4), (8, 12, 24)):
        job = {"ranks": 2, "layers": layers, "payload": payload << 20}
        yield Pair(f"overlap_{payload}_{layers}", REDUCTION, job, {**job, "overlaps": True}, hides=True)


def _activations() -> Iterator[Pair]:
    for width, layers in itertools.product((300_000, 600_000, 1_000_000, 2_000_000, 3_000_000), (4, 12)):
        job = {"layers": layers, "width": width}
        yield Pair(f"fused_{width}_{layers}", "activation", {**job, "is_fused": False}, job)


def _reads() -> Iterator[Pair]:
    for count, layers in itertools.product((500, 1_000, 2_000, 4_000, 8_000), (4, 12)):
        job = {"layers": layers}
        yield Pair(f"reads_{count}_{layers}", "reads", {**job, "reads": count}, {**job, "reads": 1})


def _products() -> Iterator[Pair]:
    for hidden, layers, batch in itertools.product((384, 512, 768), (4, 12), (96, 160)):
        before, after = ({"hidden": hidden, "layers": layers, "batch": size} for size in (256, batch))
        yield Pair(f"batch_{hidden}_{layers}_{batch}", "layers", before, after)


def _words() -> Iterator[Pair]:
    for (many, few), layers in itertools.product(((100, 50), (60, 1), (40, 10), (20, 2)), (4, 12)):
        before, after = ({"layers": layers, "words": thousands * 1_000} for thousands in (many, few))
        yield Pair(f"words_{many}_{few}_{layers}", "words", before, after)


def record_pairs(pairs: Sequence[Pair], out: Path, seconds: float) -> None:
    """Measure and record pairs on two processes, as many as the time allows."""
    out.mkdir(parents=True, exist_ok=True)
    listing = out / "pairs.json"
    listing.write_text(json.dumps([{"name": pair.name, "before": pair.before, "after": pair.after} for pair in pairs]))
    worker = Path(__file__).with_name("pair_worker.py")
    command = [sys.executable, str(worker), str(listing), str(out), str(seconds)]
    subprocess.run(command, check=True, timeout=seconds + 600, env={**os.environ, "KINETO_LOG_LEVEL": "99"})


def typical_recording(out: Path, name: str, usual_ns: float) -> Path:
    """Of the recordings of a job on rank 0 the one whose steps are most like those that were measured."""

    def distance(path: Path) -> float:
        return abs(float(path_explanation(read(path)).what_if.lengths.mean()) / usual_ns - 1)

    return min(sorted(out.glob(f"{name}.*.0.json.gz")), key=distance)


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


def predicted_frac(trace: Trace, target: str, less: float) -> float:
    """The step, as a share of what it is now, if the target took so much less: a share from 0 to 1."""
    explained = path_explanation(trace)
    saved = saved_ns(explained, trace, target, less)[counted_steps(trace)]
    return float(1 - saved.mean() / explained.what_if.lengths[counted_steps(trace)].mean())


def saved_ns(
    explained: Explanation, trace: Trace, target: str, less: float, others: NDArray[np.uint8] | None = None
) -> NDArray[np.float64]:
    """What each step saves if the target takes so much less, a share from 0 to 1, and others so many percent."""
    what_if = explained.what_if
    low, high = (
        what_if.saved_together(_percents(explained, trace, target, int(percent), others))
        for percent in (np.floor(100 * less), np.ceil(100 * less))
    )
    return np.asarray(low + (100 * less % 1) * (high - low))


def _percents(
    explained: Explanation, trace: Trace, target: str, percent: int, others: NDArray[np.uint8] | None
) -> NDArray[np.uint8]:
    """By how much each node would be shorter."""
    _, ranges = host_boundaries(trace)
    of_nodes = np.zeros(explained.graph.nodes.time.size, np.uint8) if others is None else others.copy()
    for row in _rows_of(trace, target):
        nodes = slice(ranges.start[row] + 1, ranges.end[row] + 1)
        of_nodes[nodes] = np.maximum(of_nodes[nodes], percent)
    return of_nodes


def measurement(pair: Pair, out: Path) -> tuple[Measurement, Path]:
    """What happened to a pair, and the recording of the job before the change."""
    times = json.loads((out / f"{pair.name}.times.json").read_text())
    medians = {side: statistics.median(seconds) for side, seconds in times.items()}
    before, after = (typical_recording(out, f"{pair.name}.{side}", medians[side] * 1e9) for side in ("before", "after"))
    ratios = np.array(times["after"]) / np.array(times["before"])
    ratio, step_ms = float(np.median(ratios)), medians["before"] * 1000
    less = 1.0 if pair.hides else _less_of_target(pair.target, read(before), read(after))
    uncertain = noise(times["before"], times["after"])
    change = pair.name, pair.target, pair.hides
    return Measurement(*change, step_ms, step_ms * ratio, uncertain, less, pair.frees_cores), before


def _less_of_target(target: str, before: Trace, after: Trace) -> float:
    """By which share it takes less on the main thread: what a communicating thread does meanwhile is no more time."""
    part = target.split("|", 1)[0]
    spent = target_ns(before, part)
    return min(1.0, max(0.0, 1 - target_ns(after, part) / spent)) if spent else 0.0


def prediction(measured: Measurement, trace: Trace) -> Prediction:
    """What the graph of the recording before the change says."""
    explained, facts = path_explanation(trace), Facts(trace)
    waits = core_waits_candidate(facts) if measured.frees_cores else None
    others = None if waits is None else percents(waits, explained)
    per_step = saved_ns(explained, trace, measured.target, measured.less, others)
    change = Change.of(Candidate("the target"), np.round(per_step).astype(np.int64))
    bounds = range_of_delays(facts, change)
    saved, least, most = (ns / facts.usual_step_ns for ns in (facts.mean(per_step), *bounds))
    if measured.hides:  # all that the part's absence saves, as long as the rest takes longer than the part
        cpu = ProcessorTime.of(trace.meta)
        free = 1 - cpu.busy_share if cpu and cpu.busy_share else 1.0  # of the cores, for both at the same time
        hidden = min(saved, 1 - saved, free)
        saved, most = hidden, min(hidden + most - saved, 0.5, free + OF_HOST)
        least = 0.0  # how the system shares cores isn't known
    return Prediction(measured, saved, least, most)


def table(predictions: Sequence[Prediction]) -> list[str]:
    """Lines: each pair, and the errors of those that could be measured."""
    lines = [f"{'pair':<26} {'before':>9} {'after':>9} {'predicted':>10} {'error':>7} {'noise':>7} {'saves':>7} range"]
    for item in predictions:
        pair = item.measured
        note = " left out" if pair.noise > MOST_NOISE else " wrong sign" if item.has_wrong_sign else ""
        note += "" if item.is_in_range else " out of range"
        steps = f"{pair.before_ms:>6.1f} ms {pair.after_ms:>6.1f} ms {item.predicted_ms:>7.1f} ms"
        bounds = f"{1 - pair.after_ms / pair.before_ms:>7.1%} {item.least:.1%} to {item.most:.1%}"
        lines.append(f"{pair.name:<26} {steps} {item.error:>7.1%} {pair.noise:>7.1%} {bounds}{note}")
    measured = [item for item in predictions if item.measured.noise <= MOST_NOISE]
    lines.append(
        f"{len(measured)} pairs, and {len(predictions) - len(measured)} whose ratio varies too much on this machine now"
    )
    if measured:
        errors, wrong = [item.error for item in measured], sum(item.has_wrong_sign for item in measured)
        lines.append(
            f"median error {np.median(errors):.1%}, 95th percentile {np.quantile(errors, 0.95):.1%}, {wrong} wrong "
            f"signs; {np.mean([item.is_in_range for item in measured]):.0%} within their range"
        )
    return lines


def measurements(out: Path) -> Iterator[tuple[Measurement, Path]]:
    """What happened to each pair that was recorded, and its recording before the change."""
    for pair in all_pairs():
        if (out / f"{pair.name}.times.json").exists():
            yield measurement(pair, out)


def run(out: Path, seconds: float) -> list[Prediction]:
    """Record pairs for so long, and predict each."""
    record_pairs(list(all_pairs()), out, seconds)
    return [prediction(measured, read(path)) for measured, path in measurements(out)]
