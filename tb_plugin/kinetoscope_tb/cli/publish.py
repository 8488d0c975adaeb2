"""`kinetoscope publish`: other writers' traces under names that every tool finds."""

from __future__ import annotations

from collections import Counter

import click

from ..errors import KinetoscopeError
from ..export.publish import publish as publish_all
from ..names.text import visible
from .completion import PATH


@click.command()
@click.argument("path", type=PATH)
@click.argument("logdir", type=PATH)
@click.option("--run", help="Name of the run; by default each folder is one.")
@click.option("--copy", "always_copy", is_flag=True, help="Copy the files, even if a link is possible.")
def publish(path: str, logdir: str, run: str | None, always_copy: bool) -> None:
    """Publish the traces of any writer under PATH in LOGDIR: one folder per run, one file per worker and span.

    On the same disk the new file is a hard link, so nothing is copied or changed. Repeated calls are safe: existing
    files stay, new ones are added.
    """
    publications = publish_all(path, logdir, run=run, always_copy=always_copy)
    for publication in publications:
        arrow = visible(f"{publication.source} -> {publication.target}")
        click.echo(f"{arrow}: {visible(publication.how)}", err=publication.is_failed)
    counts = Counter("failed" if publication.is_failed else publication.how for publication in publications)
    click.echo(", ".join(f"{count} {how}" for how, count in sorted(counts.items())) + ".")
    if counts["failed"]:
        raise KinetoscopeError(f"{counts['failed']} of {len(publications)} traces couldn't be published.")
