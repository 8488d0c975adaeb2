"""Two traces side by side on the page: the control, the tables, the overview."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from browser.accessibility import violations

if TYPE_CHECKING:
    from browser.app import App

TRACE = {"run": "made", "worker": "rank0", "span": "9"}
BASE = {"base_run": "made", "base_worker": "rank0", "base_span": "5"}


def test_the_control_begins_to_compare_swaps_and_stops(app: App):
    page = app.open("operators", **TRACE)
    page.get_by_role("button", name="Compare with…").click()
    page.get_by_role("dialog").get_by_role("listitem").first.get_by_role("button").click()
    expect(page.get_by_label("Base run")).to_be_visible()
    page.get_by_label("Base run").select_option("made")
    page.get_by_label("Base span").select_option("5")
    app.settle()
    expect(page.locator(".basis")).to_contain_text("4 steps of the base and 6 steps of the new trace")
    page.get_by_role("button", name="Swap").click()
    app.settle()
    expect(page.locator(".basis")).to_contain_text("6 steps of the base and 4 steps of the new trace")
    page.get_by_role("button", name="Off").click()
    expect(page.get_by_role("button", name="Compare with…")).to_be_visible()
    expect(page.locator(".basis")).to_have_count(0)
    page.go_back()
    expect(page.locator(".basis")).to_be_visible()


def test_the_picker_offers_what_has_most_in_common_first_and_says_what(app: App):
    page = app.open("operators", **TRACE)
    page.get_by_role("button", name="Compare with…").click()
    hits = page.get_by_role("dialog").get_by_role("listitem")
    expect(hits.nth(0)).to_contain_text("same run and worker")
    expect(hits.nth(1)).to_contain_text("same run")
    expect(hits.nth(1)).to_contain_text("rank1")
    page.get_by_label("Filter recordings").fill("many_steps")
    expect(hits).to_have_count(1)
    page.get_by_label("Filter recordings").press("Enter")
    expect(page.get_by_label("Base run")).to_have_value("many_steps")


def test_a_table_shows_base_new_difference_and_growth(app: App):
    # Step n has kernels of 10 n, 20 n and 30 n µs: on average 25, 50 and 75 in four steps, 35, 70 and 105 in six.
    app.open("kernels", **TRACE, **BASE)
    app.expect_column("Base total", "75", "50", "25")
    app.expect_column("New total", "105", "70", "35")
    app.expect_column("Δ total", "+30", "+20", "+10")
    app.expect_column("Change", "+40 %")
    app.expect_column("Verdict", "not certain")


def test_noise_is_hidden_on_demand_and_counted(app: App):
    page = app.open("kernels", **TRACE, **BASE)
    page.get_by_label("Hide noise").first.check()
    expect(page.locator(".notice").first).to_contain_text("No row differs by more than noise")
    expect(page.locator("main")).to_contain_text("3 rows hidden: no difference beyond noise")
    expect(page).to_have_url(re.compile("noise=hidden"))


def test_a_row_of_one_side_says_so_in_words(app: App):
    page = app.open("operators", **TRACE, base_run="cpu_only", base_worker="rank0", base_span="5", columns="calls")
    expect(page.get_by_role("columnheader", name="Base calls")).to_be_visible()
    page = app.open("kernels", **TRACE, base_run="cpu_only", base_worker="rank0", base_span="5")
    assert set(app.column("Only in")[:3]) == {"new"}


def test_another_column_is_compared_on_demand(app: App):
    page = app.open("operators", **TRACE, **BASE)
    page.get_by_label("Compared column").first.select_option("host_total_ns")
    app.settle()
    expect(page.get_by_role("columnheader", name="Base host total")).to_be_visible()
    expect(page).to_have_url(re.compile("columns=host_total_ns"))


def test_rows_of_idle_time_have_names_and_no_hashes(app: App):
    page = app.open("idle", **TRACE, **BASE)
    table = page.get_by_role("treegrid", name="Idle time by culprit compared")
    expect(table.get_by_role("columnheader").first).to_contain_text("Cause")
    expect(table.locator("tr.row").first.locator("td").first).not_to_have_text("")
    expect(table).not_to_contain_text(re.compile("[0-9a-f]{16}"))


def test_the_base_s_curve_is_drawn_too_on_the_same_scale(app: App, artifacts: Path):
    place = {"worker": "rank0", "span": "5"}
    page = app.open("memory_curve", run="memory", **place, base_run="memory", base_worker="rank0", base_span="5")
    expect(page.locator(".basis").filter(has_text="Base memory").first).to_be_visible()
    new, base = (page.locator(".curves").nth(at).locator("svg text").all_text_contents() for at in (0, 1))
    assert new == base != []
    page.screenshot(path=artifacts / "compared-memory.png")
    assert not violations(page)


def test_the_overview_lays_both_average_steps_over_each_other(app: App, artifacts: Path):
    page = app.open("overview", **TRACE, **BASE)
    bars = page.locator(".stacked")
    expect(bars).to_have_count(2)
    expect(page.locator(".answer")).to_contain_text("The average step: ")
    expect(page.locator(".changes")).to_contain_text("(+40 %)")
    page.screenshot(path=artifacts / "compared-overview.png")


def test_the_function_that_makes_the_host_take_longer_is_named(app: App, artifacts: Path):
    labels = {"run": "labels", "worker": "rank0", "span": "9"}
    page = app.open("overview", **labels, base_run="labels", base_worker="rank0", base_span="5")
    answer = page.locator(".answer")
    expect(answer).to_contain_text("check_labels (data.py) takes 2.93 ms more per step: 0.07 → 3 ms.")
    expect(answer.locator("code")).to_have_text("check_labels (data.py)")
    expect(answer).not_to_contain_text("Largest change")  # which is that function
    expect(page.locator(".changes tbody tr").first).to_contain_text("check_labels (data.py)")
    page.screenshot(path=artifacts / "compared-function.png")
    assert not violations(page)


def test_the_difference_of_the_step_is_a_sentence_bars_and_terms_that_open_on_both_sides(app: App, artifacts: Path):
    page = app.open("overview", **TRACE, **BASE)
    page.get_by_role("button", name="Step difference").click()
    app.settle()
    expect(page.locator(".sentence")).to_contain_text("The typical step (")
    bars = page.get_by_role("group", name="Terms of the difference").get_by_role("button")
    signed = [float(text.replace("−", "-").replace("≈0", "0")) for text in bars.locator("b").all_inner_texts()]
    assert sum(signed[:-1]) == pytest.approx(signed[-1], abs=0.1)
    bars.filter(has_text="same work").click()
    app.settle()
    assert set(app.column("Kind")) == {"same work"}
    page.get_by_role("treegrid").locator("tr.row").first.click()
    app.settle()
    work = page.get_by_role("region", name="Its work on both sides")
    expect(work.get_by_role("listitem").first).to_contain_text("→")
    page.screenshot(path=artifacts / "step-difference.png")
    base, new = (work.get_by_role("listitem").first.get_by_role("button").nth(at) for at in (0, 1))
    new.click()
    app.settle()
    expect(page).to_have_url(re.compile(r"view=timeline.*from="))
    expect(page).to_have_url(re.compile("span=9"))
    page.go_back()
    app.settle()
    base.click()
    app.settle()
    expect(page).to_have_url(re.compile(r"base_span=9"))


def test_without_a_base_the_difference_says_what_it_takes(app: App):
    page = app.open("step_difference", **TRACE)
    expect(page.locator(".notice")).to_contain_text("Compare with…")
    page = app.open("overview", **TRACE)
    expect(page.get_by_role("button", name="Step difference")).to_have_count(0)


def test_a_base_that_cannot_be_read_says_why(app: App):
    page = app.open("kernels", **TRACE, base_run="broken", base_worker="rank0", base_span="5")
    expect(page.get_by_role("alert").first).to_contain_text("rank0.5.pt.trace.json")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_comparing_is_accessible(app: App, artifacts: Path, scheme: str):
    app.page.emulate_media(color_scheme=scheme)
    broken = {}
    for view in ("overview", "operators", "environment", "gpus", "steps"):
        page = app.open(view, **TRACE, **BASE)
        page.screenshot(path=artifacts / f"compared-{view}-{scheme}.png")
        if found := violations(page):
            broken[view] = found
    assert not broken
