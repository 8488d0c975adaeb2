import json
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope.events import COUNTER, INSTANT, NATIVE, RANGE, Event, EventLog, chrome_events

BASE = 1_790_857_026_000_000_000
AT = BASE + 1_234_567_891


def own(events, since=0, until=2**62, threads=None):
    return {"pid": 7, "since_ns": since, "until_ns": until, "threads": threads or {}, "events": events}


def written(rows, base=BASE, **window):
    return [json.loads(text) for text in chrome_events(own([[*row] for row in rows], **window), base)]


def phase(events, letter):
    return [e for e in events if e["ph"] == letter]


def test_a_range_is_on_a_separate_track_next_to_its_thread():
    events = written([Event(RANGE, 'é"', ("a", "b"), 11, AT, 5, {"k": 1})], threads={"11": "loader"})
    (slice_,) = phase(events, "X")
    assert slice_["name"] == 'é"'
    assert (slice_["ts"], slice_["dur"], slice_["cat"]) == (1234567.891, 0.005, "user_annotation")
    assert slice_["args"] == {"k": 1, "categories": "a,b"}
    named = {(e["tid"], e["name"]): e["args"] for e in phase(events, "M")}
    assert named[slice_["tid"], "thread_name"] == {"name": "loader markers"}
    assert slice_["tid"] != 11


def test_instants_and_counters_lie_on_their_thread():
    events = written([Event(INSTANT, "i", (), 11, AT), Event(COUNTER, "c", (), 11, AT, None, {"a": 1.5, "b": None})])
    (instant,), (counter,) = phase(events, "i"), phase(events, "C")
    assert (instant["tid"], instant["s"], instant["ts"]) == (11, "t", 1234567.891)
    assert (counter["tid"], counter["args"]) == (11, {"a": 1.5, "b": None})


def test_a_range_that_the_profiler_recorded_is_not_written_twice():
    assert written([Event(NATIVE, "forward", (), 11, AT, 5)]) == []


def test_times_are_exact_to_the_nanosecond_even_without_a_base():
    (text,) = (t for t in chrome_events(own([[*Event(RANGE, "r", (), 1, AT, 1)]]), 0) if '"X"' in t)
    assert f'"ts": {AT // 1000}.{AT % 1000:03d}' in text


def test_what_reaches_beyond_the_window_is_cut_and_what_lies_outside_is_left_out():
    rows = [
        Event(RANGE, "before", (), 1, AT - 20, 100),
        Event(RANGE, "after", (), 1, AT + 90, 100),
        Event(RANGE, "inside", (), 1, AT + 10, 5),
        Event(COUNTER, "early", (), 1, AT - 1, None, {"v": 1}),
        Event(INSTANT, "late", (), 1, AT + 101),
    ]
    events = written(rows, since=AT, until=AT + 100)
    ranges = {e["name"]: (round(e["ts"] * 1000) + BASE - AT, round(e["dur"] * 1000)) for e in phase(events, "X")}
    assert ranges == {"before": (0, 80), "after": (90, 10), "inside": (10, 5)}
    (cut,) = (e for e in events if e["name"] == "before")
    assert cut["args"] == {"whole_start_ns": AT - 20, "whole_dur_ns": 100}
    assert phase(events, "C") + phase(events, "i") == []


RANGES = st.lists(st.tuples(st.integers(1, 2), st.integers(0, 20), st.integers(0, 10)), max_size=20)


@given(RANGES)
def test_ranges_on_one_track_never_overlap_in_part(rows):
    events = written([Event(RANGE, str(n), (), tid, start, dur) for n, (tid, start, dur) in enumerate(rows)], base=0)
    slices = [
        (e["tid"], round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000), e["name"]) for e in phase(events, "X")
    ]
    assert sorted(int(name) for *_, name in slices) == list(range(len(rows)))
    for track, start, end, name in slices:
        assert end - start == rows[int(name)][2]
        for other_track, other_start, other_end, _ in slices:
            partly = start < other_start < end < other_end
            assert not (track == other_track and partly)
    tids = {}
    for track, *_, name in slices:
        tids.setdefault(track, set()).add(rows[int(name)][0])
    assert all(len(of_track) == 1 for of_track in tids.values())


# The rings


def test_a_ring_forgets_the_oldest_and_counts_what_the_window_lost():
    log = EventLog(size=3)
    log.begin_window(100)
    for at in (50, 110, 120, 130, 140):
        log.add(Event(INSTANT, str(at), (), 1, at))
    window_events = log.window_events(200)
    assert [row[1] for row in window_events["events"]] == ["120", "130", "140"]
    assert window_events["dropped"] == 1  # the one at 50 was before the window
    log.begin_window(125)
    window_events = log.window_events(200)
    assert ([row[1] for row in window_events["events"]], window_events["dropped"]) == (["130", "140"], 0)


def test_each_thread_has_a_ring_and_its_name_and_finished_threads_keep_theirs():
    log = EventLog(size=2)
    threads = [
        threading.Thread(target=log.add, args=(Event(INSTANT, str(n), (), n, n),), name=f"t{n}") for n in range(5)
    ]
    for thread in threads:
        thread.start()
        thread.join()
    window_events = log.window_events(9)
    assert [row[1] for row in window_events["events"]] == list("01234")
    assert sorted(window_events["threads"].values()) == [f"t{n}" for n in range(5)]


def test_a_range_that_is_open_is_there_as_far_as_it_has_come():
    log = EventLog()
    event = log.begin("open", (), None)
    ((kind, name, _, _, start, dur, args),) = log.window_events(event.start_ns + 50)["events"]
    assert (kind, name, start, dur, args) == (RANGE, "open", event.start_ns, 50, {"finished": False})
    assert log.open_names() == ["open"]
    log.end(event, RANGE)
    assert log.open_names() == []
    assert len(log.window_events(2**62)["events"]) == 1


def test_a_listener_hears_of_each_event():
    log, heard = EventLog(), []
    log.listener = heard.append
    log.add(Event(INSTANT, "i", (), 1, 1))
    assert [event.name for event in heard] == ["i"]


@pytest.mark.parametrize(
    ("value", "stored"),
    [(1, 1), (2.5, 2.5), (float("nan"), None), (float("inf"), None), (True, True), ("text", None), ([1, 2], None)],
)
def test_a_counter_s_value_is_a_finite_number_or_none(value, stored):
    log = EventLog()
    log.add(Event(COUNTER, "c", (), 1, 1, None, {"v": value}))
    assert log.window_events(2)["events"][0][6] == {"v": stored}


def test_arguments_of_any_kind_become_json():
    log = EventLog()
    log.add(Event(INSTANT, "i", (), 1, 1, None, {"n": None, "x": float("nan"), "o": object, "s": "é"}))
    args = log.window_events(2)["events"][0][6]
    assert json.loads(json.dumps(args, allow_nan=False)) == {"n": None, "x": "nan", "o": "<class 'object'>", "s": "é"}
