"""Rooflines, memory by category, and flame graphs of many boxes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from browser.accessibility import violations
from browser.app import App, address
from browser.traces import write
from contract.running import serving
from support.build import TraceBuilder


def test_the_roofline_says_what_is_drawn_and_its_points_open_rows(app: App):
    page = app.open("operator_efficiency", run="matmuls")
    chart = page.locator(".roofline")
    expect(chart.locator("circle")).to_have_count(2)
    expect(chart).to_contain_text("bf16 989 TFLOP/s")
    expect(chart).to_contain_text("memory 3.35 TB/s")
    expect(chart.locator("p")).to_contain_text("Drawn: 2 rows, 300 µs of 370 µs.")
    expect(chart.locator("p")).to_contain_text("Not drawn: [other operators] (70 µs). ")
    chart.locator("circle").first.click()
    expect(page.get_by_role("row", selected=True)).to_contain_text("4096")


def test_the_points_of_a_roofline_are_reached_by_keys(app: App):
    page = app.open("operator_efficiency", run="matmuls")
    slider = page.get_by_role("slider")
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuetext", re.compile(r"^aten::mm .*% of the roof$", re.DOTALL))
    page.keyboard.press("Enter")
    expect(page.get_by_role("row", selected=True)).to_contain_text("64")


def test_labels_of_a_roofline_do_not_cover_each_other(app: App):
    page = app.open("operator_efficiency", run="matmuls")
    boxes = [label.bounding_box() for label in page.locator(".roofline text.strong").all()]
    assert len(boxes) >= 3
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            assert a
            assert b
            is_aside = a["x"] >= b["x"] + b["width"] or b["x"] >= a["x"] + a["width"]
            assert is_aside or a["y"] >= b["y"] + b["height"] - 1 or b["y"] >= a["y"] + a["height"] - 1


def test_names_of_roofs_are_drawn_over_points(app: App):
    page = app.open("operator_efficiency", run="matmuls")
    drawn = page.locator(".roofline circle, .roofline text.strong").evaluate_all("all => all.map(one => one.tagName)")
    assert drawn == sorted(drawn)
    assert len({*drawn}) == 2


def test_work_without_flops_has_a_level_roof_of_its_own_once_the_rest_is_filtered_out(app: App):
    page = app.open("operator_efficiency", run="without_flops")
    chart = page.locator(".roofline")
    expect(chart.locator("circle")).to_have_count(1)
    expect(chart.locator("p")).to_contain_text("Drawn: 1 row, 200 µs of 270 µs. Not drawn, since they have no FLOPs: ")
    app.go(view="operator_efficiency", run="without_flops", filter="relu")
    expect(chart).to_contain_text("memory 3.35 TB/s")
    heights = re.findall(r"[ML][\d.]+ ([\d.]+)", chart.locator("path.roof").first.get_attribute("d") or "")
    assert len(set(heights)) == 1
    chart.locator("circle").hover()
    expect(page.get_by_role("tooltip")).to_contain_text("959 GB/s 28.6 % of the roof")


def test_memory_begins_with_who_holds_the_peak(app: App):
    page = app.open("memory_curve", run="memory")
    banner = page.locator(".verdict")
    expect(banner).to_contain_text("Memory of cuda:0 peaks at 768 MiB")


def test_annotations_are_bars_of_host_and_device_time_and_a_click_opens_the_row(app: App):
    page = app.open("annotations_by_name", run="ranges")
    first = page.locator(".ranges .row").first
    expect(first.get_by_role("button")).to_have_text("forward")
    expect(first.get_by_role("img")).to_have_count(2)
    expect(first.get_by_role("img").last).to_have_accessible_name(
        "forward: GPU busy 300 µs, GPU idle in between 100 µs"
    )
    first.get_by_role("button").click()
    expect(page.get_by_role("row", selected=True)).to_contain_text("forward")


def test_bars_of_annotations_have_one_scale_and_room_for_their_lengths_on_a_narrow_page(app: App):
    app.page.set_viewport_size({"width": 720, "height": 900})
    page = app.open("annotations_by_name", run="ranges")
    forward, loss = (page.locator(".ranges .row").nth(row).locator(".stacked").first for row in range(2))
    widths = [bar.locator("i").evaluate("bar => bar.getBoundingClientRect().width") for bar in (forward, loss)]
    assert widths[0] / widths[1] == pytest.approx(900 / 50, rel=0.02)
    right = [box.bounding_box() for box in (forward.locator("span"), page.locator(".ranges"))]
    assert right[0]["x"] + right[0]["width"] <= right[1]["x"] + right[1]["width"]


def test_many_equal_layers_are_one_box_until_another_way_is_chosen(app: App):
    page = app.open("modules", run="layers")
    flame = page.locator(".flames")
    flame.focus()
    for key in ("ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    expect(flame.get_by_role("status")).to_contain_text(re.compile(r"^6 × Block"))
    page.get_by_role("button", name="Left heavy").click()
    flame.focus()
    for key in ("ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    expect(flame.get_by_role("status")).to_contain_text(re.compile(r"^Block_\d"))


def test_memory_by_category_is_stacked_and_its_peak_is_a_treemap(app: App):
    page = app.open("memory_curve", run="memory")
    curves = page.get_by_role("region", name="By category", exact=True)
    expect(curves.locator("path.stacked.line5")).to_have_count(1)
    expect(curves.locator("path.stacked")).to_have_count(1)  # nothing but memory of unknown use
    expect(curves.locator("figcaption")).to_contain_text(re.compile(r"cuda:0 ?Unknown 256 MiB to 768 MiB"))
    expect(curves.get_by_role("slider")).to_have_accessible_name(re.compile("^By category: cuda:0 over time"))
    peak = page.get_by_role("region", name="At the peak by category")
    expect(peak.locator(".treemap figcaption")).to_contain_text("768 MiB in all")
    expect(peak.locator(".treemap")).to_contain_text("[allocated before the recording]")
    expect(peak.locator(".treemap .legend li")).to_have_text(["unknown 768 MiB (100 %)"])
    peak.locator(".treemap rect").first.click()
    expect(peak.get_by_role("row", selected=True)).to_have_count(1)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("view", "run"), [("operator_efficiency", "matmuls"), ("memory_curve", "memory")])
def test_charts_are_accessible(app: App, view: str, run: str, scheme: str):
    app.page.emulate_media(color_scheme=scheme)
    page = app.open(view, run=run)
    assert not violations(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_sandwich_is_accessible(app: App, scheme: str):
    app.page.emulate_media(color_scheme=scheme)
    page = app.open("python_calls", run="modules", flame="sandwich")
    assert not violations(page)


def test_threads_that_only_wait_are_shown_on_demand(page: Page, tmp_path: Path):
    builder = TraceBuilder().python("train.py(9): main", 0, 1_000_000).op("aten::mm", 10_000, 500_000)
    builder.python("queue.py(2): _run", 0, 900_000, thread=2)
    builder.python("<built-in method acquire of _thread.lock object at 0x7f>", 1_000, 890_000, thread=2)
    write(tmp_path, "run/rank0.5.pt.trace.json", builder.text())
    with serving(f"--logdir={tmp_path}") as server:
        place = address(view="python_calls", run="run", worker="rank0", span="5")
        page.goto(f"{server.base}data/plugin_entry.html?name=pytorch_profiler{place}")
        page.get_by_role("button", name="Show 1 waiting thread (900\xa0µs)").click()
        expect(page.get_by_role("button", name="Fold 1 waiting thread (900\xa0µs)")).to_be_visible()


def test_steps_begin_with_the_usual_one_and_a_column_for_each(app: App):
    page = app.open("steps", run="many_steps")
    chart = page.locator("figure", has=page.locator("svg.steps"))
    expect(chart.locator(".answer")).to_have_text(
        "The usual step takes 900\xa0µs (median of 12). None takes noticeably longer."
    )
    expect(chart.locator("line.usual")).to_have_count(1)
    expect(chart.get_by_role("list")).to_contain_text("Kernel")
    assert not violations(page)
    chart.get_by_role("slider").focus()
    page.keyboard.press("ArrowRight")
    expect(chart.get_by_role("slider")).to_have_attribute("aria-valuetext", re.compile("^Step 1.*Kernel: ", re.DOTALL))


def test_a_single_step_has_no_picture(app: App):
    page = app.open("steps", run="launches_only")
    expect(page.locator("tr.row")).to_have_count(1)
    expect(page.locator("svg.steps")).to_have_count(0)


@pytest.mark.parametrize(
    ("view", "title"),
    [
        ("copies", "copies or fills run and no kernel does"),
        ("launches", "Launch latency"),
        ("annotations_by_name", "Of the program's ranges, backward takes the host longest"),
    ],
)
def test_copies_launches_and_annotations_begin_with_what_they_cost(app: App, view: str, title: str):
    page = app.open(view, run="h100/training")
    expect(page.locator(".verdict .sentence")).to_contain_text(title)
    expect(page.get_by_role("treegrid").locator("tr.row").first).to_be_visible()
