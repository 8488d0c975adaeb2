"""Two traces side by side, computed by hand."""

import polars as pl
import pytest

from kinetoscope_tb.compare.changes import changes
from kinetoscope_tb.compare.comparison import compare
from kinetoscope_tb.errors import BadParameter
from kinetoscope_tb.measures.time.step_subset import rows_of_steps, windows_of_steps
from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder, same
from support.compare_traces import steps


def operators(base, new, **options):
    return compare(VIEWS["operators"], base, new, **options).frame


def test_amounts_are_told_per_step_and_the_biggest_change_comes_first():
    base = steps(10, 10)
    new = steps(20, 20, 20, 20, extra="aten::add", extra_in=(0, 1, 2, 3))
    same(
        operators(base, new),
        """
        name       only_in  base_device_self_ns  new_device_self_ns  delta_device_self_ns  device_self_ns_ratio  device_self_ns_verdict  base_calls  new_calls
        aten::add  new      -                    30                  30                    -                     beyond noise            -           1.0
        aten::mm   -        10                   20                  10                    2.0                   beyond noise            1.0         1.0
        """,
    )


def test_without_a_device_operators_are_compared_by_what_the_host_did():
    base = TraceBuilder().step(0, 0, 1000).op("aten::mm", 10, 100).build()
    new = TraceBuilder().step(0, 0, 1000).op("aten::mm", 10, 150).build()
    same(
        operators(base, new),
        """
        name      base_host_self_ns  new_host_self_ns  delta_host_self_ns  base_calls
        aten::mm  100                150               50                  1.0
        """,
    )


def test_a_row_of_the_base_alone_is_kept():
    same(
        operators(steps(10, 10, extra="aten::add", extra_in=(1,)), steps(10, 10), columns=["calls"]),
        """
        name       only_in  base_calls  new_calls  delta_calls  calls_ratio
        aten::add  base     0.5         -          -0.5         -
        aten::mm   -        1.0         1.0        0.0          1.0
        """,
    )


def test_work_outside_the_counted_steps_is_left_out():
    cut = TraceBuilder().window(0, 1500).step(0, 0, 1000).op("aten::mm", 10, 100).step(1, 1000, 900)
    base = cut.op("aten::mm", 1010, 100).op("aten::mm", 1950, 10).build()
    comparison = compare(VIEWS["operators"], base, base, columns=["host_total_ns"])
    assert comparison.basis.base_steps == 1
    assert comparison.frame["base_host_total_ns"].to_list() == [100]


def test_a_difference_within_the_spread_of_the_steps_is_not_certain():
    # Means 100 and 110. The standard error of the mean of three even steps is 0.98 of what parts them, as in
    # test_statistics.py: 19.6. Student's t with 4 degrees of freedom is 4.604: margin 4.604 * sqrt(2) * 19.6 = 128.
    same(
        operators(steps(80, 100, 120), steps(90, 110, 130), columns=["device_self_ns"]),
        """
        name      delta_device_self_ns  noise_device_self_ns  device_self_ns_verdict
        aten::mm  10                    128                   not certain
        """,
    )
    beyond = operators(steps(80, 100, 120), steps(270, 290, 310), columns=["device_self_ns"])
    assert beyond.select("delta_device_self_ns", "device_self_ns_verdict").rows() == [(190, "beyond noise")]


@pytest.mark.parametrize("sides", [((80, 100, 120), (300,)), ((300,), (80, 100, 120)), ((10,), (20,))])
def test_with_one_step_on_a_side_noise_is_unknown(sides):
    comparison = compare(VIEWS["operators"], *(steps(*lengths) for lengths in sides))
    assert comparison.frame["device_self_ns_verdict"].to_list() == ["unknown"]
    assert "Noise is unknown: estimating it takes two steps on both sides." in comparison.basis.words


def test_nothing_is_certain_of_different_work():
    other = steps(300, 310, 320, op="aten::conv2d")
    comparison = compare(VIEWS["overview"], steps(80, 100, 120), other)
    assert set(comparison.frame["mean_ns_verdict"]) <= {"unknown", "same"}
    assert "No difference is certain: the sides have little in common: 0 % of their operators" in comparison.basis.words


def served():
    """Two iterations of a server, each with an attention kernel of 200 ns."""
    trace = TraceBuilder().window(0, 100_000)
    for i, at in enumerate((0, 1000)):
        trace.annotation("step[DECODE bs=4]", at, 900).op("vllm::attention", at + 10, 100)
        trace.launch(at + 20, 5, i + 1).kernel("attention", at + 200, 200, i + 1)
    return trace.build()


