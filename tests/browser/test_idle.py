"""Why is my GPU idle? How long do my named ranges take? The pages that answer, in the words of the question."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from browser.accessibility import violations
from browser.app import App, watched
from contract.opening import opening
from support.build import TraceBuilder

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page


def test_why_is_my_gpu_idle_is_answered_by_a_sentence_a_bar_and_the_culprits(app: App):
    page = app.open("idle")
    expect(page.locator(".answer")).to_have_text(
        re.compile(r"^GPU 0 was idle for .+\xa0ms of .+\xa0ms \(.+\xa0%\)\. .+\xa0% of that: .+\.$")
    )
    expect(page.get_by_role("button", name="GPU 0: parts of its time")).to_be_visible()
    culprits = page.get_by_role("region", name="Idle time by culprit")
    expect(culprits.get_by_role("treegrid").locator("tr.row").first).to_contain_text("Host")
    page.get_by_text("of devices and streams as a table").click()
    expect(page.get_by_role("treegrid").first.locator("tr.row").first).to_contain_text("device")
    assert not violations(page)


def test_the_queue_says_whether_the_host_runs_ahead_and_how_long_its_queue_is_on_average(app: App):
    page = app.open("queue_length", run="h100/training", worker="rank0", span="25")
    expect(
        page.get_by_text(re.compile("^The host rarely runs ahead of GPU 0: nothing is queued on stream 7 for"))
    ).to_be_visible()
    caption = page.locator("figcaption", has_text="GPU 0")
    expect(caption).to_contain_text(re.compile(r"Queued 0 to 2, mean 0\.\d+"))


def test_all_times_of_a_picture_have_one_unit(page: Page, tmp_path: Path):
    builder = TraceBuilder().step(1, 0, 3_000_000_000).launch(10, 5, 1).launch(20, 5, 2)
    builder.kernel("gemm", 1_000, 1_000_000_000, 1).kernel("ncclDevKernel_AllReduce", 1_000_001_000, 300_000_000, 2)
    path = tmp_path / "rank0.1.pt.trace.json"
    path.write_text(builder.text())
    with opening(path) as served, watched(page, served.base):
        page.goto(served.address)
        app = App(page)
        app.settle()
        app.go(view="exposed_time")
        picture = page.locator(".idle-bars")
        expect(picture).to_contain_text("300\xa0ms of 300\xa0ms")
        assert set(re.findall(r"\d\s(s|ms|µs|ns)\b", picture.inner_text())) == {"ms"}


def test_a_cause_has_one_name_in_the_legend_the_table_and_its_filter(app: App):
    page = app.open("idle")
    legend = [part.strip() for part in page.locator(".idle-bars li").all_inner_texts()]
    culprits = page.get_by_role("region", name="Idle time by culprit")
    rows = culprits.get_by_role("treegrid").locator("tr.row")
    expect(rows.first).to_contain_text(re.compile("Host, nothing recorded|Host in"))
    shown = rows.first.locator("td").all_inner_texts()
    assert any(part.startswith(cell.strip()) for part in legend for cell in shown if cell.strip())
    for words in ("host late", "nothing recorded"):  # an id, and words
        culprits.get_by_placeholder("Filter").fill(words)
        expect(rows.first).to_be_visible()


def test_the_parts_of_the_bar_add_up_to_the_window(app: App):
    parts = app.open("idle").get_by_role("button", name="GPU 0: parts of its time").locator("i")
    expect(parts.first).to_be_visible()
    shares = [float(part.evaluate("part => parseFloat(part.style.width)")) for part in parts.all()]
    assert len(shares) > 1
    assert sum(shares) == pytest.approx(100)  # percent of the window


def test_a_culprit_opens_to_its_gaps(app: App):
    page = app.open("idle")
    culprits = page.get_by_role("region", name="Idle time by culprit")
    culprits.locator("tr.row").first.click()
    gaps = culprits.locator("details.about", has_text="Its gaps")
    expect(gaps.locator("tr.row").first).to_be_visible()
    expect(culprits.get_by_role("button", name="Show in the timeline").first).to_be_visible()


def test_the_longest_gaps_say_why_and_what_the_host_did_before_details(app: App):
    page = app.open("idle", run="h100/training")
    table = page.get_by_role("region", name="Longest gaps").get_by_role("treegrid")
    titles = [text.split("\n")[0].strip() for text in table.get_by_role("columnheader").all_inner_texts()]
    assert titles.index("Host") == titles.index("Cause") + 1
    assert not {"Host late ms", "Late ms"} & {*titles}


def test_how_long_do_my_named_ranges_take(app: App):
    page = app.open("annotations")
    assert app.column("Name")[0].lstrip("▾▸") == "ProfilerStep"
    assert app.column("Source")[0] == "PyTorch"
    page.get_by_role("button", name="Name", exact=True).click()
    app.settle()
    assert "ProfilerStep" in app.column("Name")
    assert not violations(page)
