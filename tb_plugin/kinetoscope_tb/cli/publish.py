"""`kinetoscope publish`: other writers' traces under names that every tool finds."""

from __future__ import annotations

from collections import Counter

import click

from ..errors import KinetoscopeError


@click.command()
@click.argument("path")
@click.argument("logdir")
@click.option("--run", help="What the run is called; by default each folder is one.")
@click.option("--copy", "always_copy", is_flag=True, help="Copy the files, even where a link costs nothing.")
def publish(path: str, logdir: str, run: str | None, always_copy: bool) -> None:
    """Give the traces under PATH, whoever wrote them, a place in LOGDIR: one folder a run, one file a worker and span.

    On the same disk the new name is a hard link, so nothing is copied and nothing is changed. Again and again is fine:
    what is there already stays, what is new is added.
    """
    from ..export.publish import publish as publish_all
    from .text_table import visible

    done = publish_all(path, logdir, run=run, always_copy=always_copy)
    for one in done:
        arrow = visible(f"{one.source} -> {one.target}")
        click.echo(f"{arrow}: {visible(one.how)}", err=one.is_failed)
    counts = Counter("failed" if one.is_failed else one.how for one in done)
    click.echo(", ".join(f"{count} {how}" for how, count in sorted(counts.items())) + ".")
    if counts["failed"]:
        raise KinetoscopeError(f"{counts['failed']} of {len(done)} traces couldn't be published.")
