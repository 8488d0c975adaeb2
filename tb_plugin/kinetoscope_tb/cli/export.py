"""`kinetoscope export`: a timeline as a file for other viewers."""

from __future__ import annotations

import re
from contextlib import ExitStack
from decimal import Decimal

import click

from ..errors import BadParameter, NotFound
from ..export.chrome_json.writer import EXTRAS, Source, Window, export_pieces, slices_in
from ..names import text
from ..names.text import file_size
from ..timeline.core.build import timeline
from .completion import PATH
from .options import communication_option, where
from .output_file import open_output
from .traces import choose_file, list_files, open_trace

_NS = {"ns": 1, "us": 1000, "µs": 1000, "ms": 1_000_000, "s": 1_000_000_000}


def _write(
    path: str,
    run: str | None,
    worker: str | None,
    span: str | None,
    out: str,
    all_workers: bool,
    begin: int | None,
    end: int | None,
    step: str | None,
    include: tuple[str, ...],
    communication: tuple[str, ...],
) -> None:
    listing = list_files(path, communication)
    first = choose_file(listing, {"run": run, "worker": worker, "span": span})
    files = [first, *(listing.same_span_of_others(first) if all_workers else [])]
    with ExitStack() as stack:
        traces = [stack.enter_context(open_trace(file)) for file in files]
        zero = traces[0].common_origin_ns
        sources = [
            Source(trace, timeline(trace), trace.common_origin_ns - zero, file.worker if all_workers else "")
            for file, trace in zip(files, traces, strict=True)
        ]
        window = _window(sources[0], begin, end, step)
        slices = sum(slices_in(source, window) for source in sources)
        if not slices:
            raise BadParameter(_nothing_in(window, sources[0]))
        with open_output(out) as file:
            for piece in export_pieces(sources, window, [extra for extra in EXTRAS if extra in include]):
                file.write(piece)
            size = file.tell()
    workers = "" if len(files) == 1 else f" of {len(files)} workers"
    click.echo(f"{out}: {slices:,} slices{workers}, {file_size(size)}.")


def _nothing_in(window: Window, first: Source) -> str:
    """Why nothing is exported, and from when to when the first recording has slices."""
    slices = first.timeline
    if not len(slices.start_ns) or (window.from_ns, window.to_ns) == (None, None):
        return "The recording has no slices to export."
    begin, end = int(slices.start_ns.min()), int((slices.start_ns + slices.dur_ns).max())
    return f"No slice lies in this range. The recording has slices from {text.time(begin)} to {text.time(end)}."


def _window(first: Source, begin: int | None, end: int | None, step: str | None) -> Window:
    """The range on the first trace's clock.

    Raises:
        NotFound: There is no such step.
        BadParameter: Both a step and a range are given.
    """
    if step is None:
        return Window(begin, end)
    if begin is not None or end is not None:
        raise BadParameter("Give a step or a range, not both.")
    steps = {row["name"]: row for row in first.trace.steps.iter_rows(named=True)}
    if step not in steps:
        raise NotFound("step", step, steps)
    return Window(steps[step]["start_ns"], steps[step]["end_ns"])


def time(text: str) -> int:
    """Parse a time such as 1.5s, 20ms, 300us or 7ns to ns."""
    match = re.fullmatch(r"(-?\d{1,12}(?:\.\d{1,9})?)(ns|us|µs|ms|s)", text, re.ASCII)
    if not match:
        raise BadParameter(f"{text!r} isn't a time such as 1.5s, 20ms, 300us or 7ns.")
    return int(Decimal(match[1]) * _NS[match[2]])


export = click.Command(
    "export",
    callback=_write,
    params=[
        *where(),
        click.Argument(["out"], metavar="OUT.json.gz", type=PATH),
        click.Option(["--all", "all_workers"], is_flag=True, help="Every worker of the run, on one clock."),
        click.Option(["--from", "begin"], type=time, help="Start of the range, since the recording began: 1.5s, 20ms."),
        click.Option(["--to", "end"], type=time, help="End of the range."),
        click.Option(["--step"], help="One step instead of a range."),
        click.Option(
            ["--include"],
            type=click.Choice(["args", "memory", "flows"]),
            multiple=True,
            help="What to write besides the slices; repeat for several.",
        ),
        communication_option(),
    ],
    help="""Write a recording's timeline to OUT.json.gz for Perfetto and chrome://tracing, without losing slices.

    Perfetto drops slices of PyTorch's own files that overlap others in part, such as steps recorded with stacks;
    here these have separate threads. `memory` is a curve for each device; the program's own counters and
    instants are always included.
    """,
)
