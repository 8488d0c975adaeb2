"""What several rules need to know of a trace, each worked out once."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property, partial

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import NONE, categories_of, category_codes, gather, map_categories, scatter_add
from ..arrays.intervals import (
    Intervals,
    Ints,
    distinct,
    exclusive_lengths,
    exclusive_sums,
    length_before,
    length_within,
    merge,
    union,
    without,
)
from ..arrays.nesting import nearest
from ..measures.calls.kernel_work import KERNEL_COLUMNS, KernelWork
from ..measures.calls.waiting_calls import waits_for_devices
from ..measures.recording.left_out_steps import steps_without_work
from ..measures.recording.lost_launches import MOSTLY_CAPTURED, are_launches_known, capture_spans
from ..measures.recording.server import inference_server
from ..measures.recording.usual_step import UsualStep, usual_step
from ..measures.recording.vendor import VendorTerms, vendor_terms
from ..measures.serving.iterations import server_iterations
from ..measures.serving.request_waits import request_waits
from ..measures.time.breakdown import breakdown, intervals_of, loading_ranges
from ..measures.time.exposure import exposure
from ..measures.time.graph_breaks import find_graph_breaks
from ..measures.time.host_activity import HOST_ACTIVITIES, host_activity_ns, launching_threads
from ..measures.time.host_time import HostTime
from ..measures.time.idle import Rows, Windows, axes, whole_gaps
from ..measures.time.idle_causes import CAUSES, NOT_SHOWN, SLOW_LAUNCH_NS, gap_parts
from ..measures.time.threads import autograd_threads, main_thread
from ..names import text
from ..names.calls import allocates, may_wait, records_for_profiler, sets_up, synchronizes
from ..names.compiled_code import is_compilation
from ..names.python_frames import collects_garbage, starts_workers, without_address
from ..trace import Trace
from ..trace.results import Results, once_per_recording
from ..trace.row_filters import is_operator, name_mask
from ..trace.steps import step_in_words, step_noun
from .model import Advice, Candidate, ClearedTopic
from .spread import Spread, warm_up_steps

_MORE_THAN_OPERATORS = 0.05  # of the step
LEAST_SHARE = 0.03  # of a step: less isn't worth anybody's time
_ERRORS, _FEWEST_FOR_ERROR = 3, 3
LARGE_SHARE = 0.10  # of a step: what nothing explains, or only an estimate does, is worth a word from here on
SURE_SHARE = 0.05  # of a step: a measured cost that recurs, and has a name, is worth a word from here on
_NEARLY_ALL = 0.9  # of the step
_LONGER = 1.5  # times the median step
_MOSTLY_LATE = 0.5  # of what a step takes longer
_MOSTLY_OPERATORS = 0.5  # of those of the recording
_FEW_FOR_MEDIAN = 3  # steps
_MANY_UPDATES = 100  # operators per step, of an optimizer that updates each parameter by itself
_FEW_GAPS = 3  # per step
_LONG_NS = 1_000_000
"""Between two calls of the host: launching takes µs, so the host does something else for that long."""
LOADING_NS = 1_000_000
"""Reading a kernel's code and copying it to the device takes ms, and so does creating a context; a call takes µs."""
_BY_ROW = ("idle_parts", "late_parts", "_rows_around_gaps", "kernels", "late")
"""What is cached of gaps and kernels."""
_OF_IDLE = ("copies", "device_copies", "peer_copies", "fills", "longer_host_steps")
"""Rules about time in which devices don't compute, besides those whose candidate is work or a wait of the host."""
_OF_PROCESSOR = ("host_threads", "core_waits")
"""Rules about time in which the host doesn't run: other processes take as large a share of a step that is shorter."""
_PART_COLUMNS = ("start_ns", "end_ns", "window")
_OPTIMIZER = "Optimizer.step#"
_OF_TRAINING = re.compile(rf"^autograd::engine::|^{_OPTIMIZER}|Backward\d*$|_backward$")


