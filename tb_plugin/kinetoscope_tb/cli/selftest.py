"""`kinetoscope selftest`: the recorder's own command, which tests a disk and a machine."""

from __future__ import annotations

import click

from kinetoscope.selftest.command import main


def _selftest(words: tuple[str, ...]) -> None:
    click.get_current_context().exit(main(words))


selftest = click.Command(
    "selftest",
    callback=_selftest,
    params=[click.Argument(["words"], metavar="DIR [--quick]", nargs=-1, type=click.UNPROCESSED)],
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    help="Say what of a recording into DIR survives kills, a full disk and a rank that hangs, on this machine.",
)
