"""Which functions of the program make the host's part of the step longer."""

import pytest

from kinetoscope_tb.compare.changes import changes
from kinetoscope_tb.compare.host_changes import common_names, host_changes
from kinetoscope_tb.views import EVERY_VIEW
from support.build import TraceBuilder
from support.machine import MS, US

STEPS = 6
CHECK, COLLATE, LOAD = "data.py(44): check_labels", "data.py(80): collate", "data.py(12): load"


def recording(*functions, rest_ms=10.0, jitter_us=20, span="python", shift=0):
    """Steps of a training: an operator, then functions, each as (name, ms) or as (name, ms, functions in it).

    What one takes varies by a bit from step to step; the step is as long as all of them.
    """
    builder, at = TraceBuilder(), 0
    for step in range(STEPS):
        begin, more = at, jitter_us * US * ((7 * step + shift) % 5)
        builder.op("aten::mm", at, round(rest_ms * MS) + more)
        at += round(rest_ms * MS) + more
        for function in functions:
            at = add(builder, span, at, *function)
        builder.step(step, begin, at - begin)
    return builder.window(0, at + MS).build()


def add(builder, span, at, name, ms, inside=()):
    """A function, or an annotated range, with those in it; the instant at which it ends."""
    builder.event("python_function" if span == "python" else "user_annotation", name, at, round(ms * MS))
    begin = at
    for function in inside:
        begin = add(builder, span, begin, *function)
    return at + round(ms * MS)


def sentences(base, new):
    """What is said behind the change of the step."""
    headline = changes(EVERY_VIEW, base, new).headline
    return headline[headline.index("`") :] if "`" in headline else ""


def test_the_function_that_takes_longer_is_named_though_its_line_moved():
    moved = CHECK.replace("44", "51")
    base = recording((COLLATE, 4), (CHECK, 0.5))
    new = recording((COLLATE, 4), (moved, 3.5))
    assert sentences(base, new) == "`check_labels (data.py)` takes 3 ms more per step: 0.5 → 3.5 ms."
    assert sentences(new, base) == "`check_labels (data.py)` takes 3 ms less per step: 3.5 → 0.5 ms."
    first = changes(EVERY_VIEW, base, new).frame.row(0, named=True)
    assert (first["kind"], first["name"], first["verdict"]) == ("function", "check_labels (data.py)", "beyond noise")
    assert (first["base_ns"], first["new_ns"], first["delta_ns"]) == (500_000, 3_500_000, 3_000_000)


def test_a_function_that_only_one_side_runs_took_no_time_on_the_other():
    base, new = recording((COLLATE, 4)), recording((COLLATE, 4), (CHECK, 3))
    assert sentences(base, new) == "`check_labels (data.py)` takes 3 ms more per step: 0 → 3 ms."
    assert sentences(new, base) == "`check_labels (data.py)` takes 3 ms less per step: 3 → 0 ms."


def test_the_function_that_it_is_in_is_named_and_not_the_one_that_calls_it():
    base = recording((LOAD, 4, [(CHECK, 0.5)]))
    new = recording((LOAD, 7, [(CHECK, 3.5)]))
    assert sentences(base, new) == "`check_labels (data.py)` takes 3 ms more per step: 0.5 → 3.5 ms."


def test_what_a_function_takes_longer_itself_comes_without_what_it_calls():
    base = recording((LOAD, 4, [(CHECK, 0.5)]))
    new = recording((LOAD, 9, [(CHECK, 3.5)]))
    assert sentences(base, new) == (
        "`check_labels (data.py)` takes 3 ms more per step: 0.5 → 3.5 ms. "
        "`load (data.py)` itself takes 2 ms more per step: 3.5 → 5.5 ms."
    )


def test_calls_of_libraries_and_small_functions_count_for_the_function_around_them():
    small = [(f"data.py({line}): part{line}", 0.2) for line in range(10)]
    base = recording((LOAD, 4))
    new = recording((LOAD, 6, [*small, ("json/decoder.py(3): decode", 1)]))
    assert sentences(base, new) == "`load (data.py)` takes 2 ms more per step: 4 → 6 ms."


def test_no_function_is_named_where_all_the_host_is_slower():
    base = recording((COLLATE, 4), (CHECK, 2))
    assert sentences(base, recording((COLLATE, 5.6), (CHECK, 2.8), rest_ms=14)) == ""
    slow = recording((COLLATE, 5.6), (CHECK, 6.8), rest_ms=14)
    assert [change.name for change in host_changes(base, slow)] == ["check_labels (data.py)"]


