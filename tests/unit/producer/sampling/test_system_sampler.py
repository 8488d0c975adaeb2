import gzip
import json
import sys
import threading
import time
from types import SimpleNamespace

import pytest
import torch

from kinetoscope import Tracer, UsageError, cyclic
from kinetoscope.sampling import procfs, samplers
from kinetoscope.sampling.procfs import Disk, Memory, ProcFs
from kinetoscope.sampling.samplers import Sample
from kinetoscope.sampling.system_sampler import KINDS, Rates, _sources

S = 10**9


@pytest.fixture
def proc(tmp_path):
    """A /proc with round numbers."""
    (tmp_path / "net").mkdir()
    (tmp_path / "stat").write_text("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1 2 3\n")
    (tmp_path / "meminfo").write_text(
        "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 400 kB\nSwapTotal: 10 kB\nSwapFree: 4 kB\n"
    )
    rows = [
        "8 0 sda 1 0 200 5 3 0 400 6 0 1500 11",
        "8 1 sda1 1 0 2 5 3 0 4 6 0 15 11",
        "259 0 nvme0n1 1 0 2 5 3 0 4 6 0 2000 11",
        "7 0 loop0 1 0 2 5 3 0 4 6 0 15 11",
    ]
    (tmp_path / "diskstats").write_text("\n".join(rows) + "\n")
    (tmp_path / "net" / "dev").write_text("a\nb\n  lo: 1 0 0 0 0 0 0 0 2 0\n eth0: 1000 0 0 0 0 0 0 0 2000 0\n")
    return tmp_path


def by_series(readings):
    return {(r.counter, r.series): (r.value, r.unit, r.is_sum) for r in readings}


def test_linux_reports_what_the_machine_uses(proc):
    linux = ProcFs(proc)
    (cpu,) = samplers.cpu(linux)
    assert (cpu.value, cpu.whole, cpu.unit) == (150, 1000, "fraction")
    assert linux.memory()["virtual"] == Memory(1000 * 1024, 600 * 1024, 1024)
    assert by_series(samplers.memory(linux)) == {
        ("memory", "used"): (600 * 1024, "bytes", False),
        ("swap", "used"): (6 * 1024, "bytes", False),
    }
    assert linux.disks()["sda"] == Disk(1, 3, 200 * 512, 400 * 512, 5, 6, 1500)
    disks = by_series(samplers.disk(linux))
    assert {name for name, _ in disks} == {"disk/sda", "disk/sda busy", "disk/nvme0n1", "disk/nvme0n1 busy"}
    assert disks["disk/sda", "read"] == (200 * 512, "bytes/s", True)
    assert disks["disk/sda", "written"] == (400 * 512, "bytes/s", True)
    assert disks["disk/sda busy", "busy"] == (1.5, "fraction", True)
    assert by_series(samplers.network(linux)) == {
        ("network/eth0", "received"): (1000, "bytes/s", True),
        ("network/eth0", "sent"): (2000, "bytes/s", True),
    }


def test_psutil_reports_the_same_without_proc(monkeypatch):
    io = SimpleNamespace(read_count=7, write_count=8, read_bytes=1, write_bytes=2, bytes_recv=3, bytes_sent=4)

    class Times(tuple):
        idle, iowait = 6.0, 1.0

    own = SimpleNamespace(cpu_times=lambda: (1.0, 2.0, 9.0), memory_info=lambda: SimpleNamespace(rss=5))
    monkeypatch.setitem(
        sys.modules,
        "psutil",
        SimpleNamespace(
            cpu_times=lambda: Times((3.0, 6.0, 1.0)),
            virtual_memory=lambda: SimpleNamespace(total=10, available=4, free=3),
            swap_memory=lambda: SimpleNamespace(total=9, used=1, free=8),
            disk_io_counters=lambda perdisk: {"disk0": io},
            net_io_counters=lambda pernic: {"en0": io, "lo0": io},
            Process=lambda: own,
        ),
    )
    monkeypatch.setattr(procfs, "has_proc", lambda: False)
    here = procfs.system_stats()
    assert here.disks() == {"disk0": Disk(7, 8, 1, 2)}
    assert here.memory() == {"virtual": Memory(10, 6, 3), "swap": Memory(9, 1, 8)}
    readings = [r for what in ("cpu", "memory", "disk", "network", "process") for r in getattr(samplers, what)(here)]
    assert {(r.counter, r.series, r.value) for r in readings} == {
        ("cpu", "used", 3.0), ("memory", "used", 6), ("swap", "used", 1), ("disk/disk0", "read", 1), ("disk/disk0", "written", 2),
        ("network/en0", "received", 3), ("network/en0", "sent", 4), ("process cpu", "cores", 3.0), ("process memory", "resident", 5),
    }  # fmt: skip


def test_without_either_the_gpu_s_counters_are_left(monkeypatch):
    monkeypatch.setattr(procfs, "has_proc", lambda: False)
    monkeypatch.setitem(sys.modules, "psutil", None)
    assert list(_sources(KINDS, is_first=True)) == ["torch's memory", "the GPU"]
    assert list(_sources(("cpu",), is_first=True)) == []


