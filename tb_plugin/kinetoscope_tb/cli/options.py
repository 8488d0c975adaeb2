"""Options that several commands share: which recording, and what to know about it."""

from __future__ import annotations

import click

from .completion import PATH


def where() -> list[click.Parameter]:
    """The argument and options that select a trace."""
    return [
        click.Argument(["path"], type=PATH),
        click.Option(["--run"], help="Which run of the logdir; by default the newest."),
        click.Option(["--worker"], help="Which worker (rank) of the run; by default the first."),
        click.Option(["--span"], help="Which recording of the worker; by default the newest."),
    ]


def communication_option() -> click.Option:
    """The option with users' own patterns of communication."""
    return click.Option(
        ["--communication-pattern", "communication"],
        metavar="REGEX",
        multiple=True,
        help="Count kernels with such names as communication; with `range:` in front, operators and annotations, and "
        "the kernels that they launch. Repeatable.",
    )


def device_option() -> click.Option:
    """The option that names the devices of a trace which doesn't."""
    return click.Option(
        ["--device"],
        metavar="NAME",
        help="The device that recorded the trace, if the trace doesn't name it: as its driver calls it, such as "
        "'NVIDIA H100 80GB HBM3' or 'AMD Instinct MI300X'.",
    )


def capture_option(side: str = "") -> click.Option:
    """The option that names recordings of how the graphs were captured, of the trace or of one side."""
    return click.Option(
        [f"--{side}-capture" if side else "--capture", f"{side}_captures" if side else "captures"],
        metavar="PATH",
        multiple=True,
        help=f"A recording of the capture of the graphs that the {side or 'trace'} replays, or of the same work "
        f"without graphs; of a memory snapshot, a trace of the same time. By default those next to the "
        f"{side or 'trace'}. Repeatable.",
    )
