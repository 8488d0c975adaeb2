"""torch_npu's own traces: which call launched a kernel, AI CPUs apart, and its own analysis of overlaps."""

import json

import numpy as np
import pytest

from kinetoscope_tb.arrays.intervals import union
from kinetoscope_tb.diagnostics.diagnose import diagnose
from kinetoscope_tb.engine.answers import compute
from kinetoscope_tb.measures.recording.vendor import device_noun, vendor_terms
from kinetoscope_tb.measures.time.breakdown import breakdown, intervals_of
from kinetoscope_tb.reader import read_blocks
from kinetoscope_tb.views import VIEWS

PYTHON, CANN, HARDWARE, COMMUNICATION, OVERLAP = 4211, 4311616, 4311648, 4311680, 4311744
MAIN, STREAM = 4211, 47


def span(name, at, dur, pid=PYTHON, tid=MAIN, **more):
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": f"{1700000000000000 + at}.000", "dur": dur, **more}


def task(name, at, dur, kind="AI_CORE", pid=HARDWARE, tid=STREAM):
    return span(name, at, dur, pid, tid, args={"Task Type": kind, "Stream Id": tid})


def arrow(category, number, begin, end):
    """From the call or operator at `begin` (pid, time) to the task at `end` (pid, time)."""
    common = {"cat": category, "id": str(number), "name": category}
    for phase, (pid, at), tid in (("s", begin, MAIN), ("f", end, STREAM)):
        yield {"ph": phase, **common, "pid": pid, "tid": tid, "ts": f"{1700000000000000 + at}.000"}


def trace(*, operators=True, computing=((200, 100), (350, 50), (500, 40))):
    names = {PYTHON: "Python", CANN: "CANN", HARDWARE: "Ascend Hardware"}
    names |= {COMMUNICATION: "Communication", OVERLAP: "Overlap Analysis"}
    events = [{"ph": "M", "name": "process_name", "pid": p, "tid": 0, "args": {"name": n}} for p, n in names.items()]
    events += [
        span("ProfilerStep#3", 0, 800, cat="user_annotation"),
        span("aten::matmul", 10, 50, cat="cpu_op"),
        span("aten::unique", 70, 50, cat="cpu_op"),
        span("AscendCL@aclnnMatmul", 15, 30, CANN),
        span("Node@launch", 20, 5, CANN),
        span("Node@launch", 80, 5, CANN),
        span("AscendCL@aclrtSynchronizeStream", 140, 400, CANN),
        task("MatMulV2", 200, 100),
        task("Unique", 350, 50, "AI_CPU"),
        task("Unique", 500, 40),
        task("EVENT_WAIT", 300, 20, "EVENT_WAIT"),
        task("hcom_allReduce__1_0", 560, 100, pid=COMMUNICATION, tid=0),
        task("hcom_allReduceAicpuKernel", 560, 100, "AI_CPU", tid=51),
        *arrow("HostToDevice", 1, (CANN, 20), (HARDWARE, 200)),
        *arrow("HostToDevice", 2, (CANN, 80), (HARDWARE, 350)),
        *arrow("HostToDevice", 2, (CANN, 80), (HARDWARE, 500)),
        *(span("Computing", at, dur, OVERLAP, 2) for at, dur in computing),
        span("Communication", 560, 100, OVERLAP, 0),
        *(span("Free", at, dur, OVERLAP, 3) for at, dur in ((300, 50), (400, 100), (540, 20))),
    ]
    if operators:
        events += arrow("async_npu", 7, (PYTHON, 10), (HARDWARE, 200))
    return read_blocks([json.dumps(events).encode()], path="trace_view.json")


@pytest.mark.parametrize("operators", [True, False])
def test_arrows_from_cann_s_calls_say_what_launched_a_kernel(operators):
    read = trace(operators=operators)
    rows = read.device_events.filter(~read.device_events["is_communication"])
    calls, operator_names = read.launches["name"].to_list(), read.host_events["name"].to_list()
    assert rows["name"].to_list() == ["MatMulV2", "Unique (AI_CPU)", "Unique"]
    assert [calls[row] for row in rows["launch"]] == ["Node@launch"] * 3
    assert [operator_names[row] for row in rows["op"]] == ["aten::matmul", "aten::unique", "aten::unique"]
    assert rows["step"].to_list() == [0, 0, 0]
    assert read.launches["start_ns"].to_numpy()[rows["launch"].to_numpy()].tolist() == [20_000, 80_000, 80_000]


def test_ai_cpus_are_apart_from_ai_cores():
    table = compute(VIEWS["kernels"], trace(), {})
    totals = dict(table.select("name", "total_ns").rows())
    assert (totals["Unique (AI_CPU)"], totals["Unique"]) == (50_000, 40_000)
    (note,) = (d for d in diagnose(trace()) if d.rule == "ai_cpu_kernels")
    assert (note.count, note.level) == (1, "note")


def test_the_file_s_own_overlaps_agree_with_what_is_busy_and_idle():
    read = trace()
    threads = read.threads.with_row_index("thread").filter(process="Overlap Analysis")["thread"].to_list()
    rows = read.others.filter(read.others["thread"].is_in(threads))
    stated = {name: int(group["dur_ns"].sum()) for (name,), group in rows.group_by("name")}
    parts = {name: int(lengths.sum()) for name, lengths in breakdown(read).items()}
    assert parts["Kernel"] == stated["Computing"]
    assert parts["Communication"] == stated["Communication"]
    begin, end = union(*(intervals_of(read.device_events)))
    assert int((begin[1:] - end[:-1]).sum()) == stated["Free"]
    assert not [d for d in diagnose(read) if d.rule == "overlap_differs"]


def test_kernels_that_are_missing_show_in_the_file_s_own_overlaps():
    found = {d.rule: d.consequence for d in diagnose(trace(computing=((200, 500),)))}
    assert "Computing covers 500 µs, its kernels 190 µs" in found["overlap_differs"]


def test_nothing_of_another_vendor_is_named():
    read = trace()
    terms = vendor_terms(read)
    assert (terms.vendor, device_noun(read)) == ("Huawei", "NPU")
    words = [d.consequence for d in diagnose(read)]
    for view in ("advice", "idle", "environment", "top", "gpus"):
        frame = compute(VIEWS[view], read, {})
        words += [str(value) for row in getattr(frame, "rows", list)() for value in row]
    assert not [
        text for text in words if any(word in text for word in ("Intel", "XPU", "xpu", "urUSM", "VTune", "cuda"))
    ]


def test_calls_of_cann_are_on_the_thread_that_made_them():
    read = trace()
    assert set(read.threads["pid"][np.unique(read.launches["thread"])]) == {str(PYTHON)}
