"""Faults planted into real traces are found; `test_each_recording.py` looks for false alarms."""

import pytest

from kinetoscope_tb.diagnostics.diagnose import diagnose
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