class Facts:
    """The steps that count (the complete ones after warm-up, or all if none is complete), and what they spent.

    Arrays have one entry per step of the trace, counted or not; `mean` picks those that count. Those that `lack_work`
    don't count since their device work isn't in the recording.

    Attributes:
        results: What modules of rules worked out of these facts for other rules, too.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.results = Results(self)
        complete = trace.steps["is_complete"].to_numpy()
        self.windows = Windows.of(trace, per_step=True)
        self.length = self.windows.end - self.windows.start
        self.complete: NDArray[np.bool_] = complete if complete.any() else np.ones_like(complete)
        self.is_counted = self.complete.copy()
        if not self.has_iterations:  # of which the steady part is complete
            warm_up = warm_up_steps(self.length[complete], self._work[complete])
            self.is_counted[np.flatnonzero(complete)[:warm_up]] = False
        self.count = int(self.is_counted.sum())
        self.step_ns = self.mean(self.length)
        self.lack_work = steps_without_work(trace)
        self.has_device = not trace.device_events.is_empty()
        self.has_operators = bool(is_operator(trace).any())

    def release(self) -> None:
        """Free what rules have looked at row by row: computed again, should anyone ask for it again."""
        for name in _BY_ROW:
            vars(self).pop(name, None)

    @cached_property
    def _work(self) -> Ints:
        """What the host and the devices do in each step, waits left out: its length where nothing overlaps."""
        steps, calls = self.trace.steps, self.trace.launches
        waits = calls.filter(pl.Series(map_categories(calls["name"], synchronizes), dtype=pl.Boolean))
        ranges = steps["host_start_ns"].to_numpy(), steps["host_end_ns"].to_numpy()
        busy = length_within(intervals_of(self.trace.device_events), self.windows.start, self.windows.end)
        return np.asarray(ranges[1] - ranges[0] - length_within(intervals_of(waits), *ranges) + busy)

    @cached_property
    def kernel_work(self) -> KernelWork:
        """The work behind `kernels`."""
        return KernelWork.of(self.trace, self.kernels)

    @property
    def has_iterations(self) -> bool:
        """Whether the steps are the iterations of a server."""
        return self.plain_noun == "iteration"

    @cached_property
    def are_alike(self) -> bool:
        """Whether the steps that count may be compared: training steps, or iterations of a server of one phase."""
        if not self.has_iterations:
            return True
        frame = server_iterations(self.trace).frame
        start = self.windows.start[self.is_counted]
        number = np.maximum(np.searchsorted(frame["start_ns"].to_numpy(), start, "right") - 1, 0)
        return frame["phase"].gather(number).n_unique() == 1

    @cached_property
    def is_training(self) -> bool:
        """Whether a backward pass or an optimizer's step was recorded."""
        return bool(name_mask(self.trace.host_events["name"], _is_of_training).any())

    @cached_property
    def server(self) -> str:
        """The name of the inference server that was recorded; empty if it was something else."""
        return "" if self.is_training else inference_server(self.trace)

    @cached_property
    def terms(self) -> VendorTerms:
        """The words of the devices' vendor."""
        return vendor_terms(self.trace)

    @cached_property
    def graph_captures(self) -> Ints:
        """How long the host captures graphs in each step: it calls for kernels that run later, if at all."""
        return length_within(capture_spans(self.trace), self.windows.start, self.windows.end)

    @property
    def are_of_captures(self) -> bool:
        """Whether the host captures graphs for most of the average step, so that what it launches doesn't run."""
        return self.share(self.mean(self.graph_captures)) >= MOSTLY_CAPTURED

    def mean(self, per_step: Ints) -> int:
        """The mean over the steps that count, rounded to the nanosecond."""
        return round(float(per_step[self.is_counted].mean()))

    def sums_of_steps(self, rows: pl.DataFrame, column: str) -> Ints:
        """The sum of a column of some rows in each step, which their column `step` says."""
        sums = np.zeros(self.length.size, np.int64)
        np.add.at(sums, rows["step"].to_numpy(), rows[column].to_numpy())
        return sums

    def share(self, ns: float) -> float:
        """A time per step as a share of the mean step."""
        return ns / self.step_ns if self.step_ns else 0.0

    def percent(self, ns: float) -> str:
        """The same in words: 33.4 %."""
        return text.percent(self.share(ns))

    def part(self, ns: float) -> str:
        """A time of the mean step in words: 59.3 ms of 177.6 ms."""
        return f"{text.time(ns)} of {text.time(self.step_ns)}"

    def is_worth(self, per_step: Ints, least: float = LEAST_SHARE) -> bool:
        """Whether it is worth a word: a share of the step, and no matter of chance.

        It is none if it is more than the error of the mean step's own length, or, where steps differ much for other
        reasons, a share of it from SURE_SHARE on and several times its own error. What a few steps take longer for
        another claim's reason counts for neither.
        """
        cost, lengths = self.mean(per_step), self._usual_lengths(per_step)
        step_ns = self.mean(lengths)
        if cost <= 0 or cost < least * step_ns:
            return False
        is_sure = cost >= SURE_SHARE * step_ns
        error = self._error_of_mean(lengths - per_step)
        return cost > error or (is_sure and self._recurs_surely(per_step[self.is_counted]))

    def _usual_lengths(self, per_step: Ints) -> Ints:
        """The length of each step without what only few steps do, as far as that isn't part of some cost."""
        others = self.exceptions + self.stalls + self.waiting_for_requests
        return np.asarray(self.length - np.maximum(others - per_step, 0))

    @staticmethod
    def _recurs_surely(costs: Ints) -> bool:
        """Whether the mean of some costs is at least _ERRORS times its standard error."""
        if costs.size < _FEWEST_FOR_ERROR:
            return False
        return bool(costs.mean() >= _ERRORS * costs.std(ddof=1) / np.sqrt(costs.size))

    def _error_of_mean(self, lengths: Ints) -> float:
        """The standard error of the mean step, of steps without some cost, which may be why they differ.

        That of iterations is the one within their phases, which differ on purpose.
        """
        rest = lengths[self.is_counted].astype(np.float64)
        phase, number = self._phase
        free = rest.size - number
        mean = np.bincount(phase, rest, number) / np.maximum(np.bincount(phase, minlength=number), 1)
        return float(np.sqrt(((rest - mean[phase]) ** 2).sum() / free / rest.size)) if free > 0 else 0.0

    @cached_property
    def _phase(self) -> tuple[Ints, int]:
        """(the phase of each step that counts, as a number; how many there are)."""
        phase = self.trace.steps["phase"].filter(pl.Series(self.is_counted)).rank("dense").fill_null(0)
        names, number = np.unique(phase.to_numpy(), return_inverse=True)
        return number, names.size

    def cleared_topic(
        self, topic: str, per_step: Ints, activity: str, least: float = LEAST_SHARE
    ) -> ClearedTopic | None:
        """That a time per step is worth no word, with its share of the step; None if it is."""
        if self.is_worth(per_step, least):
            return None
        mean_ns = self.mean(per_step)
        is_chance = mean_ns >= max(least, LARGE_SHARE) * self.step_ns
        return ClearedTopic(topic, f"{self.percent(mean_ns)} {activity}", lost_ns=mean_ns if is_chance else 0)

    def recurs(self, per_step: Ints, least: float = LEAST_SHARE) -> str:
        """In how many of the steps it costs that much, such as `in 6 of 6 steps`; nothing for a single one.

        Of what a few steps cause, also what it is on average; of what grows, from where to where.
        """
        if self.count < 2:
            return ""
        spread = self.spread(per_step, least)
        often = f", in {self.out_of_steps(spread)}"
        if spread.is_rare:
            return f"{often} ({text.time(self.mean(per_step))} of the average {self.noun}'s {text.time(self.step_ns)})"
        return often + spread.trend

    def out_of_steps(self, spread: Spread) -> str:
        """In how many of the steps a cost is: 5 of 6 steps; of complete ones, if others lack device work."""
        complete = "complete " if self.lack_work.any() else ""
        return f"{int(spread.has.sum())} of {self.count} {complete}{self.noun}s"

    def spread(self, per_step: Ints, least: float = LEAST_SHARE) -> Spread:
        """How a cost is spread over the steps that count."""
        usual = self._usual_lengths(per_step)[self.is_counted]
        return Spread(per_step[self.is_counted], self.length[self.is_counted], least, usual)

    @cached_property
    def _names(self) -> list[str]:
        return [name for name, counts in zip(self.windows.names, self.is_counted, strict=True) if counts]

    def steps_of(self, per_step: Ints, least: float = LEAST_SHARE) -> str:
        """Which steps have a cost: every step, the average step, step 25, the recording."""
        return self.unit if self.count == 1 else self.spread(per_step, least).steps_in_words(self._names, self.noun)

    def names_several_steps(self, per_step: Ints, least: float = LEAST_SHARE) -> bool:
        """Whether `steps_of` is a plural."""
        spread = self.spread(per_step, least)
        return spread.is_rare and spread.steps.size > 1

    def steps_with(self, per_step: Ints, least: float = LEAST_SHARE) -> NDArray[np.intp]:
        """The steps that `steps_of` names, by their rows."""
        return np.flatnonzero(self.is_counted)[self.spread(per_step, least).steps]

    def per_step_with(self, per_step: Ints, least: float = LEAST_SHARE) -> str:
        """Behind what each of these steps has: `per step`; of a few of them `there`, or `in each of these steps`."""
        spread = self.spread(per_step, least)
        if not spread.is_rare:
            return self.per
        return "there" if spread.steps.size == 1 else f"in each of these {self.noun}s"

    def of_steps(self, per_step: Ints, least: float = LEAST_SHARE) -> str:
        """A cost as a share of the steps that have it: 33.4 % of every step, if none has much less than that."""
        return f"{text.percent(self._share_of_steps(per_step, least))} of {self._steps_of_share(per_step, least)}"

    def part_of(self, per_step: Ints, least: float = LEAST_SHARE) -> str:
        """The same as times: 59.3 ms of 177.6 ms."""
        spread = self.spread(per_step, least)
        return f"{text.time(spread.cost_ns)} of {text.time(spread.length_ns)}"

    def _steps_of_share(self, per_step: Ints, least: float) -> str:
        spread = self.spread(per_step, least)
        if self.count > 1 and not spread.is_rare and not spread.has_mean_share:
            return self.unit
        return self.steps_of(per_step, least)

    def _share_of_steps(self, per_step: Ints, least: float) -> float:
        spread = self.spread(per_step, least)
        return spread.cost_ns / spread.length_ns if spread.length_ns else 0.0

    def share_of_steps(self, per_step: Ints) -> str:
        """A cost as a share at the beginning of a sentence: A third of every step."""
        steps = self._steps_of_share(per_step, LEAST_SHARE)
        return f"{text.share(self._share_of_steps(per_step, LEAST_SHARE))} of {steps}"

    @cached_property
    def is_whole(self) -> bool:
        """Whether no steps were marked, so that the recording is the one step."""
        return self.windows.names == ["all"]

    @cached_property
    def plain_noun(self) -> str:
        """Step, or iteration of a server."""
        return step_noun(self.trace.steps)

    @cached_property
    def step(self) -> str:
        """Any step in a sentence."""
        return step_in_words(self.trace.steps)

    @cached_property
    def noun(self) -> str:
        """What a step is called: the step of a loop, or the iteration of a server; recorded, if others are shorter."""
        return f"recorded {self.plain_noun}" if self.usual_step else self.plain_noun

    @cached_property
    def usual_step(self) -> UsualStep | None:
        """How long steps take without the profiler, if recording takes much of them."""
        return usual_step(self.trace)

    @cached_property
    def usual_step_ns(self) -> int:
        """How long the average step takes without the profiler; without a word about that, as long as recorded."""
        return self.usual_step.mean_ns(self.step_ns) if self.usual_step else self.step_ns

    @cached_property
    def usual_idle_ns(self) -> int:
        """For how long of the average step without the profiler the busiest device doesn't compute.

        Recording slows the host and not the devices, so these compute for as long then.
        """
        return max(0, self.usual_step_ns - max(map(self.mean, self.computation_of_devices.values())))

    def is_of_usual_step(self, claim: Advice) -> bool:
        """Whether a claim is about time of the host or of idle devices, of which there is less without the profiler."""
        of_host = claim.candidate is not None and (claim.candidate.is_of_host or claim.candidate.waits)
        is_rule_of_it = claim.rule in _OF_IDLE if self.has_device else claim.rule in _OF_PROCESSOR
        return self.usual_step is not None and (of_host or is_rule_of_it)

    @cached_property
    def computing_share(self) -> float:
        """For which share of the average step without the profiler the devices compute, or without one the operators.

        At most all of it.
        """
        busy_ns = self.mean(self.computation if self.has_device else self.operator_time)
        whole_ns = self.usual_step_ns if self.has_device else self.step_ns
        return min(1.0, busy_ns / whole_ns) if whole_ns else 0.0

    @cached_property
    def annotated_words(self) -> str:
        """Without a device, why the breakdown counts more than operators, as a sentence; empty if it's hardly more."""
        executing_ns = self.mean(self.parts["CPU Exec"])
        if self.has_device or self.share(executing_ns - self.mean(self.operator_time)) < _MORE_THAN_OPERATORS:
            return ""
        return f" CPU Exec, {self.percent(executing_ns)}, also counts annotated code outside operators."

    @cached_property
    def unit(self) -> str:
        """What a share is of: the average step, step 10, the recording."""
        if self.is_whole:
            return "the recording"
        if self.count > 1:
            return f"the average {self.noun}"
        return f"{self.noun} {self.windows.names[int(self.is_counted.argmax())]}"

    @cached_property
    def per(self) -> str:
        """Behind a number of things: `per step`, or `in the recording`."""
        return "in the recording" if self.is_whole else f"per {self.plain_noun}"

    @cached_property
    def device(self) -> str:
        """What people call the devices that were used: the GPU, both GPUs, all 4 GPUs, the device."""
        count = self._device_count
        if count == 1:
            return f"the {self.noun_of_devices}"
        return f"{'both' if count == 2 else f'all {count}'} {self.noun_of_devices}s"

    @cached_property
    def _device_count(self) -> int:
        return int(self.trace.device_events["device"].n_unique())

    @cached_property
    def noun_of_devices(self) -> str:
        """GPU, or device where it may be another accelerator."""
        is_gpu = any(str(n).startswith(("cu", "hip")) for n in self.trace.launches["name"].unique()) or any(
            d.get("computeMajor") for d in self.trace.meta.devices
        )
        return "GPU" if is_gpu else "device"

    @cached_property
    def subject(self) -> str:
        """The same where a sentence begins."""
        return text.capitalize(self.device)

    @cached_property
    def waits(self) -> str:
        """The verb for `device`: waits, or wait."""
        return "waits" if self._device_count == 1 else "wait"

    @property
    def works(self) -> str:
        """Another verb for it: works, or work."""
        return "work" if self.waits == "wait" else "works"

    @cached_property
    def parts(self) -> dict[str, Ints]:
        """The breakdown of each step (measures/time/breakdown.py)."""
        return breakdown(self.trace)

    @cached_property
    def waits_for_data(self) -> Ints:
        """How long each step waits for data while no device works, no rank is waited for, and no call delays launches.

        Those are calls of threads that launch, of the main one and of autograd's. The breakdown counts calls of any
        thread before data loading, also those of one that pins memory meanwhile.
        """
        device, host, calls = self.trace.device_events, self.trace.host_events, self.trace.launches
        is_main = np.arange(self.trace.threads.height) == main_thread(self.trace)
        threads = launching_threads(self.trace) | autograd_threads(self.trace) | is_main
        groups = [
            intervals_of(device),
            intervals_of(host, host["is_communication"].to_numpy()),
            intervals_of(calls, threads[calls["thread"].to_numpy()]),
            intervals_of(host, loading_ranges(self.trace)),
        ]
        return np.asarray(exclusive_lengths(groups, self.windows.start, self.windows.end)[3])

    @cached_property
    def operator_time(self) -> Ints:
        """How long any operator runs on the host in each step, while none waits for data or for other ranks."""
        host = self.trace.host_events
        loads, runs = loading_ranges(self.trace), is_operator(self.trace)
        groups = [intervals_of(host, where) for where in (host["is_communication"].to_numpy(), loads, runs)]
        return np.asarray(exclusive_lengths(groups, self.windows.start, self.windows.end)[2])

    @cached_property
    def exposure_parts(self) -> dict[str, Ints]:
        """Computation, exposed time and idle of each step, over all devices together (measures/time/exposure.py)."""
        ((_, _, rows),) = axes(self.trace, "worker")
        return exposure(self.trace, rows, self.windows)

    @cached_property
    def host_time(self) -> HostTime:
        """What the host spent each step on, where no device was recorded (measures/time/host_time.py)."""
        return HostTime.of(self.trace, self.windows)

    @cached_property
    def large_operators(self) -> pl.DataFrame:
        """The operators behind host_time's `operators` in the steps that count; `row` is their row of host_events."""
        host = self.trace.host_events
        is_counted = gather(self.is_counted, host["step"].to_numpy(), missing=False) & self.host_time.is_large
        is_counted &= is_operator(self.trace) & ~host["is_communication"].to_numpy()
        columns = ("name", "thread", "start_ns", "dur_ns", "self_ns", "input_shapes", "input_types", "step", "parent")
        rows = host.select(columns).with_row_index("row").filter(pl.Series(is_counted, dtype=pl.Boolean))
        return rows.with_columns(pl.col("name", "input_shapes", "input_types").cast(pl.String))

    @cached_property
    def calling_in_optimizer(self) -> Ints:
        """The part of host_time's `calling` that lies in the unfused optimizer's step, in each step."""
        return self.part_within("calling", self.unfused_optimizer_spans)

    @cached_property
    def rest_in_optimizer(self) -> Ints:
        """The part of host_time's `rest` that lies in the unfused optimizer's step, in each step."""
        return self.part_within("rest", self.unfused_optimizer_spans)

    def part_within(self, part: str, stretches: Intervals) -> Ints:
        """The part of host_time's `calling` or `rest` that lies within some stretches of time, in each step."""
        spans = self.host_time.spans[part]
        before = [span for name, span in self.host_time.spans.items() if name not in ("calling", "rest")]
        inside = without(spans, without(spans, stretches))
        return exclusive_lengths([merge(before), inside], self.windows.start, self.windows.end)[1]

    @cached_property
    def unfused_optimizer(self) -> tuple[str, NDArray[np.bool_]] | None:
        """(Class of the optimizer, the operators that it calls) if it updates each parameter by itself.

        Each step of an optimizer is judged by itself: a program can have several optimizers, and one may call others.
        Of several unfused ones it is that with the step of the most operators.
        """
        host = self.trace.host_events
        inside = name_mask(host["name"], lambda name: is_optimizer(name) and ".Fused" not in name.replace("#", "."))
        if not inside.any():
            return None
        of = nearest(inside, host["parent"].to_numpy())
        is_op = is_operator(self.trace)
        is_fused = name_mask(host["name"], lambda n: "_fused_" in n or "_foreach_" in n)
        ran = (of != NONE) & is_op & gather(self.is_counted, host["step"].to_numpy(), missing=False)
        fuses = np.zeros(host.height, bool)
        fuses[of[ran & is_fused]] = True
        ran &= ~gather(fuses, of, missing=False)
        if ran.sum() < _MANY_UPDATES * self.count:
            return None
        name = optimizer_class(str(host["name"][int(np.bincount(of[ran]).argmax())]))
        ran &= gather(_is_step_of(host["name"], name), of, missing=False)
        return (name, ran) if ran.sum() >= _MANY_UPDATES * self.count else None

    @cached_property
    def unfused_optimizer_spans(self) -> Intervals:
        """When the host is inside the steps of the unfused optimizer, and in none of another one that these call."""
        host = self.trace.host_events
        if self.unfused_optimizer is None:
            return merge([])
        own, parent = _is_step_of(host["name"], self.unfused_optimizer[0]), host["parent"].to_numpy()
        others = map_categories(host["name"], is_optimizer) & ~own & (gather(nearest(own, parent), parent) != NONE)
        return without(intervals_of(host, own), intervals_of(host, others))

    def is_training_loop(self, frame: str) -> bool:
        """Whether a function is open for nearly all of the steps, and for their operators: its name says nothing."""
        calls = self.trace.python_calls
        spans = intervals_of(calls, map_categories(calls["name"], lambda name: without_address(name) == frame))
        lengths = length_within(spans, self.windows.start, self.windows.end)
        if self.share(self.mean(lengths)) < _NEARLY_ALL:
            return False
        start = self.trace.host_events["start_ns"].to_numpy()[is_operator(self.trace)]
        is_inside = length_within(spans, start, start + 1) > 0
        return not start.size or bool(is_inside.mean() >= _MOSTLY_OPERATORS)

    @cached_property
    def optimizer_spans(self) -> Intervals:
        """When launching threads, or without a device the threads that run operators, are inside Optimizer.step."""
        ranges = self.trace.host_events
        return intervals_of(ranges, name_mask(ranges["name"], is_optimizer))

    @property
    def host_spans(self) -> dict[str, Intervals]:
        """When the host does what `late` is split by, or without a device the parts of `host_time`."""
        return self.late.spans if self.has_device else self.host_time.spans

    def host_candidate(self, words: str, spans: Intervals) -> Candidate:
        """What the host does at some times: its main thread, and those that launch work."""
        threads = np.append(np.flatnonzero(launching_threads(self.trace)), main_thread(self.trace))
        return Candidate(words, spans=spans, threads=threads)

    @cached_property
    def is_one_of_many(self) -> bool:
        """Whether the process is one of several ranks."""
        meta = self.trace.meta
        sizes = (meta.distributed_info.get("world_size"), meta.producer.get("world_size"))
        return any(isinstance(size, int) and size > 1 for size in sizes)

    @cached_property
    def computation(self) -> Ints:
        """How long each of the devices computes in each step, on average over the devices."""
        return np.asarray(np.mean(list(self.computation_of_devices.values()), axis=0)).astype(np.int64)

    @cached_property
    def computation_of_devices(self) -> dict[int, Ints]:
        """How long each device computes in each step."""
        devices = axes(self.trace, "device")
        if len(devices) == 1:
            return {int(devices[0][0]): self.exposure_parts["computation"]}
        return {int(device): exposure(self.trace, rows, self.windows)["computation"] for device, _, rows in devices}

    @cached_property
    def stalls(self) -> Ints:
        """How much longer devices wait for the host in some steps than in the others, where that makes them longer.

        0 in the others. They are fewer than half of the steps, and each lasts at least half as long again as any other
        one. Steps that become longer and longer, or are longer from one on, are no exceptions.
        """
        late, is_counted = self.late.host + self.late.latency, self.is_counted
        length = self.length - self.exceptions - self.copying_exceptions - self.waiting_for_requests
        usual = float(np.median(length[is_counted])) if is_counted.any() else 0.0
        is_longer = is_counted & (length >= _LONGER * usual)
        others = is_counted & ~is_longer
        is_rare = is_longer.any() and is_longer.sum() < others.sum()
        if self.count < _FEW_FOR_MEDIAN or not is_rare or not self.are_alike:
            return np.zeros_like(late)
        lasts = is_longer.sum() >= _FEW_FOR_MEDIAN and np.flatnonzero(is_longer)[0] > np.flatnonzero(others)[-1]
        if lasts or length[is_longer].min() < _LONGER * length[others].max():
            return np.zeros_like(late)
        more = late - int(np.median(late[others]))
        return np.where(is_longer & (more >= _MOSTLY_LATE * (length - usual)), more, 0)

    @cached_property
    def exceptions(self) -> Ints:
        """How much longer few steps are for what other claims than those of a late host are about; 0 in the others.

        That is computation, data, garbage collection and the like, of steps half as long again as the median one.
        Without a device it is all that they take longer.
        """
        if not self.has_device:
            return self._more_in_few(self.length)
        of_single_causes = sum(self._more_in_few(part) for part in self.late.of_single_causes)
        return np.asarray(self._more_in_few(self.computation) + of_single_causes)

    @cached_property
    def copying_exceptions(self) -> Ints:
        """The same of copies that no kernel hides: what makes them may let devices wait for the host, too."""
        return self._more_in_few(self.parts["Memcpy"])

    def _more_in_few(self, part: Ints) -> Ints:
        """How much more of something few steps have than the median one, if they are half as long again as that."""
        no_time, is_counted = np.zeros(self.length.size, np.int64), self.is_counted
        if self.count < _FEW_FOR_MEDIAN or not self.are_alike:
            return no_time
        is_longer = is_counted & (self.length >= _LONGER * float(np.median(self.length[is_counted])))
        if not is_longer.any() or 2 * is_longer.sum() >= self.count:
            return no_time
        return np.where(is_longer, np.maximum(part - int(np.median(part[is_counted])), 0), no_time)

    @cached_property
    def request_waits(self) -> Intervals:
        """When a server waits for requests, or for another process; empty for other programs."""
        if not self.has_iterations:
            return merge([])
        return request_waits(self.trace)

    @property
    def waiting_for_requests(self) -> Ints:
        """How long devices are idle in each step while a server waits for requests."""
        return self.late.waiting if self.has_device and self.has_iterations else np.zeros_like(self.length)

    @cached_property
    def idle(self) -> dict[str, float]:
        """The idle time of all devices together by its cause, as shares of the mean step."""
        return self._shares_by_cause(self.idle_parts)

    def idle_shares(self, which: pl.Expr) -> dict[str, float]:
        """The same of some of the parts of gaps."""
        return self._shares_by_cause(self.idle_parts.filter(which))

    def _shares_by_cause(self, parts: pl.DataFrame) -> dict[str, float]:
        code, length = category_codes(parts["cause"]), (parts["end_ns"] - parts["start_ns"]).to_numpy()
        lengths, counts = scatter_add(code, length, len(CAUSES)).tolist(), np.bincount(code, minlength=len(CAUSES))
        return {CAUSES[cause]: self.share(lengths[cause] / self.count) for cause in np.flatnonzero(counts)}

    @cached_property
    def blocking_call(self) -> str:
        """The call that the host is in for most of the idle time whose cause is a blocked copy."""
        return call_within(self.trace, self.blocked_idle, may_wait)

    @cached_property
    def blocked_idle(self) -> Intervals:
        """When devices are idle, work is queued, and the host is in a copy or a synchronizing call."""
        parts = self.idle_parts.filter(pl.col("cause") == "blocked copy")
        return union(parts["start_ns"].to_numpy(), parts["end_ns"].to_numpy())

    @cached_property
    def unrecorded_work(self) -> Intervals:
        """When devices are idle by what was recorded, but may have run work that wasn't."""
        parts = self.idle_parts.filter(pl.col("cause") == NOT_SHOWN)
        return union(parts["start_ns"].to_numpy(), parts["end_ns"].to_numpy())

    @cached_property
    def unlinked_idle(self) -> Ints:
        """How long devices are idle in each step before or after work whose launch isn't recorded.

        Whether work was queued then isn't known, nor whether the host was late. Where the step waits for data it was.
        """
        launch = self.trace.device_events["launch"].to_numpy()
        lacks_launch = np.logical_or(*(gather(launch, side, missing=0) == NONE for side in self._rows_around_gaps))
        parts = self.idle_parts.filter(pl.col("cause") == NOT_SHOWN)
        parts = parts.filter(pl.Series(lacks_launch[parts["gap"].to_numpy()], dtype=pl.Boolean))
        start, end, step = (parts[name].to_numpy() for name in _PART_COLUMNS)
        loads = intervals_of(self.trace.host_events, loading_ranges(self.trace))
        return scatter_add(step, end - start - length_within(loads, start, end), len(self.windows.names))

    @cached_property
    def are_launches_known(self) -> bool:
        """Whether it is recorded which calls launch work: else it isn't known what waits for what."""
        return are_launches_known(self.trace)

    def may_be_longer(self, per_step: Ints, least: float = LEAST_SHARE) -> bool:
        """Whether idle time that the host causes may be worth a word, though what is known to be isn't.

        Idle time around work whose launch isn't recorded may be part of it. Where too many aren't, nothing is known.
        """
        return not self.are_launches_known or self.is_worth(per_step + self.unlinked_idle, least)

    @cached_property
    def profiler_spans(self) -> Intervals:
        """When the profiler itself works, as to get buffers for what it records."""
        others = self.trace.others
        is_overhead = map_categories(others["category"], lambda name: name.lower() == "overhead")
        return intervals_of(others, is_overhead & map_categories(others["name"], records_for_profiler))

    @cached_property
    def late_parts(self) -> pl.DataFrame:
        """The parts of gaps in which nothing was queued for any device, since the host was late."""
        return self.idle_parts.filter(pl.col("cause") == "host late")

    @cached_property
    def idle_parts(self) -> pl.DataFrame:
        """The parts of the gaps of all devices together in the steps that count, each with its cause; no device."""
        parts = gap_parts(self.trace, "worker", self.windows).drop("device", "stream")
        if self.is_counted.all():
            return parts
        return parts.filter(pl.Series(self.is_counted[parts["window"].to_numpy()], dtype=pl.Boolean))

    @cached_property
    def _rows_around_gaps(self) -> tuple[Rows, Rows]:
        """The rows of device_events before and after each gap of all devices together, by the `gap` of idle_parts."""
        gaps = whole_gaps(self.trace, "worker", self.windows)
        return gaps.before, gaps.after

    def with_edges(self, parts: pl.DataFrame) -> pl.DataFrame:
        """Parts of gaps, with the rows of device_events `before` and `after` the gap of each, or NONE."""
        gap, (before, after) = parts["gap"].to_numpy(), self._rows_around_gaps
        return parts.with_columns(before=before[gap], after=after[gap])

    def lengths_of_gaps(self, gap: pl.Series, lengths: Ints) -> Ints:
        """The sum of some lengths for each gap, by its number."""
        return scatter_add(gap.to_numpy(), lengths, self._rows_around_gaps[0].size)

    def ends_of_gaps(self, lengths: Ints) -> pl.DataFrame:
        """The row of device_events `after` each gap in which something takes time, in order, and its `length`."""
        _, after = self._rows_around_gaps
        gap = np.flatnonzero((lengths > 0) & (after != NONE))
        return pl.DataFrame({"after": after[gap], "length": lengths[gap]})

    @cached_property
    def kernels(self) -> pl.DataFrame:
        """The kernels that steps which count launched, communication not among them: their KERNEL_COLUMNS."""
        return self.trace.device_events.select(KERNEL_COLUMNS)[self.kernel_rows]

    @cached_property
    def mean_kernel_ns(self) -> float:
        """The mean length of `kernels`; 0 without any."""
        return float(self.kernels["dur_ns"].mean() or 0)  # type: ignore[arg-type]

    @cached_property
    def kernel_rows(self) -> NDArray[np.integer]:
        """The rows of device_events that `kernels` holds."""
        is_counted = pl.col("step").is_in(np.flatnonzero(self.is_counted)) & ~pl.col("is_communication")
        is_chosen = (pl.col("kind") == "kernel") & is_counted
        return self.trace.device_events.select(pl.arg_where(is_chosen)).to_series().to_numpy()

    @cached_property
    def waits_of_host(self) -> list[tuple[str, int, int, int]]:
        """The host's waits for devices in the steps that count, by the operator or else the call, the longest first.

        The name, how long they last over these steps, how many they are, and the longest: a row of launches.
        """
        calls = self.trace.launches
        is_counted = gather(self.is_counted, calls["step"].to_numpy(), missing=False)
        rows = np.flatnonzero(is_counted & map_categories(calls["name"], synchronizes))
        return _costs_by_caller(self.trace, rows, calls["dur_ns"].to_numpy()[rows])

    @cached_property
    def late_lengths(self) -> Ints:
        """How long all devices are idle in each step because the host was late, for whatever reason."""
        start, end, step = (self.late_parts[name].to_numpy() for name in _PART_COLUMNS)
        return scatter_add(step, end - start, len(self.windows.names))

    @cached_property
    def late(self) -> Late:
        """The idle time of all devices that the host was late for."""
        return Late(self)


