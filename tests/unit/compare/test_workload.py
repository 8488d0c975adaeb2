"""Whether two recordings are of the same work."""

from dataclasses import replace

import pytest

from kinetoscope_tb.compare.workload import (
    Workload,
    difference_of_places,
    difference_of_programs,
    difference_of_work,
)
from support.compare_traces import steps


@pytest.fixture
def work():
    return replace(Workload.of(steps(10, 20)), host="a", devices=("H100",), world_size=8, phases=frozenset({"decode"}))


def test_the_same_work_differs_in_nothing(work):
    assert difference_of_work(work, work) == ""
    assert Workload.of(steps(10, 20)).calls == {"aten::mm": 1.0}  # in a step


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"host": "b"}, "the sides are of different machines (a; b)"),
        ({"devices": ("A100",)}, "the sides are of different devices (H100; A100)"),
        ({"world_size": 4}, "the sides are of different numbers of ranks (8; 4)"),
        ({"phases": frozenset({"mixed", "prefill"})}, "the sides are of different phases (decode; mixed, prefill)"),
        ({"uses_device": False}, "only one side has device work"),
    ],
)
def test_other_places_and_phases_are_named(work, change, words):
    assert difference_of_places(work, replace(work, **change)) == words


@pytest.mark.parametrize(
    ("phases", "calls", "words"),
    [
        ((), {"aten::mm": 1, "aten::add": 15}, "iterations of a server and steps of a training have 33 % of "),
        ((), {"aten::mm": 1, "aten::add": 1}, ""),
        ({"mixed"}, {"flash_attn": 1.0}, ""),
        ((), {}, ""),
    ],
)
def test_a_server_and_a_training_are_different_programs_if_they_call_different_operators(work, phases, calls, words):
    other = replace(work, phases=frozenset(phases), calls=calls)
    found = difference_of_programs(work, other)
    assert found.startswith(words)
    assert bool(found) == bool(words)


def test_what_a_file_does_not_say_is_no_difference(work):
    assert difference_of_work(work, replace(work, host="", devices=(), world_size=None, phases=frozenset())) == ""


def test_other_operators_are_other_work(work):
    other = replace(work, calls={"aten::mm": 1, "aten::conv2d": 15})
    assert difference_of_work(work, other).startswith("the sides have little in common: 33 % of their operators")
    assert difference_of_work(work, replace(work, calls={"aten::mm": 1, "aten::add": 1})) == ""


def test_a_side_that_alone_has_stacks_was_slowed_by_them(work):
    words = "has Python stacks, and recording them slows the host"
    assert difference_of_work(replace(work, has_stacks=True), work) == f"only the base {words}"
    assert difference_of_work(work, replace(work, has_stacks=True)) == f"only the new side {words}"


def test_a_loop_of_one_operator_is_no_other_work(work):
    model = {"aten::mm": 20.0, "aten::relu": 10.0, "aten::add": 10.0, "aten::select": 5.0}
    base, new = replace(work, calls=model | {"aten::select": 10_000.0}), replace(work, calls=model)
    assert difference_of_work(base, new) == ""