def test_the_driver_reports_what_it_can(monkeypatch):
    class NVMLError(Exception):
        pass

    def refuses(_handle):
        raise NVMLError

    nvml = SimpleNamespace(
        NVMLError=NVMLError, NVML_TEMPERATURE_GPU=0, NVML_CLOCK_SM=1,
        nvmlInit=lambda: None, nvmlShutdown=lambda: None, nvmlDeviceGetHandleByUUID=lambda uuid: uuid,
        nvmlDeviceGetUtilizationRates=lambda h: SimpleNamespace(gpu=75), nvmlDeviceGetPowerUsage=lambda h: 350_000,
        nvmlDeviceGetTemperature=refuses, nvmlDeviceGetClockInfo=lambda h, kind: 1980,
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda h: 5,
    )  # fmt: skip
    nvml.nvmlDeviceGetTemperature = lambda h, kind: refuses(h)
    stats = {"allocated_bytes.all.current": 10, "reserved_bytes.all.current": 20, "num_alloc_retries": 1}
    cuda = SimpleNamespace(
        is_initialized=lambda: True, current_device=lambda: 2, memory_stats=lambda: stats,
        get_device_properties=lambda device: SimpleNamespace(uuid="abc"),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.setattr(torch, "cuda", cuda)
    assert [(r.counter, r.value, r.unit) for r in samplers.gpu()] == [
        ("gpu 2 utilization", 0.75, "fraction"), ("gpu 2 power", 350.0, "W"), ("gpu 2 clock", 1980.0, "MHz"), ("gpu 2 throttled", 1.0, ""),
    ]  # fmt: skip
    assert [(r.counter, r.series, r.value) for r in samplers.torch_memory()] == [
        ("gpu 2 memory", "allocated", 10), ("gpu 2 memory", "reserved", 20), ("gpu 2 allocation retries", "retries", 1),
    ]  # fmt: skip


def test_a_rate_stands_where_its_time_begins_and_a_gap_is_not_known():
    rates = Rates(1.0)
    sent, used = (
        (lambda v: Sample("net", "sent", v, "bytes/s", is_sum=True)),
        (lambda v: Sample("memory", "used", v, "bytes")),
    )
    assert rates.values(0, [sent(100), used(7)]) == [("memory", 0, "used", 7)]
    assert rates.values(2 * S, [sent(300), used(8)]) == [("net", 0, "sent", 100.0), ("memory", 2 * S, "used", 8)]
    assert rates.values(9 * S, [sent(900), used(9)]) == [
        ("net", 2 * S, "sent", None),
        ("memory", 5 * S, "used", None),
        ("memory", 9 * S, "used", 9),
    ]
    assert rates.values(10 * S, [sent(5)]) == [("net", 9 * S, "sent", None)]  # it was reset
    rates.forget()
    assert rates.values(11 * S, [sent(6)]) == []


def test_a_share_is_of_what_could_have_been():
    rates = Rates(1.0)
    rates.values(0, [Sample("cpu", "used", 10, "fraction", is_sum=True, whole=100)])
    assert rates.values(S, [Sample("cpu", "used", 13, "fraction", is_sum=True, whole=104)]) == [
        ("cpu", 0, "used", 0.75)
    ]
    assert rates.values(2 * S, [Sample("cpu", "used", 13, "fraction", is_sum=True, whole=104)]) == [
        ("cpu", S, "used", None)
    ]


def counters(tracer):
    (path,) = tracer.saved_traces
    trace = json.loads(gzip.decompress(path.read_bytes()))
    return trace["kinetoscope"]["counters"], [e for e in trace["traceEvents"] if e["ph"] == "C"]


@pytest.mark.skipif(not procfs.has_proc(), reason="no /proc here")
def test_a_window_has_the_system_s_counters_however_short_it_is(tmp_path):
    with Tracer(tmp_path, run="run", schedule=cyclic(warmup=1, active=1), system_interval_s=60) as tracer:
        for _ in range(2):
            end = time.process_time() + 0.02
            while time.process_time() < end:
                torch.ones(8, 8).relu()
            tracer.step()
    units, events = counters(tracer)
    assert units["process cpu"] == {"unit": "cores"}
    assert any(e["args"]["cores"] > 0 for e in events if e["name"] == "process cpu")
    assert all(e["args"]["resident"] > 1 << 20 for e in events if e["name"] == "process memory")
    assert {"cpu", "memory", "process memory"} <= {e["name"] for e in events}


def test_what_can_not_be_read_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(samplers, "cpu", lambda _: 1 / 0)
    with Tracer(tmp_path, run="run", system=("cpu", "process")) as tracer:
        torch.ones(2).relu()
    assert {e["name"] for e in counters(tracer)[1]} <= {"process cpu", "process memory"}
    assert not any(thread.name == "kinetoscope-system" for thread in threading.enumerate())


@pytest.mark.parametrize("wrong", [{"system": ["cpu", "coffee"]}, {"system": "cpu"}, {"system_interval_s": 0}])
def test_counters_that_there_are_not_are_refused(tmp_path, wrong):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        Tracer(tmp_path, **wrong)


def test_nothing_is_read_if_nothing_is_requested(tmp_path):
    assert set(KINDS) == {"cpu", "memory", "disk", "network", "process", "gpu"}
    with Tracer(tmp_path, run="run", system=()) as tracer:
        torch.ones(2).relu()
    assert counters(tracer) == ({}, [])
