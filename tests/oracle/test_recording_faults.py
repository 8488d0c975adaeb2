"""Faults planted into real traces are found, and traces that nothing contradicts raise no alarm."""

from collections import defaultdict
from pathlib import Path

import pytest

from kinetoscope_tb.diagnostics.diagnose import diagnose
from kinetoscope_tb.errors import KinetoscopeError
from kinetoscope_tb.reader import read
from kinetoscope_tb.views.overview.advice import advice
from support import surgery
from support.fuzzing import IS_WHOLE
from support.real_traces import FOLDER, MISSING

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason=MISSING)

PATIENTS = (
    "single/ncompass_h100nvl_test_trace.pt.trace.json",  # H100, launch-bound, with a copy and a wait per step
    "single/tracelens_h100_nsfw_image_detection.json.gz",  # H100, launch-bound
    "runs/dlrm_8gpu_nccl/worker0_step_12.1694128201545.pt.trace.json",  # V100, four streams, communication
    "single/switch_transformers_a100_torch2.3.json",  # A100, times in whole microseconds, 1.6 s of slow launches
)
EARLY, LATE = {"device_before_launch"}, {"kernel_outlives_wait", "launch_latency_impossible"}
CLOCK = EARLY | LATE | {"clock_drifts"}
OVERLAP = {"kernel_covers_others", "kernels_overlap", "calls_overlap"}
SHORT = {"times_too_short", "copies_too_fast"}
LOST = {"kernels_lost", "kernels_after_end"}

FAULTS = {  # what is planted, and which rules name it
    **{f"stretch {us}": (lambda p, us=us: surgery.stretch_kernel(p, us), OVERLAP) for us in (20, 1000, 1e5)},
    **{
        f"outlive {us}": (lambda p, us=us: surgery.outlive_wait(p, us), {"kernel_outlives_wait"})
        for us in (20, 1e3, 1e6)
    },
    **{f"early {us}": (lambda p, us=us: surgery.start_early(p, us), EARLY) for us in (20, 1000, 1e5)},
    **{f"behind {us}": (lambda p, us=us: surgery.shift_device(p, -us), EARLY) for us in (50, 1000, 5e4)},
    **{f"ahead {us}": (lambda p, us=us: surgery.shift_device(p, us), LATE) for us in (1000, 5000, 5e4)},
    **{f"jump {us}": (lambda p, us=us: surgery.shift_device(p, us, 0.5), CLOCK) for us in (-2e4, -1e3, 1e3, 2e4)},
    **{f"drift {us}": (lambda p, us=us: surgery.drift_device(p, us), CLOCK) for us in (-5e4, -500, 500, 5000)},
    **{f"head {part}": (lambda p, part=part: surgery.drop_kernels(p, 0, part), LOST) for part in (0.01, 0.1, 0.4, 0.8)},
    **{f"hole {part}": (lambda p, part=part: surgery.drop_kernels(p, 0.1, 0.1 + part), LOST) for part in (0.01, 0.4)},
    **{f"tail {part}": (lambda p, part=part: surgery.drop_kernels(p, 1 - part, 1), LOST) for part in (0.01, 0.1, 0.4)},
    **{
        f"swap {rows}": (lambda p, rows=rows: surgery.swap_kernels(p, rows), {"stream_out_of_order"})
        for rows in (1, 50)
    },
    "twice 1": (lambda p: surgery.duplicate(p, 0), {"events_twice"}),
    "twice 1 %": (lambda p: surgery.duplicate(p, 0.01), {"events_twice"}),
    "twice all": (lambda p: surgery.duplicate(p, 1), {"events_twice"}),
    "ns as µs": (lambda p: surgery.scale(p, ts=1000, dur=1000), {"times_too_long"}),
    "ms as µs": (lambda p: surgery.scale(p, ts=0.001, dur=0.001), SHORT),
    "durations in ns": (lambda p: surgery.scale(p, dur=1000), OVERLAP),
    "durations in ms": (lambda p: surgery.scale(p, dur=0.001), SHORT),
    "starts in ns": (lambda p: surgery.scale(p, ts=1000), LATE),
    "starts in ms": (lambda p: surgery.scale(p, ts=0.001), OVERLAP),
    "kernels in ns": (lambda p: surgery.scale(p, dur=1000, only_device=True), OVERLAP),
    "kernels in ms": (lambda p: surgery.scale(p, dur=0.001, only_device=True), SHORT),
    "device in ns": (lambda p: surgery.scale(p, ts=1000, dur=1000, only_device=True), LATE),
    "device in ms": (lambda p: surgery.scale(p, ts=0.001, dur=0.001, only_device=True), EARLY | SHORT),
    "overhead 60 %": (lambda p: surgery.add_overhead(p, 0.6), {"profiler_overhead"}),
}
IN_A_WRONG_UNIT = {name for name in FAULTS if " in n" in name or " in m" in name or " as " in name}
FLIPPED = IN_A_WRONG_UNIT | {"head 0.8", f"ahead {5e4}"}
assert FAULTS.keys() >= FLIPPED


def planted(name, fault):
    patient = surgery.Patient(FOLDER / name)
    FAULTS[fault][0](patient)
    return patient.trace()