class Late:
    """Idle time of all devices of the worker together that the host was late for, split by what would end it.

    The parts are disjoint and per step: `loading` (a launching thread waits for data), `allocating` (it is in a call
    that takes device memory or gives it back), `compiling` (torch.compile compiles), `collecting` (Python collects
    garbage), `starting` (it starts a DataLoader's workers), `setting_up` (a call sets up the device, in a recording
    without steps), `breaking` (a compiled frame is between its graphs), `waiting` (a server waits for requests, or for
    another process), `synchronizing` (the gap began while a call waited for the device, and lasted no longer than that
    call had held the host up, or than the operator around it lasts: without it the host would have been that much
    further on; launch latency included), `optimizer` (inside Optimizer.step, of the unfused optimizer if there is one,
    launch latency included) and `host` (the rest). What the host does for long after a wait, without a call, isn't the
    wait's: it is the rest, except for servers, which could do it earlier.

    Attributes:
        blockers: The operators (or calls) that waited, with what they cost over the steps that count, how often, and
            the costliest call (a row of launches); the most first.
        activity: What the host did in the rest, as shares of it.
        latency: Launch latency, but for that of slow calls and of gaps that began in a wait, per step: fewer launches
            save it too.
        spans: When launching threads do what each part but the last two is named after.
        unnamed: When the host is late for none of these reasons but the last three.
        rest: When it is late for none of these reasons, nor since it waited; in the optimizer, too.
        of_single_causes: The parts up to `breaking`.
        reads: The calls (rows of launches) that waited when gaps began.
        begins_in_wait: Whether each gap, by its number, began in a wait and the host is late in it.
        gaps: How many gaps there are with either, that began in no wait.
        ends: The GPU events that ended these (rows of device_events), and how long each was late.
        host_parts: When gaps have a part that the host is late for, and for how long of it for none of these reasons.
        in_longest_ns: How much it is late for in the three longest gaps per step.
        calls: The name of the call that took most of the gaps, of those that neither wait for a device nor take memory
            from one; empty if there is none.
    """

    def __init__(self, facts: Facts) -> None:
        trace, count = facts.trace, len(facts.windows.names)
        late, ranges = facts.late_parts, _host_ranges(facts)
        start, end, step = (late[name].to_numpy() for name in _PART_COLUMNS)
        *others, of_optimizer = ranges.values()
        before_optimizer, whole = merge(others), merge([(start, end)])
        self.spans, self.unnamed = ranges, without(whole, before_optimizer)
        parts = exclusive_sums(others, start, end, step, count)[:-1]
        optimizer, rest = exclusive_lengths([before_optimizer, of_optimizer], start, end)[1:]
        wait_ns, blocker = _blocked_for(trace, waits_for_devices(trace), start)
        self.reads = distinct(blocker[blocker != NONE])
        short = without(self.unnamed, _long_stretches(facts, self.unnamed))
        synchronization = np.minimum(length_within(short, start, end), wait_ns)
        self.rest = without(self.unnamed, _first_parts(short, start, synchronization))
        from_rest = np.minimum(rest, synchronization)
        optimizer, rest = optimizer - (synchronization - from_rest), rest - from_rest
        sums = partial(scatter_add, size=count)
        self.loading, self.allocating, self.compiling, self.collecting = parts[:4]
        self.starting, self.setting_up, self.breaking, self.waiting = parts[4:]
        self.synchronizing, self.optimizer, self.host = (sums(step, ns) for ns in (synchronization, optimizer, rest))
        self.of_single_causes = [*parts[:-1]]
        latency = facts.idle_parts.filter(pl.col("cause") == "launch latency")
        first, last, steps = (latency[name].to_numpy() for name in _PART_COLUMNS)
        begins_in_wait = self.begins_in_wait = facts.lengths_of_gaps(late["gap"], blocker != NONE) > 0
        after_wait = begins_in_wait[latency["gap"].to_numpy()]
        optimizer_ns = length_within(of_optimizer, first, last) * ~after_wait
        is_launch = ~after_wait & (last - first < SLOW_LAUNCH_NS)
        self.latency = sums(steps, (last - first - optimizer_ns) * is_launch)
        self.synchronizing += sums(steps, (last - first) * after_wait)
        self.optimizer += sums(steps, optimizer_ns)
        own_ns = (last - first) * is_launch
        lengths = facts.lengths_of_gaps(late["gap"], end - start) + facts.lengths_of_gaps(latency["gap"], own_ns)
        lengths[begins_in_wait] = 0
        self.gaps, self.ends = int(np.count_nonzero(lengths)), facts.ends_of_gaps(lengths)
        self.host_parts = start, end, rest
        self.in_longest_ns = int(np.sort(facts.lengths_of_gaps(late["gap"], rest))[-_FEW_GAPS * facts.count :].sum())
        apart = without(whole, merge([ranges["setting_up"], ranges["waiting"]]))
        self.calls = call_within(trace, apart, lambda name: not (synchronizes(name) or allocates(name)))
        self.blockers = _costs_by_caller(trace, blocker, synchronization)
        self.activity = _activity(trace, without(self.rest, of_optimizer))


