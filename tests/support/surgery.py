"""Surgery on real traces: plants one fault into the events of a file, and reads the result."""

from __future__ import annotations

import copy
import gzip
import json
import random
from functools import cache
from pathlib import Path
from typing import Any

from kinetoscope_tb.reader import read_blocks
from kinetoscope_tb.trace import Trace

Event = dict[str, Any]
_DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"}
_CALLS = {"cuda_runtime", "cuda_driver", "runtime", "driver"}
_NO_WORK = {"overhead", "trace", "gpu_user_annotation"}


@cache
def _parsed(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    document = json.loads(content)
    return document if isinstance(document, dict) else {"traceEvents": document}


class Patient:
    """A copy of a recording whose events may be changed; times are in µs, as in the file."""

    def __init__(self, path: Path, seed: int = 1) -> None:
        document = copy.copy(_parsed(path))
        document["traceEvents"] = [dict(event) for event in document["traceEvents"]]
        self.document = document
        self.random = random.Random(seed)

    @property
    def events(self) -> list[Event]:
        return self.document["traceEvents"]

    @events.setter
    def events(self, events: list[Event]) -> None:
        self.document["traceEvents"] = events

    def timed(self) -> list[Event]:
        """What has a duration."""
        return [e for e in self.events if e.get("ph") == "X" and str(e.get("cat", "")).lower() not in _NO_WORK]

    def device(self, *cats: str) -> list[Event]:
        """Device rows by their start."""
        categories = cats or _DEVICE
        rows = [e for e in self.timed() if str(e.get("cat")).lower() in categories]
        return sorted(rows, key=lambda e: e["ts"])

    def kernels(self) -> list[Event]:
        return self.device("kernel")

    def calls(self) -> dict[int, Event]:
        """Calls by their correlation."""
        rows = [e for e in self.timed() if str(e.get("cat")).lower() in _CALLS]
        return {e["args"]["correlation"]: e for e in rows if e.get("args", {}).get("correlation")}

    def streams(self) -> list[list[Event]]:
        """The device rows of each stream by their start."""
        rows: dict[Any, list[Event]] = {}
        for event in self.device():
            rows.setdefault((event["args"]["device"], event["args"]["stream"]), []).append(event)
        return list(rows.values())

    def remove(self, gone: list[Event]) -> None:
        marks = {id(event) for event in gone}
        self.events = [event for event in self.events if id(event) not in marks]

    def trace(self) -> Trace:
        return read_blocks([json.dumps(self.document).encode()], path="patient.pt.trace.json")


def linked(patient: Patient, rows: list[Event]) -> list[Event]:
    """Those rows whose launch is recorded."""
    calls = patient.calls()
    return [row for row in rows if row["args"].get("correlation") in calls]


def drop_kernels(patient: Patient, first: float, last: float) -> None:
    """The buffers with the kernels between two shares of all are lost."""
    rows = linked(patient, patient.kernels())
    calls = patient.calls()
    rows.sort(key=lambda e: calls[e["args"]["correlation"]]["ts"])
    patient.remove(rows[int(first * len(rows)) : int(last * len(rows))])


def stretch_kernel(patient: Patient, excess_us: float) -> None:
    """A kernel ends so long after the next row of its stream."""
    rows = max(patient.streams(), key=len)
    kernels = [i for i, row in enumerate(rows[:-1]) if row["cat"].lower() == "kernel"]
    i = patient.random.choice(kernels)
    rows[i]["dur"] = rows[i + 1]["ts"] + rows[i + 1]["dur"] + excess_us - rows[i]["ts"]


def outlive_wait(patient: Patient, excess_us: float) -> None:
    """The last kernel ends so long after the last wait for the device has returned."""
    waits = [e for e in patient.timed() if "DeviceSynchronize" in e["name"] and e["name"][:3] in ("cud", "hip")]
    wait = max(waits, key=lambda e: e["ts"])
    calls = patient.calls()
    rows = [e for e in linked(patient, patient.kernels()) if _end(calls[e["args"]["correlation"]]) < wait["ts"]]
    last = max(rows, key=lambda e: e["ts"])
    last["dur"] = _end(wait) + excess_us - last["ts"]


def start_early(patient: Patient, lead_us: float) -> None:
    """A kernel starts so long before its launch."""
    row = patient.random.choice(linked(patient, patient.kernels()))
    row["ts"] = patient.calls()[row["args"]["correlation"]]["ts"] - lead_us


def shift_device(patient: Patient, offset_us: float, after: float = 0.0) -> None:
    """The device's clock jumps by an offset after a share of its rows."""
    rows = patient.device()
    for row in rows[int(after * len(rows)) :]:
        row["ts"] += offset_us


def drift_device(patient: Patient, total_us: float) -> None:
    """The device's clock drifts by that much until the end."""
    rows = patient.device()
    begin, length = rows[0]["ts"], rows[-1]["ts"] - rows[0]["ts"]
    for row in rows:
        row["ts"] += total_us * (row["ts"] - begin) / length


def duplicate(patient: Patient, share: float) -> int:
    """So many events are written twice; return the number."""
    rows = [e for e in patient.timed() if e["dur"] > 1 and _number(e)]
    chosen = patient.random.sample(rows, max(1, int(share * len(rows))))
    patient.events = [*patient.events, *chosen]
    return len(chosen)


def _number(event: Event) -> bool:
    """Whether the event has a number that isn't used twice."""
    args, cat = event.get("args", {}), str(event.get("cat", "")).lower()
    if cat in _DEVICE | _CALLS:
        return args.get("correlation", 0) > 0
    return cat in ("cpu_op", "operator") and args.get("External id", args.get("external id", 0)) > 0


def scale(patient: Patient, *, ts: float = 1, dur: float = 1, only_device: bool = False) -> None:
    """Times are written in another unit; start times from the first one on."""
    rows = patient.device() if only_device else [e for e in patient.events if "ts" in e]
    begin = min(row["ts"] for row in rows)
    for row in rows:
        row["ts"] = begin + (row["ts"] - begin) * ts
        if "dur" in row:
            row["dur"] *= dur


def swap_kernels(patient: Patient, apart: int) -> None:
    """Two kernels of a stream, so many rows apart, run in each other's place."""
    rows = linked(patient, max(patient.streams(), key=len))
    i = patient.random.randrange(len(rows) - apart)
    first, second = rows[i], rows[i + apart]
    first["args"], second["args"] = (
        first["args"] | {"correlation": second["args"]["correlation"]},
        second["args"] | {"correlation": first["args"]["correlation"]},
    )


def cut_window(patient: Patient, share: float) -> None:
    """The recording begins after a share of the launches; what they launched isn't in it."""
    calls = patient.calls()
    rows = linked(patient, patient.device())
    launches = sorted(calls[row["args"]["correlation"]]["ts"] for row in rows)
    begin = launches[int(share * len(launches))]
    launched = [row for row in rows if calls[row["args"]["correlation"]]["ts"] < begin]
    patient.remove(launched + [e for e in patient.events if "ts" in e and e["ts"] < begin])


def add_overhead(patient: Patient, share: float) -> None:
    """The profiler takes a share of the time in which devices are idle."""
    rows = patient.device()
    begin, end = rows[0]["ts"], max(map(_end, rows))
    for i in range(50):
        at = begin + i * (end - begin) / 50
        patient.events.append(
            {"ph": "X", "cat": "overhead", "name": "Buffer Flush", "pid": -1, "tid": 0, "ts": at}
            | {"dur": share * (end - begin) / 50, "args": {}}
        )


def _end(event: Event) -> float:
    return event["ts"] + event["dur"]
