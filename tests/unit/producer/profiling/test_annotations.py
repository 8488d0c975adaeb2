import asyncio
import gzip
import json
import os
import threading
import weakref
from contextlib import nullcontext

import pytest
import torch
from torch.profiler import ProfilerAction

from kinetoscope import Tracer, UsageError, cyclic
from kinetoscope.events import MAX_OPEN


def content(path):
    return json.loads(gzip.decompress(path.read_bytes()))


def work():
    return torch.ones(4, 4).relu().sum()


class Recorded:
    """A trace by what matters here."""

    def __init__(self, tracer):
        (path,) = tracer.saved_traces
        self.metadata = content(path)["kinetoscope"]
        self.top = content(path)
        self.events = self.top["traceEvents"]
        self.threads = {e["tid"]: e["args"]["name"] for e in self.events if e.get("name") == "thread_name"}

    def named(self, name, phase="X"):
        return [e for e in self.events if e.get("name") == name and e["ph"] == phase]

    def ns(self, event):
        """Its start and end in Unix time; exact, as the texts were."""
        start = self.top["baseTimeNanoseconds"] + round(event["ts"] * 1000)
        return start, start + round(event.get("dur", 0) * 1000)


@pytest.fixture
def no_loop():
    """A thread without an event loop: browser tests in the same process leave theirs."""
    loop = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    yield
    asyncio._set_running_loop(loop)


def test_markers_of_other_threads_coroutines_and_with_arguments_have_tracks_of_their_own(tmp_path, no_loop):
    async def task(name, marker):
        with marker, tracer.marker(name):
            work()
            await asyncio.sleep(0)

    async def tasks():
        shared = tracer.marker("shared")
        await asyncio.gather(task("first", shared), task("second", shared))

    def loads():
        with tracer.marker("loads", categories=["input"]):
            work()

    with Tracer(tmp_path, run="run") as tracer:
        with tracer.marker("native"):
            work()
        with tracer.marker("with arguments", args={"size": 3}):
            work()
        thread = threading.Thread(target=loads, name="loader")
        thread.start()
        thread.join()
        asyncio.run(tasks())
    recorded = Recorded(tracer)
    (native,), (arguments,), (loaded,) = (recorded.named(n) for n in ("native", "with arguments", "loads"))
    assert recorded.threads[loaded["tid"]] == "loader markers"
    assert loaded["args"] == {"categories": "input"}
    assert recorded.threads[arguments["tid"]] == "MainThread markers"
    assert arguments["args"] == {"size": 3}
    assert native["tid"] == threading.get_native_id()
    first, second = recorded.named("shared")
    assert first["tid"] != second["tid"]  # they overlap in part
    assert {len(recorded.named(n)) for n in ("first", "second")} == {1}


def test_own_events_and_operators_lie_on_one_clock(tmp_path):
    with Tracer(tmp_path, run="run", system=()) as tracer:
        tracer.instant("before")
        work()
        tracer.instant("after", step=0)
        tracer.counter("train", {"loss": 2.5}, unit="nats", lr=0.1)
    recorded = Recorded(tracer)
    (before,), (after,), (relu,) = (
        recorded.named("before", "i"),
        recorded.named("after", "i"),
        recorded.named("aten::relu"),
    )
    assert recorded.ns(before)[0] <= recorded.ns(relu)[0] <= recorded.ns(relu)[1] <= recorded.ns(after)[0]
    assert before["tid"] == relu["tid"]
    assert after["args"] == {"step": 0}
    (counter,) = recorded.named("train", "C")
    assert counter["args"] == {"loss": 2.5, "lr": 0.1}
    assert recorded.metadata["counters"] == {"train": {"unit": "nats"}}


def test_warm_up_belongs_to_a_window_and_what_lies_before_does_not(tmp_path):
    with Tracer(tmp_path, run="run", schedule=cyclic(wait=1, warmup=1, active=1)) as tracer:
        for step in range(4):
            with tracer.marker(f"step {step}"):
                tracer.counter("step", {"number": step})
            tracer.step()
    recorded = Recorded(tracer)
    tracks = {
        name: [recorded.threads[e["tid"]] for e in recorded.named(name)] for name in (f"step {n}" for n in range(4))
    }
    assert tracks["step 0"] == tracks["step 3"] == []
    assert tracks["step 1"] == ["MainThread markers"]
    assert len(tracks["step 2"]) == 1
    assert tracks["step 2"] != ["MainThread markers"]
    assert [e["args"]["number"] for e in recorded.named("step", "C")] == [1, 2]


def test_actions_say_in_which_phases_a_marker_is_recorded(tmp_path):
    with Tracer(tmp_path, run="run", schedule=cyclic(warmup=1, active=2)) as tracer:
        only_warmup = tracer.marker("warm-up", actions=[ProfilerAction.WARMUP])
        only_last = tracer.marker("last", actions=[ProfilerAction.RECORD_AND_SAVE])
        for _ in range(3):
            with only_warmup, only_last:
                work()
            tracer.step()
    recorded = Recorded(tracer)
    assert (len(recorded.named("warm-up")), len(recorded.named("last"))) == (1, 1)


