"""Writes a run of many ranks with many slices: the made-up training, repeated by whole arrays, not event by event.

python tests/bench/ranks.py FOLDER --slices 20000000 --ranks 8
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from isal import igzip

import training
from kinetoscope_tb.export.chrome_json.events import Texts, events, heads, names
from kinetoscope_tb.reader import read
from kinetoscope_tb.timeline.core.build import timeline
from kinetoscope_tb.timeline.core.model import Timeline
from kinetoscope_tb.trace import Trace

AT_ONCE = 100  # repetitions, which are one step
SKEW_NS = 40_000  # of each rank against the one before
IDS = 1000  # of one repetition


class Repeated:
    """A recording whose slices can be written again and again, at later times and with other ids."""

    def __init__(self, trace: Trace, made: Timeline) -> None:
        self.length = made.window[1] - made.window[0] + 1000
        label = made.label.astype(np.int64)
        is_shown = np.array([not text.startswith("ProfilerStep#") for text in made.labels.texts])[label]
        self.slices = np.flatnonzero(is_shown)
        track = np.array([made.track_of(i) for i in range(made.size)])
        places = [(t.pid or t.device, t.tid or t.stream) for t in made.tracks]
        begin = heads(trace)
        self.start, self.dur = made.start_ns[self.slices], made.dur_ns[self.slices]
        self.codes = begin.code[made.event[self.slices]], label[self.slices], track[self.slices]
        self.texts = (
            begin.texts,
            names(made.labels),
            Texts.of(f',"pid":{pid},"tid":{tid},"ts":' for pid, tid in places),
        )
        self.is_instant = begin.is_instant
        ids = np.full(made.frame_first[-1], -1, np.int64)
        for frame, first in ((trace.launches, made.frame_first[1]), (trace.device_events, made.frame_first[2])):
            ids[first : first + frame.height] = frame["correlation"].to_numpy()
        self.correlation = ids[made.event[self.slices]]

    def text(self, first: int, count: int, at_ns: int) -> bytes:
        """So many repetitions."""
        times = np.arange(first, first + count) * self.length + at_ns
        start = (times[:, None] + self.start).ravel()
        correlation = (
            np.tile(self.correlation, count) + np.repeat(np.arange(first, first + count), self.slices.size) * IDS
        )
        linked = np.flatnonzero(np.tile(self.correlation >= 0, count))
        tail = np.zeros(start.size, np.int64)
        tail[linked] = np.arange(1, linked.size + 1)
        arguments = pl.concat_str(pl.lit(',"args":{"correlation":'), pl.col("id").cast(pl.String), pl.lit("}}"))
        tails = pl.concat([pl.Series(["}"]), pl.DataFrame({"id": correlation[linked]}).select(arguments).to_series()])
        codes = (*(np.tile(code, count) for code in self.codes), tail)
        return events((*self.texts, Texts.of_series(tails)), codes, self.is_instant, (start, np.tile(self.dur, count)))


def write_ranks(folder: Path, slices: int, ranks: int = 8) -> int:
    """Write a run of so many ranks with about so many slices in all; return how many there are."""
    with tempfile.TemporaryDirectory() as made:
        path = Path(made, "training.json.gz")
        training.write_recording(path)
        trace = read(str(path))
    repeated = Repeated(trace, timeline(trace))
    copies = max(AT_ONCE, round(slices / ranks / repeated.slices.size))
    steps = -(-copies // AT_ONCE)
    folder.mkdir(parents=True, exist_ok=True)
    for rank in range(ranks):
        top = {
            "schemaVersion": 1,
            "deviceProperties": [training.DEVICE],
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": ranks},
            "baseTimeNanoseconds": 1_700_000_000_000_000_000,
        }
        with igzip.open(folder / f"rank{rank}.1.pt.trace.json.gz", "wb", compresslevel=1) as file:
            file.write(json.dumps(top)[:-1].encode() + b', "traceEvents": [\n')
            for step in range(steps):
                first, count = step * AT_ONCE, min(AT_ONCE, copies - step * AT_ONCE)
                at, lasts = first * repeated.length + rank * SKEW_NS, count * repeated.length
                step_event = {
                    "ph": "X",
                    "cat": "user_annotation",
                    "name": f"ProfilerStep#{step}",
                    "pid": 1000,
                    "tid": 1,
                }
                whole = json.dumps({**step_event, "ts": at / 1000, "dur": (lasts - 1000) / 1000})
                file.write((b",\n" if step else b"") + whole.encode())
                file.write(repeated.text(first, count, rank * SKEW_NS))
            file.write(b"\n]}\n")
    return ranks * (copies * repeated.slices.size + steps)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--slices", type=int, default=20_000_000)
    parser.add_argument("--ranks", type=int, default=8)
    arguments = parser.parse_args()
    print(f"{write_ranks(arguments.folder, arguments.slices, arguments.ranks):,} slices")
