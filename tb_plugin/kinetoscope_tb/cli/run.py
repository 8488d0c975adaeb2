"""`kinetoscope run`: the recorder's own command, for an unmodified program."""

from __future__ import annotations

from importlib import import_module

import click


def _run(words: tuple[str, ...]) -> None:
    import_module("kinetoscope.integrations.program").main(words)  # with torch, which completion doesn't need


run = click.Command(
    "run",
    callback=_run,
    params=[click.Argument(["words"], metavar="PROGRAM [ARGUMENTS]", nargs=-1, type=click.UNPROCESSED)],
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []},
    help="Run a training that has no Tracer, and record it.",
)
