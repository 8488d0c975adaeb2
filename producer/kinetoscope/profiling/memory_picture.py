"""Draws a window's memory by category over time: an HTML file with an SVG picture, made with the standard library.

torch's own picture has the same data and needs matplotlib. Its JSON is `[times in µs, [[0, bytes of each category]]]`
(`MemoryProfileTimeline.export_memory_timeline`, torch/profiler/_memory_profiler.py).
"""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import torch

_CATEGORIES = (  # in the order of torch's _CATEGORY_TO_COLORS, with colors of our own
    ("Parameters", "#2e7d32"),
    ("Optimizer state", "#d9a521"),
    ("Inputs", "#37474f"),
    ("Temporary", "#9575cd"),
    ("Activations", "#d84315"),
    ("Gradients", "#1565c0"),
    ("Autograd detail", "#64b5f6"),
    ("Unknown", "#9e9e9e"),
)
_WIDTH, _HEIGHT, _LEFT, _TOP = 1200, 500, 80, 10
_TICKS = 5
_STYLE = (
    "body{font:14px sans-serif;margin:2em}td,th{padding:.2em 1em;text-align:right}i{padding:0 .6em;margin-right:.5em}"
)

Row = tuple[float, Sequence[int]]
"""A time in µs since the first one, and the bytes of each category from then on."""


def write_memory_picture(profiler: Any, path: Path, device: str | None = None) -> None:
    """Write a torch.profiler.profile's window as a picture of its memory.

    Args:
        profiler: Its window is complete and in memory.
        path: The file.
        device: Such as `cuda:0`; by default torch's choice.

    Raises:
        OSError: The disk or the folder doesn't allow it.
    """
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # torch's recommended replacement is for CUDA only
        file = Path(folder) / "timeline.json"
        profiler.export_memory_timeline(str(file), device)
        times, sizes = json.loads(file.read_text(encoding="utf-8"))
    path.write_text(memory_picture(times, sizes, _title(device)), encoding="utf-8")


def _title(device: str | None) -> str:
    """Return the device and, of a GPU, the most that was allocated and reserved, as in torch's picture."""
    is_gpu = torch.cuda.is_available() and (device is None or device.startswith("cuda"))
    if not is_gpu:
        return f"Memory of {device or 'cpu'}"
    peaks = torch.cuda.max_memory_allocated(device), torch.cuda.max_memory_reserved(device)
    return "Memory of {}: at most {:.2f} GB allocated, {:.2f} GB reserved".format(
        device or "cuda:0", *(peak / 1e9 for peak in peaks)
    )


def memory_picture(times: Sequence[int], sizes: Sequence[Sequence[int]], title: str) -> str:
    """Return the HTML page.

    Args:
        times: When the memory changed, in µs, ascending.
        sizes: From each of these times on, 0 and the bytes of each category.
        title: The heading.
    """
    rows = [(time - times[0], list(row[1:])) for time, row in zip(times, sizes, strict=True)]
    body = _picture(rows) + _table(rows) if rows else "<p>No allocations were recorded on this device.</p>"
    text = escape(title)
    head = f'<meta charset="utf-8"/><title>{text}</title><style>{_STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body><h1>{text}</h1>{body}</body></html>\n'


def _picture(rows: Sequence[Row]) -> str:
    """Return the stacked areas of the categories, with axes."""
    columns = _columns(rows)
    span_us, peak = max(rows[-1][0], 1), max(1, *(sum(sizes) for _, sizes in rows))
    floor, areas = [0] * len(columns), []
    for index, (name, color) in enumerate(_CATEGORIES):
        top = [below + sizes[index] for below, (_, sizes) in zip(floor, columns, strict=True)]
        if any(sizes[index] for _, sizes in columns):
            xs = [_LEFT + _WIDTH * time / span_us for time, _ in columns]
            edge = [*zip(xs, top, strict=True), *reversed([*zip(xs, floor, strict=True)])]
            points = " ".join(f"{x:.1f},{_TOP + _HEIGHT * (1 - size / peak):.1f}" for x, size in edge)
            areas.append(f'<polygon points="{points}" fill="{color}"><title>{name}</title></polygon>')
        floor = top
    head = f'<svg viewBox="0 0 {_LEFT + _WIDTH + 50} {_TOP + _HEIGHT + 40}" role="img" aria-label="Memory by category">'
    return f"{head}{''.join(areas)}{_axes(span_us, peak)}</svg>"


def _columns(rows: Sequence[Row]) -> list[Row]:
    """Return the rows as steps, with the largest of each column of pixels, so that no peak is lost."""
    span_us = max(rows[-1][0], 1)
    largest: dict[int, Row] = {}
    for row in rows:
        column = int(_WIDTH * row[0] / span_us)
        if column not in largest or sum(row[1]) >= sum(largest[column][1]):
            largest[column] = row
    columns: list[Row] = []
    for row in largest.values():
        if columns:
            columns.append((row[0], columns[-1][1]))
        columns.append(row)
    return columns


def _axes(span_us: float, peak: int) -> str:
    parts = []
    for tick in range(_TICKS + 1):
        share = tick / _TICKS
        x, y = _LEFT + _WIDTH * share, _TOP + _HEIGHT * (1 - share)
        parts.append(
            f'<text x="{x:.0f}" y="{_TOP + _HEIGHT + 20}" text-anchor="middle">{span_us * share / 1e3:.4g} ms</text>'
        )
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.0f}" text-anchor="end">{_size(peak * share)}</text>')
        parts.append(f'<path d="M{_LEFT} {y:.0f}h{_WIDTH}" stroke="#0002"/>')
    return "".join(parts)


def _table(rows: Sequence[Row]) -> str:
    """Return the legend: each category at the peak of all, and its own peak."""
    at_peak = max((sizes for _, sizes in rows), key=sum)
    lines = [
        f'<tr><th><i style="background:{color}"></i>{name}</th><td>{_size(at_peak[index])}</td>'
        f"<td>{_size(max(sizes[index] for _, sizes in rows))}</td></tr>"
        for index, (name, color) in enumerate(_CATEGORIES)
    ]
    total = f"<tr><th>All</th><td>{_size(sum(at_peak))}</td><td>{_size(sum(at_peak))}</td></tr>"
    return f"<table><tr><th></th><th>at the peak</th><th>at most</th></tr>{''.join(lines)}{total}</table>"


def _size(size: float) -> str:
    unit, name = next(
        ((unit, name) for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "KB")) if size >= unit), (1, "B")
    )
    return f"{size / unit:.4g} {name}"
