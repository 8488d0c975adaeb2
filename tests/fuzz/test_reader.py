"""Real traces with random damage: each gives a Trace with findings or a TraceError, the same for any size of blocks."""

import functools
import gzip
import random

import pytest

from support.build import TraceBuilder
from support.fuzzing import assert_same_outcome, case_numbers, damaged, named, outcome

GROUPS = 20
PATH = "damaged.json"
REAL = (
    "single/hta_backward_thread.json",
    "single/hta_event_sync_trace.json.gz",
    "single/kineto_h100_before_fix_trace.json",
    "single/hta_triton_example.json.gz",
)
CRAFTED = (
    b'{"ph":[',
    b'{"ph":[1,',
    b'{"ph":aaaa',
    b'{"ph":"X" {',
    b'{"ph":"X","a":{"b":{,',
    b'{"ph":"X"},{"ph" 1},',
    b'{"ph":"X","name":"a"b"},',
    b'{"ph":"X","name":"\\"',
    b'{"ph":"X",,,,',
    b'{"ph":["a", ',
    b"{},",
    b"]},",
    b"\0\0\0\0",
    b'"",',
)


@functools.cache
def texts(folder):
    built = TraceBuilder(deviceProperties=[{"id": 0}])
    for i in range(6):
        at = 1000 * i
        built.step(i, at, 900).op(
            'a "quoted" op', at + 10, 300, **{"Input Dims": [[2, 3], []], "Input type": ["float", ""]}
        )
        built.launch(at + 50, 20, i + 1).kernel(
            "gemm", at + 100, 200, i + 1, grid=[1, 1, 1], occupancy={"limitingFactors": "REGS"}
        )
        built.memory(512, at + 60).python("C:\\train.py(1): step", at, 800)
    real = [(folder / name).read_bytes() for name in REAL]
    return [built.text().encode(), *(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data for data in real)]


@pytest.mark.parametrize("group", range(GROUPS))
def test_damaged_traces_are_read_or_refused(group, traces):
    for case in case_numbers(group, GROUPS):
        numbers = random.Random(case)
        data = damaged(numbers.choice(texts(traces)), numbers)
        with named(case):
            whole = outcome(data, 1 << 20, PATH)
            if case % 4 == 0:
                assert_same_outcome(data, PATH, whole, numbers.choice((40, 300, 5000)))


@pytest.mark.parametrize("piece", CRAFTED)
def test_crafted_texts_cost_no_more_than_their_length(piece):
    start = b'{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":2},'
    whole = outcome(start + piece * (200_000 // len(piece)), 1 << 14, PATH)
    assert isinstance(whole, str) or whole[0].events
