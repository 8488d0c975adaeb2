"""The style of static HTML in a notebook, light and dark."""

from __future__ import annotations

import html
import re

_CODE = re.compile(r"`([^`]+)`")

# Colors of text and background together, by the color scheme of the notebook's page, which need not be the system's.
# The class is written three times, since JupyterLab has rules for tables with as many.
_STYLE = """
.card { --text: light-dark(#1f2328, #e6edf3); --dim: light-dark(#59636e, #9198a1); --line: light-dark(#d1d9e0, #3d444d);
  --bar: light-dark(#0969da, #4493f8); --back: light-dark(#ffffff, #0d1117); }
.card { color: var(--text); background: var(--back); font: 13px/1.5 system-ui, sans-serif;
  padding: 12px; overflow-x: auto; max-width: 100%; }
.card code { color: inherit; background: none; }
.card p { margin: 0 0 4px; max-width: 80ch; }
.card .dim { color: var(--dim); }
.card .more { margin-left: 2ch; }
.card table { border-collapse: collapse; margin: 8px 0; color: inherit; background: none; }
.card caption { text-align: left; font-weight: 600; color: inherit; white-space: nowrap; padding: 0; }
.card tr, .card tr:hover { background: none; }
.card th, .card td { padding: 2px 12px 2px 0; text-align: left; border: 0;
  border-bottom: 1px solid var(--line); white-space: nowrap; max-width: 48ch; overflow: hidden;
  text-overflow: ellipsis; color: inherit; }
.card .number { text-align: right; font-variant-numeric: tabular-nums; }
.card .bar { width: 160px; }
.card .bar div { height: 10px; background: var(--bar); }
""".replace(".card", ".kinetoscope" * 3)


def card(*parts: str) -> str:
    """HTML with its style, in a box of its own, which keys can scroll."""
    return f'<div class="kinetoscope" tabindex="0"><style>{_STYLE}</style>{"".join(parts)}</div>'


def sentence(text: str, style: str = "") -> str:
    """A paragraph; what is in `backticks` is code. Empty for an empty text."""
    if not text:
        return ""
    words = _CODE.sub(r"<code>\1</code>", html.escape(text))
    return f'<p class="{style}">{words}</p>' if style else f"<p>{words}</p>"


def cell(text: str, *, is_number: bool = False, tag: str = "td", title: str = "") -> str:
    """A cell of a table; what is cut at its width can be read in its tooltip."""
    style = ' class="number"' if is_number else ""
    tooltip = f' title="{html.escape(title)}"' if title else ""
    return f"<{tag}{style}{tooltip}>{html.escape(text)}</{tag}>"
