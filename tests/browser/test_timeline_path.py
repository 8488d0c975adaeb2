"""The critical path over the timeline: by its button, its key and the address."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from browser.timeline_page import Drawn

if TYPE_CHECKING:
    from browser.app import App


def test_the_path_is_drawn_along_what_each_step_waited_for_and_the_address_keeps_it(app: App):
    drawn, thread = Drawn(app), "thread 1"
    page = drawn.page
    button = page.locator(".timeline .tools").get_by_role("button", name="Critical path")
    expect(button).to_have_attribute("aria-pressed", "false")
    plain = {time: drawn.color_at(thread, time) for time in (50_000, 500_000)}
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(page).to_have_url(re.compile("critical=1"))
    drawn.until(lambda: drawn.color_at(thread, 500_000) != plain[500_000])
    assert drawn.color_at(thread, 50_000) != plain[50_000]
    page.reload()
    app.settle()
    drawn.until(lambda: drawn.color_at(thread, 500_000) != plain[500_000])
    page.keyboard.press("c")
    expect(button).to_have_attribute("aria-pressed", "false")
    drawn.until(lambda: drawn.color_at(thread, 500_000) == plain[500_000])
    expect(page).not_to_have_url(re.compile("critical=1"))
