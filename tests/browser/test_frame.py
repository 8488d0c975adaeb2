"""The page in a frame without a server, as a notebook's widget has it: the window around it passes on what it asks."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from browser.traces import REPOSITORY
from kinetoscope_tb.discovery import parse_logdirs
from kinetoscope_tb.web.app import Site
from kinetoscope_tb.web.frame import FramePage

if TYPE_CHECKING:
    from playwright.sync_api import FrameLocator, Page

SAMPLE = REPOSITORY / "samples" / "h100" / "compiled"
AROUND = """async () => {
  const unpack = async ({ status, headers, content }) => {
    const stream = new Blob([Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0))]).stream();
    const isPacked = headers["Content-Encoding"] === "gzip";
    const bytes = await new Response(isPacked ? stream.pipeThrough(new DecompressionStream("gzip")) : stream).arrayBuffer();
    return { status, headers, content: bytes };
  };
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts allow-downloads");
  frame.style.cssText = "width: 1200px; height: 700px";
  frame.srcdoc = new TextDecoder().decode((await unpack(await ask({ target: "/" }))).content);
  frame.addEventListener("load", () => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = async ({ data: { id, request } }) => port1.postMessage({ id, answer: await unpack(await ask(request)) });
    frame.contentWindow.postMessage("", "*", [port2]);
  });
  document.body.append(frame);
}"""
LIST_THRICE = "async () => (await Promise.all([1, 2, 3].map(() => fetch('runs?').then((got) => got.json())))).at(-1)"


@pytest.fixture
def asked() -> list[str]:
    """The targets of all messages."""
    return []


@pytest.fixture
def frame(page: Page, asked: list[str]) -> FrameLocator:
    answers = FramePage(Site(parse_logdirs(str(SAMPLE)), None), "h100", {"run": "compiled", "view": "kernels"})

    def answer(message: dict[str, Any]) -> dict[str, Any]:
        asked.append(message["target"])
        head, content = answers.answer(message)
        return {**head, "content": base64.b64encode(content).decode()}

    page.expose_function("ask", answer)
    page.evaluate(AROUND)
    return page.frame_locator("iframe")


def test_the_page_in_a_frame_does_not_keep_its_kernel_busy(page: Page, frame: FrameLocator, asked: list[str]):
    expect(frame.get_by_role("heading", level=1)).to_have_text("Kernels")
    expect(frame.get_by_role("treegrid").first.get_by_role("row").nth(1)).to_be_visible()
    before = [target for target in asked if target.startswith("/runs")]
    (inside,) = (frame for frame in page.frames if frame.parent_frame)
    listing = inside.evaluate(LIST_THRICE)
    assert [run["name"] for run in listing["runs"]] == ["compiled"]
    assert [target for target in asked if target.startswith("/runs")] == before
