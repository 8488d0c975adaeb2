"""`kinetoscope stacks`: the call tree of a view for flame graph viewers."""

from __future__ import annotations

import click

from ..engine.answers import Missing, compute
from ..errors import BadParameter
from ..export.stacks import FORMATS, stacks_of
from ..names.text import file_size
from ..views import VIEWS
from .completion import PATH
from .options import where
from .output_file import open_output
from .traces import choose_file, list_files, open_trace

_VALUES = {"host": "host_self_ns", "device": "device_self_ns"}


def _write(
    path: str,
    run: str | None,
    worker: str | None,
    span: str | None,
    out: str,
    of: str,
    value: tuple[str, ...],
    step: str | None,
) -> None:
    ending = next((ending for ending in FORMATS if out.endswith(ending)), None)
    if ending is None:
        raise BadParameter(f"{out!r} ends in none of {', '.join(FORMATS)}, which choose the format.")
    values = value or tuple(_VALUES)
    if ending in (".folded", ".collapsed"):
        values = values[:1]
    view, columns = VIEWS[of], [_VALUES[name] for name in values]
    file = choose_file(list_files(path), {"run": run, "worker": worker, "span": span})
    with open_trace(file) as trace:
        rows = compute(view, trace, view.arguments({} if step is None else {"step": step}))
    if isinstance(rows, Missing):
        raise BadParameter(f"There are no stacks. {rows.hint}")
    stacks = stacks_of(view.table, rows, columns)
    if not stacks:
        raise BadParameter(f"No stack took time on the {' or the '.join(values)}.")
    with open_output(out) as target:
        for piece in FORMATS[ending](stacks, [f"{name} time" for name in values], file.shown):
            target.write(piece)
        size = target.tell()
    click.echo(f"{out}: {len(stacks):,} stacks, {file_size(size)}.")


stacks = click.Command(
    "stacks",
    callback=_write,
    params=[
        *where(),
        click.Argument(["out"], metavar="OUT", type=PATH),
        click.Option(
            ["--of"],
            type=click.Choice(["python_calls", "modules"]),
            default="python_calls",
            show_default=True,
            help="The view whose call tree is written.",
        ),
        click.Option(
            ["--value"],
            type=click.Choice(list(_VALUES)),
            multiple=True,
            help="Time of the host, or of the kernels and copies that were launched there; by default both, and the "
            "host's where the format has one. Repeatable.",
        ),
        click.Option(["--step"], help="Only the step, or a server's iteration, of this number."),
    ],
    help="""Write call stacks to OUT for flame graph viewers: where in the program host and device time come from.

    The ending of OUT chooses the format: .speedscope.json for speedscope, .pb.gz for pprof, .folded or .collapsed for
    flamegraph.pl and what reads its lines. Each stack has the time that it took by itself, in nanoseconds.
    """,
)
