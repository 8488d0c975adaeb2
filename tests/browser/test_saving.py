"""What can be taken out of the page: pictures that need nothing else, and rows."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from browser.app import App
from browser.test_parts import entry

SVG = "{http://www.w3.org/2000/svg}"


def saved(page: Page, button: str, artifacts: Path) -> Path:
    with page.expect_download() as download:
        page.get_by_role("button", name=button, exact=True).first.press("Enter")
    path = artifacts / download.value.suggested_filename
    download.value.save_as(path)
    return path


PICTURE = {"kind": "treemap", "area": "total_ns", "name": "name", "group": "kind", "groups": ["a", "b"]}


def open_picture(app: App, names: list[str], totals: list[int]) -> Page:
    """A view with a picture of these names."""
    kinds = {"name": "text", "kind": "text", "total_ns": "duration"}
    columns = [{"name": name, "kind": kind, "doc": f"The {name}."} for name, kind in kinds.items()]
    data = {"name": names, "kind": ["a"] * len(names), "total_ns": totals}
    answer = {"state": "ready", "view": "areas", "columns": columns, "data": data}
    view = entry("areas", [], columns=columns, picture=PICTURE)
    app.page.route("**/views?*", lambda route: route.fulfill(json=[*route.fetch().json(), view]))
    app.page.route("**/view?view=areas&*", lambda route: route.fulfill(body=json.dumps(answer)))
    return app.open("areas")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_picture_needs_nothing_else_and_says_where_it_is_from(fresh_app: App, artifacts: Path, scheme: str):
    fresh_app.page.emulate_media(color_scheme=scheme)
    page = open_picture(fresh_app, ["void <script>alert(1)</script>(int)", "softmax"], [300_000, 100_000])
    path = saved(page, "Save Total as SVG", artifacts)
    assert path.name == "made.rank0.5.areas.Total.svg"
    text = path.read_text()
    assert not any(
        word in text for word in ("var(", "class=", "light-dark", "oklch", "href", "<script", "foreignObject")
    )
    root = ET.fromstring(text)
    words = [node.text for node in root.iter(f"{SVG}text")]
    assert words[:2] == ["Areas: Total", "made · rank0 · 5"]
    assert any("void <script>alert(1)</script>(int)" in word for word in words)
    assert root.find(f"{SVG}rect").get("fill") == ("rgb(255,255,255)" if scheme == "light" else "rgb(48,48,48)")
    page.unroute_all(behavior="ignoreErrors")


def test_a_picture_is_well_formed_whatever_a_name_holds(fresh_app: App, artifacts: Path):
    controls = "".join(map(chr, range(32)))
    names = [
        f"{controls}x",
        "half \ud800 pair",
        "no \ufffe\uffff text",
        "]]>&amp;<![CDATA[",
        "\"quoted\" 'twice'",
        "\u2028\x7f\x85",
    ]
    page = open_picture(fresh_app, names, list(range(100, 100 + len(names))))
    root = ET.fromstring(saved(page, "Save Total as SVG", artifacts).read_bytes())
    words = " ".join(node.text or "" for node in root.iter(f"{SVG}text"))
    assert "half \ufffd pair" in words
    assert "]]>&amp;<![CDATA[" in words
    page.unroute_all(behavior="ignoreErrors")


def test_a_picture_of_dots_is_twice_as_fine_as_the_page(fresh_app: App, artifacts: Path):
    page = open_picture(fresh_app, ["half \ud800 pair", "softmax"], [300_000, 100_000])
    width = page.locator(".treemap").evaluate("box => Math.ceil(box.getBoundingClientRect().width + 32)")
    dots = saved(page, "Save Total as PNG", artifacts).read_bytes()
    assert dots.startswith(b"\x89PNG")
    assert int.from_bytes(dots[16:20], "big") == 2 * width
    page.unroute_all(behavior="ignoreErrors")


def test_rows_are_saved_as_the_server_would_answer_them(app: App, artifacts: Path):
    page = app.open("kernels", filter="sgemm")
    path = saved(page, "JSON", artifacts)
    answer = json.loads(path.read_text())
    assert path.name == "made.rank0.5.kernels.json"
    assert answer["data"]["total_ns"] == [200_000]
    assert {column["name"] for column in answer["columns"]} == set(answer["data"])


def test_a_histogram_tells_each_bin_and_leaves_room_for_missing_ones(fresh_app: App, artifacts: Path):
    columns = [{"name": name, "kind": "duration", "doc": "An edge."} for name in ("from_ns", "to_ns")]
    columns.append({"name": "calls", "kind": "count", "doc": "Calls."})
    data = {"from_ns": [1000, 2000, 8000], "to_ns": [2000, 4000, 16000], "calls": [5, 15, 20]}
    fields = {
        "columns": columns,
        "key": ["from_ns"],
        "picture": {"kind": "histogram", "lower": "from_ns", "upper": "to_ns", "heights": ["calls"]},
    }
    answer = {"state": "ready", "view": "lengths", "columns": columns, "data": data}
    page = fresh_app.page
    page.route("**/views?*", lambda route: route.fulfill(json=[*route.fetch().json(), entry("lengths", [], **fields)]))
    page.route("**/view?view=lengths&*", lambda route: route.fulfill(json=answer))
    fresh_app.open("lengths")
    bins = page.locator(".histogram .bin")
    expect(bins).to_have_count(3)
    lefts = [box["x"] for box in (bins.nth(i).bounding_box() for i in range(3))]
    assert lefts[2] - lefts[1] == pytest.approx(2 * (lefts[1] - lefts[0]), abs=1)
    bins.nth(1).hover()
    expect(page.get_by_role("tooltip")).to_have_text("2 µs to 4 µs\nCalls: 15 · 37.5 %")
    page.screenshot(path=artifacts / "histogram.png")
    page.unroute_all(behavior="ignoreErrors")
