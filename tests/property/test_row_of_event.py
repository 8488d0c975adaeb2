"""A view says both directions: the events behind a row lead back to it, whatever the trace."""

from pathlib import Path

import pytest
from hypothesis import given, settings

from kinetoscope_tb.reader import read
from support.graphs import DIALECTS, GraphRecording, Operator, joined
from support.rows import BOTH_WAYS, assert_events_lead_back
from support.strategies import builders

SAMPLES = sorted((Path(__file__).parents[2] / "samples").glob("*/*/*.pt.trace.json.gz"))


def assert_views_lead_back(trace):
    for view in BOTH_WAYS:
        if not view.is_missing(trace):
            assert_events_lead_back(view, trace)


@settings(max_examples=15)
@given(builders())
def test_the_events_behind_a_row_lead_back_to_it(builder):
    assert_views_lead_back(builder.build())


@pytest.mark.parametrize("path", SAMPLES[-2:], ids=lambda path: path.name)
def test_the_events_behind_a_row_of_a_sample_lead_back_to_it(path):
    assert_views_lead_back(read(path))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_work_that_a_graph_replays_leads_back_to_the_rows_of_its_capture(dialect):
    work = (Operator("aten::mm", (4, 4), 0, ("gemm",)), Operator("aten::add", (4,), 1, ("add1", "add2")))
    built = GraphRecording(dialect).captured(work).replayed(work, 1).replayed(work, 1).eager(work).builder.build()
    trace = joined(built)
    assert trace.replayed is not None
    assert_views_lead_back(trace)
