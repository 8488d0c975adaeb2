"""Damaged last minutes of a rank: steps and samples of valid values, or none."""

import functools
import operator
import random
import struct

import pytest

from kinetoscope.output.ring import _SALT, last_minutes, ring_file
from kinetoscope_tb.distributed.last_minutes import minutes_rows
from support.fuzzing import case_numbers, damaged, named

GROUPS = 2


def record(number, kind, values):
    rest = (number * 16 + kind, *values)
    return struct.pack("<qqqqq", functools.reduce(operator.xor, rest, _SALT), *rest)


@pytest.mark.parametrize("group", range(GROUPS))
def test_damage_costs_the_records_alone(group, tmp_path):
    file = ring_file(tmp_path, 0).path
    file.parent.mkdir()
    for case in case_numbers(group, GROUPS):
        numbers = random.Random(case)
        values = [[numbers.choice([0, 5, -1, 2**63 - 1, -(2**63)]) for _ in range(3)] for _ in range(20)]
        data = b"".join(record(at, numbers.randrange(5), three) for at, three in enumerate(values))
        file.write_bytes(damaged(data, numbers) if numbers.random() < 0.5 else data)
        with named(case):
            minutes = last_minutes(tmp_path, 0)
            assert all(value >= 0 for step in minutes.steps for value in step)
            minutes_rows({0: minutes})
