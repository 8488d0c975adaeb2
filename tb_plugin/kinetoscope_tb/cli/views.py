"""`kinetoscope views`: the catalogue of views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click
import polars as pl

from ..text_table import TextColumn
from ..view import catalogue
from ..views import EVERY_VIEW
from ..web import encode
from ..web.json_text import json_text
from .print_rows import print_table

PLACES = {
    "tab": "Tab *{label}*.",
    "head": "Shown above the tabs.",
    "lead": "The sentence above `{of}`.",
    "part": "Shown below `{of}`.",
    "detail": "Shown in an opened row of `{of}`.",
}


@click.command()
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "csv", "markdown"]), default="text", show_default=True
)
def views(form: str) -> None:
    """List the views; as markdown, with the definition of every column."""
    descriptions = catalogue(EVERY_VIEW.values())
    rows = [{**view, "entry": view["entry"]["title"]} for view in descriptions]
    names = ("entry", "id", "title", "doc")
    if form == "json":
        click.echo(json_text(descriptions))
    elif form == "csv":
        click.echo(encode.csv(pl.DataFrame({n: [row[n] for row in rows] for n in names})), nl=False)
    elif form == "markdown":
        click.echo(_markdown(descriptions), nl=False)
    else:
        print_table([TextColumn(n, [row[n].splitlines()[0] for row in rows]) for n in names])


def _markdown(descriptions: Sequence[Mapping[str, Any]]) -> str:
    """The Markdown page of all definitions."""
    lines = ["# Views and columns", "", "Written by `make docs` from the definitions in the code."]
    entry = None
    for view in descriptions:
        if view["entry"] != entry:
            entry = view["entry"]
            lines += ["", f"## {entry['title']}", "", entry["question"]]
        lines += ["", f"### {view['title']} (`{view['id']}`)", "", view["doc"], ""]
        lines += [f"{view['hint']}", ""] if view["hint"] else []
        lines += [PLACES[view["place"]["kind"]].format_map(view["place"]) + "\n"]
        if of_trace := view.get("in_rows_of_trace"):
            rows = " and ".join(f"`{name}`" for name in of_trace)
            lines += [f"Shown in an opened row of {rows} too, if the snapshot is next to the trace.\n"]
        takes = [(p["name"], ", ".join(p["choices"]) or f"a {p['kind']}") for p in view["parameters"]]
        lines += [f"Parameter `{name}`: {values}.\n" for name, values in takes]
        lines += ["| column | kind | |", "| --- | --- | --- |"]
        lines += [f"| `{c['name']}` | {c['kind']} | {_definition(c)} |" for c in view["columns"]]
    return "\n".join(lines) + "\n"


def _definition(column: Mapping[str, Any]) -> str:
    """The definition of a column, and the words for its values where these differ in more than a capital."""
    words = {value: word for value, word in column.get("words", {}).items() if value != word.lower()}
    texts = "; ".join(f"`{value}` is shown as “{word}”" for value, word in words.items())
    return " ".join(filter(None, (column["doc"], f"{texts}." if texts else ""))).replace("|", "\\|")