def _first_parts(spans: Intervals, at: Ints, length: Ints) -> Intervals:
    """From each instant on, the first `length` ns of a union; that much of it must follow."""
    before = np.append(0, np.cumsum(spans[1] - spans[0]))
    until = length_before(spans, at) + length
    last = np.searchsorted(before, until) - 1
    has = length > 0
    start, end = at[has], (np.append(spans[0], 0)[last] + until - before[last])[has]
    return without(spans, without(spans, merge([(start, end)])))


def _activity(trace: Trace, spans: Intervals) -> dict[str, float]:
    """What the host did during some spans, but for what `late` names by itself, as shares of it."""
    activity_ns = host_activity_ns(trace, spans).astype(float)
    activity_ns[: HOST_ACTIVITIES.index("runtime call")] = 0
    return dict(zip(HOST_ACTIVITIES, (activity_ns / max(activity_ns.sum(), 1)).tolist(), strict=True))


def _long_stretches(facts: Facts, spans: Intervals) -> Intervals:
    """The parts of some spans in which launching threads only do other things for long; none of a server's, see Late.

    These are no calls, or single long ones that wait for no device.
    """
    calls = facts.trace.launches
    is_short = (calls["dur_ns"] < _LONG_NS).to_numpy() | map_categories(calls["name"], may_wait)
    on_calls = launching_threads(facts.trace)[calls["thread"].to_numpy()] & is_short
    start, end = without(spans, intervals_of(calls, on_calls))
    is_long = (end - start >= _LONG_NS) & (not facts.server)
    return start[is_long], end[is_long]


