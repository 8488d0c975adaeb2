"""Nsight Systems' GPU_METRICS: the same counters as those that torch samples."""

import pytest

from kinetoscope_tb.reader import read
from kinetoscope_tb.reader.event import EventTexts
from kinetoscope_tb.reader.nsight import scan
from kinetoscope_tb.views import VIEWS
from kinetoscope_tb.views.device.gpu_counters import gpu_counters
from support.build import TraceBuilder, same
from support.nsight import Export, connected, export_json

US = 1_000
SM, CLOCK = "SMs Active [Throughput %]", "GPC Clock Frequency [MHz]"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rank0.sqlite"


def recorded():
    """Two steps on two devices, sampled every 20 µs."""
    built = TraceBuilder().step(0, 0, 500 * US).step(1, 500 * US, 500 * US)
    for device in (0, 1):
        for at in (50, 400, 700):
            number = 10 * at + device
            built.launch((at - 20 + device) * US, US, number)
            built.kernel(f"k{at}", at * US, 90 * US, number, device=device)
        for at in range(0, 1000, 20):
            for name, value in (("SMs Active (%)", at // 10), ("GPC Clock Frequency (MHz)", 1980 - device)):
                shown = None if at == 300 else value
                built.event("", name, at * US, None, ph="C", pid=f"GPU {device} Counters", **{"": shown})
    return built


def samples_of(trace):
    columns = ["process", "name", "series", "start_ns", "value"]
    return trace.counters.select(columns).with_columns(trace.counters["value"].fill_nan(None)).rows()


def small(path):
    """A recording from 100 to 200 µs with one kernel."""
    return Export(path).call("cudaLaunchKernel_v7000", 100 * US, 110 * US, 1).kernel("k", 120 * US, 200 * US, 1)


def test_samples_are_those_of_the_json(path):
    built = recorded()
    trace, expected = read(export_json(path, built.text())), built.build()
    assert len(samples_of(trace)) == 200
    assert samples_of(trace) == samples_of(expected)
    for per in ("recording", "step", "kernel"):
        assert gpu_counters(trace, per=per).equals(gpu_counters(expected, per=per))
    assert trace.diagnostics == ()


def test_batches_of_any_size_give_the_same(path, monkeypatch):
    export_json(path, recorded().text())
    whole = read(path).counters
    monkeypatch.setattr(scan, "ROWS", 7)
    assert whole.equals(read(path).counters)


def test_a_metric_has_its_unit_and_a_clock_may_be_in_hz(path):
    export = small(path).sample(SM, 100 * US, 40).sample(SM, 150 * US, 60)
    export.sample(CLOCK, 100 * US, 1_980_000_000).sample(CLOCK, 150 * US, 1_410)
    export.sample("Compute Warps in Flight [Avg]", 120 * US, 3)
    same(
        gpu_counters(read(export.close())).select("device", "counter", "unit", "min_value", "max_value", "samples"),
        """
        device  counter                        unit  min_value  max_value  samples
        0       Compute Warps in Flight [Avg]  -     3.0        3.0        1
        0       GPC Clock Frequency            MHz   1410.0     1980.0     2
        0       SMs Active                     %     40.0       60.0       2
        """,
    )


def test_samples_before_and_after_the_recording_move_nothing(path):
    export = small(path)
    for at in (-5, 99, 100, 200, 201, 10**9):
        export.sample(SM, at * US, 50)
    trace = read(export.close())
    assert trace.counters["start_ns"].to_list() == [0, 100 * US]
    assert trace.window == (0, 100 * US)


def test_a_gpu_has_the_index_that_the_process_sees(path):
    export = small(path).sample(SM, 100 * US, 10, gpu=3).sample(SM, 100 * US, 20, gpu=1)
    export.insert("TARGET_INFO_CUDA_DEVICE", gpuId=3, cudaId=0, pid=1000, uuid="")
    trace = read(export.close())
    assert [row[:1] + row[4:] for row in samples_of(trace)] == [("GPU 0 Counters", 10.0)]


def test_gpus_of_several_processes_have_the_index_of_the_machine(path):
    export = small(path).kernel("k", 120 * US, 150 * US, 1, pid=2000)
    for pid, gpu in ((1000, 3), (2000, 1)):
        export.insert("TARGET_INFO_CUDA_DEVICE", gpuId=gpu, cudaId=0, pid=pid, uuid="")
        export.sample(SM, 100 * US, 10 * gpu, gpu=gpu)
    export.sample(SM, 100 * US, 70, gpu=7)
    trace = read(export.close())
    assert [row[:1] + row[4:] for row in samples_of(trace)] == [("GPU 1 Counters", 10.0), ("GPU 3 Counters", 30.0)]


def test_values_that_no_counter_has_are_unknown(path):
    export = small(path)
    for at, value in ((100, -1), (120, "text"), (140, 1.5), (160, 7)):
        export.sample(SM, at * US, value)
    assert [row[4] for row in samples_of(read(export.close()))] == [None, None, None, 7.0]


def test_samples_without_names_are_mentioned(path):
    export = small(path).sample(SM, 100 * US, 10)
    export.close()
    with connected(path) as db:
        db.execute("DROP TABLE TARGET_INFO_GPU_METRICS")
    trace = read(path)
    assert trace.counters.is_empty()
    notes = {row["rule"]: row["consequence"] for row in VIEWS["health"].run(trace).rows(named=True)}
    assert "GPU_METRICS" in notes["other_tables"]


def test_details_of_a_sample_are_its_row(path):
    trace = read(small(path).sample(SM, 100 * US, 10).close())
    event = EventTexts().event(str(path), None, trace.counters["offset"][0], 1)
    assert event.value["args"] == {"metricId": 0, "rawTimestamp": 100000, "timestamp": 100000, "value": 10} | {
        "typeId": "72057602627862528"  # beyond what a double holds
    }
