"""Damaged dumps of the flight recorder: a verdict or an error of ours, and sentences that can be printed.

A case is a folder, of which about three dumps are damaged.
"""

import json
import pickle
import random
from contextlib import suppress

import pytest

from kinetoscope_tb.distributed.hangs.evidence import evidence, rows
from kinetoscope_tb.distributed.hangs.sentences import sentence
from kinetoscope_tb.distributed.hangs.verdict import verdict
from kinetoscope_tb.errors import KinetoscopeError
from kinetoscope_tb.names.text import visible
from kinetoscope_tb.reader.flight_recorder.files import read_dump, read_folder
from kinetoscope_tb.reader.flight_recorder.schema import DumpError
from support.flight_recorder import LAYOUTS, Simulation, stopped
from support.fuzzing import case_numbers, damaged, named, odd_json, with_odd_value
from support.pickles import hostile

GROUPS = 2
WHOLE = [
    Simulation(layout.groups, stopped(layout, 1, 6), backend).run()
    for layout in LAYOUTS
    for backend in ("nccl", "gloo")
]


def put(folder, job, numbers):
    """The dumps of a job, some of them damaged."""
    for rank in job.devices:
        is_text = numbers.random() < 0.5
        value, how = job.dump(rank, text=is_text, ring=numbers.choice((3, 2000))), numbers.random()
        data = json.dumps(value).encode() if is_text else pickle.dumps(value, 2)
        if how < 0.4:
            odd = with_odd_value(with_odd_value(value, numbers), numbers)
            data = odd_json(json.loads(json.dumps(value)), numbers) if is_text else pickle.dumps(odd, 2)
        elif how < 0.6:
            data = damaged(data, numbers)
        (folder / f"nccl_trace_rank_{rank}").write_bytes(data)


@pytest.mark.parametrize("group", range(GROUPS))
def test_damage_never_breaks_the_verdict(group, tmp_path):
    for case in case_numbers(group, GROUPS, 0.3, files=3):
        numbers = random.Random(case)
        folder = tmp_path / str(case)
        folder.mkdir()
        put(folder, numbers.choice(WHOLE), numbers)
        with named(case), suppress(KinetoscopeError):
            answer = verdict(read_folder(str(folder)))
            for text in (sentence(answer), *evidence(answer), *(row.open for row in rows(answer))):
                assert visible(text).encode()


def test_hostile_pickles_are_problems_of_their_files(tmp_path):
    path = tmp_path / "nccl_trace_rank_0"
    for name, data in hostile().items():
        path.write_bytes(data[:2] + b"\x8c\x07version0" + data[2:])
        with named(name), suppress(DumpError):
            assert read_dump(str(path), 0) is None
