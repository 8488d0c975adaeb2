"""Runs of jobs that left no trace are listed, too."""

import pytest

from kinetoscope_tb.discovery import Logdir, list_path, list_traces
from kinetoscope_tb.errors import LogdirError
from kinetoscope_tb.web import encode
from support.job_ends import write_dead_run

TRACE = '{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]}'


@pytest.fixture
def logdir(tmp_path):
    for run in ("run2", "run10", "deep/run"):
        write_dead_run(tmp_path / run)
    (tmp_path / "run2" / "rank0.5.pt.trace.json").write_text(TRACE)
    return tmp_path


def listed(path):
    return list_traces([Logdir(str(path))])


def test_a_job_without_a_trace_is_a_run_without_workers(logdir):
    listing = listed(logdir)
    assert (list(listing.runs), sorted(listing.jobs)) == (["run2"], ["deep/run", "run10"])
    runs = {run["name"]: len(run["workers"]) for run in encode.runs(listing)["runs"]}
    assert list(runs.items()) == [("deep/run", 0), ("run2", 1), ("run10", 0)]


def test_a_run_with_a_trace_is_the_newest_one_if_there_is_any(logdir):
    assert listed(logdir).newest_run == "run2"
    assert listed(logdir / "deep").newest_run == "run"
    assert listed(logdir / "run10").newest_run == "run10"


def test_commands_that_need_a_trace_say_who_knows_more(logdir):
    with pytest.raises(LogdirError, match="`kinetoscope why` says how its job ended"):
        list_path(str(logdir / "run10"))
