"""`kinetoscope repair`: a damaged trace as strict JSON."""

from __future__ import annotations

import click

from ..export.repair import repair as write_repaired
from .completion import PATH


@click.command()
@click.argument("path", metavar="IN", type=PATH)
@click.argument("out", metavar="OUT", type=PATH)
def repair(path: str, out: str) -> None:
    """Repair a damaged trace IN: write OUT as strict JSON, which other tools can read; .gz compresses it."""
    result = write_repaired(path, out)
    click.echo(f"{out}: {result.events:,} events, {result.rewritten:,} of which weren't strict JSON.")
    for diagnostic in result.diagnostics:
        click.echo(f"{diagnostic.rule} ({diagnostic.count:,}): {diagnostic.consequence}")
