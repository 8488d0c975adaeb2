"""Both sides as a picture: a dot per recording, a line at each side's mean. SVG, in light and dark."""

from __future__ import annotations

import math
from html import escape

import numpy as np

from ...names.text import digits
from ..headline import pair_of_times
from .decision import Decision

_WIDTH, _HEIGHT, _LEFT, _RIGHT = 640, 132, 60, 16
_ROWS = {"base": 42, "new": 82}
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#24292f}.axis{stroke:#8c959f}.mean{stroke-width:2;stroke:#24292f}"
    ".base{fill:#57606a}.new{fill:#0969da}.regression .new{fill:#cf222e}.improvement .new{fill:#1a7f37}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.mean{stroke:#e6edf3}.base{fill:#8d96a0}}"
)


def picture(decision: Decision, title: str, unit: str) -> str:
    """The SVG of one decision.

    Args:
        decision: What to draw.
        title: The sentence above it, which also describes it to those who don't see it.
        unit: Kind of the number.
    """
    sides = {"base": decision.sample.base, "new": decision.sample.new}
    values = np.concatenate(list(sides.values()))
    low, high = _limits(values)
    scale = (_WIDTH - _LEFT - _RIGHT) / (high - low)

    def x(value: float) -> str:
        return f"{_LEFT + (value - low) * scale:.1f}"

    parts = []
    for name, side in sides.items():
        y = _ROWS[name]
        mean = x(math.exp(float(np.log(side).mean())))
        parts.append(f'<text x="8" y="{y + 4}">{name.capitalize()}</text>')
        parts += [f'<circle class="{name}" cx="{x(value)}" cy="{y}" r="5" fill-opacity=".65"/>' for value in side]
        parts.append(f'<line class="mean" x1="{mean}" x2="{mean}" y1="{y - 12}" y2="{y + 12}"/>')
    axis = _HEIGHT - 28
    ends = ((low, "start"), (high, "end"))
    labels = [
        f'<text x="{x(value)}" y="{_HEIGHT - 8}" text-anchor="{anchor}">{escape(_text(value, unit))}</text>'
        for value, anchor in ends
    ]
    css_class = decision.outcome.replace(" ", "-")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" role="img" '
        f'class="{css_class}"><title>{escape(title)}</title><style>{_STYLE}</style>'
        f'<text x="8" y="18">{escape(_name(decision))}: a dot per recording, a line at the mean</text>{"".join(parts)}'
        f'<line class="axis" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{axis}" y2="{axis}"/>{"".join(labels)}</svg>\n'
    )


def _limits(values: np.ndarray) -> tuple[float, float]:
    """The ends of the axis, a little beyond the values."""
    low, high = float(values.min()), float(values.max())
    room = 0.06 * (high - low) or 0.01 * high
    return low - room, high + room


def _name(decision: Decision) -> str:
    return "Average step" if decision.sample.number == "step" else decision.sample.number


def _text(value: float, unit: str) -> str:
    return pair_of_times(value) if unit == "duration" else digits(value)
