"""Real recordings of servers as raw events: without what marks their iterations, and played several times in a row."""

from __future__ import annotations

import gzip
import json
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

from kinetoscope_tb.names.iterations import iteration_name
from kinetoscope_tb.reader import read_blocks
from kinetoscope_tb.trace import Trace

Event = dict[str, Any]

DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}
CALLS = {"cuda_runtime", "cuda_driver"}
HOST = {*CALLS, "cpu_op", "user_annotation", "python_function"}


def raw(path: Path) -> dict[str, Any]:
    """The file as JSON, with exact decimals."""
    document: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)
    return document


def is_mark(event: Event) -> bool:
    """Whether an event, or its copy on the device, is the annotation of an iteration."""
    return "user_annotation" in str(event.get("cat")) and iteration_name(event["name"]) is not None


def stripped(document: dict[str, Any], *, python: bool) -> Trace:
    """The trace without the annotations of iterations, and, unless `python`, without Python calls."""
    kept = [e for e in document["traceEvents"] if not is_mark(e) and (python or e.get("cat") != "python_function")]
    return built({**document, "traceEvents": kept})


def built(document: dict[str, Any]) -> Trace:
    """The document, read by the reader."""
    return read_blocks([json.dumps(document, default=float).encode()], path="stripped.pt.trace.json")


def tiled(documents: list[dict[str, Any]], count: int, seed: int) -> dict[str, Any]:
    """A recording of `count` iterations, each a random one of some recordings of one iteration each.

    The host runs one after the other with a pause between them, and the device runs what was launched in order, as the
    one stream of a server would: its rows are as long, and as far apart, as they were.
    """
    choose = random.Random(seed)
    events: list[Event] = []
    host = device = Decimal(0)
    for number in range(count):
        marked = choose.choice(documents)["traceEvents"]
        mark = max((e for e in marked if e.get("cat") == "user_annotation" and is_mark(e)), key=lambda e: e["dur"])
        begin, end = mark["ts"], mark["ts"] + mark["dur"]
        calls = {e["args"]["correlation"] for e in marked if e.get("cat") in CALLS and begin <= e["ts"] < end}
        rows = [e for e in marked if e.get("cat") in DEVICE and e["args"].get("correlation") in calls]
        first = min(e["ts"] for e in rows)
        later = max(host + first - begin, device) - first
        events += [_moved(e, host - begin, number) for e in marked if e.get("cat") in HOST and begin <= e["ts"] < end]
        events += [_moved(e, later, number) for e in rows]
        device = max(e["ts"] + e["dur"] for e in rows) + later
        host += end - begin + choose.randint(100, 800)
    return {**documents[0], "traceEvents": events}


def _moved(event: Event, by: Decimal, number: int) -> Event:
    args = dict(event.get("args", {}))
    if "correlation" in args:
        args["correlation"] += number * 10_000_000
    args.pop("External id", None)
    end = {"tid": 1, "pid": 1} if event["cat"] in HOST else {}
    return {**event, **end, "ts": event["ts"] + by, "args": args}
