"""Names of a hostile recording in what leaves the page: reports and pictures have them as text, and run nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from playwright.sync_api import expect

from browser.app import address
from browser.traces import GPU, LAUNCH
from kinetoscope_tb.cli import main
from support.build import TraceBuilder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Page

RUN = "run \"><img src=x onerror='hacked=1'>"
NAMES = (
    '"><img src=x onerror="hacked=1">',
    "</script><script>hacked=1</script>",
    "<!-- <script> ]]> &amp; &#0; ${hacked=1} `",
    "<svg onload=hacked=1><foreignObject><body onload=hacked=1>",
    "javascript:hacked=1//\u202e\u2028\\",
    "</text></svg><script>hacked=1</script>",
)
VIEWS = (
    "overview",
    "operators",
    "kernels",
    "annotations",
    "annotations_by_name",
    "modules",
    "python_calls",
    "critical_path",
    "health",
)


def hostile() -> str:
    """Two steps in which every kind of row has every name."""
    facts = {"host_name": NAMES[0], "kinetoscope": {"run": NAMES[1], "torch_version": NAMES[2], "host": NAMES[3]}}
    builder = TraceBuilder(deviceProperties=[{**GPU, "name": NAMES[5]}], **facts)
    for step in (1, 2):
        start = step * 1_000_000
        builder.step(step, start, 900_000)
        for i, name in enumerate(NAMES):
            at, number = start + 10_000 + i * 100_000, step * 100 + i
            builder.annotation(name, at, 90_000).python(f"nn.Module: {name}_0", at + 100, 80_000)
            builder.op(name, at + 200, 50_000, **{"Input type": [name], "Call stack": name, "Input Dims": [[8, 8]]})
            builder.launch(at + 1000, 5000, number).kernel(name, at + 10_000, 30_000 + i, number, **LAUNCH)
    return builder.text()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    trace = folder / RUN / "rank0.5.pt.trace.json"
    trace.parent.mkdir()
    trace.write_text(hostile())
    with pytest.raises(SystemExit) as ended:
        main(["report", str(folder), str(folder / "report.html"), "--all"])
    assert ended.value.code == 0
    return folder / "report.html"


@pytest.fixture
def watched(page: Page) -> Iterator[Page]:
    """A page that runs nothing of the names, and asks no address."""
    problems: list[str] = []
    page.on("dialog", lambda dialog: (problems.append(dialog.message), dialog.dismiss()))
    page.on("pageerror", lambda error: problems.append(str(error)))
    own = ("file:", "data:", "blob:", "about:")
    page.on("request", lambda request: request.url.startswith(own) or problems.append(f"requested {request.url}"))
    yield page
    assert not page.evaluate("'hacked' in globalThis")
    assert not problems


@pytest.mark.parametrize("view", VIEWS)
def test_a_report_shows_names_as_text(watched: Page, report: Path, view: str):
    watched.goto(report.as_uri() + address(view=view))
    expect(watched.get_by_role("heading", level=1)).to_be_visible()
    expect(watched.locator(".skeleton, [aria-busy]")).to_have_count(0)
    assert watched.locator("main img, main script, main foreignObject, main [onload], main [onerror]").count() == 0


def test_a_picture_has_names_as_text(watched: Page, report: Path, tmp_path: Path):
    watched.goto(report.as_uri() + address(view="python_calls"))
    expect(watched.locator(".skeleton, [aria-busy]")).to_have_count(0)
    with watched.expect_download() as download:
        watched.get_by_role("button", name="as SVG").first.press("Enter")
    picture = tmp_path / "picture.svg"
    download.value.save_as(picture)
    elements = list(ET.parse(picture).iter())
    assert {element.tag.rpartition("}")[2] for element in elements} <= {"svg", "g", "rect", "path", "text", "image"}
    links = [value for element in elements for name, value in element.items() if name.endswith("href")]
    assert [link for link in links if not link.startswith("data:image/png")] == []
    assert any(NAMES[0] in (element.text or "") for element in elements) or links
    watched.goto(picture.as_uri())
