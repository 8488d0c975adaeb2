"""The rules of accessibility that a page breaks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axe_playwright_python.base import AXE_SCRIPT, AxeResults

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playwright.sync_api import Page

IS_THERE = "() => 'axe' in window"
RUN = "options => axe.run(options).then(({ violations }) => ({ violations }))"


def violations(page: Page, rules: Sequence[str] = ()) -> str:
    """A report of them, which is empty if there are none.

    The script is a third of the cost, and stays on the page until that is loaded again. What a page passes stays there.

    Args:
        page: The page as it is drawn.
        rules: Only these; by default all.
    """
    if not page.evaluate(IS_THERE):
        page.evaluate(AXE_SCRIPT)
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    results = AxeResults(page.evaluate(RUN, options))
    return results.generate_report() if results.violations_count else ""
