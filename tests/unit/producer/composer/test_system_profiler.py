"""The machine's counters: rates of what grows, in units that are what they say."""

import time
from typing import NamedTuple

import pytest

from kinetoscope.composer import Profiler, ProfilerAction, State, SystemProfiler, TraceHandler
from kinetoscope.composer.system_profiler import Rates


class Disk(NamedTuple):
    read_count: int
    read_bytes: int
    read_time: int


class Net(NamedTuple):
    bytes_sent: int
    bytes_recv: int


class Memory(NamedTuple):
    total: int
    used: int
    free: int
    percent: float


class Machine:
    """psutil, as far as it is used, of a machine that has done `n` things."""

    def __init__(self, n):
        self.n = n

    def cpu_percent(self):
        return 37.5

    def virtual_memory(self):
        return Memory(16 * 10**9, 4 * 10**9, 12 * 10**9, 25.0)

    swap_memory = virtual_memory

    def disk_io_counters(self, perdisk):
        return {"sda": Disk(self.n, 1_000 * self.n, 2 * self.n)}

    def net_io_counters(self, pernic):
        return {"eth0": Net(3_000 * self.n, 0)}


def test_counters_have_composer_s_names_and_honest_values():
    reader, rates = SystemProfiler(profile_memory=True, profile_disk=True, profile_net=True), Rates()
    memory = [
        ("cpu", {"cpu_percent": 37.5}, "percent"),
        ("memory/virtual", {"total_gb": 16.0, "used_gb": 4.0, "free_gb": 12.0}, "GB"),
        ("memory/swap", {"total_gb": 16.0, "used_gb": 4.0, "free_gb": 12.0}, "GB"),
    ]
    assert list(reader.readings(Machine(10), rates, 1.0)) == memory
    assert list(reader.readings(Machine(14), rates, 3.0)) == [
        *memory,
        ("disk/sda/read_count", {"read_count_per_s": 2.0}, "1/s"),
        ("disk/sda/read_bytes", {"read_bytes_per_s": 2_000.0}, "bytes/s"),
        ("disk/sda/read_time", {"read_time_per_s": 4.0}, "ms/s"),
        ("network/eth0/kb_sent", {"kb_sent_per_s": 6.0}, "kB/s"),
        ("network/eth0/kb_recv", {"kb_recv_per_s": 0.0}, "kB/s"),
    ]


def test_a_counter_that_began_anew_has_no_rate_until_it_has_grown():
    rates = Rates()
    given = [(0.0, 5), (1.0, 7), (2.0, 1), (2.0, 1), (4.0, 2)]
    assert [list(rates.of("x", {"f": value}, now)) for now, value in given] == [[], [("f", 2.0)], [], [], [("f", 0.5)]]


def test_the_thread_reads_while_the_profiler_doesn_t_skip_and_ends_with_the_training():
    pytest.importorskip("psutil")
    seen = []

    class Handler(TraceHandler):
        def process_counter_event(self, name, categories, timestamp, wall_clock_time_ns, values):
            seen.append((name, int(timestamp.batch)))

    actions = [ProfilerAction.ACTIVE, ProfilerAction.SKIP]
    profiler = Profiler(
        lambda state: actions[min(1, int(state.timestamp.batch))],
        Handler(),
        sys_prof_stats_thread_interval_seconds=0.001,
        torch_prof_profile_memory=False,
        torch_prof_with_flops=False,
    )
    with State("run", profiler=profiler) as state:
        deadline = time.monotonic() + 60
        while not seen and time.monotonic() < deadline:
            time.sleep(0.005)
        state.step()
    assert {("cpu", 0)} == {note for note in seen if note[1] == 0}
    assert profiler.system_profiler._thread is not None
    assert not profiler.system_profiler._thread.is_alive()
