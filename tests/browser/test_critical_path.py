"""What would make the step shorter? The critical path as a picture, and its sentences."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from browser.accessibility import violations
from browser.app import App


def widths(bar):
    return [float(part.evaluate("part => parseFloat(part.style.width)")) for part in bar.locator("i, button").all()]


def test_each_step_is_a_bar_of_culprits_that_add_up(app: App):
    page = app.open("critical_path")
    average = page.get_by_role("group", name="Parts of Average step")
    expect(average).to_be_visible()
    assert sum(widths(average)) == pytest.approx(100)
    steps = page.get_by_role("img", name=re.compile(r"^Parts of Step \d+$"))
    assert steps.count() > 1
    assert all(sum(widths(step)) <= 100 for step in steps.all())
    assert not violations(page)


def test_a_part_of_a_bar_opens_its_row_which_leads_to_the_timeline(app: App):
    page = app.open("critical_path")
    parts = page.get_by_role("group", name="Parts of Average step").get_by_role("button")
    name = parts.first.get_attribute("aria-label").partition(":")[0]
    expect(parts.first).to_have_text("nothing recorded · 750 µs")
    parts.first.click()
    app.settle()
    expect(page.locator("tr.row[aria-selected=true]").first).to_contain_text(name)
    expect(page.get_by_role("button", name="Show in the timeline").first).to_be_visible()


def test_what_a_step_would_save_takes_one_line_at_1024_pixels(app: App):
    app.page.set_viewport_size({"width": 1024, "height": 768})
    page = app.open("critical_path")
    saved = page.locator(".sliders output", has_text=" to ")
    expect(saved).not_to_have_count(0)
    assert all(line.bounding_box()["height"] < 30 for line in saved.all())


def test_each_part_of_the_bar_has_a_slider_and_its_name_in_the_table(app: App):
    page = app.open("critical_path")
    parts = page.locator(".sliders li")
    expect(parts.first.locator("output b")).to_have_text(re.compile(r"^[<≈\d].* %$"))
    expect(page.locator(".idle-bars p")).to_contain_text("Times: on the path of the step. Savings: of a step, if all")
    slider = parts.first.get_by_role("slider")
    slider.press("End")
    expect(parts.first.locator("output")).to_contain_text("100 % less saves")
    expect(parts.first.locator("output .quiet")).to_have_text(
        re.compile(r"^[\d.]+ [mµ]s \([\d.]+( [mµ]s)? to [\d.]+ [mµ]s\)$")
    )
    expect(page).to_have_url(re.compile("faster=[a-z_]+(%3A|:)100"))
    table = page.get_by_label("Critical path by part", exact=True)
    expect(table.locator("tr.row")).to_have_count(parts.count())
    for part in parts.all():
        name = (
            part.get_by_role("slider").get_attribute("aria-label").removeprefix("If ").removesuffix(" took less time")
        )
        expect(table.locator("tr.row", has_text=name)).to_have_count(1)
    expect(page.locator("tr.row", has_text="ProfilerStep")).to_have_count(0)


def test_all_ranks_have_a_sentence_of_their_own(app: App):
    page = app.open("critical_path", run="ranks", worker="rank0", span="5")
    sentence = page.get_by_role("region", name="Critical path", exact=True).locator(".sentence")
    expect(sentence).to_be_visible()
    of_rank = sentence.inner_text()
    page.get_by_role("tab", name="All ranks").click()
    app.settle()
    expect(sentence).to_contain_text("of the critical path is ")
    assert sentence.inner_text() != of_rank
