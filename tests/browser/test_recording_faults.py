"""What a recording can't show never looks as if all were well."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from browser.app import address
from browser.traces import lossy, training, write
from contract.running import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

ENTRY = "data/plugin_entry.html?name=pytorch_profiler"


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("lossy")
    write(folder, "run/rank0.5.pt.trace.json", lossy())
    with serving(f"--logdir={folder}") as server:
        yield server.base


def test_the_timeline_says_that_the_recording_lacks_something(page: Page, lost: str) -> None:
    page.goto(f"{lost}{ENTRY}{address(view='timeline', run='run', worker='rank0', span='5')}")
    badge = page.locator("main").get_by_role("button", name="Trace health: 1 loss")
    badge.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Trace health")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lost_events_are_the_headline_in_the_color_of_warnings(page: Page, lost: str, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{lost}{ENTRY}{address(view='overview', run='run', worker='rank0', span='5')}")
    verdict = page.get_by_label("Verdict")
    expect(verdict).to_contain_text("100 of 250 launches (40 %) have no GPU event")
    advice = page.locator(".advice li")
    expect(advice.first).to_contain_text("can’t tell")
    expect(advice.first).to_contain_text("Record fewer steps at a time")
    expect(page.locator(".advice .all-well")).to_have_count(0)
    warning, border, worth = page.evaluate(
        """() => {
            const probe = document.body.appendChild(document.createElement("i"));
            probe.style.color = "var(--warning)";
            const color = (selector, name) => getComputedStyle(document.querySelector(selector))[name];
            return [getComputedStyle(probe).color, color(".verdict", "borderLeftColor"), color(".worth b", "color")];
        }"""
    )
    assert border == worth == warning


def test_a_doubtful_path_is_not_stated_in_bold_and_its_doubt_stands_once_above_it(page: Page, lost: str) -> None:
    page.goto(f"{lost}{ENTRY}{address(view='critical_path', run='run', worker='rank0', span='5')}")
    sentence = page.locator(".verdict .sentence")
    expect(sentence).to_contain_text("of the critical path is")
    assert sentence.evaluate("sentence => getComputedStyle(sentence).fontWeight") == "400"
    expect(page.get_by_role("treegrid")).not_to_have_count(0)
    expect(page.get_by_text("100 of 250 launches")).to_have_count(1)
    note = page.get_by_role("note")
    assert "\u00a0%" in note.inner_text()  # a number and its unit stay on one line
    box, below = note.bounding_box(), sentence.bounding_box()
    assert box
    assert below
    assert box["y"] + box["height"] < below["y"]


def test_a_doubt_that_stands_above_a_page_is_not_repeated_above_its_parts(page: Page, lost: str) -> None:
    page.goto(f"{lost}{ENTRY}{address(view='idle', run='run', worker='rank0', span='5')}")
    expect(page.get_by_role("region", name="Longest gaps").get_by_role("treegrid")).to_be_visible()
    expect(page.get_by_role("note")).to_have_count(1)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("few")
    for rank in (0, 1):
        text = json.dumps({**json.loads(training()), "distributedInfo": {"rank": rank, "world_size": 8}})
        write(folder, f"run/rank{rank}.5.pt.trace.json", text)
    with serving(f"--logdir={folder}") as server:
        yield server.base


def test_what_the_run_lacks_stands_first_wherever_the_badge_counts_it(page: Page, few: str) -> None:
    page.goto(f"{few}{ENTRY}{address(view='health', run='run', worker='rank0', span='5')}")
    sentence = page.locator(".verdict .sentence")
    expect(sentence).to_contain_text("There is no trace of ranks 2-7. Nothing of this rank's recording was lost")
    page.goto(f"{few}{ENTRY}{address(view='overview', run='run', worker='rank0', span='5')}")
    expect(page.locator(".findings li").first).to_contain_text("missing ranks × 6")
    expect(page.locator(".head")).to_contain_text("2 of 8 ranks")
