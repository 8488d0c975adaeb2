"""Composer's TorchProfiler and all around it, in real trainings."""

import gzip
import inspect
import json
import logging
from pathlib import Path

import pytest
import torch

from kinetoscope.composer import (
    Count,
    JSONTraceHandler,
    Profiler,
    ProfilerAction,
    State,
    SystemProfiler,
    Timestamp,
    TorchProfiler,
    cyclic_schedule,
)
from kinetoscope.composer.folders import remote_name
from kinetoscope.composer.torch_profiler import split
from kinetoscope_tb.reader import read

SKIP, WARMUP, ACTIVE, SAVE = ProfilerAction
QUIET = {"sys_prof_cpu": False}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Folders are relative, as they are in the documents."""
    monkeypatch.chdir(tmp_path)
    torch.set_num_threads(1)
    return tmp_path


def work():
    return torch.ones(4, 4).relu().sum()


def trained(profiler, *, epochs=1, batches=6, run_name="my-run", **options):
    with State(run_name, profiler=profiler, **options) as state:
        for _ in range(epochs):
            for _ in state.steps([1] * batches, samples=2):
                with profiler.marker("forward", categories=("model",)):
                    work()
    return state


def files(folder="."):
    return sorted(p.as_posix() for p in Path(folder).rglob("*") if p.is_file() and not _is_hidden(p))


def _is_hidden(path):
    return any(part.startswith(".") for part in path.parts) or path.name == "run.json"


def content(path):
    data = Path(path).read_bytes()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def names(trace):
    return [event.get("name") for event in trace["traceEvents"]]


def defaults(function):
    return {name: p.default for name, p in inspect.signature(function).parameters.items() if p.default is not p.empty}


def test_arguments_and_defaults_are_those_of_the_document():
    assert defaults(TorchProfiler) == {
        "folder": "{run_name}/torch_traces",
        "filename": "rank{rank}.{batch}.pt.trace.json",
        "remote_file_name": "{run_name}/torch_traces/rank{rank}.{batch}.pt.trace.json",
        "memory_filename": None,
        "memory_remote_file_name": "{run_name}/torch_memory_traces/rank{rank}.{batch}.pt.trace.memory.html",
        "overwrite": False,
        "use_gzip": False,
        "record_shapes": False,
        "profile_memory": True,
        "with_stack": False,
        "with_flops": True,
        "num_traces_to_keep": -1,
    }
    arguments = defaults(Profiler)
    assert arguments.pop("trace_handlers") == ()
    assert arguments.pop("torch_prof_memory_remote_file_name").endswith("rank{rank}.{batch}.pt.memory_trace.html")
    torch_prof = {
        name.removeprefix("torch_prof_"): arguments.pop(name) for name in list(arguments) if "torch_prof" in name
    }
    assert torch_prof == {k: v for k, v in defaults(TorchProfiler).items() if k != "memory_remote_file_name"}
    assert arguments == {
        "sys_prof_cpu": True,
        "sys_prof_memory": False,
        "sys_prof_disk": False,
        "sys_prof_net": False,
        "sys_prof_stats_thread_interval_seconds": 0.5,
    }
    assert list(defaults(SystemProfiler).values()) == [True, False, False, False, 0.5]
    handler = defaults(JSONTraceHandler)
    assert handler["folder"] == "{run_name}/traces"
    assert handler["filename"] == "ep{epoch}-ba{batch}-rank{rank}.json"
    assert handler["merged_trace_filename"] == "node{node_rank}.json"


def test_a_window_is_one_file_called_by_the_completed_batches(here):
    profiler = Profiler(cyclic_schedule(wait=1, warmup=1, active=2), **QUIET)
    trained(profiler, run_name="awesome-training-run")
    assert files() == ["awesome-training-run/torch_traces/rank0.4.pt.trace.json"]
    trace = content(files()[0])
    assert trace["global_rank"] == 0
    assert {"forward", "event/batch", "dataloader/train", "aten::relu", "ProfilerStep#2"} <= set(names(trace))
    assert names(trace).count("forward") == 3  # one in the warm-up, on a track of the program's own events
    ((stamp, (path,)),) = profiler.torch_profiler.saved_traces
    assert path.resolve() == (here / files()[0]).resolve()
    assert (stamp.batch, stamp.epoch, stamp.sample, stamp.batch_in_epoch.value) == (4, 0, 8, 4)


def test_each_epoch_has_its_windows_and_its_end_saves(here):
    with_known_length = Profiler(cyclic_schedule(warmup=1, active=9), torch_prof_use_gzip=True, **QUIET)
    trained(with_known_length, epochs=2, batches=3, run_name="known")
    assert files() == [f"known/torch_traces/rank0.{batch}.pt.trace.json.gz" for batch in (3, 6)]
    assert [name for name in names(content(files()[1])) if "Step#" in str(name)] == ["ProfilerStep#4", "ProfilerStep#5"]

    unknown = Profiler(cyclic_schedule(warmup=1, active=9), **QUIET)
    with State("unknown", profiler=unknown) as state:
        for _ in range(2):
            for _ in state.steps(iter([1, 2, 3])):
                work()
    assert files("unknown") == [f"unknown/torch_traces/rank0.{batch}.pt.trace.json" for batch in (3, 6)]


def test_the_oldest_traces_go_and_the_list_has_those_that_stay(here):
    every_other = lambda state: SAVE if state.timestamp.batch % 2 else SKIP  # noqa: E731
    profiler = Profiler(every_other, torch_prof_num_traces_to_keep=2, **QUIET)
    trained(profiler, batches=8)
    assert files() == [f"my-run/torch_traces/rank0.{batch}.pt.trace.json" for batch in (6, 8)]
    assert [int(stamp.batch) for stamp, _ in profiler.torch_profiler.saved_traces] == [6, 8]


def test_traces_are_copied_and_then_none_needs_to_stay(here):
    profiler = Profiler(
        cyclic_schedule(active=2, repeat=2),
        torch_prof_remote_file_name="/{run_name}/{epoch}/rank{rank}.{batch}.json",
        torch_prof_use_gzip=True,
        torch_prof_num_traces_to_keep=0,
        **QUIET,
    )
    trained(profiler, remote=f"file://{here}/bucket")
    assert files() == [f"bucket/my-run/0/rank0.{batch}.json.gz" for batch in (3, 6)]
    assert profiler.torch_profiler.saved_traces == []


def test_a_name_without_a_place_is_copied_nowhere():
    state = State("run", remote="s3://bucket/")
    assert remote_name("/{run_name}/{batch}", state) == "s3://bucket/run/{batch}"
    assert remote_name("gs://other/{run_name}", state) == "gs://other/run"
    assert remote_name(None, state) is None
    assert remote_name("{run_name}/x", State("run")) is None


def test_an_unknown_variable_stays_in_the_name_and_is_said(here, caplog):
    profiler = Profiler(
        cyclic_schedule(warmup=0, active=1),
        torch_prof_filename="r{rnk}.{batch}",
        torch_prof_remote_file_name=None,
        **QUIET,
    )
    trained(profiler, run_name="run", batches=2)
    assert files("run") == ["run/torch_traces/r{rnk}.1.pt.trace.json"]
    assert [path.name for _, (path,) in profiler.torch_profiler.saved_traces] == ["r{rnk}.1.pt.trace.json"]
    (problem,) = [text for text in caplog.messages if "{rnk}" in text]
    assert "Do you mean {rank}? There are {run_name}, " in problem


def test_without_a_launcher_the_place_is_that_of_the_only_process(here, monkeypatch):
    for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK"):
        monkeypatch.delenv(name, raising=False)
    place = "{local_rank}-{local_world_size}-{node_rank}"
    handler = JSONTraceHandler(folder="{run_name}/json-" + place, filename=place + ".{batch}.json")
    name = "{epoch}/" + place + "-{nonsense}-{sample}-{token}.{batch_in_epoch}.pt.trace.json"
    folder = "{run_name}/{world_size}-" + place
    profiler = Profiler(cyclic_schedule(active=2), handler, torch_prof_folder=folder, torch_prof_filename=name, **QUIET)
    trained(profiler)
    assert files() == [
        "my-run/1-0-1-0/0/0-1-0-{nonsense}-6-0.3.pt.trace.json",
        "my-run/json-0-1-0/0-1-0.3.json",
        "my-run/json-0-1-0/node0.json",
    ]
    for _, (path,) in profiler.torch_profiler.saved_traces + handler.saved_traces:
        assert path.is_file()


def test_a_folder_that_holds_something_is_refused_before_anything_is_recorded(here):
    (here / "my-run/torch_traces/deep").mkdir(parents=True)
    (here / "my-run/torch_traces/.hidden").touch()
    trained(Profiler(cyclic_schedule(active=2), **QUIET))
    first = content("my-run/torch_traces/rank0.3.pt.trace.json")
    with pytest.raises(FileExistsError, match=r"contains rank0\.3\.pt\.trace\.json: choose another folder"):
        trained(Profiler(cyclic_schedule(active=2), **QUIET))
    (here / "other/torch_traces/deep").mkdir(parents=True)
    (here / "other/torch_traces/deep/file").touch()
    with pytest.raises(FileExistsError, match="deep/file"):
        trained(Profiler(cyclic_schedule(active=2), **QUIET), run_name="other")
    trained(Profiler(cyclic_schedule(active=2), torch_prof_overwrite=True, **QUIET))
    again = content("my-run/torch_traces/rank0.3.pt.trace.json")
    assert again["kinetoscope"]["started_ns"] > first["kinetoscope"]["started_ns"]


def test_a_resumed_training_goes_on_counting(here):
    start = Timestamp(
        epoch=Count(1), batch=Count(9), batch_in_epoch=Count(3), sample=Count(18), sample_in_epoch=Count(6)
    )
    profiler = Profiler(cyclic_schedule(skip_first=1, warmup=0, active=1), **QUIET)
    with State("my-run", profiler=profiler, timestamp=start, dataloader_len=6) as state:
        for _ in range(3):
            state.step(samples=2)
        state.epoch()
        for _ in state.steps([1] * 6):
            pass
    assert files() == [f"my-run/torch_traces/rank0.{batch}.pt.trace.json" for batch in (11, 14)]


def test_all_options_off_is_a_profiler_of_markers_alone():
    options = {f"torch_prof_{name}": False for name in ("profile_memory", "with_flops")}
    assert Profiler(cyclic_schedule(), **options, **QUIET).torch_profiler is None
    assert Profiler(cyclic_schedule(), **QUIET).system_profiler is None


def test_a_picture_of_the_memory_needs_all_that_it_shows(here):
    with pytest.raises(ValueError, match="torch_prof_record_shapes=True, torch_prof_with_stack=True"):
        Profiler(cyclic_schedule(), torch_prof_memory_filename="m.html", **QUIET)
    with pytest.raises(ValueError, match=r"end in \.html"):
        TorchProfiler(memory_filename="m.json", record_shapes=True, with_stack=True)
    with pytest.raises(ValueError, match="record_shapes=True, with_stack=True"):
        TorchProfiler(memory_filename="m.html")


def test_a_picture_of_the_memory_needs_no_matplotlib(here, caplog, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    options = {f"torch_prof_{name}": True for name in ("record_shapes", "with_stack", "profile_memory")}
    profiler = Profiler(
        cyclic_schedule(warmup=0, active=1), torch_prof_memory_filename="m{batch}.html", **options, **QUIET
    )
    trained(profiler, batches=2)
    assert files() == ["my-run/torch_traces/m1.html", "my-run/torch_traces/rank0.1.pt.trace.json"]
    assert "<polygon" in Path("my-run/torch_traces/m1.html").read_text(encoding="utf-8")
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_the_log_says_where_the_time_went_to_those_who_listen(here, caplog):
    caplog.set_level(logging.INFO, "kinetoscope")
    trained(Profiler(cyclic_schedule(warmup=0, active=1), **QUIET), batches=2)
    assert "aten::relu" in caplog.text


def test_a_window_under_way_is_saved_when_the_training_ends(here):
    profiler = Profiler(lambda state: ACTIVE, **QUIET)

    def train():
        with State("my-run", profiler=profiler) as state:
            for _ in state.steps([1] * 9):
                work()
                if state.timestamp.batch == 2:
                    raise KeyError

    with pytest.raises(KeyError):
        train()
    assert files() == ["my-run/torch_traces/rank0.2.pt.trace.json"]


def test_markers_and_torch_s_events_are_one_file_on_one_clock(here):
    handler = JSONTraceHandler()
    profiler = Profiler(cyclic_schedule(warmup=1, active=2), [handler], **QUIET)
    trained(profiler, epochs=2, batches=4)
    saved = ["my-run/traces/ep0-ba3-rank0.json", "my-run/traces/ep1-ba7-rank0.json"]
    assert files("my-run/traces") == [*saved, "my-run/traces/node0.json"]
    saved_at = [(int(stamp.batch), path.relative_to(here).as_posix()) for stamp, (path,) in handler.saved_traces]
    assert saved_at == [(3, saved[0]), (7, saved[1])]
    for path in saved:
        events = content(path)
        begins, ends = ([e["ts"] for e in events if e["name"] == "forward" and e["ph"] == ph] for ph in "BE")
        operators = [e for e in events if e["name"] == "aten::relu"]
        assert (len(begins), len(ends), len(operators)) == (3, 3, 2)  # warm-up has markers, and no operators
        inside = [any(b <= e["ts"] <= end for b, end in zip(begins, ends, strict=True)) for e in operators]
        assert inside == [True, True]
        assert {e["pid"] for e in operators} == {0} == {e["pid"] for e in events if e["name"] == "forward"}
    merged = content("my-run/traces/node0.json")
    assert sum(e["name"] == "aten::relu" for e in merged) == 4
    assert sum(e["ph"] == "B" and e["name"] == "forward" for e in merged) == 6
    for path in [*saved, "my-run/traces/node0.json"]:
        assert read(path).host_events.height > 0


@pytest.mark.parametrize("count", [0, 1, 2])
def test_the_newest_whole_traces_remain_where_both_profilers_prune(here, count):
    handler = JSONTraceHandler(num_traces_to_keep=count)
    every_other = lambda state: SAVE if state.timestamp.batch % 2 else SKIP  # noqa: E731
    profiler = Profiler(every_other, handler, torch_prof_num_traces_to_keep=count, **QUIET)
    trained(profiler, batches=12)
    newest = (8, 10, 12)[3 - count :]
    assert files("my-run/traces") == [
        *sorted(f"my-run/traces/ep0-ba{batch}-rank0.json" for batch in newest),
        "my-run/traces/node0.json",
    ]
    assert [int(stamp.batch) for stamp, _ in handler.saved_traces] == list(newest)
    for _, (path,) in handler.saved_traces:
        assert [e["name"] for e in content(path)].count("aten::relu") == 1
    assert [e["name"] for e in content("my-run/traces/node0.json")].count("aten::relu") == 6
    of_torch = newest or (12,)  # without a copy elsewhere one trace stays
    assert set(files("my-run/torch_traces")) == {f"my-run/torch_traces/rank0.{b}.pt.trace.json" for b in of_torch}
    assert [path.name for path in Path("my-run").rglob(".*source*")] == []
    states = {w["span"]: w["ranks"]["0"] for w in content("my-run/torch_traces/run.json")["windows"]}
    assert {span for span, arguments in states.items() if not arguments.get("pruned")} == set(of_torch)


def test_a_trace_that_another_profiler_deletes_or_rewrites_is_still_in_its_window(here):
    handler = JSONTraceHandler()
    options = {f"torch_prof_{name}": False for name in ("profile_memory", "with_flops")}
    profiler = Profiler(cyclic_schedule(warmup=0, active=1, repeat=2), handler, **options, **QUIET)
    with State("my-run", profiler=profiler) as state:
        for number in state.steps([1, 2]):
            own = here / "own.json"
            event = {"ph": "X", "name": f"own {number}", "pid": 5, "tid": 1, "ts": 1, "dur": 1}
            (here / "new.json").write_text(json.dumps({"traceEvents": [event]}))
            (here / "new.json").replace(own)
            profiler.record_chrome_json_trace_file(own)
            own.unlink()
    for batch in (1, 2):
        names = [e["name"] for e in content(f"my-run/traces/ep0-ba{batch}-rank0.json")]
        assert [name for name in names if name.startswith("own")] == [f"own {batch}"]


def test_a_broken_trace_of_another_profiler_stops_nothing(here):
    handler = JSONTraceHandler(num_traces_to_keep=1)
    options = {f"torch_prof_{name}": False for name in ("profile_memory", "with_flops")}
    profiler = Profiler(cyclic_schedule(warmup=0, active=1, repeat=2), [handler], **options, **QUIET)
    (here / "broken.json").write_text('{"traceEvents": [{"ph": "X", "name": "ok", "pid": 5, "tid": 1, "ts": 1}, {"na')
    with State("my-run", profiler=profiler) as state:
        for _ in state.steps([1, 2]):
            profiler.record_chrome_json_trace_file("broken.json")
            profiler.record_chrome_json_trace_file("missing.json")
    assert files("my-run") == ["my-run/traces/ep0-ba2-rank0.json", "my-run/traces/node0.json"]


def test_a_folder_is_a_run_below_a_logdir():
    assert split(Path("/a/runs/mine/torch_traces")) == (Path("/a/runs"), "mine/torch_traces")
    assert split(Path("mine/torch_traces")) == (Path(), "mine/torch_traces")
    assert split(Path("torch_traces")) == (Path(), "torch_traces")
    assert split(Path("/a/b")) == (Path("/a"), "b")
    assert split(Path(".hidden/torch_traces")) == (Path(".hidden"), "torch_traces")
