"""The page in Firefox: the timeline is drawn, moves by keys and mouse, and asks nobody else; a dropped file opens."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from browser.app import ENTRY, address
from browser.firefox import Firefox, running
from browser.traces import training, write
from contract.opening import opening
from support.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMES = ("firefox-esr", "firefox")
SHOWN = "return document.querySelector('#timeline-shown')?.textContent ?? ''"
KERNEL = """
  const box = document.querySelector(".body-canvas").getBoundingClientRect();
  const line = [...document.querySelectorAll(".gutter li")].find((li) => li.textContent.includes("stream 7"));
  const x = box.x + box.width * arguments[0], y = line.getBoundingClientRect().y + 9;
"""
POINT = f"{KERNEL} return [x, y];"
INK = f"""
  {KERNEL}
  const context = document.querySelector(".body-canvas").getContext("2d");
  return [...context.getImageData(Math.round(x - box.x), Math.round(y + 6 - box.y), 1, 1).data];
"""


MODE = "return document.querySelector('.stage').dataset.mode"
ROWS = "return document.querySelectorAll('.area-table tr.row').length"
AREA = "return /area=(\\d+)~(\\d+)~/.exec(location.hash)?.slice(1).map(Number) ?? null"

DROP = """
  const files = new DataTransfer();
  files.items.add(new File([arguments[1]], arguments[0]));
  for (const type of ["dragover", "drop"]) {
    document.body.dispatchEvent(new DragEvent(type, { dataTransfer: files, bubbles: true, cancelable: true }));
  }
"""
HEADING = "return document.querySelector('h1')?.textContent ?? ''"


@pytest.fixture(scope="module")
def firefox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if not program:
        reason = f"no Firefox on PATH (looked for {', '.join(NAMES)}); on Debian: apt-get install firefox-esr"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with running(program, tmp_path_factory.mktemp("profile")) as driven:
        yield driven


@pytest.fixture
def timeline(firefox: Firefox, base_url: str) -> Firefox:
    """The first millisecond of a made trace."""
    place = {"run": "made", "worker": "rank0", "span": "5", "from": "0", "to": "1000000"}
    firefox.go(f"{base_url}/{ENTRY}{address(view='timeline', **place)}")
    wait_for(lambda: firefox.run(SHOWN), is_right=lambda words: "box" in words)
    return firefox


def is_green(ink: list[int]) -> bool:
    return ink[1] > ink[0] + 20 and ink[1] > ink[2] + 20


def test_kernels_are_drawn_where_they_ran(timeline: Firefox):
    wait_for(lambda: timeline.run(INK, 0.325), is_right=is_green)
    assert not is_green(timeline.run(INK, 0.3))
    assert not is_green(timeline.run(INK, 0.35))


def test_a_held_key_zooms(timeline: Firefox):
    assert "1 ms from 0" in timeline.run(SHOWN)
    timeline.press("w", 400)
    wait_for(lambda: timeline.run(SHOWN), is_right=lambda words: "box" in words and "1 ms from 0" not in words)


def test_a_click_selects_a_kernel(timeline: Firefox):
    wait_for(lambda: timeline.run(INK, 0.325), is_right=is_green)  # the tracks are where they stay
    timeline.click(*timeline.run(POINT, 0.325))
    wait_for(lambda: timeline.run(SHOWN), is_right=lambda words: "selected: void <script>" in words)


def test_keys_move_show_all_and_choose_what_dragging_does(timeline: Firefox):
    wait_for(lambda: timeline.run(INK, 0.325), is_right=is_green)  # the page listens to keys
    timeline.press("d", 300)
    wait_for(lambda: timeline.run(SHOWN), is_right=lambda words: "box" in words and "from 0" not in words)
    timeline.press("0", 20)
    wait_for(lambda: timeline.run(SHOWN), is_right=lambda words: "3.9" in words.split(" from ")[0])
    timeline.press("3", 20)
    wait_for(lambda: timeline.run(MODE), is_right=lambda mode: mode == "zoom")
    timeline.press("1", 20)
    wait_for(lambda: timeline.run(MODE), is_right=lambda mode: mode == "area")


def test_keys_select_the_next_slice_and_its_time(timeline: Firefox):
    wait_for(lambda: timeline.run(INK, 0.325), is_right=is_green)  # the tracks are where they stay
    timeline.click(*timeline.run(POINT, 0.325))
    wait_for(lambda: timeline.run(SHOWN), is_right=lambda words: "selected: void <script>" in words)
    timeline.press(",", 20)
    wait_for(lambda: timeline.run(SHOWN), is_right=lambda words: "20 µs, at 210 µs" in words)
    timeline.press("m", 20)
    wait_for(lambda: timeline.run(SHOWN), is_right=lambda words: "area of 20 µs" in words)


def test_a_drag_selects_the_time_between_edges_of_slices(timeline: Firefox):
    timeline.drag(*(tuple(timeline.run(POINT, place)) for place in (0.2115, 0.25, 0.3385)))
    wait_for(lambda: timeline.run(SHOWN), is_right=lambda words: "area of 130 µs" in words)
    wait_for(lambda: timeline.run(ROWS), is_right=lambda rows: rows == 2)


def test_a_drag_beyond_the_edge_goes_on_in_time(timeline: Firefox):
    timeline.drag(*(tuple(timeline.run(POINT, place)) for place in (0.8, 0.9, 0.999)), hold_ms=600)
    length = wait_for(lambda: timeline.run(AREA), is_right=lambda found: found and found[1] > 1_000_000)
    assert 790_000 < length[0] < 810_000


def test_nothing_outside_is_asked(timeline: Firefox, base_url: str):
    # Firefox lists a request some time after its answer was used.
    code = "return performance.getEntriesByType('resource').map(({ name }) => name)"
    urls = wait_for(lambda: timeline.run(code), is_right=lambda names: any("timeline/tiles" in name for name in names))
    assert [url for url in urls if not url.startswith((base_url, "data:", "blob:"))] == []


def test_the_page_without_tensorboard_opens_a_file_that_is_dropped(firefox: Firefox, tmp_path: Path):
    write(tmp_path, "job/rank0.5.pt.trace.json", training())
    with opening(tmp_path) as served:
        firefox.go(served.address)
        wait_for(lambda: firefox.run(HEADING))
        assert "token" not in firefox.run("return location.href")
        firefox.run(DROP, "rank7.9.pt.trace.json", training(6))
        wait_for(lambda: firefox.run("return location.hash"), is_right=lambda place: "worker=rank7" in place)
        wait_for(
            lambda: firefox.run("return document.body.innerText"),
            is_right=lambda text: "6 steps" in text or "steps 1–6" in text,
        )
        assert firefox.run("return document.querySelectorAll('.notice.failed').length") == 0
