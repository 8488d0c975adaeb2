"""The entries of the panel, their tabs, and what stands under "Not in this trace"."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from browser.accessibility import violations

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from browser.app import App


def panel(page: Page) -> list[str]:
    """The entries of the panel, without their keys."""
    buttons = page.get_by_role("navigation", name="Views").locator("> ul button")
    return [name.split("\n")[0] for name in buttons.all_inner_texts()]


def expect_tab(page: Page, name: str) -> None:
    expect(page.get_by_role("tab", selected=True)).to_have_text(name)


@pytest.mark.parametrize(
    ("old", "entry", "label"),
    [
        ({"view": "kernel_durations"}, "Kernels", "Durations"),
        ({"view": "kernels", "group": "kernels_by_op"}, "Kernels", "By launcher"),
        ({"view": "gpus"}, "Kernels", "Kernels"),
        ({"view": "operators", "group": "operators_by_shape"}, "Operators", "Shapes"),
        ({"view": "call_stacks"}, "Operators", "Operators"),
        ({"view": "gaps"}, "Idle", "Why idle"),
        ({"view": "run_health"}, "Trace health", "Notes"),
        ({"view": "environment"}, "Trace health", "Environment"),
        ({"view": "collectives"}, "Ranks", "Communication"),
    ],
)
def test_an_old_address_opens_its_entry_and_tab(app: App, old: dict[str, str], entry: str, label: str):
    page = app.open(**old)
    expect(page.get_by_role("heading", level=1)).to_have_text(entry)
    expect(page.get_by_role("tab", selected=True)).to_have_text(label)
    page.wait_for_function("!location.hash.includes('group=')")
    expect(page.locator(".banner")).to_have_count(0)
    current = page.get_by_role("navigation", name="Views").locator("[aria-current=page]")
    expect(current).to_contain_text(entry)


def test_most_entries_are_in_sight_at_200_percent(app: App):
    app.page.set_viewport_size({"width": 720, "height": 450})
    page = app.open("overview")
    entry = page.get_by_role("navigation", name="Views").get_by_role("button", name="Operators")
    assert entry.evaluate("entry => entry.getBoundingClientRect().bottom") < 450


def test_tabs_stay_where_they_are_whichever_is_open(app: App):
    app.page.set_viewport_size({"width": 720, "height": 450})
    page = app.open("kernels")
    places = []
    for name in ("Kernels", "Efficiency"):
        page.get_by_role("tab", name=name, exact=True).click()
        app.settle()
        places.append([tab.bounding_box() for tab in page.get_by_role("tab").all()])
    assert len(places[0]) > 2
    assert places[0] == places[1]


def test_the_open_entry_is_in_sight_in_a_low_window(app: App):
    app.page.set_viewport_size({"width": 720, "height": 300})
    page = app.open("health")
    entry = page.get_by_role("navigation", name="Views").locator("[aria-current=page]")
    expect(entry).to_contain_text("Trace health")
    box = entry.bounding_box()
    assert box
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= 300


def test_the_panel_lists_what_the_trace_has_and_folds_the_rest(app: App):
    page = app.open("overview", run="cpu_only")
    entries = ["Overview", "Timeline", "Critical path", "Operators", "Annotations", "Trace health"]
    assert panel(page) == [*entries, "History"]  # of the logdir's many runs
    nav = page.get_by_role("navigation", name="Views")
    nav.get_by_text("Not in this trace (").click()
    folded = nav.locator(".absent li")
    expect(nav.locator("summary")).to_contain_text(f"({folded.count()})")
    expect(folded.filter(has_text="Memory")).to_contain_text("profile_memory=True")
    expect(folded.filter(has_text="Idle")).to_contain_text("ProfilerActivity.CUDA")
    expect(folded.filter(has=page.get_by_role("button", name="Ranks", exact=True))).to_contain_text(
        "Record several ranks"
    )
    folded.get_by_role("button", name="Memory").click()
    expect(page.locator(".notice")).to_contain_text("profile_memory=True")
    assert not violations(page)


def test_tabs_without_data_are_folded_with_their_entry_s_name(app: App):
    page = app.open("kernels")
    labels = page.get_by_role("tab").all_inner_texts()
    assert labels[:3] == ["Kernels", "By launcher", "Durations"]
    assert "Graphs" not in labels
    nav = page.get_by_role("navigation", name="Views")
    nav.get_by_text("Not in this trace (").click()
    expect(nav.locator(".absent li").filter(has_text="Kernels: Graphs")).to_contain_text("graph was launched")


def test_an_entry_has_its_number_once_the_page_knows_it(fresh_app: App):
    page = fresh_app.open("idle")
    idle = page.get_by_role("navigation", name="Views").get_by_role("button", name="Idle")
    expect(idle.locator(".figure")).to_have_text(re.compile(r"^[\d.]+ %$"))
    page.get_by_role("navigation", name="Views").get_by_role("button", name="Kernels").click()
    kernels = page.get_by_role("navigation", name="Views").get_by_role("button", name="Kernels")
    expect(kernels.locator(".figure")).to_have_text("3")
    health = page.get_by_role("button", name="Trace health").locator(".figure")
    expect(page.get_by_role("button", name="Trace health: ")).to_contain_text(health.inner_text())
    expect(health).to_have_text(re.compile("note|warning"))


@pytest.mark.parametrize("view", ["overview", "health"])
def test_the_badge_counts_what_is_wrong_with_the_run_too(app: App, view: str):
    page = app.open(view, run="half", worker="rank0", span="5")
    expect(page.get_by_role("button", name="Trace health: ")).to_contain_text("1 loss")


def test_an_entry_opens_with_its_first_tab_that_has_data(app: App):
    page = app.open("operators", run="launches_only")
    listed = page.get_by_role("navigation", name="Views")
    expect(listed.get_by_text("Not in this trace (")).to_be_visible()  # what the trace has is known
    listed.get_by_role("button", name="Idle", exact=True).click()
    app.settle()
    expect(page.get_by_role("heading", level=1)).to_have_text("Idle")
    expect(page).to_have_url(re.compile("view=launches"))
    expect(page.locator("tr.row").first).to_contain_text("cudaLaunchKernel")


def test_ranks_are_an_entry_where_there_are_several(app: App):
    assert "Ranks" in panel(app.open("overview", run="made"))
    assert "Ranks" not in panel(app.open("overview", run="modules"))


def test_arrow_keys_go_through_the_tabs(app: App):
    page = app.open("kernels")
    page.get_by_role("tab", selected=True).focus()
    page.keyboard.press("ArrowRight")
    expect_tab(page, "By launcher")
    expect(page.get_by_role("tab", name="By launcher")).to_be_focused()
    expect(page.get_by_role("tabpanel", name="By launcher")).to_be_visible()
    expect(page).to_have_url(re.compile("view=kernels_by_op"))
    page.keyboard.press("End")
    last = page.get_by_role("tab").last
    expect(last).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect_tab(page, "Kernels")
    page.keyboard.press("ArrowLeft")
    expect(last).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Home")
    expect_tab(page, "Kernels")
    expect(page.locator("[role=tab][tabindex='0']")).to_have_count(1)


def test_a_tab_keeps_its_filter_while_another_is_open(app: App):
    page = app.open("kernels", filter="sgemm")
    page.get_by_role("tab", name="By launcher").click()
    app.settle()
    expect(page.get_by_label("Filter rows").first).to_have_value("")
    page.get_by_role("tab", name="Kernels", exact=True).click()
    expect(page.get_by_label("Filter rows").first).to_have_value("sgemm")
    page.go_back()
    expect_tab(page, "By launcher")


def test_the_head_says_what_the_device_is_and_opens_to_a_table(app: App):
    page = app.open("kernels")
    head = page.get_by_role("region", name="GPUs")
    expect(head).to_contain_text("Made GPU")
    head.get_by_role("button", name="All columns").click()
    expect(head.get_by_role("treegrid")).to_contain_text("108")
    assert not violations(page)


def test_a_link_is_copied(fresh_app: App):
    page = fresh_app.open("operators", filter="relu")
    page.evaluate("navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve() }")
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("window.copied") == page.url


def test_an_address_of_a_removed_run_opens_no_other_one(app: App):
    page = app.open("overview", run="was_removed")
    expect(page.locator(".notice")).to_contain_text("There is no run “was_removed” here")
    expect(page).to_have_url(re.compile("run=was_removed(&|$)"))
    page.locator(".notice").get_by_role("button").first.click()
    expect(page).not_to_have_url(re.compile("was_removed"))
    app.settle()
    expect(page.locator("main")).not_to_contain_text("was_removed")


def test_an_address_of_an_unknown_worker_says_so_and_offers_the_most_similar(app: App):
    page = app.open("overview", run="ranks", worker="rank11")
    expect(page.locator(".notice")).to_contain_text("There is no worker “rank11” here")
    page.get_by_role("button", name="Open rank1").click()
    expect(page.get_by_label("Worker")).to_have_value("rank1")
    app.settle()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")


@pytest.mark.parametrize(("title", "entry"), [("memory", "Memory"), ("trace health", "Trace health")])
def test_the_title_of_an_entry_opens_it(app: App, title: str, entry: str):
    page = app.open(title, run="memory", worker="rank0", span="5")
    expect(page.get_by_role("heading", level=1)).to_have_text(entry)
    expect(page.locator(".banner")).to_have_count(0)


def test_an_address_that_another_page_wrote_is_completed_at_once(app: App):
    page = app.open("kernels")
    app.go(view="operators", run="modules")
    expect(page.get_by_label("Worker")).to_have_value("rank0")
    expect(page).to_have_url(re.compile("span=5"))


def test_a_run_is_found_by_a_regular_expression(app: App):
    page = app.open("kernels")
    page.get_by_role("button", name="Find a run…").click()
    box = page.get_by_label("Filter runs")
    box.fill("^m(ade|any_steps)$")
    expect(page.get_by_role("dialog").get_by_role("listitem")).to_have_count(2)
    assert not violations(page)
    box.press("Enter")  # which of both isn't said
    expect(page.get_by_role("dialog")).to_be_visible()
    box.fill("^many_st")
    box.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("combobox", name="Run", exact=True)).to_have_value("many_steps")


def test_a_long_name_wraps_where_the_page_is_narrow(app: App):
    app.page.set_viewport_size({"width": 1024, "height": 768})
    page = app.open("overview", run="launches_only")
    name = page.locator(".selector span").first
    expect(name).to_have_text("launches_only")
    assert name.evaluate("span => span.scrollWidth <= span.clientWidth")


def test_without_a_job_capture_shows_the_lines_that_a_training_needs(app: App):
    page = app.open("kernels")
    page.get_by_role("button", name="Capture…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("pre")).to_contain_text("with Tracer(")
    assert dialog.locator("pre").evaluate("lines => lines.scrollWidth <= lines.clientWidth")
    assert not violations(page)
