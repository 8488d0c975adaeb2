"""Comparing any two traces: joined as a dictionary would, mirrored when the sides are swapped, silent about itself."""

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.compare.changes import MOST, changes
from kinetoscope_tb.compare.comparison import compare
from kinetoscope_tb.compare.shares import stepless_side
from kinetoscope_tb.compare.statistics import quantile
from kinetoscope_tb.errors import BadParameter
from kinetoscope_tb.measures.time.step_subset import counted_steps, rows_of_steps
from kinetoscope_tb.views import EVERY_VIEW, VIEWS
from support.examples import examples
from support.strategies import builders

few = examples(40)
flat = st.sampled_from(["operators", "operators_by_shape", "kernels", "kernels_by_op", "overview", "health", "gpus"])
OPPOSITE = {"base": "new", "new": "base", None: None}


def rows(frame, key):
    return {tuple(row[name] for name in key): row for row in frame.to_dicts()}


def alone(view, trace, *, per_step):
    """The rows of one side by key, amounts per counted step; by plain arithmetic."""
    counted = counted_steps(trace)
    part = rows_of_steps(trace, counted) if per_step else trace
    by_key = {} if view.is_missing(part) else rows(view.run(part), view.table.key)
    column = next(c for c in view.table.columns if c.name == view.table.weight)
    for row in by_key.values():
        if per_step and column.adds_up and row[column.name] is not None:
            row[column.name] = round(row[column.name] / len(counted))
    return {key: row[column.name] for key, row in by_key.items()}


@few
@given(
    builders(),
    builders(),
    st.sampled_from(["operators", "operators_by_shape", "kernels", "kernels_by_op"]),
    flat,
    st.sampled_from(["operators", "kernels", "python_calls", "copies"]),
)
def test_what_holds_of_any_two_traces(first, second, joined, swapped, shared):
    base, new = first.build(), second.build()
    assert_rows_are_joined_as_a_dictionary_would(VIEWS[joined], base, new)
    assert_swapped_sides_are_mirrored(VIEWS[swapped], base, new)
    assert_shares_add_up_to_one_and_mean_times_calls_is_the_amount(VIEWS[shared], base, new)
    assert_changes_are_mirrored_and_the_largest_comes_first(base, new)


def assert_rows_are_joined_as_a_dictionary_would(view, base, new):
    if stepless_side(base, new):
        with pytest.raises(BadParameter, match="marks no steps"):
            compare(view, base, new, columns=[view.table.weight])
        return
    comparison = compare(view, base, new, columns=[view.table.weight])
    sides = [alone(view, trace, per_step=comparison.basis.is_per_step) for trace in (base, new)]
    got = rows(comparison.frame, view.table.key)
    assert set(got) == set(sides[0]) | set(sides[1])
    for key, row in got.items():
        expected = [side.get(key) for side in sides]
        assert [row[f"{side}_{view.table.weight}"] for side in ("base", "new")] == expected
        assert row["only_in"] == ("base" if key not in sides[1] else "new" if key not in sides[0] else None)
        if None not in expected:
            assert row[f"delta_{view.table.weight}"] == expected[1] - expected[0]


@few
@given(builders(), st.sampled_from([name for name, view in VIEWS.items() if view.comparable_columns]))
def test_a_trace_does_not_differ_from_itself(builder, name):
    trace = builder.build()
    frame = compare(VIEWS[name], trace, trace).frame
    assert frame["only_in"].null_count() == frame.height
    for column in frame.columns:
        if column.startswith("delta_"):
            assert set(frame[column]) <= {0, None}
        if column.endswith("_verdict"):
            assert set(frame[column]) <= {"same", "unknown"}


def assert_swapped_sides_are_mirrored(view, base, new):
    forth, back = compare(view, base, new), compare(view, new, base)
    key = forth.table.key
    assert rows(forth.frame, key).keys() == rows(back.frame, key).keys()
    for place, row in rows(forth.frame, key).items():
        other = rows(back.frame, key)[place]
        assert row["only_in"] == OPPOSITE[other["only_in"]]
        for column in forth.columns:
            assert row[f"base_{column.name}"] == other[f"new_{column.name}"]
            if row.get(f"delta_{column.name}") is not None:
                assert row[f"delta_{column.name}"] == -other[f"delta_{column.name}"]
            assert row[f"{column.name}_verdict"] == other[f"{column.name}_verdict"]
            if row.get(f"noise_{column.name}") is not None:
                assert math.isclose(row[f"noise_{column.name}"], other[f"noise_{column.name}"], rel_tol=1e-9, abs_tol=1)


def assert_shares_add_up_to_one_and_mean_times_calls_is_the_amount(view, base, new):
    if not stepless_side(base, new):
        return
    comparison = compare(view, base, new)
    share, mean = (column.name for column in comparison.columns)
    parent = (
        comparison.frame["parent_row"] if view.id == "python_calls" else pl.Series([None] * comparison.frame.height)
    )
    for side in ("base", "new"):
        shares = comparison.frame.filter(parent.is_null())[f"{side}_{share}"].drop_nulls()
        assert shares.is_empty() or math.isclose(shares.sum(), 1, rel_tol=1e-9)
        assert (comparison.frame[f"{side}_{mean}"].drop_nulls() >= 0).all()


def assert_changes_are_mirrored_and_the_largest_comes_first(base, new):
    forth, back = changes(EVERY_VIEW, base, new), changes(EVERY_VIEW, new, base)
    for one in (forth, back):
        sizes = one.frame.select(pl.coalesce(pl.col("delta_ns").abs(), "delta_frac").abs()).to_series().drop_nulls()
        assert sizes.is_sorted(descending=True)
    named = {(row["kind"], row["name"]): row for row in back.frame.to_dicts()}
    if max(forth.frame.height, back.frame.height) < MOST:
        for row in forth.frame.to_dicts():
            other = named[row["kind"], row["name"]]
            assert (row["base_ns"], row["new_ns"], row["verdict"]) == (
                other["new_ns"],
                other["base_ns"],
                other["verdict"],
            )


@few
@given(builders())
def test_amounts_of_the_steps_add_up_to_those_of_all_steps_together(builder):
    trace = builder.build()
    everything = list(range(trace.steps.height))
    for name in ("operators", "kernels"):
        view = VIEWS[name]
        amounts = [c.name for c in view.table.columns if c.adds_up]
        parts = [rows_of_steps(trace, [step]) for step in everything]
        together = rows_of_steps(trace, everything)
        if not any(map(view.is_missing, parts)):  # a step without operators doesn't tell of its device time
            frames = [view.run(part).select(amounts).sum() for part in parts]
            assert view.run(together).select(amounts).sum().rows() == pl.concat(frames).sum().rows()


@pytest.mark.parametrize("freedom", [1, 1.5, 2, 3.3, 5, 11, 17.2, 35, 80, 400])
def test_the_quantile_leaves_one_in_a_hundred_outside(freedom):
    """Student's density, integrated by hand; the table is interpolated, so the share is near, not exact."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    edge, pieces = float(quantile(freedom)), 20_000
    width = edge / pieces
    middles = ((i + 0.5) * width for i in range(pieces))
    inside = 2 * sum(scale * (1 + x * x / freedom) ** (-(freedom + 1) / 2) * width for x in middles)
    assert 1 - inside == pytest.approx(0.01, rel=0.12)
