"""speedscope's files: samples and events become calls, and what is wrong in them costs itself alone."""

import json

import pytest

from kinetoscope_tb.errors import NotATrace
from kinetoscope_tb.reader import read
from kinetoscope_tb.reader.event import EventTexts
from kinetoscope_tb.timeline.core.build import timeline

FRAMES = [
    {"name": "main", "file": "train.py", "line": 9},
    {"name": "load"},
    {"name": "step", "file": "a.py", "line": 3},
]


def speedscope(*profiles, frames=FRAMES, exporter="py-spy@0.4.3"):
    schema = "https://www.speedscope.app/file-format-schema.json"
    return {"$schema": schema, "profiles": list(profiles), "shared": {"frames": frames}, "exporter": exporter}


def sampled(samples, weights, unit="milliseconds", start=0):
    return {
        "type": "sampled",
        "name": "Thread 7",
        "unit": unit,
        "startValue": start,
        "samples": samples,
        "weights": weights,
    }


@pytest.fixture
def opened(tmp_path):
    def opened(document):
        path = tmp_path / "rank0.speedscope.json"
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return read(str(path))

    return opened


def calls(trace):
    rows = trace.others.filter(trace.others["phase"].cast(str) == "X").select("name", "start_ns", "dur_ns")
    return sorted((start, -dur, str(name)) for name, start, dur in rows.rows())


def rules(trace):
    return {found.rule: (found.count, found.level) for found in trace.diagnostics}


def test_stacks_in_a_row_are_one_call_for_as_long_as_they_are_the_same(opened):
    trace = opened(speedscope(sampled([[0], [0, 1], [0, 1], [0, 2], []], [1.5, 1, 1, 0.25, 1])))
    assert calls(trace) == [
        (0, -3_750_000, "train.py(9): main"),
        (1_500_000, -2_000_000, "load"),
        (3_500_000, -250_000, "a.py(3): step"),
    ]
    assert trace.meta.foreign_writer == "py-spy"
    assert trace.threads["name"].to_list() == ["Thread 7"]
    assert rules(trace)["sampled_calls"] == (1, "note")
    drawn = timeline(trace)
    (track,) = drawn.tracks
    assert (track.process, track.name, track.lanes, track.slices) == ("process 0 · py-spy", "Thread 7", 2, 3)


def test_decimal_weights_add_up_exactly(opened):
    trace = opened(speedscope(sampled([[0], [1]] * 5_000, ["W"] * 10_000, "seconds")))
    assert calls(trace) == []
    text = json.dumps(speedscope(sampled([[0], [1]] * 5_000, ["W"] * 10_000, "seconds"))).replace('"W"', "0.001")
    assert calls(opened(text))[-1][0] - calls(opened(text))[0][0] == 9_999_000_000


def test_begins_and_ends_are_calls(opened):
    events = [("O", 0, 10), ("O", 1, 20), ("C", 1, 50), ("O", 2, 60), ("C", 0, 90)]
    listed = [{"type": kind, "frame": frame, "at": at} for kind, frame, at in events]
    profile = {"type": "evented", "name": "main", "unit": "nanoseconds", "startValue": 0, "events": listed}
    trace = opened(speedscope(profile, exporter="rbspy@1"))
    assert calls(trace) == [(0, -80, "train.py(9): main"), (10, -30, "load"), (50, -30, "a.py(3): step")]
    assert rules(trace)["odd_samples"] == (1, "warning")  # the step has no end of its own


def test_what_is_impossible_is_left_out_and_counted(opened):
    damage = [[0], [99], [-1], "x", [True], [0]]
    trace = opened(speedscope(sampled(damage, [1, 1, 1, 1, 1, None]), sampled([[0]], [8], "bytes"), "no profile"))
    assert calls(trace) == [(0, -1_000_000, "train.py(9): main")]
    assert rules(trace)["odd_samples"] == (4, "warning")  # two frames, a flag, and a time
    assert rules(trace)["profile_without_time"] == (1, "warning")


@pytest.mark.parametrize("weight", ["1e999999999", "-5", "NaN", "9" * 5_000, "1e400", "true"])
def test_no_number_costs_more_than_its_text(opened, weight):
    text = json.dumps(speedscope(sampled([[0], [1]], [1, "W"]))).replace('"W"', weight)
    assert [name for _, _, name in calls(opened(text))] == ["train.py(9): main"]


def test_a_file_that_is_cut_is_refused_with_the_reason(opened):
    text = json.dumps(speedscope(sampled([[0]], [1])))
    with pytest.raises(NotATrace, match="speedscope file, but damaged"):
        opened(text[:-20])
    with pytest.raises(NotATrace, match="damaged"):
        opened(text.replace('"profiles"', '"x": ' + "[" * 100_000 + ', "profiles"'))


def test_the_details_of_a_call_are_its_event(opened, tmp_path):
    trace = opened(speedscope(sampled([[0], [0, 1]], [1, 1])))
    row = trace.others.filter(trace.others["name"].cast(str) == "load").row(0, named=True)
    event = EventTexts().event(str(tmp_path / "rank0.speedscope.json"), 0, row["offset"], row["length"])
    assert (event.value["name"], event.value["cat"], event.problem) == ("load", "py-spy", None)
