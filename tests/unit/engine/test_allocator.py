"""What is evicted is freed at once, and freed memory goes back to the system."""

import ctypes
import gc
import gzip
import os
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import pytest

from kinetoscope_tb.arrays import allocator
from kinetoscope_tb.engine import read_queue, workers
from kinetoscope_tb.engine.future_cache import FutureCache, Pending
from kinetoscope_tb.reader import read
from support.waiting import LIMIT_S, wait_for

BLOCK, BLOCKS, EVERY = 2_000, 40_000, 200


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="only glibc has malloc_trim")
def test_what_is_free_between_what_is_in_use_goes_back_to_the_system():
    c = ctypes.CDLL(None)
    c.malloc.restype, c.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    blocks = [c.malloc(BLOCK) for _ in range(BLOCKS)]
    for block in blocks:
        ctypes.memset(block, 1, BLOCK)
    for number, block in enumerate(blocks):
        if number % EVERY:
            c.free(block)
    before = resident()
    allocator.release_free_memory()
    assert before - resident() > BLOCK * BLOCKS / 2
    for block in blocks[::EVERY]:
        c.free(block)


@pytest.mark.parametrize("error", [AttributeError, OSError, TypeError])
def test_other_c_libraries_are_left_alone(monkeypatch, error):
    def no_library(_name):
        raise error

    monkeypatch.setattr(ctypes, "CDLL", no_library)
    allocator._function.cache_clear()
    try:
        allocator.share_one_arena()
        allocator.release_free_memory()
    finally:
        allocator._function.cache_clear()


THREADS_THAT_ALLOCATE = """
import ctypes, sys, threading
from kinetoscope_tb.arrays.allocator import share_one_arena

if sys.argv[1:]:
    share_one_arena()
c = ctypes.CDLL(None)
c.fdopen.restype = c.malloc.restype = ctypes.c_void_p
c.malloc_info.argtypes, c.fflush.argtypes = [ctypes.c_int, ctypes.c_void_p], [ctypes.c_void_p]
together = threading.Barrier(4)


def allocate():
    together.wait()
    c.malloc(1000)
    together.wait()


threads = [threading.Thread(target=allocate) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
out = c.fdopen(1, b"w")
c.malloc_info(0, out)
c.fflush(out)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="only glibc has arenas")
def test_threads_of_a_server_share_one_arena():
    def arenas(*arguments):
        command = [sys.executable, "-c", THREADS_THAT_ALLOCATE, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.count("<heap nr")

    assert arenas() > 1
    assert arenas("one") == 1


def test_threads_release_memory_when_they_have_nothing_more_to_do(monkeypatch):
    released = threading.Semaphore(0)
    for module in (workers, read_queue):
        monkeypatch.setattr(module, "IDLE_S", 0.01)
        monkeypatch.setattr(module, "release_free_memory", released.release)
    assert workers.Workers(1).submit(int).result(LIMIT_S) == 0
    assert released.acquire(timeout=LIMIT_S)
    queue = read_queue.ReadQueue(time.monotonic)
    assert queue.submit(lambda _check: 1, lambda _others: True, is_large=False).result(LIMIT_S) == 1
    assert released.acquire(timeout=LIMIT_S)


class Large:
    """Stands for a trace."""

    def note(self, progress):
        """Takes the progress of reading."""


@pytest.fixture
def no_collection():
    """No search for reference cycles, which comes late where few objects are made."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection")
def test_what_is_dropped_from_a_cache_is_freed_without_a_search_for_cycles():
    cache = FutureCache(1, is_transient=lambda _: False)
    pool = workers.Workers(1)
    large = weakref.ref(cache.get("a", lambda: Pending(pool.submit(Large))).future.result(LIMIT_S))
    assert large() is not None
    cache.get("b", lambda: Pending(pool.submit(int)))
    wait_for(lambda: large() is None)


@pytest.mark.usefixtures("no_collection")
def test_a_job_frees_its_arguments_when_it_is_done():
    pool, argument = workers.Workers(1), Large()
    large = weakref.ref(argument)
    done = pool.submit(id, argument)
    del argument
    assert done.result(LIMIT_S)
    wait_for(lambda: large() is None)


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_file_that_was_read_is_freed_with_its_progress_callback_without_a_search_for_cycles(tmp_path, suffix):
    path, text = tmp_path / f"t.json{suffix}", b'{"traceEvents": [{"ph": "X", "name": "op", "ts": 1, "dur": 1}]}'
    path.write_bytes(gzip.compress(text) if suffix else text)
    reader = Large()
    assert read(path, progress=reader.note).meta.events == 1
    large = weakref.ref(reader)
    del reader
    assert large() is None
