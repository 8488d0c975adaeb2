"""What changed most between two traces, of any kind."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from kinetoscope_tb.compare.changes import changes
from kinetoscope_tb.reader import read
from kinetoscope_tb.views import EVERY_VIEW
from support.build import TraceBuilder, same
from support.compare_traces import steps
from support.real_traces import FOLDER, MISSING

RESNETS = [FOLDER / "runs/resnet50_num_workers_0", FOLDER / "claims/resnet50_num_workers_4"]


def test_the_largest_change_of_any_kind_comes_first():
    same(
        changes(EVERY_VIEW, steps(100, 100), steps(300, 300)).frame,
        """
        kind        name                    base_ns  new_ns  delta_ns  verdict
        category    Kernel                  100      300     200       beyond noise
        category    Other                   800      600     -200      beyond noise
        idle cause  Host, nothing recorded  710      510     -200      beyond noise
        kernel      k_aten::mm              100      300     200       beyond noise
        operator    aten::mm                100      300     200       beyond noise
        """,
    )


def test_nothing_changed_between_a_trace_and_itself():
    result = changes(EVERY_VIEW, steps(100, 120), steps(100, 120))
    assert result.frame.is_empty()
    assert result.headline.endswith(" 0 %.")


def test_facts_of_the_environment_follow_the_times():
    other = TraceBuilder().window(0, 9000).step(0, 0, 1000).op("aten::mm", 10, 100).build()
    frame = changes(EVERY_VIEW, steps(100), other).frame
    facts = frame.filter(kind="environment")
    assert frame.tail(facts.height).equals(facts)
    assert {"name": "Device", "base_value": facts["base_value"][0], "new_value": "CPU"} in facts.select(
        "name", "base_value", "new_value"
    ).to_dicts()
    assert not {"Recorded", "File", "Events"} & set(facts["name"])


def test_if_one_side_marks_no_steps_shares_are_compared():
    stepless = TraceBuilder().op("aten::mm", 0, 50).launch(10, 5, 1).kernel("k_aten::mm", 50, 50, 1).build()
    result = changes(EVERY_VIEW, steps(100, 100), stepless)
    timed = result.frame.filter(result.frame["kind"] != "environment")
    assert timed["delta_ns"].null_count() == timed.height > 0
    assert timed["delta_frac"].abs().max() <= 1
    assert result.basis.is_of_shares
    assert result.headline.startswith("Times can't be compared: the new recording marks no steps")


@pytest.mark.skipif(not all(map(Path.is_dir, RESNETS)), reason=MISSING)
def test_what_changed_between_two_real_trainings():
    """The review's example: loading data in four processes; the loader changed most, and that is certain."""
    base, new = (read(min(one.glob("*.gz"))) for one in RESNETS)
    result = changes(EVERY_VIEW, base, new)
    first, second = result.frame.head(2).to_dicts()
    assert (first["kind"], first["name"], first["verdict"]) == ("category", "DataLoader", "beyond noise")
    assert (first["base_ns"], first["new_ns"]) == (59_261_833, 1_186_167)
    assert (second["kind"], second["name"], second["verdict"]) == ("idle cause", "Waiting for data", "beyond noise")
    assert result.headline == (
        "The average step: 178 → 141 ms, −20.6 %, not certain: 2 of 6 new steps are outliers; median 177 → 127 ms. "
        "Largest change beyond noise: DataLoader (step part), 59.3 → 1.19 ms, −98 %."
    )


def test_the_headline_says_where_the_largest_change_is():
    shorter = changes(EVERY_VIEW, steps(300, 301, 299), steps(100, 101, 99))
    assert shorter.headline.endswith("Largest change beyond noise: Kernel (step part), 300 → 100 ns, −66.7 %.")
    kernels = replace(shorter, frame=shorter.frame.filter(kind="kernel"), labels={"k_aten::mm": "mm `x`"})
    assert kernels.headline.endswith("Largest change beyond noise: `mm 'x'` (kernel), 300 → 100 ns, −66.7 %.")


def test_the_largest_change_is_not_repeated_where_a_cause_is_named():
    shorter = changes(EVERY_VIEW, steps(300, 301, 299), steps(100, 101, 99))
    of_function = shorter.frame.with_columns(kind=pl.lit("function"))
    with_cause = replace(shorter, frame=of_function, causes=["`load` takes 200 ns less per step."])
    assert with_cause.headline == f"{shorter.step} `load` takes 200 ns less per step."


def test_where_every_change_may_be_chance_the_headline_says_so():
    result = changes(EVERY_VIEW, steps(100, 120), steps(110, 130))
    assert set(result.frame["verdict"]) == {"not certain"}
    assert result.headline.endswith("No single change is beyond noise.")


def test_where_steps_may_vary_by_anything_the_headline_names_no_largest_change():
    assert "noise" not in changes(EVERY_VIEW, steps(100), steps(300)).headline


@pytest.mark.parametrize("names", [("base", "new"), ("new", "base")])
def test_swapped_sides_are_mirrored(names):
    sides = {"base": steps(100, 120), "new": steps(300, 310, extra="aten::add", extra_in=(0, 1))}
    frame = changes(EVERY_VIEW, *(sides[name] for name in names)).frame
    deltas = {(row["kind"], row["name"]): row["delta_ns"] for row in frame.to_dicts()}
    assert deltas["kernel", "k_aten::mm"] == (195 if names[0] == "base" else -195)
    assert deltas["operator", "aten::add"] == (30 if names[0] == "base" else -30)
