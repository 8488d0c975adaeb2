"""Memory snapshots with random damage: each gives a Trace with findings or a TraceError, and its views answer."""

import random

import pytest

from kinetoscope_tb.errors import TraceError
from kinetoscope_tb.reader import read_blocks
from kinetoscope_tb.reader.pickles.machine import PickleError
from kinetoscope_tb.reader.pickles.plain import plain_value
from kinetoscope_tb.views import VIEWS
from support.fuzzing import case_numbers, damaged, named
from support.snapshots import small_snapshot

GROUPS = 10
NAMES = [name for name in VIEWS if name.startswith("snapshot_")]
OPCODES = b"().0123NKMJXGRTabcehjqrstu}]\x80\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x93\x94\x95"


@pytest.fixture(scope="module")
def files():
    snapshot = small_snapshot()
    return [snapshot.dumped(protocol) for protocol in (2, 4, 5)]


def answer_or_refuse(data):
    try:
        trace = read_blocks([data], path="snapshot.pickle")
    except TraceError:
        return
    for name in NAMES:
        VIEWS[name].frame(trace, {})


@pytest.mark.parametrize("group", range(GROUPS))
def test_damaged_snapshots_are_read_or_refused(group, files):
    for case in case_numbers(group, GROUPS):
        numbers = random.Random(case)
        whole = numbers.choice(files)
        data = bytearray(damaged(whole, numbers) if case % 3 == 0 else whole)
        for _ in range(numbers.choice((1, 2, 10, 100)) if case % 3 else 0):
            at = numbers.randrange(2, len(data))
            data[at] = numbers.choice(OPCODES) if case % 3 == 1 else numbers.randrange(256)
        with named(case):
            answer_or_refuse(bytes(data))


@pytest.mark.parametrize("group", range(GROUPS))
def test_random_opcodes_are_a_value_or_refused(group):
    for case in case_numbers(group, GROUPS):
        numbers = random.Random(case)
        body = bytes(numbers.choice(OPCODES) if numbers.random() < 0.9 else numbers.randrange(256) for _ in range(400))
        with named(case):
            try:
                plain_value(b"\x80\x04" + body + b".")
            except PickleError:
                continue