def test_a_start_without_a_finish_and_a_finish_without_a_start_do_no_harm(tmp_path):
    with Tracer(tmp_path, run="run", schedule=cyclic(warmup=0, active=1)) as tracer:
        tracer.marker("never finished", args={"n": 1}).start()
        tracer.marker("never started").finish()
        outer, inner = tracer.marker("outer"), tracer.marker("inner")
        outer.start()
        inner.start()
        work()
        outer.finish()
        work()
        inner.finish()
        tracer.step()
    recorded = Recorded(tracer)
    (open_,) = recorded.named("never finished")
    assert open_["args"] == {"n": 1, "finished": False}
    assert recorded.named("never started") == []
    (outer,), (first, second) = recorded.named("outer"), recorded.named("inner")
    assert recorded.ns(first)[1] <= recorded.ns(outer)[1] <= recorded.ns(second)[0]


def test_names_with_quotes_and_of_all_scripts_survive(tmp_path):
    label = 'say "日本"\\n\t'
    with Tracer(tmp_path, run="run") as tracer:
        with tracer.marker(label, categories=("é",)):
            work()
        tracer.instant(label)
        tracer.counter(label, {label: 1})
    recorded = Recorded(tracer)
    assert recorded.metadata["markers"] == {label: {"label": label, "categories": ["é"]}}
    assert len(recorded.named(label)) == len(recorded.named(label, "i")) == 1
    assert recorded.named(label, "C")[0]["args"] == {label: 1}


def test_no_marker_passes_for_a_step_and_each_has_a_name_of_its_own(tmp_path):
    labels = ["ProfilerStep#7", "", "marker", "e", "é", "\ud800"]
    with Tracer(tmp_path, run="run") as tracer:
        for label in labels:
            with tracer.marker(label), tracer.marker(label, args={"on": "a track of its own"}):
                work()
    recorded = Recorded(tracer)
    markers = recorded.metadata["markers"]
    assert sorted(marker["label"] for marker in markers.values()) == sorted(labels)
    assert {"marker ProfilerStep#7", "marker", "e", "é", "?"} <= set(markers)
    names = [event["name"] for event in recorded.top["traceEvents"] if event.get("cat") == "user_annotation"]
    assert [name for name in names if name.startswith("ProfilerStep")] == ["ProfilerStep#0"]  # the Tracer's
    assert {name: names.count(name) for name in ("e", "é", "?")} == {"e": 2, "é": 2, "?": 2}


def test_a_counter_takes_tensors_as_they_are_now_and_leaves_out_what_is_no_number(tmp_path, caplog):
    with Tracer(tmp_path, run="run") as tracer:
        loss = torch.tensor(1.5, requires_grad=True)
        total = torch.tensor([2])
        tracer.counter("train", loss=loss, total=total, unknown=None)
        total += 1
        tracer.counter("bad", values=torch.ones(2))
        tracer.counter("bad", name="text")
    recorded = Recorded(tracer)
    assert [e["args"] for e in recorded.named("train", "C")] == [{"loss": 1.5, "total": 2, "unknown": None}]
    assert recorded.named("bad", "C") == []
    assert [r.getMessage() for r in caplog.records] == [
        "Counter 'bad' was left out: a tensor of 2 elements isn't a number"
    ]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_process_annotates_nothing_and_does_not_fail(tmp_path):
    with Tracer(tmp_path, run="run") as tracer:
        child = os.fork()
        if child == 0:
            with tracer.marker("child"):
                tracer.instant("child")
                tracer.counter("child", {"v": 1})
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    assert not any(Recorded(tracer).named("child", phase) for phase in "XiC")


# Metadata and torch.profiler's own results


def test_metadata_goes_into_the_next_window_and_preset_metadata_into_all(tmp_path):
    with Tracer(tmp_path, run="run", schedule=cyclic(warmup=0, active=1, repeat=2)) as tracer:
        tracer.preset_metadata_json("model", '{"layers": 2}')
        tracer.add_metadata("note", 'say "x"\\ é')
        tracer.add_metadata_json("list", "[1, null]")
        for _ in range(2):
            work()
            tracer.step()
        for key, value in (("traceEvents", "[]"), ("x", "nonsense"), ("x", "NaN")):
            with pytest.raises(UsageError, match=r"choose another|is not JSON"):
                tracer.add_metadata_json(key, value)
    first, second = map(content, tracer.saved_traces)
    assert (first["note"], first["list"], first["model"]) == ('say "x"\\ é', [1, None], {"layers": 2})
    assert second["model"] == {"layers": 2}
    assert "note" not in second


