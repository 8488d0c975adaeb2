"""First answers about recordings of an H100, whose causes and costs without a profiler are known (`samples/h100_causes`)."""

import json
from functools import cache
from pathlib import Path

import pytest

from kinetoscope_tb.advice.trace_advice import trace_advice
from kinetoscope_tb.diagnostics.diagnose import diagnose
from kinetoscope_tb.measures.recording.usual_step import usual_step
from kinetoscope_tb.reader import read

FOLDER = Path(__file__).parents[2] / "samples" / "h100_causes"
MEASURED = {row["recording"]: row for row in json.loads((FOLDER / "measured.json").read_text())}
CAUSES = {
    "suppression": ("launch_bound", "suppress"),
    "noise": ("host_bound", "add_noise"),
    "checkpoints": ("longer_host_steps", "save_checkpoint"),
    "checkpoints_without_stacks": ("longer_host_steps", None),
    "loading": ("data_loading", "spin"),
}
NEAR = 1.6  # times as long: steps of a small training vary by a third from one minute to the next


@cache
def given(name):
    trace = read(FOLDER / f"{name}.pt.trace.json.gz")
    return trace, trace_advice(trace, diagnose)


@pytest.mark.parametrize("name", CAUSES)
def test_the_first_answer_names_the_cause_and_the_function(name):
    rule, function = CAUSES[name]
    claim = given(name)[1].advice[0]
    assert claim.rule == rule
    assert function is None or str(claim.culprit.function).endswith(f" {function}")


@pytest.mark.parametrize("name", CAUSES)
def test_a_saving_is_a_bound_of_what_was_measured(name):
    measured, (_, found) = MEASURED[name], given(name)
    share = (found.advice[0].saving_ns or 0) / found.step_ns
    assert share >= 0.5 * (1 - measured["without_ms"] / measured["with_ms"])


def test_a_host_that_only_the_profiler_slows_is_said_to_cost_little():
    _, found = given("healthy")
    of_host = [claim for claim in found.advice if claim.rule in ("host_bound", "launch_bound", "synchronizing")]
    assert all((claim.saving_ns or 0) < 0.15 * found.step_ns for claim in of_host)


@pytest.mark.parametrize("name", MEASURED)
def test_a_step_without_the_profiler_takes_what_the_recorder_timed(name):
    trace, found = given(name)
    usual = usual_step(trace)
    expected_ms = (usual.mean_ns(found.step_ns) if usual else found.step_ns) / 1e6
    assert MEASURED[name]["with_ms"] / NEAR <= expected_ms <= MEASURED[name]["with_ms"] * NEAR
