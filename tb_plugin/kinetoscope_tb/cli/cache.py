"""`kinetoscope cache`: the cache of traces on disk."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from ..engine.cache import configured_cache
from ..names.text import file_size, times, visible
from ..web.json_text import json_text

if TYPE_CHECKING:
    from ..engine.cache import Cache


@click.command()
@click.option("--clear", is_flag=True, help="Remove every cached trace.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def cache(clear: bool, form: str) -> None:
    """Show the cached traces, which open fast.

    KINETOSCOPE_CACHE names another folder, or is `off`; KINETOSCOPE_CACHE_SIZE sets its size limit, such as 20G.
    """
    disk_cache = configured_cache()
    if disk_cache is None:
        click.echo(json_text({"folder": None}) if form == "json" else "The cache is off.")
        return
    problem = disk_cache.problem()
    freed_bytes = disk_cache.clear() if clear and not problem else 0
    if form == "json":
        entries = [] if problem else disk_cache.entries()
        traces = [{"path": e.path, "bytes": e.bytes, "used": e.used} for e in entries]
        sizes = {
            "capacity_bytes": disk_cache.capacity_bytes(),
            "freed_bytes": freed_bytes,
            "unfinished_bytes": disk_cache.unfinished_bytes(),
        }
        click.echo(json_text({"folder": str(disk_cache.folder), "problem": problem, **sizes, "traces": traces}))
        return
    if problem:
        click.echo(f"{disk_cache.folder} isn't used: {problem}.")
        return
    if clear:
        click.echo(f"{file_size(freed_bytes)} freed.")
    _print(disk_cache)


def _print(disk_cache: Cache) -> None:
    entries = disk_cache.entries()
    used_bytes = sum(entry.bytes for entry in entries)
    of_at_most = f"{file_size(used_bytes)} of at most {file_size(disk_cache.capacity_bytes())}"
    click.echo(f"{disk_cache.folder}: {times(len(entries), 'trace')}, {of_at_most}")
    unfinished_bytes = disk_cache.unfinished_bytes()
    if unfinished_bytes:
        click.echo(f"{file_size(unfinished_bytes):>12}  being written, or left over from a killed process")
    for entry in entries:
        last_use = datetime.fromtimestamp(entry.used).astimezone().isoformat(" ", "minutes")[:16]
        click.echo(f"{file_size(entry.bytes):>12}  {last_use}  {visible(entry.path or '(not readable)')}")
