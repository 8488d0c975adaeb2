"""While a large file is read, the overview shows the part that has been read, and no more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from browser.app import ENTRY, address

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page, Route

HOSTILE = "void <img src=x onerror=alert(1)> at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>>"
PARTIAL = {
    "fraction": 0.123,
    "events": 3_071_234,
    "kinds": [{"kind": "operators", "events": 3_071_234}, {"kind": "kernels", "events": 0}],
    "span_ns": 12_345_678_900,
    "steps": 41,
    "step_ns": 245_600_000,
    "operators": [{"name": HOSTILE, "count": 51_200, "total_ns": 9_876_543_210}],
    "kernels": [],
    "facts": [{"fact": "Devices of the machine", "value": "NVIDIA H100"}, {"fact": "Rank", "value": "3"}],
}


class Reading:
    """A file that is read for as long as the test wants."""

    def __init__(self, page: Page) -> None:
        self.partial: dict[str, Any] = PARTIAL
        page.route("**/state?*", lambda route: self.answer(route, partial=self.partial))
        page.route("**/view?*", self.answer)

    def answer(self, route: Route, **more: object) -> None:
        progress = {"stage": "reading", "fraction": 0.15, "bytes_per_second": 310_000_000, "seconds_left": 27.4}
        route.fulfill(json={"state": "loading", "progress": progress, **more})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_part_of_a_file_is_shown_as_a_part_until_the_overview_is_there(shell: Page, artifacts: Path, scheme: str):
    shell.emulate_media(color_scheme=scheme)
    reading = Reading(shell)
    shell.goto(f"/{ENTRY}{address(run='made', view='overview')}")
    partial = shell.get_by_label("Partial")
    expect(partial).to_contain_text("Only the first 12 % of the file: these numbers will change.")
    expect(shell.locator(".skeleton [role=status]")).to_have_text("Reading · 15 % · 310 MB/s · 27 s left")
    expect(shell.locator(".tiles")).to_contain_text("246 ms")
    kernels = shell.locator(".card", has=shell.get_by_role("heading", name="Longest kernels so far"))
    expect(kernels).to_contain_text("No kernel read yet.")
    expect(shell.get_by_role("row", name="Kernels none yet")).to_be_visible()
    assert shell.locator("img[src=x]").count() == 0
    expect(shell.get_by_label("Verdict")).to_have_count(0)
    shell.screenshot(path=artifacts / f"partial-{scheme}.png")

    reading.partial = {**PARTIAL, "fraction": 0.82, "kernels": [{"name": "gemm", "count": 7, "total_ns": 1500}]}
    expect(partial).to_contain_text("Only the first 82 % of the file")
    expect(kernels).to_contain_text("gemm")

    shell.unroute("**/view?*")
    shell.unroute("**/state?*")
    expect(shell.get_by_role("heading", name="Where each step goes")).to_be_visible()
    expect(partial).to_have_count(0)


def test_other_views_wait_for_all_of_the_file(shell: Page):
    Reading(shell)
    shell.goto(f"/{ENTRY}{address(run='made', view='operators')}")
    expect(shell.locator(".skeleton [role=status]")).to_have_text("Reading · 15 % · 310 MB/s · 27 s left")
    expect(shell.get_by_label("Partial")).to_have_count(0)
