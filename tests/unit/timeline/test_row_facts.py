"""What the calls behind a row of a view have in common."""

import pytest

from kinetoscope_tb.timeline.core.build import timeline
from kinetoscope_tb.timeline.details.row_facts import row_facts
from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder


def facts_of(trace, view, **key):
    drawn = timeline(trace)
    return row_facts(trace, drawn, VIEWS[view].events_of_row(trace, key), VIEWS.values())


def two_layers():
    """Two steps in which two instances of a module launch the same kernel from one line of the program."""
    built = TraceBuilder()
    for step in range(2):
        at, wide = step * 1000, 8 * (step + 1)
        built.step(step + 1, at, 900).python("model.py(12): forward", at, 900)
        for layer in range(2):
            start, number = at + 100 + 300 * layer, 10 * step + layer + 1
            built.module(f"Block_{layer}", start, 200)
            built.op("aten::mm", start + 10, 100, **{"Input Dims": [[wide, 8], [], []], "Input type": ["float", ""]})
            built.launch(start + 20, 5, number)
            built.kernel("gemm", start + 50, 10 * number, number, grid=[4, 1, 1], block=[128, 1, 1])
    return built.build()


def test_calls_are_merged_over_instances_and_lines():
    facts = facts_of(two_layers(), "kernels", name="gemm")
    origins = {(one["kind"], one["text"]): one for one in facts["origins"]}
    assert origins["operator", "aten::mm"]["calls"] == 4
    assert origins["operator", "aten::mm"]["row"] == {"view": "operators", "title": "Operators", "filter": "aten::mm"}
    assert origins["module", "Block"]["instances"] == 2
    assert origins["module", "Block"]["row"]["view"] == "modules_by_class"
    line = origins["line", "model.py(12): forward"]
    assert (line["calls"], line["stack"].splitlines()[-1]) == (4, "model.py(12): forward")
    assert [one["text"] for one in facts["inputs"] if one["kind"] == "input"] == ["[16, 8] fp32", "[8, 8] fp32"]


@pytest.mark.parametrize(("recorded", "shown"), [({}, ""), ({"registers per thread": 32}, ", 32 registers")])
def test_registers_are_shown_only_where_they_are_recorded(recorded, shown):
    built = TraceBuilder().kernel("attn_fwd", 0, 10, grid=[2, 8, 1], block=[256, 1, 1], **recorded)
    (launch,) = facts_of(built.build(), "kernels", name="attn_fwd")["inputs"]
    assert launch["text"] == f"[2, 8, 1] × [256, 1, 1]{shown}"


def test_the_parts_add_up_to_the_calls():
    facts = facts_of(two_layers(), "kernels", name="gemm")
    total = facts["durations"]["total_ns"]
    assert total == 10 + 20 + 110 + 120
    assert facts["slowest"]["dur_ns"] == 120
    assert sum(step["total_ns"] for step in facts["steps"]) == total
    for kind in ("operator", "module", "line"):
        assert sum(one["total_ns"] for one in facts["origins"] if one["kind"] == kind) == total


def test_the_operator_of_a_host_event_is_the_one_around_it():
    built = TraceBuilder().op("aten::linear", 0, 100).op("aten::mm", 10, 50)
    facts = facts_of(built.build(), "operators", name="aten::mm")
    assert [one["text"] for one in facts["origins"]] == ["aten::linear"]
    assert facts_of(built.build(), "operators", name="aten::linear")["origins"] == []


def test_a_row_without_slices_has_no_facts():
    facts = facts_of(TraceBuilder().op("aten::mm", 0, 50).build(), "operators", name="aten::nothing")
    assert facts == {"durations": None, "slowest": None, "origins": [], "inputs": [], "steps": [], "roof": None}
