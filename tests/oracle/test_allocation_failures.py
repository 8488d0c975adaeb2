"""Failures planted in a simulation of the allocator: the cause is right, or isn't said."""

import pickle
from collections import Counter
from functools import cache

import pytest

from kinetoscope_tb.reader import read_blocks
from kinetoscope_tb.views import VIEWS
from support.snapshots import planted_failures


@cache
def answers():
    """Of each failure: its cause, and what is said with and without the memory of the device."""
    found = {}
    for name, (cause, allocator) in planted_failures().items():
        trace = read_blocks([allocator.dumped()], path="snapshot.pickle")
        first = [
            VIEWS["snapshot_failure"].run(trace, device_memory_bytes=known).row(0, named=True)
            for known in (allocator.device_bytes, None)
        ]
        found[name] = cause, *first
    return found


def test_failures_of_every_class_are_planted():
    causes = Counter(cause for cause, _, _ in answers().values())
    assert sum(causes.values()) >= 30
    assert set(causes) == {
        *("full", "leak", "fragmented", "other_stream", "private_pool", "outside", "limit", "too_large"),
    }


def test_with_the_memory_of_the_device_no_cause_is_wrong():
    wrong = {name: row["cause"] for name, (cause, row, _) in answers().items() if row["cause"] != cause}
    assert wrong == {}


def test_without_it_a_full_device_and_memory_that_others_took_cant_be_told_apart():
    said = {name: (cause, row["cause"]) for name, (cause, _, row) in answers().items()}
    undecided = {"full", "outside"}
    assert {name: pair for name, pair in said.items() if pair[0] not in undecided and pair[1] != pair[0]} == {}
    assert {answer for cause, answer in said.values() if cause in undecided} == {"full_or_outside"}


@pytest.mark.parametrize("name", ["leak 80", "full 80", "fragmented 80", "private pool 141"])
def test_the_sentence_has_its_numbers_and_its_line(name):
    _, row, _ = answers()[name]
    assert "GiB" in row["finding"] + row["evidence"]
    assert "log_outputs (job/train.py:44)" in row["finding"] or "request (job/train.py:77)" in row["finding"]


@pytest.mark.parametrize("name", ["full 80", "outside 80"])
def test_the_memory_that_our_recorder_stores_decides_like_one_that_is_given(name):
    cause, allocator = planted_failures()[name]
    devices = [{"id": 0, "name": "H100", "totalGlobalMem": allocator.device_bytes}]
    data = pickle.dumps({**allocator.snapshot(), "deviceProperties": devices}, 4)
    trace = read_blocks([data], path="rank0.42.oom.memory.pickle")
    assert VIEWS["snapshot_failure"].run(trace)["cause"].to_list()[0] == cause
