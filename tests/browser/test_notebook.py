"""What a notebook shows, in a browser: the static outputs in both themes, the report, and the page in its frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

import kinetoscope_tb
from browser.accessibility import violations
from browser.traces import training, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Page

    from kinetoscope_tb.api import Profile

ADDRESS = "http://notebook.test/lab/tree/my.ipynb?x=1"
CODE_COLORS = """() => {
  const { color, backgroundColor } = getComputedStyle(document.querySelector(".kinetoscope code"));
  return [color, backgroundColor];
}"""
MARKUP = "<img src=x onerror=alert(1)>"  # an operator of the training


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    folder = tmp_path_factory.mktemp("notebook")
    write(folder, "made/rank0.5.pt.trace.json", training())
    write(folder, "made/rank1.5.pt.trace.json", training(6))
    return kinetoscope_tb.open(folder / "made")


@pytest.fixture
def notebook(page: Page) -> Iterator[Callable[..., Page]]:
    """Shows outputs on a page of a server, which may neither log an error nor ask any other address."""
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: message.type == "error" and problems.append(message.text))

    def show(*answers: object) -> Page:
        outputs = "".join(answer._repr_mimebundle_()["text/html"] for answer in answers)
        text = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>my</title><main><h1>my</h1>{outputs}</main>'
        )
        page.route("**/*", lambda route: route.fulfill(body=text, content_type="text/html; charset=utf-8"))
        page.on("request", lambda request: request.url == ADDRESS or problems.append(f"requested {request.url}"))
        page.goto(ADDRESS)
        return page

    yield show
    assert not problems


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_outputs_are_readable_in_both_themes(notebook, profile: Profile, page: Page, theme, artifacts):
    notebook(profile, profile.operators, profile.kernels, profile.advice)
    page.add_style_tag(content=f":root {{ color-scheme: {theme} }} code {{ color: red; background: red }}")
    page.screenshot(path=artifacts / f"notebook_{theme}.png", full_page=True)
    expect(page.get_by_text(MARKUP).first).to_be_visible()
    assert page.locator("main img").count() == 0
    colors = page.locator(".kinetoscope").first.evaluate("(card) => getComputedStyle(card).backgroundColor")
    assert colors == {"light": "rgb(255, 255, 255)", "dark": "rgb(13, 17, 23)"}[theme]
    assert page.evaluate(CODE_COLORS) == [
        ["rgb(31, 35, 40)", "rgb(230, 237, 243)"][theme == "dark"],
        "rgba(0, 0, 0, 0)",
    ]
    assert not violations(page)


def test_the_report_works_in_its_frame_and_reaches_nothing(notebook, profile: Profile, artifacts):
    page = notebook(profile.report())
    frame = page.frame_locator("iframe")
    expect(frame.get_by_role("heading", level=1)).to_have_text("Overview")
    frame.get_by_role("button", name="Operators").click()
    expect(frame.get_by_role("heading", level=1)).to_have_text("Operators")
    expect(frame.get_by_text(MARKUP).first).to_be_visible()
    frame.get_by_role("button", name="Ranks").click()
    expect(frame.get_by_role("heading", level=1)).to_have_text("Ranks")
    page.screenshot(path=artifacts / "notebook_report.png")
    reads = "() => { try { return parent.document.title } catch (error) { return error.name } }"
    assert page.frames[1].evaluate(reads) == "SecurityError"
    expect(page).to_have_url(ADDRESS)
