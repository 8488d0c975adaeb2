"""The picture of a window's memory: whole in one file, with each peak, whatever the size of the recording."""

import re
from xml.etree import ElementTree as ET

import pytest

from kinetoscope.profiling.memory_picture import memory_picture

SVG_HEIGHT = 500
PARAMETERS, ACTIVATIONS = 0, 4


def row(**sizes):
    names = ("parameters", "optimizer", "inputs", "temporary", "activations", "gradients", "detail", "unknown")
    return [0, *(sizes.get(name, 0) for name in names)]


def page(times, sizes, title="Memory of cpu"):
    text = memory_picture(times, sizes, title)
    assert "http" not in text  # nothing from elsewhere
    assert "<script" not in text
    return ET.fromstring(text.removeprefix("<!doctype html>"))


def polygons(tree):
    """Name and corners of each area."""
    return {
        area.find("title").text: [tuple(map(float, point.split(","))) for point in area.get("points").split()]
        for area in tree.iter("polygon")
    }


def cells(tree):
    return {"".join(line[0].itertext()): [cell.text for cell in line[1:]] for line in tree.iter("tr")}


def test_areas_are_stacked_steps_with_the_peak_at_the_top():
    sizes = [row(parameters=1000), row(parameters=1000, activations=3000), row(parameters=1000)]
    tree = page([100, 1100, 2100], sizes)
    areas = polygons(tree)
    assert list(areas) == ["Parameters", "Activations"]
    assert min(y for _, y in areas["Activations"]) == 10  # all of the height
    assert {y for _, y in areas["Parameters"]} == {10 + SVG_HEIGHT, 10 + SVG_HEIGHT * 3 / 4}
    assert [x for x, _ in areas["Activations"]][:5] == [80, 680, 680, 1280, 1280]
    lines = cells(tree)
    assert (lines["Parameters"], lines["Activations"]) == (["1 KB", "1 KB"], ["3 KB", "3 KB"])
    assert lines["All"] == ["4 KB", "4 KB"]
    assert [text.text for text in tree.iter("text")][-2:] == ["2 ms", "4 KB"]


def test_a_peak_among_many_rows_is_not_lost():
    sizes = [row(temporary=10 + (number == 77_777) * 990) for number in range(100_000)]
    tree = page(range(100_000), sizes)
    corners = polygons(tree)["Temporary"]
    assert len(corners) < 10_000
    assert min(y for _, y in corners) == 10
    assert cells(tree)["All"] == ["1 KB", "1 KB"]


@pytest.mark.parametrize("title", ["cuda:0 <img src=x>", "a & b"])
def test_texts_are_texts(title):
    assert page([1], [row(unknown=5)], title).find("body/h1").text == title


def test_a_device_without_allocations_has_no_picture():
    text = memory_picture([], [], "Memory of cpu")
    assert re.search("No allocations were recorded", text)
    assert "<svg" not in text
