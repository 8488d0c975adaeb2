"""The terms of a difference: which work is whose, and that they add up."""

import pytest

from kinetoscope_tb.compare.step_difference import step_difference
from kinetoscope_tb.errors import BadParameter
from support.build import TraceBuilder

SHAPES = [[64, 64], [64, 64]]


def step(kernels, communication=0):
    """One step: kernels (operator, name, duration, shapes) one after the other, then a collective."""
    trace, at = TraceBuilder().step(1, 0, 10_000), 100
    for number, (operator, name, dur, shapes) in enumerate(kernels, 1):
        if operator:
            trace.op(operator, at - 90, 80, **{"Input Dims": shapes, "Input type": ["float"] * len(shapes)})
        trace.launch(at - 80, 10, number).kernel(name, at, dur, number)
        at += max(dur, 100) + 100
    if communication:
        trace.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", at, communication, 99)
    return trace.build()


def terms(difference):
    columns = ("kind", "base_work", "new_work", "delta_ns")
    return {(kind, base, new): delta for kind, base, new, delta in difference.frame.select(columns).iter_rows()}


MM, ADD = ("aten::mm", "sgemm", 400, SHAPES), ("aten::add", "add_kernel", 200, SHAPES)
GELU = ("aten::gelu", "gelu_kernel", 300, [[64, 64]])


def test_the_same_work_by_another_kernel_is_one_term():
    difference = step_difference(step([MM, ADD]), step([("aten::mm", "Cijk_Ailk_Bljk", 700, SHAPES), ADD]))
    assert terms(difference)["same work", "aten::mm", "aten::mm"] == 300
    assert difference.matched_frac == (1.0, 1.0)
    assert difference.frame["base_ns"].sum() == difference.base.length_ns
    assert difference.frame["new_ns"].sum() == difference.new.length_ns


def test_work_that_one_side_has_alone():
    difference = step_difference(step([MM, ADD, GELU]), step([MM, GELU]))
    assert terms(difference)["only in base", "aten::add", ""] == -200
    assert terms(difference)["same work", "aten::gelu", "aten::gelu"] == 0


def test_fused_work_is_the_same_work():
    base = step([MM, ADD, GELU, MM])
    new = step([MM, ("triton_poi_fused_add_gelu_0", "triton_poi_fused_add_gelu_0", 350, SHAPES), MM])
    found = terms(step_difference(base, new))
    assert found["same work", "aten::add + aten::gelu", "triton_poi_fused_add_gelu_0"] == -150


def test_what_the_compiler_says_it_fused_decides_between_neighbors():
    base = step([MM, ADD, GELU, MM])
    of_add, of_gelu = "triton_poi_fused_add_0", "triton_poi_fused_gelu_1"
    new = step([MM, ("", of_add, 300, []), ("", of_gelu, 200, []), MM])
    found = terms(step_difference(base, new))
    assert found["same work", "aten::add", of_add] == 100
    assert found["same work", "aten::gelu", of_gelu] == -100
    swapped = terms(step_difference(base, step([MM, ("", of_gelu, 300, []), MM])))
    assert swapped["same work", "aten::gelu", of_gelu] == 0
    assert swapped["only in base", "aten::add", ""] == -200


def test_exposed_communication_is_a_term_of_its_own():
    difference = step_difference(step([MM], communication=500), step([MM], communication=900))
    assert terms(difference)["exposed communication", "all_reduce", "all_reduce"] == 400
    assert "of which" in difference.headline


def test_equal_steps_have_no_terms_that_differ():
    difference = step_difference(step([MM, ADD]), step([MM, ADD]))
    assert set(difference.frame["delta_ns"]) == {0}
    assert difference.headline.endswith(", 0 %.")


def test_a_larger_batch_is_the_same_work():
    base = [("aten::mm", "sgemm", 400, [[64, 32], [32, 32]]), ADD, GELU]
    new = [("aten::mm", "sgemm", 900, [[256, 32], [32, 32]]), ("aten::add", "add_kernel", 800, [[256, 64], [256, 64]])]
    difference = step_difference(step(base), step([*new, ("aten::gelu", "gelu_kernel", 1200, [[256, 64]])]))
    assert difference.matched_frac == (1.0, 1.0)
    assert difference.coverage.endswith("Sizes are 4 times those of the base.")


@pytest.mark.parametrize("sides", [([], [MM]), ([MM], []), ([], [])])
def test_a_side_without_kernels(sides):
    difference = step_difference(*(step(side, communication=100) for side in sides))
    for side, account in (("base", difference.base), ("new", difference.new)):
        assert difference.frame[f"{side}_ns"].sum() == account.length_ns


def rows(difference, *columns, **term):
    return difference.rows(term).select(columns).rows()


def test_a_term_opens_its_work_on_both_sides_and_equal_layers_are_a_row():
    layer = [MM, ("aten::mm", "splitK", 100, [[64, 8], [8, 64]])]
    slower = [("aten::mm", "Cijk_Ailk_Bljk", 500, SHAPES), layer[1]]
    difference = step_difference(step(layer * 4), step(slower * 4))
    columns = ("repeats", "base_kernels", "new_kernels", "base_ns", "new_ns", "base_rows", "base_start_ns")
    assert rows(difference, *columns, kind="same work", base_work="aten::mm") == [
        (4, "sgemm", "Cijk_Ailk_Bljk", 1600, 2000, 4, 100),
        (4, "splitK", "splitK", 400, 400, 4, 600),
    ]


def test_gaps_before_the_same_work_are_a_row_and_overlaps_name_their_kernels():
    base = TraceBuilder().step(1, 0, 1000).kernel("a", 100, 300).kernel("b", 200, 300, stream=8).build()
    difference = step_difference(base, step([MM]))
    assert rows(difference, "base_kernels", "base_ns", "new_ns", "base_start_ns", kind="overlap") == [
        ("b", -200, 0, 200)
    ]
    gaps = rows(difference, "base_kernels", "new_kernels", "base_ns", kind="idle")
    assert ("before a", "", 100) in gaps
    assert ("before the end of the step", "", 500) in gaps


def test_the_work_of_all_terms_adds_up_to_both_steps():
    difference = step_difference(step([MM, ADD, GELU], communication=500), step([MM, GELU, MM]))
    for column in ("base_ns", "new_ns", "base_rows", "new_rows"):
        assert difference.rows({})[column].sum() == difference.frame[column].sum()
    assert difference.rows({})["new_ns"].sum() == difference.new.length_ns


@pytest.mark.parametrize(("term", "words"), [({"kind": "idl"}, "choose one of"), ({"color": "red"}, "it takes kind")])
def test_a_term_that_there_cannot_be_is_refused(term, words):
    with pytest.raises(BadParameter, match=words):
        step_difference(step([MM]), step([MM])).rows(term)
