"""The same quantity is the same in every answer that gives it: real traces, samples, and graphs of any form.

`support/identities.py` lists the quantities. By default it is held on one recording of each kind; `make fuzz`, or
KINETOSCOPE_FUZZ_CASES in the environment, holds it on all.
"""

import json
import os
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kinetoscope_tb
from kinetoscope_tb.cli import main as kinetoscope
from kinetoscope_tb.errors import LogdirError, TraceError
from kinetoscope_tb.reader import read
from kinetoscope_tb.table import DURATION, FRACTION
from kinetoscope_tb.views import EVERY_VIEW, VIEWS
from support.fuzzing import IS_WHOLE
from support.graphs import DIALECTS, WORKS, GraphRecording, joined
from support.identities import ALONE, QUANTITIES, RATIOS, STATISTICS, Answers, differences
from support.read_once import shared_readings  # noqa: F401  a fixture
from support.real_traces import FOLDER, MISSING
from support.strategies import builders

SAMPLES = Path(__file__).parents[2] / "samples"
KINDS = ("traces/runs", "traces/single", "traces/claims", "inference", "labelled", "causes", "torch-2.15")
NO_TRACES = (".truth.json", ".execution_trace.json.gz", ".memory_timeline.json.gz", ".memory_timeline.raw.json.gz")
CHOSEN = (  # one of each kind: writers, devices, ranks, graphs, servers, waits, several GPUs, stacks, no device
    "cuspy_graphs.json.gz",
    "cuspy_eager.json.gz",
    "hta_event_sync_trace.json.gz",
    "tracelens_vllm_decode_graph_execution.json.gz",
    "sglang_MI300_qwen3_30b_TP-0-DECODE.trace.json.gz",
    "12_naive_pipeline_two_gpus_alternate.pt.trace.json.gz",
    "18_loader_partly_hidden_first_step_not_warm_up.pt.trace.json.gz",
    "sampled_rank-1.json.gz",
    "gemm_01_compute_few_tiles.json.gz",
    "kineto_gpu_metrics_input.json",
    "tracelens_mi300_bert-small.json.gz",
    "sglang_Qwen3-8B_prefilldecode.json.gz",
    "rank1.7.pt.trace.json.gz",
    "rank0.6.pt.trace.json.gz",
)


def traces() -> list[Path]:
    """The files to read."""
    real = [path for kind in KINDS for path in (FOLDER.parent / kind).rglob("*.json*")]
    real = [path for path in real if not path.name.endswith(NO_TRACES) and path.name != "execution_details.json"]
    every = sorted([*real, *SAMPLES.rglob("*.pt.trace.json.gz")])
    return every if IS_WHOLE else [path for path in every if path.name in CHOSEN]


def test_the_chosen_traces_are_there():
    if not FOLDER.exists() and not os.environ.get("CI"):
        pytest.skip(MISSING)
    assert {path.name for path in traces()} >= set(CHOSEN)


def hold(answers):
    """Fail where sources of a quantity differ, or a share isn't that of its parts."""
    wrong = {quantity.name: found for quantity in QUANTITIES if (found := differences(quantity, answers))}
    assert not wrong
    assert not {ratio.name: errors.rows() for ratio in RATIOS if (errors := ratio.errors(answers)).height}


@pytest.mark.parametrize("path", traces(), ids=lambda path: "-".join(path.parts[-2:]))
def test_every_answer_about_a_trace_says_the_same(path):
    try:
        trace = kinetoscope_tb.open(str(path))._trace
    except (LogdirError, TraceError):
        return  # a file of another kind: a list of names, a side-car
    hold(Answers(trace))


@settings(max_examples=200 if IS_WHOLE else 10, deadline=None)
@given(builders())
def test_every_answer_about_any_trace_says_the_same(builder):
    hold(Answers(builder.build()))


@settings(max_examples=100 if IS_WHOLE else 5, deadline=None)
@given(st.sampled_from(DIALECTS), st.lists(WORKS, min_size=1, max_size=3), st.integers(1, 3), st.booleans())
def test_every_answer_about_replayed_graphs_says_the_same(dialect, works, replays, is_eager_too):
    recording = GraphRecording(dialect)
    for work in works:
        recording.captured(work)
        if is_eager_too:
            recording.eager(work)
    for _ in range(replays):
        for number, work in enumerate(works, 1):
            recording.replayed(work, number)
    hold(Answers(joined(recording.builder.build())))


def test_every_column_of_time_is_in_the_list_of_quantities_or_says_why_not():
    known = {name for quantity in QUANTITIES for source in quantity.sources for name in source.columns}
    known |= {ratio.name for ratio in RATIOS}
    alone = {name for names in ALONE for name in names.split()}
    columns = {
        f"{view}.{column.name}"
        for view, shown in EVERY_VIEW.items()
        for column in shown.table.columns
        if column.kind in (DURATION, FRACTION) and not any(part in column.name for part in STATISTICS)
    }
    assert columns - known - alone == set(), "list each in QUANTITIES or RATIOS with another source, or in ALONE"
    assert alone - columns == set(), "no view has these columns of ALONE"
    assert alone & known == set(), "these columns of ALONE are in a quantity"


@pytest.mark.usefixtures("shared_readings")
def test_the_command_line_and_the_api_answer_as_the_views_do(capsys):
    path = next(SAMPLES.rglob("rank0.6.pt.trace.json.gz"))
    answers, profile = Answers(read(path)), kinetoscope_tb.open(str(path))
    for name, view in VIEWS.items():
        if view.is_missing(answers.trace):
            continue
        table = answers.table(name)
        assert profile.view(name).equals(table), name
        with pytest.raises(SystemExit):
            kinetoscope(["view", name, str(path), "--format", "json"])
        assert json.loads(capsys.readouterr().out)["data"] == json.loads(json.dumps(table.to_dict(as_series=False)))
        if view.comparable_columns:
            compared = profile.compare(profile, name)
            deltas = [column for column in compared.columns if column.startswith("delta_")]
            assert not compared.select(pl.any_horizontal(pl.col(deltas) != 0).any()).item(), name