def _host_ranges(facts: Facts) -> dict[str, Intervals]:
    """When launching threads do what would be named as a cause by itself; the optimizer comes last."""
    trace = facts.trace
    is_launching = launching_threads(trace)
    host, launches, python = trace.host_events, trace.launches, trace.python_calls
    on_host, on_calls, on_python = (is_launching[f["thread"].to_numpy()] for f in (host, launches, python))
    collects = map_categories(trace.others["name"], collects_garbage)

    def ranges(answer: Callable[[str], bool]) -> Intervals:
        return intervals_of(host, on_host & name_mask(host["name"], answer))

    def frames(answer: Callable[[str], bool]) -> Intervals:
        return intervals_of(python, on_python & map_categories(python["name"], answer))

    return {
        "loading": intervals_of(host, on_host & loading_ranges(trace)),
        "allocating": intervals_of(launches, on_calls & map_categories(launches["name"], allocates)),
        "compiling": ranges(is_compilation),
        "collecting": merge([frames(collects_garbage), intervals_of(trace.others, collects)]),
        "starting": frames(starts_workers),
        "setting_up": _set_up(trace, on_calls),
        "breaking": find_graph_breaks(trace).between,
        "waiting": facts.request_waits,
        "optimizer": facts.unfused_optimizer_spans if facts.unfused_optimizer else ranges(is_optimizer),
    }


