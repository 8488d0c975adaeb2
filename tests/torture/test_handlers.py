"""Signals that a program handles or ignores itself, profilers of its own, and what SIGKILL leaves of its markers."""

import gzip
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import kinetoscope_tb
from kinetoscope.journal.journal import header_of, journal_file
from kinetoscope.journal.recover import recover_journals
from support.processes import ENVIRON, steps_of, traces_in

ENDINGS = Path(__file__).with_name("endings.py")
TERM, KILL = -signal.SIGTERM, -signal.SIGKILL


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    """Where all the jobs recorded, and how each of them ended."""
    folder = tmp_path_factory.mktemp("endings")
    command = [sys.executable, str(ENDINGS), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRON, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout.splitlines()[-1])


# The window is steps 2 to 4. Each ending: exit status, and span → (steps, reason, whether it is complete).
EXPECTED = {
    "sigterm-unguarded": (TERM, {}),
    "sigterm-during-save": (TERM, {5: ([2, 3, 4], "schedule", True)}),
    "own-handler": (7, {4: ([2, 3], "sigterm", False)}),
    "leaving-handler": (9, {3: ([2, 3], "sigterm", False)}),
    "ignored": (0, {5: ([2, 3, 4], "schedule", True)}),
    "handler-in-front": (8, {4: ([2, 3], "sigterm", False)}),
    "own-profiler-warmup": (0, {8: ([6, 7], "schedule", True)}),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_what_was_recorded_is_saved_and_the_job_ends_as_it_would_have(jobs, name):
    folder, statuses = jobs
    status, spans = EXPECTED[name]
    traces = traces_in(folder / name)
    metadata = {span: trace["kinetoscope"] for span, trace in traces.items()}
    assert statuses[name] == status
    facts = {s: (steps_of(traces[s]), metadata[s]["reason"], metadata[s]["is_complete"]) for s in traces}
    assert facts == {("rank0", span): expected for span, expected in spans.items()}


def test_a_profiler_of_the_program_s_own_ends_the_window_instead_of_the_process(jobs):
    folder, statuses = jobs
    assert statuses["own-profiler"] == 0
    traces = traces_in(folder / "own-profiler")
    assert {span: trace["kinetoscope"]["reason"] for span, trace in traces.items()} == {
        ("rank0", 3): "another profiler",
        ("rank0", 10): "schedule",
    }
    assert [steps_of(traces["rank0", span]) for span in (3, 10)] == [[2, 3], [7, 8, 9]]
    inner = json.loads((folder / "inner.json").read_text())
    assert any(event["name"] == "aten::relu" for event in inner["traceEvents"])


def test_a_signal_asks_for_a_window(jobs):
    folder, statuses = jobs
    assert statuses["signal"] == 0
    (((_, span), trace),) = traces_in(folder / "signal").items()
    assert steps_of(trace) == [span - 3, span - 2, span - 1]
    assert (trace["kinetoscope"]["reason"], trace["kinetoscope"]["is_complete"]) == ("signal", True)


def test_a_slow_step_has_the_next_ones_recorded(jobs):
    folder, statuses = jobs
    assert statuses["slow-step"] == 0
    spans = traces_in(folder / "slow-step")
    assert all(trace["kinetoscope"]["reason"] == "slow_step" for trace in spans.values())
    assert 35 in {span for _, span in spans} or len(spans) == 1  # a busy machine may have made an earlier step slow
    assert spans


def test_what_sigkill_left_becomes_a_trace(jobs):
    folder, statuses = jobs
    run = folder / "sigkill"
    assert statuses["sigkill"] == KILL
    assert header_of(journal_file(run, 0))["run"] == "sigkill"
    before = set(run.glob("*.gz"))  # the window that was complete is there
    (result,) = recover_journals(run)
    assert result.problem == ""
    assert set(run.glob("*.gz")) == {*before, result.trace}
    trace = json.loads(gzip.decompress(result.trace.read_bytes()))
    assert steps_of(trace) == []  # the window has the last ones
    assert trace["kinetoscope"]["open_markers"] == ["checkpoint", "upload"]
    events = [(event["ph"], event["name"]) for event in trace["traceEvents"]]
    assert events.count(("X", "épreuve")) == 1
    error_log = [event["args"]["loss"] for event in trace["traceEvents"] if event["name"] == "loss"]
    assert error_log == [5]
    assert kinetoscope_tb.open(result.trace).steps["step"].to_list() == ["all"]
    assert recover_journals(run) == []