@pytest.mark.parametrize("name", PATIENTS)
def test_planted_faults_are_found_and_no_verdict_rests_on_times_in_a_wrong_unit(name):
    """All of them: one that isn't is one that no bound of physics excludes, and doesn't belong here.

    Each is planted into a recording of an H100 and into one of another device; `make fuzz` plants all into all.
    """
    missed = []
    for number, (fault, (_, rules)) in enumerate(FAULTS.items()):
        if not IS_WHOLE and (number + PATIENTS.index(name)) % 2:
            continue
        trace = planted(name, fault)
        named = {d.rule for d in diagnose(trace) if d.fault or d.rule == "events_twice"}
        missed += [] if named & rules else [(fault, named)]
        if fault in FLIPPED:
            table = advice(trace)
            assert table["confidence"][0] == "cannot_tell", (fault, table.row(0))
            assert not [title for title in table["title"] if title.startswith("Nothing stands out")]
    assert missed == []


@pytest.mark.parametrize("name", PATIENTS)
def test_what_was_recorded_twice_changes_no_number(name):
    before, after = read(FOLDER / name), planted(name, "twice all")
    for frame in ("device_events", "launches"):
        counts = [getattr(trace, frame).select("start_ns", "dur_ns").sum().row(0) for trace in (before, after)]
        short = [
            getattr(trace, frame).filter(getattr(trace, frame)["dur_ns"] > 1000).height for trace in (before, after)
        ]
        assert short[0] == short[1], (frame, counts)


@pytest.mark.parametrize("name", PATIENTS)
def test_a_larger_loss_is_never_less_doubtful(name):
    doubtful = []
    for part in (0.02, 0.1, 0.3, 0.6, 0.9):
        patient = surgery.Patient(FOLDER / name)
        surgery.drop_kernels(patient, 0, part)
        doubtful.append(sum(d.fault.affected_ns for d in diagnose(patient.trace()) if d.rule in LOST))
    assert doubtful == sorted(doubtful)
    assert doubtful[-1] > 0


def test_a_window_cut_out_of_running_work_is_not_taken_for_idle_time():
    for name in ("claims/tracelens_h100_owlv2.json.gz", "claims/param_resnet_kineto_rtx2080ti.json.gz"):
        patient = surgery.Patient(FOLDER / name)
        surgery.cut_window(patient, 0.5)
        diagnostics = {d.rule: d for d in diagnose(patient.trace()) if d.fault}
        assert "starts_amid_work" in diagnostics, name


TRUE_ALARMS = {  # each was looked at in the trace
    # Cut on purpose: 60 and 70 % of the file.
    "derived_malformed/truncated_mid_event.pt.trace.json": {"truncated"},
    "derived_malformed/truncated.pt.trace.json.gz": {"truncated"},
    # Both waits for the device return 50 µs before the end of the kernels that they waited for: the clock is off.
    "claims/tracelens_mi300_rocprofiler-sdk_sdpa_03.json": {"kernel_outlives_wait"},
    # Cut by hand: the one kernel begins 64 ms after its launch.
    "single/hta_backward_thread.json": {"starts_amid_work"},
    # 54 k calls of Python in 34 ms, of which 31 ms are the capture of a graph.
    "single/tracelens_mi300_sglang_capture_bs_32_rank0.json.gz": {"graphs_captured", "stacks_slow_host"},
    # A graph is captured for 73 % of the time.
    "../inference/xdit_flux1_aiter_sage/capture_traces/capture_trace_rank_0.json.gz": {"graphs_captured"},
    # Decode servers that were recorded amid their work: the first graph waits 7.8 and 149 ms for it.
    "single/tracelens_vllm_decode_graph_execution.json.gz": {"starts_amid_work"},
    "../inference/vllm_prefilldecode_piecewise/graph_execution.json.gz": {"starts_amid_work"},
    # 201 k calls of Python in 249 ms.
    "../inference/xdit_flux1_aiter_sage/profile_trace_rank_0.json.gz": {"stacks_slow_host"},
    # Times were made up: a kernel ends 11 µs after the wait for its device; two kernels overlap by 5 µs.
    **{
        f"../torch-2.15/cuspy/cuspy_{kind}": {"kernel_outlives_wait"}
        for kind in ("eager.json", "eager.json.gz", "counters.json.gz", "counters_nan.json.gz")
    },
    "../torch-2.15/cuspy/cuspy_two_devices.json.gz": {"kernels_overlap"},
}


def real_traces():
    for folder in (FOLDER, *(FOLDER.parent / name for name in ("inference", "labelled", "torch-2.15"))):
        yield from sorted(path for path in folder.rglob("*.json*") if "truth" not in path.name)


def named(path: Path) -> str:
    return str(path.relative_to(FOLDER)) if path.is_relative_to(FOLDER) else f"../{path.relative_to(FOLDER.parent)}"


def test_real_traces_raise_no_false_alarm():
    alarms = defaultdict(set)
    for path in real_traces():
        try:
            trace = read(path)
        except KinetoscopeError:
            continue
        alarms[named(path)] |= {d.rule for d in diagnose(trace) if d.fault or d.rule == "events_twice"}
    assert {name: rules for name, rules in alarms.items() if rules} == TRUE_ALARMS
