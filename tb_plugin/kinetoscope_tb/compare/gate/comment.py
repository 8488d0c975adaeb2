"""The decision as Markdown, for a comment of a pull request."""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from ..headline import growth_text, pair_of_times

_MARKUP = re.compile(r"([\\`*_\[\]<>#|~@&$]|:(?=//)|(?<=www)\.)")
_SIGNS = {"regression": "🔴", "improvement": "🟢", "no regression": "✅", "cannot tell": "⚪"}


def comment(outcome: str, answers: Sequence[str], rows: pl.DataFrame, image: str) -> str:
    """Markdown: what was decided, the picture, and the rows that changed.

    Args:
        outcome: Of all numbers together.
        answers: The sentences; the first one is the heading's.
        rows: The `ChangedRows`.
        image: Path of the picture, next to the comment.
    """
    body = [f"### {_SIGNS[outcome]} {outcome.capitalize()}", "", *(f"{plain(answer)}\n" for answer in answers)]
    body += [f"![A dot per recording]({image})", ""]
    if rows.height:
        body += ["<details><summary>What changed with it</summary>", "", *_table(rows), "", "</details>", ""]
    return "\n".join(body)


def plain(text: str) -> str:
    """Text without markup: a name from a trace must not become a link, a mention or HTML."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def _table(rows: pl.DataFrame) -> list[str]:
    lines = ["| kind | base → new | change | verdict | name |", "| --- | ---: | ---: | --- | --- |"]
    for row in rows.iter_rows(named=True):
        base, new = row["base_ns"], row["new_ns"]
        cells = (
            row["kind"],
            pair_of_times(base, new),
            growth_text(base, new),
            row["verdict"],
            plain(row["name"][:200]),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines
