"""`kinetoscope otlp`: the steps of recordings for dashboards, in OpenTelemetry's protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..engine.answers import Missing, compute
from ..errors import BadParameter
from ..export.otlp import StepsOfRecording, metrics_request, traces_request
from ..names.text import file_size, times
from ..views import VIEWS
from ..web.json_text import json_text
from ..web.report import workers_of
from .completion import PATH
from .options import where
from .output_file import open_output
from .traces import choose_file, list_files, open_trace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..discovery import TraceFile
    from ..trace import Trace

_REQUESTS = {"metrics": metrics_request, "traces": traces_request}
_NO_CLOCK_NS = 946_684_800_000_000_000  # 2000-01-01: an earlier origin isn't Unix time


def _write(
    path: str, run: str | None, worker: str | None, span: str | None, out: str, whole_run: bool, signal: str
) -> None:
    listing = list_files(path)
    first = choose_file(listing, {"run": run, "worker": worker, "span": span})
    recordings = list(_recordings(workers_of(listing, first) if whole_run else [first]))
    steps = sum(recording.rows.height for recording in recordings)
    if not steps:
        raise BadParameter("No step is recorded as a whole.")
    request = _REQUESTS[signal](recordings, VIEWS["steps"].table.columns)
    with open_output(out) as target:
        target.write(json_text(request).encode() + b"\n")
        size = target.tell()
    click.echo(f"{out}: {times(steps, 'step')} of {times(len(recordings), 'recording')}, {file_size(size)}.")


def _recordings(files: Iterable[TraceFile]) -> Iterator[StepsOfRecording]:
    for file in files:
        with open_trace(file) as trace:
            rows = compute(VIEWS["steps"], trace, {})
        if isinstance(rows, Missing):
            click.echo(f"{file.shown}: {rows.hint}", err=True)
            continue
        if trace.origin_ns < _NO_CLOCK_NS:
            click.echo(f"{file.shown} doesn't say when it was recorded: its times count from its begin.", err=True)
        if left_out := int((~rows["is_complete"]).sum()):
            click.echo(f"{file.shown}: {times(left_out, 'step')} left out, not recorded as a whole.", err=True)
        yield StepsOfRecording(_about(file, trace), trace.origin_ns, rows.filter("is_complete"))


def _about(file: TraceFile, trace: Trace) -> dict[str, str | int]:
    """The recording by OpenTelemetry's names (opentelemetry.io/docs/specs/semconv/resource), and what these lack."""
    names = {"service.name": file.run, "service.instance.id": file.worker, "kinetoscope.span": file.span}
    host, rank = trace.meta.producer.get("host"), trace.meta.rank
    return {
        **names,
        **({"host.name": host} if isinstance(host, str) else {}),
        **({"kinetoscope.rank": rank} if rank is not None else {}),
    }


otlp = click.Command(
    "otlp",
    callback=_write,
    params=[
        *where(),
        click.Argument(["out"], metavar="OUT.json", type=PATH),
        click.Option(["--all", "whole_run"], is_flag=True, help="Every worker and span of the run."),
        click.Option(
            ["--signal"],
            type=click.Choice(list(_REQUESTS)),
            default="metrics",
            show_default=True,
            help="Metrics: how long each step and each part of it took. Traces: a span for each step.",
        ),
    ],
    help="""Write how long each step took to OUT.json for dashboards, as OpenTelemetry's collector takes it (OTLP/JSON).

    Steps that weren't recorded as a whole are left out. Nothing is sent: post the file to /v1/metrics or /v1/traces
    of a collector, or let its receiver otlpjsonfile read it.
    """,
)
