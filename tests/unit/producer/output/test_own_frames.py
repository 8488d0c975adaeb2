"""A trace with call stacks: what the recorder wrote nests, its own calls are left out, and the program's stay."""

import gzip
import json
from collections import defaultdict
from pathlib import Path

import pytest

from kinetoscope.output.own_frames import OwnFrames
from kinetoscope_tb.diagnostics.diagnose import diagnose
from kinetoscope_tb.reader import read

PROGRAM = """
import sys
import torch
from kinetoscope import Tracer, cyclic

class Loader:
    def __len__(self):
        return 6

    def __iter__(self):
        return (make_batch() for _ in range(6))

def make_batch():
    return torch.ones(4, 8)

def forward(tracer, batch):
    with tracer.marker("forward"):
        return batch.relu().sum()

_, folder, loop = sys.argv
schedule = cyclic(wait=1, active=3)
with Tracer(folder, run="run", schedule=schedule, with_stack=True, system_interval_s=0.01) as tracer:
    if loop == "steps":
        for batch in tracer.steps(Loader()):
            forward(tracer, batch)
    else:
        for batch in Loader():
            forward(tracer, batch)
            tracer.step()
print(*tracer.saved_traces)
"""


@pytest.fixture(params=["steps", "step"], scope="module")
def trace(request, tmp_path_factory, forks):
    """The trace of a process that has no threads but the training's and the recorder's."""
    status, out, err = forks.run("-c", PROGRAM, tmp_path_factory.mktemp("runs"), request.param)
    assert status == 0, err
    return Path(out.strip())


def slices(path):
    """Category, name, thread, start and end in ns of each slice of the host."""
    events = json.loads(gzip.decompress(path.read_bytes()), parse_float=str)["traceEvents"]
    for event in events:
        if event.get("cat") in ("user_annotation", "python_function", "cpu_op"):
            start, dur = (int(str(event[key]).replace(".", "")) for key in ("ts", "dur"))
            yield event["cat"], event["name"], event["tid"], start, start + dur


def test_no_slice_that_the_recorder_wrote_overlaps_another_one_partially(trace):
    by_thread = defaultdict(list)
    for category, name, tid, start, end in slices(trace):
        by_thread[tid].append((start, end, category, name))
    own = [row for rows in by_thread.values() for row in rows if row[3].startswith(("ProfilerStep", "forward"))]
    assert len(own) == 7  # with the marker of the warm-up
    for start, end, _, name in own:
        for rows in by_thread.values():
            crossing = [r for r in rows if start < r[0] < end < r[1] or r[0] < start < r[1] < end]
            assert not crossing, (name, crossing)
    assert [d.rule for d in diagnose(read(str(trace))) if "overlap" in d.rule] == []


def test_the_program_s_calls_stay_with_their_callers_and_the_recorder_s_are_left_out(trace):
    rows = [row for row in slices(trace) if row[0] == "python_function"]
    assert not [name for _, name, *_ in rows if "kinetoscope/" in name]
    training = json.loads(gzip.decompress(trace.read_bytes()))["kinetoscope"]["pid"]  # its main thread
    elsewhere = {name for _, name, tid, *_ in rows if tid != training}
    of_threads = ("threading.py(", "concurrent/futures/thread.py(")  # torch doesn't know the ids of these threads
    assert all(name.startswith(of_threads) for name in elsewhere), elsewhere
    assert sum(name.endswith(": forward") for _, name, *_ in rows) == 3
    assert sum(name.endswith(": make_batch") for _, name, *_ in rows) == 3
    calls = {
        e["args"]["Python id"]: e
        for e in json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
        if e.get("cat") == "python_function"
    }
    parents = {call["args"]["Python parent id"] for call in calls.values()}
    assert parents <= {*calls, None}


def event(number, parent, name, tid=1):
    return (
        f'  {{\n    "ph": "X",\n    "cat": "python_function",\n    "name": "{name}",\n    "pid": 9,\n    "tid": {tid},\n'
        f'    "ts": 1.000,\n    "dur": 2.000\n    ,\n    "args": {{\n'
        f'      "Python parent id": {parent}, "Python id": {number}, "Ev Idx": 3\n    }}\n  }},\n'
    ).encode()


def test_callees_of_calls_that_are_left_out_get_the_caller_that_stays():
    frames = OwnFrames([7])
    assert frames.remove(event(1, "null", "train.py(3): loop")) == event(1, "null", "train.py(3): loop")
    own = [event(2, 1, "kinetoscope/tracer.py(5): step"), event(3, 2, "<built-in function time_ns>")]
    own += [event(4, 2, "pathlib.py(9): stat"), event(5, "null", "threading.py(1): wait", tid=7)]
    assert frames.remove(b"".join(own)) == b""
    kept = event(6, 4, r"loader \"x\".py(1): get") + event(7, 2, "<built-in function next>") + event(8, 7, "a.py(1): b")
    expected = (
        event(6, 1, r"loader \"x\".py(1): get") + event(7, 1, "<built-in function next>") + event(8, 7, "a.py(1): b")
    )
    assert frames.remove(kept) == expected
    other = b'  {\n    "ph": "X",\n    "cat": "cpu_op",\n    "name": "kinetoscope/"\n  },\n'
    assert frames.remove(other + event(9, 1, "<built-in function len>")) == other + event(
        9, 1, "<built-in function len>"
    )
