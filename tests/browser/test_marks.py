"""Where marks of charts and rows lead: into the drawer, to other ranks, and to advice."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Locator, Page, expect

from browser.accessibility import violations
from support.real_traces import FOLDER, MISSING

if TYPE_CHECKING:
    from browser.app import App

real = pytest.mark.skipif(not FOLDER.exists(), reason=MISSING)


def drawer(page: Page) -> Locator:
    return page.get_by_role("region", name=re.compile("^Details of a row of")).first


@real
def test_a_row_says_how_it_is_on_every_rank_and_leads_there(app: App):
    page = app.open("operators", run="dlrm_8gpu_nccl", row="2", open="1")
    ranks = drawer(page).get_by_role("region", name="By rank")
    expect(ranks).to_contain_text(re.compile(r"Rank \d takes longest: .* × the median of 8 ranks"))
    expect(ranks.locator("dl > div")).to_have_count(8)
    assert not violations(page)
    last = ranks.locator("dl button").last
    rank = last.inner_text()
    last.click()
    expect(page.get_by_label("Worker")).to_have_value(rank.replace(" ", ""))
    expect(page.get_by_role("search").get_by_role("status")).to_contain_text("results")


@real
def test_a_row_leads_to_the_advice_that_it_belongs_to(app: App):
    page = app.open("idle", run="resnet50_num_workers_0", **{"idle_culprits.row": "0", "idle_culprits.open": "1"})
    finding = drawer(page).get_by_role("region", name="Part of a finding")
    finding.get_by_role("button", name=re.compile("waits for data")).click()
    expect(page.locator("tr.row").first).to_contain_text("data loading")


def test_a_gap_opens_to_what_the_host_was_doing(app: App):
    page = app.open("idle")
    gaps = page.get_by_role("region", name="Longest gaps")
    gaps.locator("tr.row").first.click()
    part = gaps.locator("details.about", has_text="What the host was doing")
    expect(part.locator("tr.row").first).to_contain_text("Host late")
    expect(gaps.get_by_role("button", name="Show in the timeline").first).to_be_visible()


def test_bins_of_a_histogram_open_their_rows_by_click_and_keyboard(app: App):
    page = app.open("kernel_durations")
    page.locator(".histogram .bin").first.click()
    expect(drawer(page)).to_be_visible()
    slider = page.locator(".histogram").first.get_by_role("slider")
    slider.focus()
    page.keyboard.press("Escape")
    expect(drawer(page)).to_have_count(0)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuetext", re.compile(r" to .*\n"))
    page.keyboard.press("Enter")
    expect(drawer(page)).to_contain_text("2 of ")


def test_rectangles_of_a_treemap_open_their_rows_by_click_and_keyboard(app: App):
    page = app.open("memory_curve", run="memory")
    peak = page.get_by_role("region", name="At the peak by category")
    peak.locator(".treemap rect").first.click()
    expect(drawer(page)).to_be_visible()
    drawer(page).get_by_role("button", name="Close").click()
    expect(drawer(page)).to_have_count(0)
    peak.locator(".treemap").get_by_role("slider").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(drawer(page)).to_be_visible()


def test_the_bar_of_idle_time_opens_the_row_of_its_device(app: App):
    page = app.open("idle")
    page.get_by_role("button", name="GPU 0: parts of its time").press("Enter")
    expect(drawer(page)).to_be_visible()
    expect(page.get_by_role("row", selected=True)).to_contain_text("device")


def test_a_cell_of_the_heat_map_opens_its_row(app: App):
    page = app.open("rank_steps")
    page.locator(".heat svg image").first.click(position={"x": 5, "y": 5})
    expect(drawer(page)).to_be_visible()
    expect(drawer(page).get_by_role("button", name="Show in the timeline")).to_be_visible()


def test_a_thread_of_an_area_leads_to_its_slices(app: App):
    page = app.open("timeline", run="made", area="0~2000000~", drawer="420", area_by="thread")
    table = page.get_by_role("region", name="Area, rank0")
    table.locator("tr.row", has_text="stream 7").click()
    table.get_by_role("button", name="Show its slices in the timeline").click()
    expect(page.get_by_role("search").get_by_role("status")).to_contain_text("results")


def test_the_hint_about_keys_covers_no_track(app: App):
    app.page.set_viewport_size({"width": 720, "height": 450})
    page = app.open("timeline")
    hint, canvas = page.locator(".hint"), page.get_by_role("img", name="Timeline")
    expect(hint).to_be_visible()
    place, tracks = hint.bounding_box(), canvas.bounding_box()
    assert place
    assert tracks
    assert place["y"] >= tracks["y"] + tracks["height"]
    assert tracks["height"] > 100


@pytest.mark.parametrize("view", ["idle", "gaps", "kernels_by_op"])
def test_the_weight_is_in_sight_on_a_narrow_page(app: App, view: str):
    app.page.set_viewport_size({"width": 720, "height": 450})
    page = app.open(view)
    for table in page.get_by_role("treegrid").all():
        box, sorted_by = table.locator("..").bounding_box(), table.locator("th[aria-sort]").first.bounding_box()
        assert box
        assert sorted_by
        assert sorted_by["x"] + sorted_by["width"] <= box["x"] + box["width"] + 1


def test_the_edges_of_bins_stay_together_on_a_narrow_page(app: App):
    app.page.set_viewport_size({"width": 720, "height": 450})
    heads = app.open("kernel_durations").get_by_role("treegrid").locator("th")
    expect(heads.nth(0)).to_contain_text("From")
    expect(heads.nth(1)).to_have_text(re.compile(r"^To\b"))


@real
def test_processes_that_are_no_ranks_have_no_entry_of_ranks(app: App):
    page = app.open("overview", run="particle_cpu_logs")
    panel = page.get_by_role("navigation", name="Views")
    expect(panel.get_by_text("Not in this trace (")).to_be_visible()
    expect(panel.get_by_role("button", name="Ranks", exact=True)).to_have_count(0)


def test_the_critical_path_begins_with_a_sentence(app: App):
    page = app.open("critical_path")
    sentence = page.get_by_role("region", name="Critical path", exact=True)
    expect(sentence).to_contain_text(re.compile(r"\d\s?% of the critical path is "))
    sentence.get_by_role("button", name=re.compile("Advice")).click()
    page.wait_for_function("location.hash.includes('view=advice')")
