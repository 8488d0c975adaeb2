"""What other tools recorded, in a window of ours."""

import gzip
import json
import time
from decimal import Decimal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import kinetoscope_tb
from kinetoscope import Tracer
from kinetoscope.output.external_events import external_events, json_events
from kinetoscope_tb.errors import MissingData

BASE_NS = 1_790_857_026_000_000_000


def parsed(added, since_ns=0, until_ns=1 << 62):
    unreadable = []
    program_events = {"added": added, "since_ns": since_ns, "until_ns": until_ns}
    texts = list(external_events(program_events, BASE_NS, unreadable))
    return [json.loads(text, parse_float=Decimal, parse_constant=pytest.fail) for text in texts], unreadable


def span(**more):
    return {"ph": "X", "name": "a", "pid": 0, "tid": 7, "ts": 1.5, "dur": 2, **more}


@given(st.integers(0, 10**15), st.integers(0, 10**15), st.integers(0, 2**61))
def test_times_move_from_one_zero_to_the_other_to_the_nanosecond(tmp_path_factory, ts_ns, dur_ns, from_ns):
    path = tmp_path_factory.getbasetemp() / "moved.json"
    times = '"ts": {}, "dur": {}'.format(*(Decimal(ns) / 1000 for ns in (ts_ns, dur_ns)))
    head = f'{{"baseTimeNanoseconds": {from_ns}, "traceEvents": ['
    path.write_text(head + f'{{"ph": "X", "name": "a", "pid": 1, "tid": 1, {times}}}]}}')
    ((event,), unreadable) = parsed([str(path)])
    assert (event["ts"] * 1000, event["dur"] * 1000, unreadable) == (ts_ns + from_ns - BASE_NS, dur_ns, [])


def test_processes_and_arrows_of_each_trace_are_its_own():
    first = [span(cat="kernel"), span(pid="host"), {"ph": "s", "id": 3, "pid": 0, "tid": 1, "ts": 1}]
    named = {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "GPU"}}
    events, _ = parsed([first, [span(), named, {"ph": "C", "name": "load", "pid": 0, "ts": 1, "args": {"cpu": 0.5}}]])
    pids = [event["pid"] for event in events]
    assert pids[0] == pids[2] != pids[1]
    assert set(pids[:3]).isdisjoint(pids[3:])
    assert len(set(pids[3:])) == 1
    assert min(pids) >= 1 << 31
    assert (events[0]["cat"], events[0]["args"]) == ("added", {"category": "kernel"})
    assert events[2]["id"] != 3
    assert events[4]["args"] == {"name": "GPU"}
    assert events[5]["args"] == {"cpu": Decimal("0.5")}


def test_what_lies_outside_the_window_is_left_out_or_cut():
    rows = [span(ts=ts, dur=dur) for ts, dur in ((0, 1), (1, 2), (1, 20), (4, 1), (6, 1))]
    moments = [{"ph": "i", "pid": 0, "ts": ts} for ts in (1, 3, 6)]
    events, _ = parsed([[*rows, *moments]], since_ns=2_000, until_ns=5_000)
    times = [(event["ts"] * 1000 + BASE_NS, event.get("dur")) for event in events]
    assert times == [(2_000, 1), (2_000, 3), (4_000, 1), (3_000, None)]
    assert [event.get("args") for event in events] == [{"whole_dur_ns": 2_000}, {"whole_dur_ns": 20_000}, None, None]


def test_what_is_no_event_or_no_number_does_no_harm(tmp_path):
    rows = '[{"ph": "X", "ts": "soon", "pid": 1}, 7, {"name": "no phase"}, {"ph": "i", "ts": 1, "pid": 1, "args": {"x": NaN}}'
    (tmp_path / "odd.json").write_text(rows)
    (tmp_path / "empty.json").write_text("")
    events, unreadable = parsed([str(tmp_path / name) for name in ("odd.json", "empty.json", "none.json")])
    assert [event["args"] for event in events] == [{"x": None}]
    assert [problem.partition(": ")[2][:16] for problem in unreadable] == ["it has no events", "[Errno 2] No suc"]
    for events in ([{"name": "no phase"}], [3], [span(dur=float("nan"))]):
        with pytest.raises((TypeError, ValueError)):
            json_events(events)


def test_a_window_has_what_was_added_and_counts_none_of_it(tmp_path, log):
    with Tracer(tmp_path, run="run", system=()) as tracer:
        torch.ones(4).relu()
        now_us = time.time_ns() // 1000
        rows = [span(cat="kernel", name="theirs"), span(name="early", ts=-(10**9))]
        with gzip.open(tmp_path / "other.json.gz", "wt") as file:
            json.dump({"baseTimeNanoseconds": now_us * 1000, "traceEvents": rows}, file)
        tracer.add_trace(tmp_path / "other.json.gz")
        tracer.add_trace([span(name="ours", ts=now_us), span(name="before", ts=now_us - 10**9)])
        tracer.add_trace(tmp_path / "gone.json")
        tracer.add_trace([{"no": "event"}])
        tracer.step()
    (path,) = tracer.saved_traces
    trace = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)
    added = {event["name"]: event for event in trace["traceEvents"] if event.get("cat") == "added"}
    unix_ns = {name: int(event["ts"] * 1000) + trace["baseTimeNanoseconds"] for name, event in added.items()}
    assert set(unix_ns) == {"theirs", "ours"}
    assert (unix_ns["ours"], unix_ns["theirs"]) == (now_us * 1000, now_us * 1000 + 1500)
    (outcome,) = json.loads((tmp_path / "run/run.json").read_text())["windows"][0]["ranks"].values()
    assert outcome["state"] == "saved"
    assert "gone.json: [Errno 2] No such file" in outcome["problem"]
    assert "A trace wasn't added" in log()[0]
    with pytest.raises(MissingData, match="No kernels were recorded"):
        _ = kinetoscope_tb.open(path).kernels
