"""The overview answers first, and leads to the rows that show it."""

from __future__ import annotations

import json
import urllib.request
from typing import TYPE_CHECKING

from playwright.sync_api import expect

if TYPE_CHECKING:
    from browser.app import App


def test_the_verdict_is_the_first_advice_and_its_link_opens_its_rows(app: App, base_url: str):
    page = app.open("overview")
    expect(page.get_by_label("Verdict")).to_be_visible()
    where = "run=made&worker=rank0&span=5"
    with urllib.request.urlopen(f"{base_url}/data/plugin/pytorch_profiler/view?view=advice&{where}") as answer:
        first = {name: values[0] for name, values in json.load(answer)["data"].items()}
    expect(page.get_by_label("Verdict")).to_contain_text(first["title"].split("%")[-1])
    page.locator(".advice button").first.click()
    expect(page.get_by_label("Verdict")).to_have_count(0)
    app.settle()
    filters = [box.input_value() for box in page.get_by_role("searchbox").all()]
    assert (first["filter"] or "") in filters
