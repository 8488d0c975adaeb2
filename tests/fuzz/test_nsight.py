"""Nsight Systems' exports with random damage: each gives a Trace with diagnostics or a TraceError."""

import random

import pytest

from kinetoscope_tb.errors import TraceError
from kinetoscope_tb.reader import read
from kinetoscope_tb.reader.event import EventTexts
from kinetoscope_tb.views import VIEWS
from support.fuzzing import case_numbers, damaged, named
from support.nsight import connected, export_json
from support.perfetto import training

GROUPS = 10
TABLES = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS", "StringIds", "GPU_METRICS")
TABLES += ("TARGET_INFO_GPU_METRICS",)
CELLS = (
    "NULL",
    "-1",
    "1e300",
    "'text'",
    "x'ff00'",
    "9223372036854775807",
    "-9223372036854775808",
    "4611686018427387904",
)


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    return export_json(tmp_path_factory.mktemp("nsight") / "whole.sqlite", training(2, 60).chrome())


def read_or_refused(path):
    try:
        trace = read(path)
    except TraceError:
        return
    for name in ("steps", "kernels", "operators", "health", "gpu_counters"):
        if not VIEWS[name].is_missing(trace):
            VIEWS[name].run(trace)


@pytest.mark.parametrize("group", range(GROUPS))
def test_damaged_files_are_read_or_refused(group, export, tmp_path):
    whole = export.read_bytes()
    for case in case_numbers(group, GROUPS, share=0.2):
        numbers = random.Random(case)
        data = bytearray(whole) if case % 2 else bytearray(damaged(whole, numbers))
        for _ in range(numbers.choice((1, 3, 30)) if case % 2 else 0):
            data[numbers.randrange(16, len(data))] ^= 1 << numbers.randrange(8)
        path = tmp_path / "rank0.sqlite"
        path.write_bytes(data)
        with named(case):
            read_or_refused(path)


@pytest.mark.parametrize("group", range(GROUPS))
def test_odd_cells_are_read_or_refused(group, export, tmp_path):
    for case in case_numbers(group, GROUPS, share=0.1):
        numbers = random.Random(case)
        path = tmp_path / f"rank{case}.sqlite"
        path.write_bytes(export.read_bytes())
        with connected(path) as db:
            db.execute("PRAGMA writable_schema = ON")
            db.execute("UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '')")
        with connected(path) as db:
            for _ in range(3):
                table = numbers.choice(TABLES)
                columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})") if not row[5]]
                where = f"rowid % {numbers.choice((1, 3, 50))} = 0"
                db.execute(f'UPDATE {table} SET "{numbers.choice(columns)}" = {numbers.choice(CELLS)} WHERE {where}')
        with named(case):
            read_or_refused(path)
            trace = read(path)
            if trace.launches.height:
                EventTexts().event(str(path), None, int(trace.launches["offset"][-1]), 1)
        path.unlink()