def test_times_of_a_server_and_of_a_training_with_other_operators_are_not_compared():
    comparison = compare(VIEWS["operators"], served(), steps(80, 100))
    assert comparison.basis.is_of_shares
    assert comparison.basis.words == (
        "Shares and means per call instead of times: iterations of a server and steps of a training have 0 % of their "
        "operators in common."
    )
    assert comparison.frame["new_device_self_share_frac"].max() == 1.0
    with pytest.raises(BadParameter, match="'device_self_ns' of 'operators' can't be compared: iterations of a server"):
        compare(VIEWS["operators"], served(), steps(80, 100), columns=["device_self_ns"])
    assert "Times can't be compared: " in changes(VIEWS, served(), steps(80, 100)).headline


def test_a_row_whose_key_is_a_hash_has_the_names_that_the_hash_stands_for():
    comparison = compare(VIEWS["idle_culprits"], steps(80, 100), steps(80, 300))
    names = [column.name for column in comparison.table.columns]
    assert names[:5] == ["cause", "host", "source", "device", "culprit"]
    assert comparison.frame["cause"].null_count() == 0


def stepless():
    """Two operators of 50 and 150 ns, called twice and once; no steps."""
    return TraceBuilder().op("aten::mm", 0, 25).op("aten::mm", 100, 25).op("aten::add", 200, 150).build()


def test_a_whole_recording_is_not_compared_with_a_step():
    with pytest.raises(
        BadParameter, match="'host_total_ns' of 'operators' can't be compared: the base recording marks"
    ):
        operators(stepless(), steps(10, 20), columns=["host_total_ns"])
    with pytest.raises(BadParameter, match="'steps' can't be compared: the new recording marks no steps"):
        compare(VIEWS["steps"], steps(10, 20), stepless())


def test_if_one_side_marks_no_steps_shares_and_means_per_call_are_compared():
    base = TraceBuilder().step(0, 0, 1000).op("aten::mm", 10, 300).step(1, 1000, 1000).op("aten::mm", 1010, 100)
    comparison = compare(VIEWS["operators"], base.window(0, 9000).build(), stepless())
    assert (comparison.basis.is_of_shares, comparison.basis.is_per_step) == (True, False)
    assert "a whole recording can't be compared with a step" in comparison.basis.words
    same(
        comparison.frame,
        """
        name       base_host_self_share_frac  new_host_self_share_frac  base_mean_host_self_ns  new_mean_host_self_ns
        aten::mm   1.0                        0.25                      200                     25
        aten::add  -                          0.75                      -                       150
        """,
    )


def test_if_one_side_marks_no_steps_the_overview_compares_shares():
    comparison = compare(VIEWS["overview"], steps(100, 100), stepless())
    assert [column.name for column in comparison.columns] == ["share_frac"]
    step = comparison.frame.filter(pl.col("category") == "Step")
    assert step.select("base_share_frac", "new_share_frac").rows() == [(1.0, 1.0)]


def test_without_steps_on_both_sides_whole_recordings_are_compared():
    comparison = compare(VIEWS["operators"], stepless(), stepless(), columns=["host_total_ns"])
    assert comparison.basis.words.startswith("Not per step: neither recording marks steps.")
    assert comparison.frame["base_host_total_ns"].to_list() == [150, 50]


def test_what_one_side_did_not_record_is_unknown_and_not_0():
    without = TraceBuilder().step(0, 0, 1000).op("aten::mm", 10, 100).op("aten::old", 200, 100).window(0, 9000).build()
    same(
        operators(without, steps(10), columns=["device_self_ns"]),
        """
        name       only_in  base_device_self_ns  new_device_self_ns  delta_device_self_ns  device_self_ns_verdict
        aten::mm   -        -                    10                  -                     unknown
        aten::old  base     -                    -                   -                     unknown
        """,
    )


def test_what_one_side_did_not_record_in_any_step_has_no_noise():
    without = TraceBuilder().window(0, 9000).step(0, 0, 1000).op("aten::mm", 10, 100).step(1, 1000, 1000)
    frame = operators(without.op("aten::mm", 1010, 100).build(), steps(10, 20), columns=["device_self_ns"])
    assert frame.select("delta_device_self_ns", "noise_device_self_ns", "device_self_ns_verdict").rows() == [
        (None, None, "unknown")
    ]


def test_a_view_that_one_side_lacks_shows_the_other_s_rows():
    without = TraceBuilder().step(0, 0, 1000).op("aten::mm", 10, 100).window(0, 9000).build()
    comparison = compare(VIEWS["kernels"], without, steps(10, 10))
    assert (comparison.basis.is_base_missing, comparison.basis.is_new_missing) == (True, False)
    assert comparison.frame.select("name", "only_in", "new_total_ns", "delta_total_ns").rows() == [
        ("k_aten::mm", "new", 10, None)
    ]


def test_the_overview_compares_what_it_shows():
    base, new = steps(100, 120, 140), steps(300, 320, 340)
    frame = compare(VIEWS["overview"], base, new).frame
    for side, trace in (("base", base), ("new", new)):
        shown = VIEWS["overview"].run(trace).select("category", "mean_ns")
        assert sorted(shown.rows()) == sorted(frame.select("category", f"{side}_mean_ns").rows())
    assert frame.filter(pl.col("category") == "Kernel")["delta_mean_ns"].to_list() == [200]


