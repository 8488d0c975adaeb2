"""The dialog that takes the timeline to Perfetto: as a file, in the offline copy, or over the internet."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Locator, Page

    from browser.app import App

ONLINE = "https://ui.perfetto.dev/**"
STAND_IN = """<script>
let pings = 0;
addEventListener("message", ({ data, source, origin }) => {
  if (data === "PING") { if (++pings > 3) source.postMessage("PONG", origin); }
  else window.received = data.perfetto;
});
</script>"""
STEP_3 = "select name from slice where name = 'ProfilerStep#3'"
STEP_NS = 20_300_000  # about what a step of that recording lasts
RECEIVED = """async () => {
  const text = new Response(new Blob([received.buffer]).stream().pipeThrough(new DecompressionStream("gzip")));
  return { title: received.title, fileName: received.fileName, trace: await text.json() };
}"""


def dialog(app: App, run: str = "made", **place: str) -> Locator:
    app.open("timeline", run=run, worker="rank0", **place)
    app.page.get_by_role("button", name="Perfetto…").click()
    perfetto = app.page.get_by_role("dialog", name="Open in Perfetto")
    expect(perfetto.get_by_role("status").first).to_contain_text("packed.")
    return perfetto


def without_extra(context: BrowserContext) -> None:
    absent = {"state": "ready", "is_installed": False, "version": None}
    context.route("**/timeline/perfetto?*", lambda route: route.fulfill(json=absent))


def steps_in(trace: dict) -> list[str]:
    return sorted(e["name"] for e in trace["traceEvents"] if e["name"].startswith("ProfilerStep#"))


def test_the_file_holds_the_range_that_was_chosen(app: App):
    perfetto = dialog(app, span="5")
    perfetto.get_by_label("Range").select_option("step 2")
    expect(perfetto.get_by_role("status").first).to_contain_text("10 slices")
    with app.page.expect_download() as download:
        perfetto.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == "made.rank0.5.timeline.json.gz"
    trace = json.loads(gzip.decompress(Path(download.value.path()).read_bytes()))
    assert steps_in(trace) == ["ProfilerStep#2"]


def test_workers_that_are_shown_together_come_together(app: App):
    perfetto = dialog(app, span="5", ranks="rank1")
    perfetto.get_by_label("Range").select_option("whole")
    with app.page.expect_download() as download:
        perfetto.get_by_role("link", name="Download").click()
    trace = json.loads(gzip.decompress(Path(download.value.path()).read_bytes()))
    assert {e["args"]["name"].split(" · ")[0] for e in trace["traceEvents"] if e["name"] == "process_name"} == {
        "rank0",
        "rank1",
    }
    perfetto.get_by_label("Workers").select_option("rank1")
    expect(perfetto.get_by_role("status").first).to_contain_text("packed.")
    with app.page.expect_download() as download:
        perfetto.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == "made.rank1.5.timeline.json.gz"


def test_the_offline_copy_opens_in_a_new_tab_at_the_range(fresh_app: App, context: BrowserContext, artifacts: Path):
    perfetto = dialog(fresh_app, "single_process/transformer")
    perfetto.get_by_label("Range").select_option("step 3")
    with context.expect_page() as opened:
        perfetto.get_by_role("link", name="Open the offline copy").click()
    page: Page = opened.value
    page.wait_for_function("() => window.app?.trace")
    count = (
        "async () => (await app.trace.engine.query(\"select name from slice where name = 'ProfilerStep#3'\")).numRows()"
    )
    assert page.evaluate(count) == 1
    threads = page.get_by_text("annotations", exact=False).first  # in sight, since processes are unfolded
    expect(threads).to_be_visible()
    shown = page.evaluate("() => Number(app.trace.timeline.visibleWindow.duration)")
    assert STEP_NS * 0.9 < shown < STEP_NS * 1.5
    page.screenshot(path=artifacts / "perfetto-offline.png")


def test_without_the_extra_the_trace_goes_from_tab_to_tab(fresh_app: App, context: BrowserContext):
    without_extra(context)
    urls: list[str] = []
    context.on("request", lambda request: urls.append(request.url))
    context.route(ONLINE, lambda route: route.fulfill(body=STAND_IN, content_type="text/html"))
    perfetto = dialog(fresh_app, span="5")
    perfetto.get_by_label("Range").select_option("whole")
    expect(perfetto).to_contain_text("loads Perfetto's page from the internet")
    expect(perfetto).to_contain_text("pip install 'kinetoscope[perfetto]'")
    assert not any("ui.perfetto.dev" in url for url in urls)
    with context.expect_page() as opened:
        perfetto.get_by_role("button", name="Open ui.perfetto.dev").click()
    expect(perfetto).to_contain_text("Perfetto received the file")
    opened.value.wait_for_function("() => window.received")
    received = opened.value.evaluate(RECEIVED)
    assert (received["title"], received["fileName"]) == ("made rank0", "made.rank0.5.timeline.json.gz")
    assert steps_in(received["trace"]) == [f"ProfilerStep#{step}" for step in (1, 2, 3, 4)]
    assert [url for url in urls if "ui.perfetto.dev" in url] == ["https://ui.perfetto.dev/"]


def test_a_tab_that_is_closed_too_early_is_reported(fresh_app: App, context: BrowserContext):
    without_extra(context)
    context.route(ONLINE, lambda route: route.fulfill(body="nobody", content_type="text/html"))
    perfetto = dialog(fresh_app, span="5")
    with context.expect_page() as opened:
        perfetto.get_by_role("button", name="Open ui.perfetto.dev").click()
    opened.value.close()
    expect(perfetto).to_contain_text("That failed: its tab was closed.")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_dialog_can_be_looked_at(app: App, artifacts: Path, scheme: str):
    app.page.emulate_media(color_scheme=scheme)
    dialog(app, span="5", ranks="rank1")
    app.page.screenshot(path=artifacts / f"perfetto-dialog-{scheme}.png")
    app.page.keyboard.press("Escape")
    expect(app.page.get_by_role("dialog")).to_have_count(0)
