"""Memory snapshots with random damage: each gives a Trace with findings or a TraceError, and its views answer."""

import gzip
import pickle
import random
from pathlib import Path

import pytest

from kinetoscope_tb.errors import TraceError
from kinetoscope_tb.reader import read_blocks
from kinetoscope_tb.reader.pickles.machine import PickleError
from kinetoscope_tb.reader.pickles.plain import plain_value
from kinetoscope_tb.views import VIEWS
from support.fuzzing import case_numbers, damaged, named
from support.opcodes import opcodes, with_other_opcodes
from support.snapshots import small_snapshot

GROUPS = 10
REAL = [
    Path(__file__).parents[2] / "samples" / "h100_snapshots" / f"{name}.pickle.gz"
    for name in ("expandable", "private_pool", "limit")
]
NAMES = [name for name in VIEWS if name.startswith("snapshot_")]
OPCODES = b"().0123NKMJXGRTabcehjqrstu}]\x80\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x93\x94\x95"


@pytest.fixture(scope="module")
def files():
    """The simulated one in each protocol, as torch 1.12 wrote it, and real ones of an H100."""
    snapshot = small_snapshot()
    simulated = [snapshot.dumped(protocol) for protocol in (2, 4, 5)]
    return [
        *simulated,
        pickle.dumps(snapshot.snapshot()["segments"], 2),
        *(gzip.decompress(p.read_bytes()) for p in REAL),
    ]


@pytest.fixture(scope="module")
def codes(files):
    return [opcodes(data) for data in files]


def answer_or_refuse(data, numbers):
    cuts = sorted(numbers.choices(range(len(data) + 1), k=numbers.choice((0, 0, 1, 5))))
    blocks = [data[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    try:
        trace = read_blocks(blocks, path="snapshot.pickle")
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
            answer_or_refuse(bytes(data), numbers)


@pytest.mark.parametrize("group", range(GROUPS))
def test_snapshots_with_other_opcodes_are_read_or_refused(group, codes):
    for case in case_numbers(group, GROUPS, 0.3):
        numbers = random.Random(case)
        with named(case):
            answer_or_refuse(with_other_opcodes(numbers.choice(codes), numbers), numbers)


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