def _set_up(trace: Trace, on_calls: NDArray[np.bool_]) -> Intervals:
    """When a call that is otherwise done in a µs sets up the device first, in a recording without steps."""
    if trace.steps["name"].to_list() != ["all"]:
        return merge([])
    launches = trace.launches
    is_long = on_calls & (launches["dur_ns"] >= LOADING_NS).to_numpy()
    return intervals_of(launches, is_long & map_categories(launches["name"], sets_up))


def _is_of_training(name: str) -> bool:
    return bool(_OF_TRAINING.search(name))


def is_optimizer(name: str) -> bool:
    """Whether a host range of this name is an optimizer's step."""
    return name.startswith(_OPTIMIZER)


def _is_step_of(names: pl.Series, optimizer: str) -> NDArray[np.bool_]:
    """Of each host range, whether it is a step of an optimizer of this class."""
    return map_categories(names, lambda name: is_optimizer(name) and optimizer_class(name) == optimizer)


def optimizer_class(name: str) -> str:
    """The class of an optimizer, by the host range of its step."""
    return name.removeprefix(_OPTIMIZER).split(".")[0]


def _blocked_for(trace: Trace, waits: NDArray[np.bool_], at: Ints) -> tuple[Ints, NDArray[np.int64]]:
    """How long a call that waits for the device had held its thread up at each instant, and which call it is.

    `waits` says of each call whether it does. With the operators of ATen around it, all of which go where nothing is
    read, it is as long as these last.
    """
    launches = trace.launches
    on_calls = launching_threads(trace)[launches["thread"].to_numpy()]
    rows = np.flatnonzero(on_calls & waits)
    start = launches["start_ns"].to_numpy()[rows]
    order = np.argsort(start, kind="stable")
    rows, start = rows[order], start[order]
    end = start + launches["dur_ns"].to_numpy()[rows]
    index = np.searchsorted(start, at, "right") - 1
    if not rows.size:
        return np.zeros(at.size, np.int64), np.full(at.size, NONE)
    is_open = (index >= 0) & (end[index] >= at)
    op = aten_operators(trace, rows)
    around = gather(trace.host_events["dur_ns"].to_numpy(), op, missing=0)
    wait_ns = np.maximum(at - start[index], around[index])
    return np.where(is_open, wait_ns, 0), np.where(is_open, rows[index], NONE)


