"""Options of the profiler that were on aren't advised, whatever the recording lacks."""

import pytest

from kinetoscope_tb.advice.advice import advice
from kinetoscope_tb.advice.facts import Facts
from kinetoscope_tb.measures.recording.options import was_on
from kinetoscope_tb.views import EVERY_VIEW, VIEWS
from support.build import TraceBuilder
from support.machine import MS, P100, Machine

OPTIONS = {"record_shapes": 1, "with_stack": 1, "profile_memory": 1}
ADVISED = ("record_shapes=True", "with_stack=True", "profile_memory=True")


def trace_of(*, has_shapes, **top):
    """Kernels of a matmul without shapes, with an addition that has some, or none."""
    machine = Machine(P100, **top)

    def step(_):
        for _ in range(5):
            machine.kernel(2 * MS)
        machine.kernel(MS, op="aten::add", **({"shapes": [[8, 8]], "types": ["float"]} if has_shapes else {}))

    return machine.steps(step)


@pytest.mark.parametrize(("has_shapes", "top"), [(True, {}), (False, OPTIONS), (False, {"record_shapes": 1})])
def test_shapes_that_were_recorded_are_not_advised(has_shapes, top):
    trace = trace_of(has_shapes=has_shapes, **top)
    assert was_on(trace, "record_shapes")
    rows = advice(Facts(trace))
    assert not [row for row in rows if "record_shapes=True" in f"{row.evidence} {row.action}"]
    assert "the recording has no shapes of its inputs, though record_shapes was on" in rows[-1].evidence
    assert "record_shapes=True" not in "".join(filter(None, VIEWS["operator_efficiency"].run(trace)["why_unknown"]))


def test_shapes_that_were_not_recorded_are_advised():
    trace = trace_of(has_shapes=False)
    assert not was_on(trace, "record_shapes")
    assert "record_shapes=True" in "".join(filter(None, VIEWS["operator_efficiency"].run(trace)["why_unknown"]))


@pytest.mark.parametrize("option", OPTIONS)
def test_no_view_advises_an_option_that_was_on(option):
    trace = TraceBuilder(**{option: 1}).op("aten::mm", 0, 100).build()
    hints = {view.id: view.hint_for(trace) for view in EVERY_VIEW.values() if view.option == option}
    assert hints
    assert not [view for view, hint in hints.items() if f"{option}=True" in hint]
    assert all(hint.endswith(f", though {option} was on.") for hint in hints.values())


def test_views_advise_an_option_that_was_off():
    trace = TraceBuilder().op("aten::mm", 0, 100).build()
    advised = [view for view in EVERY_VIEW.values() if view.option]
    assert all(f"{view.option}=True" in view.hint_for(trace) for view in advised)
    mentioned = [view for view in EVERY_VIEW.values() if any(option in view.hint for option in ADVISED)]
    assert {view.id for view in mentioned} == {view.id for view in advised}


def test_inputs_without_a_tensor_are_not_inputs_without_shapes():
    machine = Machine(P100)
    machine.steps(lambda _: machine.kernel(2 * MS, op="aten::add", shapes=[[], []], types=["Scalar", "Scalar"]))
    reasons = "".join(filter(None, VIEWS["operator_efficiency"].run(machine.builder.build())["why_unknown"]))
    assert "record_shapes" not in reasons


@pytest.mark.parametrize(("is_on", "words"), [(True, "Watch the process with py-spy"), (False, "Record Python stacks")])
def test_stacks_that_were_on_are_not_advised(is_on, words):
    builder = TraceBuilder(**({"with_stack": 1} if is_on else {}))
    for step in range(4):
        builder.step(step, step * 10 * MS, 10 * MS).op("aten::mm", step * 10 * MS, 5 * MS)
    row = next(row for row in advice(Facts(builder.build())) if row.rule == "unexplained_idle")
    assert row.action.startswith(words)
