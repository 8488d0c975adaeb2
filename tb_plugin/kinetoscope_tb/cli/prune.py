"""`kinetoscope prune`: the oldest windows of a logdir go, so that its disk doesn't fill."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kinetoscope.byte_sizes import bytes_in, size_text
from kinetoscope.journal.prune import plan_to_prune
from kinetoscope.journal.prune import prune as prune_plan

from ..errors import BadParameter, KinetoscopeError
from ..names.text import visible

if TYPE_CHECKING:
    from kinetoscope.journal.prune import PrunePlan, StoredWindow


@click.command()
@click.argument("logdir", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--keep-bytes", metavar="SIZE", help="How much the windows of all runs may take, such as 50GB.")
@click.option("--keep-days", type=click.FloatRange(min=0), metavar="DAYS", help="How old a window may become.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
def prune(logdir: Path, keep_bytes: str | None, keep_days: float | None, dry_run: bool) -> None:
    """Remove the oldest windows of the runs in LOGDIR, except the newest of each run.

    A window goes with the traces and memory snapshots of all its ranks. Only files that the recorder wrote are removed,
    as run.json lists them; runs that are being written are left alone.
    """
    if keep_bytes is None and keep_days is None:
        raise BadParameter("Say what may stay: --keep-bytes 50GB, --keep-days 30, or both.")
    try:
        most_bytes = None if keep_bytes is None else bytes_in(keep_bytes)
    except ValueError as error:
        raise BadParameter(str(error)) from error
    plan = plan_to_prune(logdir, most_bytes=most_bytes, most_days=keep_days)
    try:
        if not dry_run:
            prune_plan(plan)
    except OSError as error:
        raise KinetoscopeError(visible(f"Not everything could be removed: {error}.")) from error
    _print(plan, logdir, most_bytes, is_dry=dry_run)


def _print(plan: PrunePlan, logdir: Path, most_bytes: int | None, *, is_dry: bool) -> None:
    verb = "Would remove" if is_dry else "Removed"
    for window in plan.windows:
        click.echo(visible(f"{verb} {_text(window, logdir)}"))
    for path, reason in plan.foreign:
        click.echo(visible(f"Left {path}: {reason}."), err=True)
    for run in plan.active:
        click.echo(visible(f"Left {run}: it is being written."))
    left = plan.size - plan.removed_size
    count = f"{len(plan.windows)} window{'' if len(plan.windows) == 1 else 's'}"
    click.echo(f"{verb} {count}, {size_text(plan.removed_size)}; {size_text(left)} stay.")
    if most_bytes is not None and left > most_bytes:
        click.echo(f"That is more than {size_text(most_bytes)}: the newest window of each run always stays.")


def _text(window: StoredWindow, logdir: Path) -> str:
    run = window.run.relative_to(logdir)
    days = (time.time() - window.saved_ns / 1e9) / 86_400
    files = f"{len(window.files)} file{'' if len(window.files) == 1 else 's'}"
    return f"{logdir / run}, steps up to {window.span}: {files}, {size_text(window.size)}, {days:.1f} days old"
