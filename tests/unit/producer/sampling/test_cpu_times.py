"""Work of threads that the profiler doesn't record: the recording says how much there is, and can record it."""

import gzip
import json
import logging
import os
import threading
import time

import pytest
import torch

from kinetoscope import Tracer
from kinetoscope.profiling import torch_features
from kinetoscope.sampling.cpu_times import thread_times
from kinetoscope_tb.diagnostics.diagnose import diagnose
from kinetoscope_tb.measures.recording.processor_use import ProcessorTime
from kinetoscope_tb.reader import read
from support.waiting import LIMIT_S

pytestmark = pytest.mark.skipif(not thread_times(), reason="this system doesn't count the time of threads")
HAS_ALL_THREADS = torch_features._accepts(profile_all_threads=True)


def busy(seconds):
    """Run operators for some time of this thread's processor; they are large, so that the recording isn't."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        torch.ones(512, 512).relu()


@pytest.fixture(autouse=True)
def one_thread_per_operator():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def recorded(folder, work, **options):
    with Tracer(folder, run="run", system=(), scalars=False, **options) as tracer:
        for _ in tracer.steps([0]):
            work()
    (path,) = tracer.saved_traces
    return path


def findings(path):
    return [d for d in diagnose(read(str(path))) if d.rule == "threads_not_recorded"]


def with_thread(*, ends):
    """Work on this thread and on another one, which ends in the window or after it."""
    go_on, has_worked = threading.Event(), threading.Event()

    def prefetch():
        busy(0.4)
        has_worked.set()
        go_on.wait(LIMIT_S)

    thread = threading.Thread(target=prefetch, name="prefetcher", daemon=True)
    thread.start()
    busy(0.1)
    has_worked.wait(LIMIT_S)
    if ends:
        go_on.set()
        thread.join()
    return go_on


@pytest.mark.parametrize("ends", [False, True])
def test_the_time_of_threads_that_are_not_recorded_is_said(tmp_path, ends):
    go_on = []
    path = recorded(tmp_path, lambda: go_on.append(with_thread(ends=ends)))
    go_on[0].set()
    (finding,) = findings(path)
    assert finding.level == "warning"
    assert finding.count >= 1  # the process of the tests has threads of its own
    assert ("threads that ended" if ends else "prefetcher") in finding.consequence
    assert "all_threads=True" in finding.consequence
    cpu = json.loads(gzip.decompress(path.read_bytes()))["kinetoscope"]["cpu"]
    assert cpu["process_ns"] > 400_000_000


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system doesn't choose a thread's cores")
def test_the_wait_for_a_core_that_another_thread_has_is_recorded(tmp_path, monkeypatch):
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "3")
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})  # of this thread, and of those that it starts
    try:
        path = recorded(tmp_path, lambda: with_thread(ends=False).set())
    finally:
        os.sched_setaffinity(0, cores)
    cpu = ProcessorTime.of(read(str(path)).meta)
    assert cpu.process_ns >= 500_000_000  # what both used
    assert cpu.window_ns > cpu.process_ns / 2
    assert (cpu.cores, cpu.processes) == (1, 3)
    (main,) = (thread for thread in cpu.threads if thread.tid == os.getpid())
    assert main.waited_ns > 10_000_000


def test_threads_that_the_kernel_does_not_count_are_left_out(tmp_path):
    for tid, content in {"7": "12 34 5\n", "8": "", "9": "no numbers"}.items():
        (tmp_path / tid).mkdir()
        (tmp_path / tid / "schedstat").write_text(content)
    (tmp_path / "10").mkdir()
    assert thread_times(tmp_path) == {7: (12, 34)}
    assert thread_times(tmp_path / "missing") == {}


def test_backward_and_the_recorder_s_own_threads_are_no_finding(tmp_path):
    weight = torch.ones(64, 64, requires_grad=True)

    def train():
        busy(0.1)
        for _ in range(50):
            (weight @ weight).sum().backward()

    assert findings(recorded(tmp_path, train)) == []


@pytest.mark.skipif(not HAS_ALL_THREADS, reason="this torch can't record all threads")
def test_all_threads_are_recorded_on_request(tmp_path, log):
    path = recorded(tmp_path, lambda: with_thread(ends=True), all_threads=True, profile_memory=True)
    assert findings(path) == []
    trace = read(str(path))
    assert trace.host_events.filter(trace.host_events["kind"] == "operator")["thread"].n_unique() == 2
    assert any("no allocations with all_threads" in text for text in log())


@pytest.mark.skipif(not HAS_ALL_THREADS, reason="this torch can't record all threads")
def test_all_threads_by_torch_s_own_setting_are_recognized(tmp_path, log):
    config = torch_features.ExperimentalConfig(profile_all_threads=True, verbose=True)
    profiler = {"experimental_config": config}
    path = recorded(tmp_path, lambda: with_thread(ends=True), profiler=profiler, profile_memory=True)
    assert findings(path) == []
    assert json.loads(gzip.decompress(path.read_bytes()))["kinetoscope"]["options"]["all_threads"] is True
    assert any("no allocations with all_threads" in text for text in log())


@pytest.mark.parametrize("settings", [{}, {"verbose": True}, {"profiler_metrics": ["a"]}])
def test_other_settings_of_torch_s_record_no_more_threads(settings):
    assert not torch_features.records_all_threads(torch_features.ExperimentalConfig(**settings))
    assert not torch_features.records_all_threads(None)


def test_a_torch_without_all_threads_says_so(tmp_path, monkeypatch, caplog):
    accepts = torch_features._accepts
    monkeypatch.setattr(torch_features, "_accepts", lambda **s: "profile_all_threads" not in s and accepts(**s))
    with caplog.at_level(logging.WARNING, "kinetoscope"):
        Tracer(tmp_path, all_threads=True)
    assert f"torch {torch.__version__} doesn't have all_threads; torch 2.7 does. Recording without." in caplog.messages
