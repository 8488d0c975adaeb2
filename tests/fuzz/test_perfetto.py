"""Perfetto traces with random damage: each gives a Trace with diagnostics or a TraceError, for any size of blocks."""

import functools
import gzip
import random

import pytest

from kinetoscope_tb.errors import TraceError
from kinetoscope_tb.reader import read
from support.fuzzing import assert_same_outcome, case_numbers, named, outcome
from support.perfetto import foreign, training

GROUPS = 20
PATH = "damaged.pftrace"
CRAFTED = (
    b"\n",
    b"\n\0",
    b"\n\x80",
    b"\xff" * 11,
    b"b\x7f" * 40,
    b"\n\x02b\0" * 20,
    b"\x0a\x04\x50\x01\x5a\x7f",
    bytes(30),
)


@functools.cache
def originals():
    return [training(2, 12).pftrace(), foreign()]


def damaged(data, numbers):
    """Cut, flipped, inserted, deleted, repeated or moved bytes, once or several times."""
    for _ in range(numbers.choice((1, 1, 2, 5))):
        at = numbers.randrange(len(data) + 1)
        length = numbers.choice((1, 1, 2, 7, 60, 900))
        what = numbers.randrange(7)
        if what == 0:
            data = data[:at]
        elif what == 1 and at < len(data):
            data = data[:at] + bytes([data[at] ^ 1 << numbers.randrange(8)]) + data[at + 1 :]
        elif what == 2:
            data = data[:at] + bytes(numbers.randrange(256) for _ in range(length)) + data[at:]
        elif what == 3:
            data = data[:at] + data[at + length :]
        elif what == 4:
            data = data[:at] + data[at : at + length] * 2 + data[at + length :]
        elif what == 5:
            data = data[:at] + numbers.choice(CRAFTED) + data[at:]
        else:
            data = data[:at] + bytes(numbers.randrange(256) for _ in range(length)) + data[at + length :]
    return data


@pytest.mark.parametrize("group", range(GROUPS))
def test_damaged_traces_are_read_or_refused(group):
    for case in case_numbers(group, GROUPS):
        numbers = random.Random(case)
        data = damaged(numbers.choice(originals()), numbers)
        with named(case):
            whole = outcome(data, 1 << 20, PATH)
            if case % 4 == 0 and data[:1] == b"\n":
                assert_same_outcome(data, PATH, whole, numbers.choice((400, 3000, 9000)))


@pytest.mark.parametrize("group", range(GROUPS))
def test_damaged_gzip_is_read_or_refused(group, tmp_path):
    for case in case_numbers(group, GROUPS, share=0.2):
        numbers = random.Random(case)
        data = damaged(gzip.compress(numbers.choice(originals()), numbers.randrange(10)), numbers)
        path = tmp_path / "rank0.pftrace.gz"
        path.write_bytes(data)
        with named(case):
            try:
                read(path)
            except TraceError:
                continue
