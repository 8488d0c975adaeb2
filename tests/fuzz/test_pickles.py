"""Pickles with other opcodes: each is refused, or is the value that Python's own unpickler reads."""

import pickle
import random
from contextlib import suppress

import pytest

from kinetoscope_tb.reader.pickles.machine import PickleError
from kinetoscope_tb.reader.pickles.plain import plain_value
from support.fuzzing import case_numbers, named
from support.opcodes import is_same, opcodes, random_opcode, unpickled, with_other_opcodes
from support.pickles import PROTOCOLS, typed_lists

GROUPS = 10
SHARED = ["a", 1.5, (1, 2), (1, 2)]
VALUES = [
    {
        "segments": [{"size": 2**33, "frames": [SHARED, SHARED]}],
        "pool": (0, 0),
        "none": None,
        "on": True,
        "text": "é" * 300,
    },
    [[n, -n, (n, str(n)), {n: [SHARED]}] for n in range(8)],
    {(1, 2): {}, "empty": [(), [], {}], "wide": [2**63, 2**64 - 1, -(2**63), 2**40]},
]


def expect_the_same(data):
    with suppress(PickleError):
        value = plain_value(data)
        with suppress(UnicodeDecodeError):  # bytes that aren't UTF-8 are replaced here
            assert is_same(value, unpickled(data), set())


@pytest.fixture(scope="module")
def pickles():
    whole = [pickle.dumps(value, protocol) for value in VALUES for protocol in PROTOCOLS]
    return [opcodes(data) for data in (*whole, typed_lists({"sizes": [1, 2], "more": [-5]}))]


@pytest.mark.parametrize("group", range(GROUPS))
def test_what_is_read_of_other_opcodes_is_what_python_reads(group, pickles):
    for case in case_numbers(group, GROUPS):
        numbers = random.Random(case)
        with named(case):
            expect_the_same(with_other_opcodes(numbers.choice(pickles), numbers))


@pytest.mark.parametrize("group", range(GROUPS))
def test_what_is_read_of_random_opcodes_is_what_python_reads(group):
    for case in case_numbers(group, GROUPS):
        numbers = random.Random(case)
        body = b"".join(random_opcode(numbers) for _ in range(numbers.choice((3, 10, 40))))
        with named(case):
            expect_the_same(b"\x80\x04]" + body + b".")
