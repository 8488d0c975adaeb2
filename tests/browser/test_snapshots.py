"""The page of a memory snapshot: its sentence, and its blocks as bands."""

import re

from playwright.sync_api import expect

from browser.app import App, watched
from contract.opening import opening
from support.snapshot_twins import training
from support.snapshots import GIB, MIB, Allocator, failing, trained

ZOOM = re.compile(r"^Only .* to .*")


def test_a_block_is_a_band_that_opens_its_stack_and_a_drag_shows_a_part(page, tmp_path):
    allocator = Allocator(8 * GIB)
    trained(allocator, 3, activation=512 * MIB)
    allocator.annotations.append({"stage": "START", "name": "<b>eval", "device": 0, "time_us": allocator._now})
    allocator.allocate(GIB, "/job/<img src=x onerror=alert(1)>.py:7:f")
    path = tmp_path / "job.pickle"
    path.write_bytes(allocator.dumped())
    with opening(path) as served, watched(page, served.base):
        page.goto(served.address)
        App(page).settle()
        page.get_by_role("link", name="Memory").or_(page.get_by_role("button", name="Memory")).first.click()
        use_bands(page)


def test_a_step_and_an_operator_of_the_trace_show_their_memory_in_the_snapshot(page, tmp_path):
    twins = training()
    (tmp_path / "job").mkdir()
    (tmp_path / "job/rank0.4.memory.pickle").write_bytes(twins.allocator.dumped())
    (tmp_path / "job/rank0.4.pt.trace.json").write_text(twins.trace.text())
    with opening(tmp_path) as served, watched(page, served.base):
        page.goto(served.address)
        app = App(page)
        app.settle()
        app.go(run="job", worker="rank0", span="4", view="steps", row="1", open="snapshot_operators")
        operators = page.locator(".row-drawer details[open]", has_text="Allocated in the snapshot")
        expect(operators.locator("tr.row", has_text="aten::addmm")).to_contain_text("8")
        app.go(
            view="operators", filter="aten::mm", row="0", open="snapshot_operators", run="job", worker="rank0", span="4"
        )
        expect(operators.locator("tr.row")).to_have_count(1)
        app.go(run="job", worker="rank0", span="4", view="memory_curve", row="", open="", filter="")
        page.get_by_role("tab", name="Snapshot").click()
        page.get_by_role("button", name=re.compile("^Open ")).click()
        app.settle()
        expect(page.get_by_role("region", name="Blocks over time")).to_be_visible()
        expect(page.get_by_role("navigation", name="Views").get_by_role("button")).to_have_text(
            [re.compile("^Overview"), re.compile("^Memory"), re.compile("^Trace health")]
        )


def test_the_overview_says_what_to_do_and_the_timeline_why_it_is_empty(page, tmp_path):
    allocator = Allocator(8 * GIB)
    trained(allocator, 8, activation=256 * MIB, leak_bytes=800 * MIB)
    path = tmp_path / "leak.pickle"
    path.write_bytes(failing(allocator, 2 * GIB).dumped())
    with opening(path) as served, watched(page, served.base):
        page.goto(served.address)
        app = App(page)
        app.settle()
        app.go(view="overview")
        expect(page.get_by_role("region", name="Memory", exact=True)).to_contain_text(
            "Don't keep tensors from one step"
        )
        expect(page.get_by_text("Nothing was lost or repaired")).to_be_visible()
        expect(page.get_by_role("button", name="Show all as a table")).to_have_count(0)
        app.go(view="timeline")
        expect(page.get_by_role("heading", name="Timeline: not in this trace")).to_be_visible()
        page.locator(".notice").get_by_role("button", name="Memory").click()
        app.settle()


def use_bands(page):
    expect(page.get_by_role("region", name="Memory", exact=True)).to_contain_text("Memory peaks at 2.")
    bands = page.get_by_role("slider", name="Blocks over time 0")
    blocks = page.get_by_role("region", name="Blocks over time")
    bands.scroll_into_view_if_needed()  # before the pointer comes: scrolling hides its text
    App(page).settle()
    bands.hover(position={"x": 60, "y": 410})  # the first activation is at the bottom
    expect(page.get_by_role("tooltip")).to_contain_text("forward (job/model.py:20)")
    bands.click(position={"x": 60, "y": 410})
    drawer = page.get_by_role("region", name="Details of a row of Blocks over time")
    expect(drawer).to_contain_text("model.py:20")
    page.keyboard.press("Escape")
    bands.hover(position={"x": bands.bounding_box()["width"] - 3, "y": 8})
    expect(page.get_by_role("tooltip")).to_contain_text("<b>eval")
    box = bands.bounding_box()
    assert box
    page.mouse.move(box["x"] + 100, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + 300, box["y"] + 50)
    page.mouse.up()
    expect(page.get_by_role("status").filter(has_text=ZOOM)).to_be_visible()
    App(page).settle()
    expect(blocks.locator("tr.row").first).to_be_visible()
