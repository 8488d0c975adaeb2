"""The recording as kineto's siblings in torch 2.13 write it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from support.build import Microseconds, dumps

from .arguments import Arguments
from .kineto import Event, Kineto
from .recording import COLLECTIVE, Row


class PythonExporter(Kineto):
    """Torch 2.13, export_chrome_trace(use_python_export=True): every event is complete, memory too."""

    def laid_out(self, event: Event) -> str:
        return dumps(event)

    def metadata(self) -> tuple[Event, Event]:
        head, tail = super().metadata()
        gone = ("trace_id", "host_name")
        return {k: v for k, v in head.items() if k not in gone}, tail

    def row_events(self, row: Row, arguments: Arguments) -> Iterator[Event]:
        for event in super().row_events(row, arguments):
            if event["ph"] == "i":
                event = {**event, "ph": "X", "dur": Microseconds(0)}
                del event["s"]
            if row.kind == "kernel" and "collective" in row.args and event["ph"] == "X":
                event["args"] |= COLLECTIVE
            yield event


class Monitor(Kineto):
    """Torch 2.13, backend=cupti_monitor: compact, without External id and without most properties of kernels."""

    columns = ("device", "context", "stream", "correlation", "bytes", "graph node id", "graph id")

    def text(self) -> str:
        head, tail = self.metadata()
        return json.dumps(head | {"traceEvents": list(map(_plain, self.all_events()))} | tail, separators=(",", ":"))

    def row_events(self, row: Row, arguments: Arguments) -> Iterator[Event]:
        for event in super().row_events(row, arguments):
            if row.kind in ("runtime", "kernel", "memcpy", "memset") and event["ph"] == "X":
                event["args"] = {k: v for k, v in event["args"].items() if k in self.columns and v}
                event["args"] |= {"copy kind": 1, "my annotation": "x"} if row.kind == "memcpy" else {}
            yield event


class Annotated(Kineto):
    """Torch 2.13, python -m torch.cuda._annotate_cuda_graph_trace: texts instead of numbers, and no names."""

    def name_events(self) -> Iterator[Event]:
        return iter(())

    def row_events(self, row: Row, arguments: Arguments) -> Iterator[Event]:
        for event in super().row_events(row, arguments):
            if row.kind == "kernel" and row.args.get("node") and event["ph"] == "X":
                event["args"] |= {"stream": "60", "graph node id": str(row.args["node"]), "layer": "0"}
                event["tid"] = 60
            yield event


def _plain(value: Any) -> Any:
    """The value for json.dumps, with times as floats."""
    return {k: float(v) if isinstance(v, Microseconds) else v for k, v in value.items()}