def launched_within(trace: Trace, spans: Intervals) -> NDArray[np.bool_]:
    """Which rows of device_events are launched during some spans."""
    launch = trace.device_events["launch"].to_numpy()
    at = gather(trace.launches["start_ns"].to_numpy(), launch)
    return np.asarray((length_within(spans, at, at + 1) > 0) & (launch != NONE))


@once_per_recording
def _is_aten(trace: Trace) -> NDArray[np.bool_]:
    """Which rows of host_events are operators of ATen."""
    is_aten = name_mask(trace.host_events["name"], lambda name: name.startswith("aten::"))
    return np.asarray(is_operator(trace) & is_aten)


def aten_operators(trace: Trace, calls: NDArray[np.integer]) -> NDArray[np.int32]:
    """For each of some calls (rows of launches) the outermost operator of ATen that makes it; or NONE."""
    is_aten, parent = _is_aten(trace), trace.host_events["parent"].to_numpy()
    row = trace.launches["op"].to_numpy()[calls].astype(np.int32)
    row = np.where(gather(is_aten, row, missing=False), row, np.int32(NONE))
    while True:
        around = gather(parent, row)
        is_inside = gather(is_aten, around, missing=False)
        if not is_inside.any():
            return row
        row = np.where(is_inside, around, row)


