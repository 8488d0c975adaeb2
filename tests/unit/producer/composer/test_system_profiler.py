"""The machine's counters: rates of what grows, in units that are what they say."""

from kinetoscope.composer import Profiler, ProfilerAction, State, SystemProfiler, TraceHandler
from kinetoscope.sampling.procfs import Disk, Memory, NetworkInterface
from kinetoscope.sampling.system_sampler import Rates
from support.waiting import wait_for

S = 10**9


class SystemStats:
    """One that has done `n` things."""

    def __init__(self, n):
        self.n = n

    def processors(self):
        return 3.0 * self.n, 8.0 * self.n

    def memory(self):
        return dict.fromkeys(("virtual", "swap"), Memory(16 * 10**9, 4 * 10**9, 12 * 10**9))

    def disks(self):
        return {"sda": Disk(self.n, 0, 1_000 * self.n, 0, 2 * self.n, 0)}

    def network_interfaces(self):
        return {"eth0": NetworkInterface(0, 3_000 * self.n)}


def test_counters_have_composer_s_names_and_honest_values():
    reader, rates = SystemProfiler(profile_memory=True, profile_disk=True, profile_net=True), Rates(1.0)
    memory = [
        ("memory/virtual", {"total_gb": 16.0, "used_gb": 4.0, "free_gb": 12.0}, "GB"),
        ("memory/swap", {"total_gb": 16.0, "used_gb": 4.0, "free_gb": 12.0}, "GB"),
    ]
    assert list(reader.counters(SystemStats(10), rates, 1 * S)) == memory
    assert list(reader.counters(SystemStats(14), rates, 3 * S)) == [
        ("cpu", {"cpu_percent": 37.5}, "percent"),
        *memory,
        ("disk/sda/read_count", {"read_count_per_s": 2.0}, "1/s"),
        ("disk/sda/write_count", {"write_count_per_s": 0.0}, "1/s"),
        ("disk/sda/read_bytes", {"read_bytes_per_s": 2_000.0}, "bytes/s"),
        ("disk/sda/write_bytes", {"write_bytes_per_s": 0.0}, "bytes/s"),
        ("disk/sda/read_time", {"read_time_per_s": 4.0}, "ms/s"),
        ("disk/sda/write_time", {"write_time_per_s": 0.0}, "ms/s"),
        ("network/eth0/kb_sent", {"kb_sent_per_s": 6.0}, "kB/s"),
        ("network/eth0/kb_recv", {"kb_recv_per_s": 0.0}, "kB/s"),
    ]
    after_reset = {name for name, *_ in reader.counters(SystemStats(2), rates, 4 * S)}  # what has shrunk has no rate
    assert {"memory/virtual", "disk/sda/write_count"} <= after_reset
    assert after_reset.isdisjoint({"cpu", "disk/sda/read_count", "disk/sda/read_bytes", "network/eth0/kb_sent"})


def test_torch_s_memory_has_composer_s_words(monkeypatch):
    stats = {"allocated_bytes.all.current": 3 * 10**9, "reserved_bytes.all.peak": 5 * 10**9, "num_alloc_retries": 2}
    monkeypatch.setattr("kinetoscope.composer.system_profiler.allocator", lambda: (0, stats))
    readings = {
        r.counter: (r.series, r.value, r.unit) for r in SystemProfiler(profile_memory=True).samples(SystemStats(1))
    }
    assert readings["memory/cuda/allocated"] == ("allocated_gb", 3.0, "GB")
    assert readings["memory/cuda/peak_reserved"] == ("peak_reserved_gb", 5.0, "GB")
    assert readings["memory/cuda/alloc_retries"] == ("alloc_retries", 2, "count")


def test_the_thread_reads_while_the_profiler_doesn_t_skip_and_ends_with_the_training():
    samples = []

    class Handler(TraceHandler):
        def process_counter_event(self, name, categories, timestamp, wall_clock_time_ns, values):
            samples.append((name, int(timestamp.batch)))

    actions = [ProfilerAction.ACTIVE, ProfilerAction.SKIP]
    profiler = Profiler(
        lambda state: actions[min(1, int(state.timestamp.batch))],
        Handler(),
        sys_prof_cpu=False,
        sys_prof_memory=True,
        sys_prof_stats_thread_interval_seconds=0.001,
        torch_prof_profile_memory=False,
        torch_prof_with_flops=False,
    )
    with State("run", profiler=profiler) as state:
        wait_for(lambda: len(dict(samples)) == 2)
        state.step()
    assert {"memory/virtual", "memory/swap"} == {name for name, batch in samples if batch == 0}
    assert profiler.system_profiler._thread is not None
    assert not profiler.system_profiler._thread.is_alive()
