"""Which run and which recording is the newest."""

import os
from datetime import datetime, timezone

import pytest

from kinetoscope_tb.discovery import list_path
from kinetoscope_tb.discovery.recency import moment_in
from support.build import TraceBuilder


@pytest.mark.parametrize(
    ("name", "moment"),
    [
        ("run-20261123", (2026, 11, 23)),
        ("exp/2026-11-23/14-05-09", (2026, 11, 23, 14, 5, 9)),
        ("20261123-140509-lr3e-4", (2026, 11, 23, 14, 5, 9)),
        ("2026_11_23_14h05_bert", (2026, 11, 23, 14, 5)),
        ("v20261123140509", (2026, 11, 23, 14, 5, 9)),
        ("20261101-sweep/20261123", (2026, 11, 23)),
    ],
)
def test_a_date_in_a_name_is_a_moment(name, moment):
    assert moment_in(name) == datetime(*moment, tzinfo=timezone.utc).timestamp() * 1e9


@pytest.mark.parametrize("digits", [10, 13, 16, 19])
def test_a_time_since_1970_is_one_in_any_unit(digits):
    assert moment_in("1795646341655698507"[:digits]) == int("1795646341655698507"[:digits].ljust(19, "0"))


@pytest.mark.parametrize("name", ["baseline", "step-100", "20261399", "version_2026", "rank0"])
def test_other_numbers_are_no_moment(name):
    assert moment_in(name) == 0


def put(folder, name, modified, started_ns=0):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    own = {"kinetoscope": {"started_ns": started_ns}} if started_ns else {}
    path.write_text(TraceBuilder(**own).step(1, 0, 1000).text())
    os.utime(path, ns=(modified * 10**9, modified * 10**9))


def newest(folder, **requested):
    file, choices = list_path(str(folder)).newest(**{"run": None, "worker": None, "span": None, **requested})
    return (file.run, file.worker, file.span), choices


def test_dates_in_names_come_before_what_copying_changes(tmp_path):
    for day, modified in ((21, 3), (23, 1), (22, 2)):
        put(tmp_path, f"run-202611{day}/rank0.9.pt.trace.json", modified, started_ns=1795646341655698507)
    place, choices = newest(tmp_path)
    assert place == ("run-20261123", "rank0", "9")
    assert choices == {"run": ["run-20261123", "run-20261122", "run-20261121"]}


def test_the_recorders_clock_comes_before_the_files_time(tmp_path):
    put(tmp_path, "b/rank0.9.pt.trace.json", 1, started_ns=1795646341655698508)
    put(tmp_path, "a/rank0.9.pt.trace.json", 2, started_ns=1795646341655698507)
    assert newest(tmp_path)[0] == ("b", "rank0", "9")


def test_else_the_files_time_decides_and_then_the_natural_order(tmp_path):
    for run, modified in (("a", 5), ("b", 9), ("c", 7)):
        put(tmp_path, f"{run}/rank0.9.pt.trace.json", modified)
    assert newest(tmp_path)[0][0] == "b"
    for run in ("run2", "run10"):
        put(tmp_path, f"{run}/rank0.9.pt.trace.json", 11)
    assert newest(tmp_path)[0][0] == "run10"


def test_of_a_worker_the_latest_step_is_the_newest_and_rank_0_the_first(tmp_path):
    for rank in (10, 0, 2):
        for step, modified in ((9, 3), (100, 2), (20, 1)):
            put(tmp_path, f"job/rank{rank}.{step}.pt.trace.json", modified)
    place, choices = newest(tmp_path)
    assert place == ("job", "rank0", "100")
    assert choices == {"worker": ["rank0", "rank2", "rank10"], "span": ["100", "20", "9"]}
    assert newest(tmp_path, worker="rank2", span="20")[0] == ("job", "rank2", "20")


def test_times_as_spans_are_in_their_order(tmp_path):
    for time in ("1700000000000", "1795646341655698507", "1690000000000000000"):
        put(tmp_path, f"job/host_42.{time}.pt.trace.json", 1)
    assert newest(tmp_path)[0][2] == "1795646341655698507"