def _costs_by_caller(trace: Trace, call: NDArray[np.int64], cost: Ints) -> list[tuple[str, int, int, int]]:
    """(name of the operator, or of the call outside operators; cost; calls; one of them), the largest cost first."""
    rows = pl.DataFrame({"call": call, "cost": cost}).filter((pl.col("call") != NONE) & (pl.col("cost") > 0))
    op = trace.launches["op"].gather(rows["call"]).replace(NONE, None)
    names = pl.DataFrame(
        {
            "op": trace.host_events["name"].gather(op).cast(pl.String),
            "name": trace.launches["name"].gather(rows["call"]).cast(pl.String),
        }
    )
    who = names.select(pl.coalesce("op", "name")).to_series()
    sums = (
        rows.with_columns(who=who)
        .group_by("who")
        .agg(pl.col("cost").sum(), pl.col("call").n_unique(), example=pl.col("call").sort_by("cost").last())
    )
    return sums.sort("cost", "who", descending=[True, False]).rows()


def call_within(trace: Trace, within: Intervals, is_meant: Callable[[str], bool]) -> str:
    """The name of the runtime or driver call that took most of some time, of those meant; empty if none did."""
    calls, names = trace.launches, categories_of(trace.launches["name"]).to_list()
    start, dur = calls["start_ns"].to_numpy(), calls["dur_ns"].to_numpy()
    code = np.where(map_categories(calls["name"], is_meant), category_codes(calls["name"]), np.int32(NONE))
    sums = zip(scatter_add(code, length_within(within, start, start + dur), len(names)).tolist(), names, strict=True)
    inside_ns, name = min(((-inside_ns, name) for inside_ns, name in sums), default=(0, ""))
    return name if inside_ns else ""


def host_shares(late: Late) -> str:
    """The two largest shares of what the host did, such as: 46 % of its time in operators and 35 % in Python."""
    largest = sorted(late.activity.items(), key=lambda item: -item[1])[:2]
    phrases = {
        "operator": "operators",
        "runtime call": f"runtime calls (most of it `{late.calls}`)",
        "annotation": "annotated code",
        "python": "Python",
        "nothing recorded": "code that wasn't recorded",
    }
    shares = [(100 * part, phrases.get(name, name)) for name, part in largest if part >= 0.05]
    return text.enumeration(
        [f"{share:.0f} %{'' if at else ' of its time'} in {what}" for at, (share, what) in enumerate(shares)]
    )
