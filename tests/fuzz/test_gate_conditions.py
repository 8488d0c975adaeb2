"""Damaged notes of `gate record`: conditions or none, and sentences that can be printed."""

import json
import random

import pytest

from kinetoscope_tb.compare.gate.conditions import FILE_NAME, Conditions, conditions_of, problems
from kinetoscope_tb.names.text import visible
from support.fuzzing import case_numbers, damaged, named, odd_json

WHOLE = Conditions("base", 1, "python a.py", 5, 2.0, 1.5, 0.4, 3000.0, 1500.0, ("thermal slowdown",), 3)
GROUPS = 2


@pytest.mark.parametrize("group", range(GROUPS))
def test_damage_costs_the_note_alone(group, tmp_path):
    for case in case_numbers(group, GROUPS):
        numbers = random.Random(case)
        text = WHOLE.text()
        data = odd_json(json.loads(text), numbers) if numbers.random() < 0.7 else damaged(text.encode(), numbers)
        (tmp_path / FILE_NAME).write_bytes(data)
        with named(case):
            conditions = conditions_of(str(tmp_path / "rank0.1.pt.trace.json"))
            for sentence in problems([WHOLE, conditions])[1]:
                assert visible(sentence).encode()
