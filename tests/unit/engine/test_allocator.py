"""What is evicted is freed at once, and freed memory goes back to the system."""

import ctypes
import gc
import os
import threading
import time
import weakref
from pathlib import Path

import pytest

from kinetoscope_tb.engine import allocator, read_queue, workers
from kinetoscope_tb.engine.future_cache import FutureCache, Pending
from support.waiting import wait_for

LONG_WAIT_S = 30
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
    allocator._trim.cache_clear()
    try:
        allocator.release_free_memory()
    finally:
        allocator._trim.cache_clear()


def test_threads_release_memory_when_they_have_nothing_more_to_do(monkeypatch):
    released = threading.Semaphore(0)
    for module in (workers, read_queue):
        monkeypatch.setattr(module, "IDLE_S", 0.01)
        monkeypatch.setattr(module, "release_free_memory", released.release)
    assert workers.Workers(1).submit(int).result(LONG_WAIT_S) == 0
    assert released.acquire(timeout=LONG_WAIT_S)
    queue = read_queue.ReadQueue(time.monotonic)
    assert queue.submit(lambda _check: 1, lambda _others: True, is_large=False).result(LONG_WAIT_S) == 1
    assert released.acquire(timeout=LONG_WAIT_S)


class Large:
    """Stands for a trace."""


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
    large = weakref.ref(cache.get("a", lambda: Pending(pool.submit(Large))).future.result(LONG_WAIT_S))
    assert large() is not None
    cache.get("b", lambda: Pending(pool.submit(int)))
    wait_for(lambda: large() is None, LONG_WAIT_S)


@pytest.mark.usefixtures("no_collection")
def test_a_job_frees_its_arguments_when_it_is_done():
    pool, argument = workers.Workers(1), Large()
    large = weakref.ref(argument)
    done = pool.submit(id, argument)
    del argument
    assert done.result(LONG_WAIT_S)
    wait_for(lambda: large() is None, LONG_WAIT_S)
