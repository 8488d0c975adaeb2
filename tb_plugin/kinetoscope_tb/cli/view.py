"""`kinetoscope view`: a command for each view, whose module is imported when it is called."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from ..entries import ENTRIES
from ..errors import BadParameter, NotFound
from ..views import EVERY_VIEW


class _ViewGroup(click.Group):
    """The commands of the views."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(EVERY_VIEW)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command:
        if cmd_name not in EVERY_VIEW and Path(cmd_name).exists():
            raise BadParameter(f"Put the view before the path: kinetoscope view VIEW {cmd_name}.")
        if cmd_name not in EVERY_VIEW:
            raise NotFound("view", cmd_name, EVERY_VIEW)
        module = import_module(".view_command", __package__)  # with Polars, which listing the views doesn't need
        command: click.Command = module.ViewCommand(EVERY_VIEW[cmd_name])
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The views and options that begin so; no view is imported for it."""
        views = [CompletionItem(name) for name in self.list_commands(ctx) if name.startswith(incomplete)]
        return [*views, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the views under the page's entries, with their titles."""
        for entry in ENTRIES.values():
            if rows := [(view.id, view.title) for view in EVERY_VIEW.values() if view.entry == entry.title]:
                formatter.write_paragraph()
                formatter.write_text(f"{entry.title}: {entry.question}")
                with formatter.indentation():
                    formatter.write_dl(rows)


@click.group(cls=_ViewGroup, name="view", subcommand_metavar="VIEW PATH [OPTIONS]")
def view() -> None:
    """Print one view of a trace. PATH is a trace file or a logdir."""