def with_operators(count, ms):
    """Steps of 20 ms and a function of some ms that consists of so many operators."""
    builder = TraceBuilder()
    for step in range(STEPS):
        at = step * 40 * MS
        builder.step(step, at, (20 + ms) * MS).op("aten::mm", at, 5 * MS).python(CHECK, at + 6 * MS, ms * MS)
        for nth in range(count):
            builder.op("aten::item", at + 6 * MS + nth * ms * MS // count, ms * MS // count)
    return builder.build()


def test_equal_operators_that_take_longer_are_no_fault_of_the_function_that_calls_them():
    assert host_changes(with_operators(10, 2), with_operators(10, 6)) == []
    (change,) = host_changes(with_operators(10, 2), with_operators(30, 6))
    assert (change.name, change.delta_ns) == ("check_labels (data.py)", 4 * MS)


def test_a_little_longer_is_no_change_of_code():
    assert sentences(recording((COLLATE, 10)), recording((COLLATE, 11))) == ""


def test_no_function_is_named_that_differs_less_than_its_steps_vary():
    def varying(scale):
        builder = TraceBuilder()
        for step, ms in enumerate((2, 9, 3, 11, 2, 8)):
            at = step * 40 * MS
            builder.step(step, at, (20 + ms) * MS).op("aten::mm", at, 5 * MS)
            builder.python(CHECK, at + 5 * MS, round(scale * ms * MS))
        return builder.build()

    assert host_changes(varying(1), varying(1.4)) == []


def test_a_function_with_a_new_name_is_no_new_one():
    base, new = recording((COLLATE, 4)), recording(("data.py(80): collate_batch", 5.5))
    assert host_changes(base, new) == []


def test_the_training_loop_is_not_named():
    base, new = (recording(("train.py(9): train_step", ms), rest_ms=0.1) for ms in (10, 13))
    assert host_changes(base, new) == []


def on_device(check_ms, kernel_ms):
    """Steps that begin with a kernel, behind whose launch the host runs a function."""
    builder = TraceBuilder()
    for step in range(STEPS):
        at = step * 40 * MS
        builder.step(step, at, max(check_ms + 2, kernel_ms + 2) * MS).op("aten::mm", at, 1 * MS)
        builder.launch(at, 5 * US, step + 1).kernel("gemm", at + 10 * US, kernel_ms * MS - 10 * US, step + 1)
        builder.python(CHECK, at + 1 * MS, check_ms * MS)
    return builder.build()


def test_what_a_device_hides_makes_no_step_longer():
    assert host_changes(on_device(1, 10), on_device(8, 15)) == []
    assert sentences(on_device(1, 10), on_device(14, 10)) == (
        "`check_labels (data.py)` takes 5 ms more per step while no device works: 0 → 5 ms."
    )


def test_annotations_are_named_where_no_stacks_were_recorded():
    base, new = (recording(("collate", 4), ("check labels", ms), span="range") for ms in (1, 4))
    assert sentences(base, new) == "`check labels` takes 3 ms more per step: 1 → 4 ms."
    assert changes(EVERY_VIEW, base, new).frame["kind"][0] == "annotation"


def test_nothing_is_named_where_the_work_of_both_sides_differs():
    base, new = recording(("collate", 4), span="range"), recording((COLLATE, 4), (CHECK, 3))
    assert sentences(base, new) == ""


def test_names_of_a_trace_stay_text():
    evil = "data.py(44): check\x1b[31m\nlabels"
    assert sentences(recording((COLLATE, 4)), recording((COLLATE, 4), (evil, 3))).startswith(
        "`check\\x1b[31m\\nlabels (data.py)`"
    )


@pytest.mark.parametrize(
    ("base", "new", "names"),
    [
        (["a/x.py(3): f"], ["b/x.py(9): f"], (["f (b/x.py)"], ["f (b/x.py)"])),
        (
            ["m.py(3): forward", "m.py(30): forward"],
            ["m.py(5): forward", "m.py(40): forward"],
            (["m.py(5): forward", "m.py(40): forward"], ["m.py(5): forward", "m.py(40): forward"]),
        ),
        (
            ["m.py(3): forward", "m.py(30): forward"],
            ["m.py(30): forward"],
            (["forward (m.py)", "forward (m.py)"], ["forward (m.py)"]),
        ),
        (["m.py(3): f"], ["n.py(3): f"], (["f (m.py)"], ["f (n.py)"])),
        (["<ipython-input-3-ab>(1): f"], ["<ipython-input-9-cd>(2): f"], (["f"], ["f"])),
    ],
)
def test_functions_are_the_same_by_file_and_name(base, new, names):
    common = common_names(base, new)
    assert tuple([own[frame] for frame in side] for own, side in zip(common, (base, new), strict=True)) == names