def test_the_last_window_s_results_stay_reachable(tmp_path):
    options = {"with_stack": True, "profile_memory": True}
    with Tracer(tmp_path, run="run", schedule=cyclic(warmup=1, active=1), keep_events=True, **options) as tracer:
        assert (list(tracer.events()), tracer.key_averages().table()) == ([], "")
        for _ in range(2):
            work()
            tracer.step()
    assert {row.key: row.count for row in tracer.key_averages()}["aten::relu"] == 1
    assert "aten::relu" in {event.name for event in tracer.events()}
    tracer.export_stacks(tmp_path / "stacks")
    assert "test_annotations.py" in (tmp_path / "stacks").read_text()
    is_deprecated = hasattr(torch.profiler.profile.export_memory_timeline, "__deprecated__")  # not by torch 2.6
    with pytest.warns(FutureWarning, match="deprecated") if is_deprecated else nullcontext():
        tracer.export_memory_timeline(tmp_path / "memory.json", "cpu")
    assert len(json.loads((tmp_path / "memory.json").read_text())) == 2
    tracer.export_memory_timeline(tmp_path / "memory.html", "cpu")
    assert "Memory of cpu" in (tmp_path / "memory.html").read_text(encoding="utf-8")


def test_results_that_are_not_there_are_refused_with_a_reason(tmp_path):
    with Tracer(tmp_path, run="run", keep_events=False) as tracer:
        work()
    with pytest.raises(UsageError, match="keep_events=True"):
        tracer.key_averages()
    with pytest.raises(UsageError, match="with_stack=True"):
        tracer.export_stacks(tmp_path / "stacks")
    with pytest.raises(UsageError, match=r"profile_memory=True, with_stack=True"):
        tracer.export_memory_timeline(tmp_path / "memory.json")


def test_what_can_not_say_what_it_is_costs_its_own_text_and_no_recording(tmp_path):
    class Mute:
        def __str__(self):
            raise KeyError("mute")

    with Tracer(tmp_path, run="run", schedule=cyclic(warmup=0, active=1, repeat=2)) as tracer:
        for _ in range(2):
            tracer.instant("moment", thing=Mute())
            tracer.counter("huge", value=10**400)
            work()
            tracer.step()
    events = [event for path in tracer.saved_traces for event in content(path)["traceEvents"]]
    assert [e["args"] for e in events if e.get("name") == "moment"] == [{"thing": "(Mute: KeyError)"}] * 2
    assert [e["args"] for e in events if e.get("name") == "huge"] == [{"value": None}] * 2


def test_the_program_s_objects_are_let_go_when_no_window_can_have_them_any_more(tmp_path):
    class Thing:
        pass

    is_alive = []
    with Tracer(tmp_path, run="run", schedule=cyclic(wait=1, warmup=0, active=1)) as tracer:
        for _ in range(4):
            thing = Thing()
            tracer.instant("moment", thing=thing)
            thing = weakref.ref(thing)
            is_alive.append(thing() is not None)
            tracer.step()
            is_alive.append(thing() is not None)
    assert is_alive == [False, False, True, False, False, False, False, False]


def test_markers_that_are_never_finished_do_not_pile_up(tmp_path, log):
    with Tracer(tmp_path, run="run", schedule=cyclic(wait=9)) as tracer:
        for _ in range(MAX_OPEN + 100):
            tracer.marker("open").start()
        assert len(tracer._annotations.log.open_names()) == MAX_OPEN
        tracer.marker("open").finish()
    assert [text for text in log() if "never finished" in text] != []


def test_traces_of_others_that_no_window_takes_do_not_pile_up(tmp_path):
    with Tracer(tmp_path, run="run", schedule=cyclic(wait=9)) as tracer:
        for number in range(1000):
            tracer.add_trace(f"{number}.json")
        assert len(tracer._annotations.external_traces) < 100


def test_windows_add_up_where_they_are_accumulated(tmp_path):
    with Tracer(
        tmp_path, run="run", schedule=cyclic(warmup=0, active=1, repeat=3), profiler={"acc_events": True}
    ) as tracer:
        for _ in range(3):
            work()
            tracer.step()
    assert {row.key: row.count for row in tracer.key_averages()}["aten::relu"] == 3
    assert [sum(e.get("name") == "aten::relu" for e in content(p)["traceEvents"]) for p in tracer.saved_traces] == [
        1,
        1,
        1,
    ]


def test_a_window_has_the_program_s_trace_id_and_what_it_toggles(tmp_path):
    with Tracer(tmp_path, run="run", profiler={"custom_trace_id_callback": lambda: "run/0"}) as tracer:
        tracer.toggle_collection_dynamic(False, [torch.profiler.ProfilerActivity.CPU])
        torch.ones(2).sigmoid()
        tracer.toggle_collection_dynamic(True, [torch.profiler.ProfilerActivity.CPU])
        work()
    recorded = Recorded(tracer)
    assert recorded.top["trace_id"] == "run/0"
    assert (len(recorded.named("aten::sigmoid")), len(recorded.named("aten::relu"))) == (0, 1)
