import threading
import time
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch import distributed

from kinetoscope.job.job_store import connection
from kinetoscope.job.rank_info import RankInfo
from kinetoscope.sampling import clock_sync
from kinetoscope.sampling.clock_sync import ClockSync, boot_id, offset_of, ping, pong
from support.waiting import LIMIT_S, wait_for

TRAVEL = st.integers(0, 10**7)


@given(st.integers(-(10**12), 10**12), st.lists(st.tuples(TRAVEL, TRAVEL, TRAVEL), min_size=1))
def test_the_true_offset_lies_within_the_error(offset, journeys):
    now, exchanges = 10**18, []
    for there, thinking, back in journeys:
        sent, received = now + offset, now + there
        replied = received + thinking
        returned = replied + back + offset
        exchanges.append((sent, received, replied, returned))
        now += 10**9
    measured, error = offset_of(exchanges)
    assert abs(measured - offset) <= error
    assert error <= min(there + back for there, _, back in journeys) // 2 + 1


@pytest.fixture
def store():
    return distributed.TCPStore("127.0.0.1", 0, None, True, timedelta(seconds=60), wait_for_workers=False)


def test_two_clocks_are_compared_over_a_store(store):
    shift = 5_000_000_000
    prefixed = distributed.PrefixStore("job", store)
    here, there = connection(prefixed), connection(prefixed)

    def answers():
        for number in range(1, 11):
            pong(there, "key", number)

    thread = threading.Thread(target=answers)
    thread.start()
    exchanges = [ping(here, "key", number, lambda: time.time_ns() + shift) for number in range(1, 11)]
    thread.join()
    offset, error = offset_of(exchanges)
    assert abs(offset - shift) <= error < shift
    assert not store.check(["key/asked/1"])
    assert not store.check(["key/answer/10"])


def test_a_connection_does_not_wait_for_what_another_one_waits_for(store):
    waiting, other = connection(store), connection(store)
    thread = threading.Thread(target=waiting.get, args=("later",))
    thread.start()
    other.set("now", "1")
    assert other.get("now") == b"1"
    assert thread.is_alive()
    other.set("later", "1")
    thread.join(LIMIT_S)
    assert not thread.is_alive()


def test_a_machine_has_one_name_as_long_as_it_runs():
    assert boot_id() == boot_id() != ""


class SlowStore:
    """A store that has answered the comparing thread before it answers the one that wakes it."""

    def __init__(self):
        self.callers = set()

    def __getattr__(self, name):
        def call(*arguments):
            self.callers.add(threading.current_thread())
            time.sleep(0.01 if threading.current_thread().name == "kinetoscope-clock" else 0.5)
            return 1 if name == "add" else b"0 0"

        return call


def test_no_thread_is_in_a_store_once_the_comparison_has_ended(monkeypatch):
    store = SlowStore()
    monkeypatch.setattr(clock_sync, "is_distributed", lambda: True)
    monkeypatch.setattr(clock_sync, "current_rank_info", lambda: RankInfo(global_rank=0, world_size=2))
    monkeypatch.setattr(clock_sync, "default_store", lambda: store)
    monkeypatch.setattr(clock_sync, "connection", lambda store: store)
    comparing = ClockSync()
    comparing.start()
    wait_for(lambda: comparing._waits_for)
    comparing.close()
    assert len(store.callers) == 2
    assert not any(thread.is_alive() for thread in store.callers)
