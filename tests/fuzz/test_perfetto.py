"""Perfetto traces with random damage: each gives a Trace with diagnostics or a TraceError, for any size of blocks."""

import functools
import gzip
import random

import pytest

from kinetoscope_tb.errors import TraceError
from kinetoscope_tb.reader import read, read_blocks
from kinetoscope_tb.trace.model import COLLECTED
from support.fuzzing import case_numbers, named
from support.perfetto import foreign, training

GROUPS = 20
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


def outcome(data, size):
    try:
        trace = read_blocks((data[i : i + size] for i in range(0, len(data), size)), path="damaged.pftrace")
    except TraceError as error:
        return str(error)
    return trace.meta, trace.diagnostics, [getattr(trace, name) for name in COLLECTED]


def assert_same(one, other):
    if isinstance(one, str) or isinstance(other, str):
        assert one == other
        return
    assert one[:2] == other[:2]
    assert all(a.equals(b) for a, b in zip(one[2], other[2], strict=True))


@pytest.mark.parametrize("group", range(GROUPS))
def test_damaged_traces_are_read_or_refused(group):
    for case in case_numbers(group, GROUPS):
        numbers = random.Random(case)
        data = damaged(numbers.choice(originals()), numbers)
        with named(case):
            whole = outcome(data, 1 << 20)
            if case % 4 == 0 and data[:1] == b"\n":
                assert_same(whole, outcome(data, numbers.choice((400, 3000, 9000))))


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
