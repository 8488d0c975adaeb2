"""An exported timeline in the offline copy of Perfetto: all of it is drawn, without requests to the internet."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import pytest
from playwright.sync_api import expect

from browser.app import PATIENCE_S
from contract.running import PLUGIN, Server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

STACKS = {"run": "single_process/transformer", "worker": "rank0"}
TRACE = {"run": "made", "worker": "rank0", "span": "5"}
ROWS = """async (sql) => {
  const rows = [], result = await app.trace.engine.query(sql);
  const plain = (value) => typeof value === "bigint" ? Number(value) : value;
  for (const row = result.iter({}); row.valid(); row.next()) rows.push(result.columns().map((c) => plain(row.get(c))));
  return rows;
}"""
CHROME = """async (text) => {
  const model = new tr.Model(), options = new tr.importer.ImportOptions();
  options.shiftWorldToZero = options.pruneEmptyContainers = false;
  await new tr.importer.Import(model, options).importTraces([text]);
  const threads = model.getAllThreads(), slices = threads.flatMap((thread) => thread.sliceGroup.slices);
  return {
    warnings: model.importWarnings.map(({ message }) => message),
    slices: slices.map(({ title, start, duration }) => [title, Math.round(start * 1e6), Math.round(duration * 1e6)]),
    arrows: model.flowEvents.length,
    counters: model.getAllCounters().map(({ name }) => name),
    tracks: threads.map((thread) => thread.userFriendlyName),
  };
}"""
"""Reads a trace as chrome://tracing does: by its own code, which Perfetto's page has along."""


def settled_place(server: Server, place: dict[str, str]) -> dict[str, str]:
    """The names of a recording and its stamp; the first span, if none is named."""
    if "span" not in place:
        runs = {run["name"]: run for run in server.plugin("runs").json["runs"]}
        place = {**place, "span": runs[place["run"]]["workers"][0]["spans"][0]["name"]}
    return {**place, "stamp": server.settled("timeline", **place).json["stamp"]}


class Perfetto:
    """The offline copy with a trace in it.

    Attributes:
        outside: Requests to other addresses, and why they failed; None if it didn't.
    """

    def __init__(self, page: Page, base: str) -> None:
        self.page, self.base, self.server = page, base, Server(f"{base}/", None)  # type: ignore[arg-type]
        self.outside: list[tuple[str, str | None]] = []
        self.failed: list[str] = []
        page.on("requestfailed", lambda request: self._note(request, request.failure))
        page.on("requestfinished", lambda request: self._note(request, None))
        page.on("pageerror", lambda error: self.failed.append(str(error)))

    def _note(self, request: Any, failure: str | None) -> None:
        if not request.url.startswith((self.base, "data:", "blob:")):
            self.outside.append((request.url, failure))

    def open(self, place: dict[str, str], **query: str) -> list[dict[str, Any]]:
        """Open an export; returns the file's events."""
        query = {**settled_place(self.server, place), **query}
        events = json.loads(gzip.decompress(self.server.plugin("timeline/export", **query).body))["traceEvents"]
        url = quote(f"{self.base}/{PLUGIN}timeline/export?{urlencode(query)}", safe="")
        self.page.goto(f"{self.base}/{PLUGIN}timeline/perfetto/index.html#!/?mode=embedded&hideSidebar=true&url={url}")
        self.page.wait_for_function("() => window.app?.trace")
        return events

    def ask(self, sql: str) -> list[list[Any]]:
        """The rows of a query to its database."""
        return self.page.evaluate(ROWS, sql)

    def slices(self) -> Counter[tuple[str, int, int]]:
        """How often it has each slice: name, start, duration."""
        start = self.ask("select start_ts from trace_bounds")[0][0]
        return Counter((name, ts - start, dur) for name, ts, dur in self.ask("select name, ts, dur from slice"))


@pytest.fixture
def perfetto(page: Page, base_url: str) -> Perfetto:
    return Perfetto(page, base_url)


def expected(events: list[dict[str, Any]]) -> Counter[tuple[str, int, int]]:
    """The slices of the file, from its first moment on."""
    drawn = [event for event in events if event["ph"] in "Xi"]
    start = min(round(event["ts"] * 1000) for event in events if "ts" in event)
    return Counter((e["name"], round(e["ts"] * 1000) - start, round(e.get("dur", 0) * 1000)) for e in drawn)


def test_every_slice_of_a_recording_with_stacks_is_drawn(perfetto: Perfetto):
    events = perfetto.open(STACKS, include="memory,flows")
    slices = perfetto.slices()
    assert slices == expected(events)
    names = Counter(name for name, _, _ in slices.elements())
    assert [names[f"ProfilerStep#{step}"] for step in (2, 3, 4, 5)] == [1, 1, 1, 1]
    annotations = [event for event in events if event.get("cat") == "user_annotation"]
    assert perfetto.ask("select count(*) from slice where category = 'user_annotation'") == [[len(annotations)]]
    assert perfetto.ask("select count(*) from flow") == [[sum(event["ph"] == "s" for event in events)]]
    assert perfetto.ask("select count(*) from counter") == [[sum(event["ph"] == "C" for event in events)]]
    assert perfetto.ask("select name from stats where value > 0 and severity != 'info'") == []


def test_chrome_s_own_viewer_reads_every_slice_without_a_warning(page: Page, base_url: str):
    server = Server(f"{base_url}/", None)  # type: ignore[arg-type]
    version = server.plugin("timeline/perfetto").json["version"]
    packed = server.plugin("timeline/export", **settled_place(server, STACKS), include="memory,flows,args").body
    text = gzip.decompress(packed).decode()
    events = json.loads(text)["traceEvents"]
    page.goto(f"{base_url}/{PLUGIN}timeline/perfetto/{version}/assets/catapult_trace_viewer.html")
    page.wait_for_function("() => window.tr?.importer?.Import")
    read = page.evaluate(CHROME, text)
    assert read["warnings"] == []
    drawn = [event for event in events if event["ph"] in "Xi"]
    whole = Counter((e["name"], round(e["ts"] * 1000), round(e.get("dur", 0) * 1000)) for e in drawn)
    assert Counter(map(tuple, read["slices"])) == whole
    assert read["arrows"] == sum(event["ph"] == "s" for event in events)
    assert any("cpu memory" in name for name in read["counters"])
    assert {"annotations · thread 10072 (python)", "Python · thread 10072 (python)"} <= set(read["tracks"])


@pytest.fixture(scope="module")
def small(browser: Browser, base_url: str) -> Iterator[Perfetto]:
    """With a small trace in it."""
    perfetto = Perfetto(browser.new_page(), base_url)
    perfetto.page.set_default_timeout(PATIENCE_S * 1000)
    perfetto.open(TRACE)
    yield perfetto
    perfetto.page.close()


def test_its_tracks_have_our_names_in_sight(small: Perfetto):
    assert small.slices()
    for name in ("GPU 0 · Made GPU", "process 1000"):
        expect(small.page.get_by_text(name).first).to_be_visible()
    threads = {name for (name,) in small.ask("select name from thread where name is not null")}
    assert {"stream 7", "thread 1", "annotations · thread 1"} <= threads


def test_nothing_is_requested_from_outside(small: Perfetto):
    small.page.wait_for_timeout(2000)  # it begins to ask after it has drawn
    assert [request for request in small.outside if request[1] != "csp"] == []  # the page's policy held it back
    assert small.failed == []
