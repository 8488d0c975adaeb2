"""The command of one view: its parameters are options, and its help defines its columns."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from .options import capture_option, communication_option, device_option, where
from .row_options import row_options

if TYPE_CHECKING:
    from ..view import View

_format = click.Option(
    ["--format", "form"],
    type=click.Choice(["text", "json", "csv"]),
    default="text",
    show_default=True,
    help="Output format. In CSV, text that a spreadsheet would run as a formula gets an apostrophe in front.",
)


class ViewCommand(click.Command):
    """The command of one view: its parameters are options, and the help defines its columns."""

    def __init__(self, view: View) -> None:
        parameters = [
            click.Option(
                [f"--{p.name.replace('_', '-')}", *([f"--{p.name}"] if "_" in p.name else []), p.name],
                metavar="|".join(p.choices) or p.kind.upper(),
                help=f"Default: {p.choices[0]}." if p.choices else "Default: all rows.",
            )
            for p in view.parameters
        ]
        if view.takes_steps:
            parameters += [
                click.Option(["--phase"], help="Only the steady iterations of a server in this phase, such as decode."),
                click.Option(["--step"], help="Only the step, or a server's iteration, of this number."),
            ]
        summary = view.describe()["doc"]
        super().__init__(
            view.id,
            callback=partial(_answer, view),
            params=[
                *where(),
                communication_option(),
                *parameters,
                *_device_options(view),
                *_capture_options(view),
                *row_options(),
                _format,
            ],
            help=summary,
            short_help=summary,
        )
        self.view = view

    def format_epilog(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the definition of each column."""
        with formatter.section("Columns"):
            formatter.write_dl([(f"{c.name} ({c.kind.name})", c.doc) for c in self.view.table.columns])


def _device_options(view: View) -> list[click.Option]:
    """The option that names the devices, where the view has no parameter of that name: then it is a device's number."""
    is_taken = any(parameter.name == "device" for parameter in view.parameters)
    return [] if is_taken or view.scope != "recording" else [device_option()]


def _capture_options(view: View) -> list[click.Option]:
    return [capture_option()] if view.scope == "recording" else []


def _answer(view: View, **options: Any) -> None:
    device = options.pop("device", None) if _device_options(view) else None
    answer = import_module(".view_answer", __package__)  # with the reader and the engine, which help doesn't need
    answer.print_view(view, device_name=device, **options)