def test_steps_are_paired_in_their_order():
    trace = TraceBuilder().window(0, 9000).step(7, 0, 100).step(8, 100, 120).build()
    frame = compare(VIEWS["steps"], steps(10, 10, 10), trace).frame
    assert frame.sort("step").select("step", "only_in", "base_total_ns", "new_total_ns").rows() == [
        ("0 | 7", None, 1000, 100),
        ("1 | 8", None, 1000, 120),
        ("2", "base", 1000, None),
    ]


def test_facts_without_numbers_are_the_same_or_changed():
    comparison = compare(VIEWS["environment"], steps(10), steps(10, 20))
    rows = {row["fact"]: row for row in comparison.frame.to_dicts()}
    assert (rows["Events"]["base_value"], rows["Events"]["new_value"]) == ("5", "9")
    assert (rows["Events"]["value_verdict"], rows["File"]["value_verdict"]) == ("changed", "same")


def test_keys_that_are_missing_are_the_same_key():
    base = TraceBuilder().step(0, 0, 1000).kernel("k", 10, 5, grid=[1, 1, 1]).build()
    frame = compare(VIEWS["kernels_by_op"], base, base).frame
    assert frame.select("op", "only_in", "delta_total_ns").rows() == [(None, None, 0)]


def test_of_a_whole_with_parts_these_are_compared_first():
    drawn = VIEWS["idle"].table.picture.parts
    selection = [column.name for column in compare(VIEWS["idle"], steps(80, 100), steps(80, 300)).columns]
    assert selection[: len(drawn) - 1] == list(drawn[1:])
    assert set(selection) > set(drawn)


def test_a_column_that_cannot_be_compared_is_refused():
    with pytest.raises(BadParameter, match="'name' of 'operators' can't be compared; choose among calls"):
        operators(steps(10), steps(10), columns=["name"])


each = pytest.mark.parametrize("view", [v for v in VIEWS.values() if v.comparable_columns], ids=lambda view: view.id)


@each
@pytest.mark.slow  # each view
def test_every_view_compares_with_itself_without_a_change(view):
    trace = steps(10, 30, 20)
    comparison = compare(view, trace, trace, columns=view.comparable_columns)
    assert comparison.frame["only_in"].null_count() == comparison.frame.height
    for name in comparison.frame.columns:
        if name.startswith("delta_"):
            assert set(comparison.frame[name]) <= {0, None}
    assert len(comparison.table.columns) == comparison.frame.width


@each
@pytest.mark.slow  # each view
def test_an_amount_of_two_steps_is_the_sum_of_both(view):
    """Else it needs adds_up=False, or the view needs another `within`."""
    whole = steps(10, 30, extra="aten::add", extra_in=(1,))
    if view.is_missing(whole):
        return
    first, second = of_each_step(view, whole)
    together = view.run(whole)
    for column in view.table.columns:
        if view.within in ("rows", "windows") and column.adds_up and column.name not in view.table.key:
            assert (together[column.name].sum() or 0) == (first[column.name].sum() or 0) + (
                second[column.name].sum() or 0
            )


def of_each_step(view, whole):
    part = windows_of_steps if view.within == "windows" else rows_of_steps
    for step in (0, 1):
        trace = part(whole, [step])
        yield pl.DataFrame(schema=view.table.schema()) if view.is_missing(trace) else view.run(trace)


def calls(*functions):
    """One step in which a function calls others, each for 10 ns."""
    trace = TraceBuilder().window(0, 9000).step(0, 0, 1000).python("train.py(1): main", 10, 900)
    for i, (name, dur) in enumerate(functions):
        trace.python(name, 20 + 100 * i, dur)
    return trace.build()


def test_trees_are_aligned_by_the_way_from_the_root():
    base = calls(("f.py(1): f", 10), ("g.py(1): g", 20))
    new = calls(("h.py(1): h", 5), ("f.py(1): f", 30))
    frame = compare(VIEWS["python_calls"], base, new).frame
    names = frame["function"].to_list()
    around = [None if row is None else names[row] for row in frame["parent_row"]]
    differences = frame.select("function", "only_in", "delta_host_total_ns", around=pl.Series(around, dtype=pl.String))
    assert sorted(differences.rows()) == [
        ("f", None, 20, "main"),
        ("g", "base", -20, "main"),
        ("h", "new", 5, "main"),
        ("main", None, 0, "thread 1"),
        ("thread 1", None, 0, None),
    ]


def test_steps_of_other_recordings_are_not_compared_by_their_number():
    comparison = compare(VIEWS["critical_path_culprits"], steps(80, 100, 120), steps(270, 290, 310))
    assert comparison.frame["step"].unique().to_list() == ["all"]
    assert comparison.basis.words == "Not per step: this view covers whole recordings. Noise is unknown."
