"""The first screen as static HTML."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator

from ..answer.first_screen import Block, ClaimBlock, NameTable
from ..names.text import visible
from .style import card, cell, sentence


def first_screen(title: str, environment: str, blocks: Iterable[Block]) -> str:
    """The blocks below their title, without scripts; texts of the trace are escaped."""
    heading = f"<p><strong>{html.escape(title)}</strong></p>"
    return card(heading, sentence(environment, "dim"), *(_block(block) for block in blocks))


def _block(block: Block) -> str:
    if isinstance(block, ClaimBlock):
        return _claim(block)
    return _table(block) if isinstance(block, NameTable) else sentence(visible(block))


def _claim(claim: ClaimBlock) -> str:
    number = f"{claim.number}. " if claim.number else ""
    action = f"→ {visible(claim.action)}" if claim.action else ""
    title = f"<p><strong>{html.escape(number + visible(claim.title))}</strong></p>"
    return title + sentence(visible(claim.evidence), "more") + sentence(action, "more")


def _table(table: NameTable) -> str:
    headings = [column.heading for column in table.columns]
    first = ""
    if any(headings):
        cells = [cell(column.heading, tag="th", is_number=not column.is_text) for column in table.columns]
        first = f"<tr><td></td>{''.join(cells)}</tr>"
    remainder = sentence(table.remainder, "dim")
    return f"<table><caption>{html.escape(table.title)}</caption>{first}{''.join(_rows(table))}</table>{remainder}"


def _rows(table: NameTable) -> Iterator[str]:
    for number, (name, *texts) in enumerate(table.rows):
        pairs = zip(table.columns, texts, strict=True)
        cells = "".join(cell(text, is_number=not column.is_text) for column, text in pairs)
        yield f"<tr>{cell(name, title=name)}{cells}{_bar(table.shares[number]) if table.shares else ''}</tr>"


def _bar(share: float) -> str:
    width = 100 * min(1.0, max(0.0, share))
    return f'<td class="bar"><div style="width: {width:.1f}%"></div></td>'
