import gzip
import json
import os

import fsspec
import pytest

from kinetoscope_tb.discovery import (
    Heads,
    Listing,
    Logdir,
    list_given,
    list_traces,
    parse_logdirs,
    run_labels,
    span_labels,
)
from kinetoscope_tb.errors import LogdirError, NotFound
from kinetoscope_tb.storage import stored_bytes


def begins(**top):
    """How a trace begins."""
    return json.dumps({"schemaVersion": 1, **top, "traceEvents": []}).encode()


def make(root, *paths, content=begins()):  # noqa: B008  # bytes
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def listed(root):
    return list_traces([Logdir(str(root))])


def names(listing):
    return [(f.run, f.worker, f.span) for f in listing.files]


def test_a_folder_is_a_run_and_numbers_are_in_the_order_of_numbers(tmp_path):
    make(tmp_path, *(f"job/rank{r}.{s}.pt.trace.json.gz" for r in (10, 2) for s in (10, 2)))
    assert names(listed(tmp_path)) == [
        ("job", "rank2", "2"),
        ("job", "rank2", "10"),
        ("job", "rank10", "2"),
        ("job", "rank10", "10"),
    ]


def test_the_logdir_itself_is_a_run_of_its_own_name(tmp_path):
    make(tmp_path / "mine", "rank0.pt.trace.json", "deep/er/rank0.pt.trace.json")
    assert names(listed(tmp_path / "mine")) == [("deep/er", "rank0", "default"), ("mine", "rank0", "default")]


NS = "1733770537022695153"

WRITERS = [  # who writes it; path below the logdir; run, worker, span
    ("torch", f"r/host_4711.{NS}.pt.trace.json", "r", "host_4711", NS),
    ("torch, ms", "r/worker0.1623143089861.pt.trace.json.gz", "r", "worker0", "1623143089861"),
    ("kinetoscope", "r/rank3.42.pt.trace.json.gz", "r", "rank3", "42"),
    ("Composer", "r/torch_traces/rank3.42.pt.trace.json", "r/torch_traces", "rank3", "42"),
    ("Composer JSON", "r/traces/ep2-ba64-rank5.json", "r/traces", "rank5", "64"),
    ("Composer merged", "r/traces/merged_trace.json", "r/traces", "merged_trace", "default"),
    (
        "Lightning",
        f"lightning_logs/version_0/fit-0-[Strategy]DDPStrategy.training_step.{NS}.pt.trace.json",
        "lightning_logs/version_0",
        "fit-0-[Strategy]DDPStrategy.training_step",
        NS,
    ),
    ("torchtune", f"out/iteration_20/r3-2024-12-9-18-44.{NS}.pt.trace.json.gz", "out", "r3", "20"),
    ("torchtitan", "d/profiling/traces/iteration_10/rank3_trace.json.gz", "d/profiling/traces", "rank3", "10"),
    ("torchtitan, leaf", "d/traces/iteration_10/leaf/rank3_trace.json.gz", "d/traces/leaf", "rank3", "10"),
    ("torchtitan, old", "d/profile_trace/iteration_10/rank3_trace.json", "d/profile_trace", "rank3", "10"),
    ("Megatron-LM", "m/torch_profile/rank-3.json.gz", "m/torch_profile", "rank-3", "default"),
    ("NeMo", "n/device/rank-3.json", "n/device", "rank-3", "default"),
    ("accelerate", "a/profile_3.json", "a", "profile_3", "default"),
    ("MMEngine", f"m/tf_tracing_logs/host_47.{NS}.pt.trace.json", "m/tf_tracing_logs", "host_47", NS),
    ("detectron2", f"o/log/profiler-tensorboard-iter7/worker3.{NS}.pt.trace.json", "o/log", "worker3", "7"),
    ("detectron2, JSON", "o/log/profiler-trace-iter7.json", "o/log", "profiler-trace", "7"),
    ("OLMo-core", "w/profiler/rank-3-step-40.chrome_trace.json.gz", "w/profiler", "rank-3", "40"),
    ("verl", "v/prof_start_5_end_9_rank_1.json", "v", "rank_1", "5"),
    ("Ray Train", "p/pytorch_profiler/worker_3_epoch_2.pt.trace.json", "p/pytorch_profiler", "worker_3", "2"),
    ("vLLM", f"l/cmpl-1-rank-3.{NS}.pt.trace.json.gz", "l", "cmpl-1-rank-3", NS),
    ("vLLM, 2026", f"l/dp0_pp0_tp1_dcp0_ep0_rank1.{NS}.pt.trace.json.gz", "l", "dp0_pp0_tp1_dcp0_ep0_rank1", NS),
    ("vLLM, API server", f"l/host_47.async_llm.{NS}.pt.trace.json.gz", "l", "host_47.async_llm", NS),
    ("SGLang", "s/1782843274.77-TP-0-DECODE.trace.json.gz", "s", "TP-0-DECODE", "1782843274.77"),
    ("SGLang, more", "s/id-TP-1-DP-0-PP-0-EP-1.trace.json.gz", "s", "TP-1-DP-0-PP-0-EP-1", "id"),
    ("TensorRT-LLM", "t/base-rank-3.json", "t", "base-rank-3", "default"),
    ("dynolog", "y/out_4711.json", "y", "out_4711", "default"),
    ("kineto", "y/libkineto_activities_4711.json", "y", "libkineto_activities_4711", "default"),
    ("unitrace", "y/libkineto_trace_host_4711.json", "y", "libkineto_trace_host_4711", "default"),
    ("Meta", "f/rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz", "f", "rank-34", "Jul_15_10_52_41.1074"),
    ("a script", "r/trace_12.json", "r", "trace", "12"),
    ("a script", "r/My_Trace.json", "r", "My_Trace", "default"),
    ("a script", "r/anything.json", "r", "anything", "default"),
    ("nobody", "r/iteration_20/rank3.7.pt.trace.json", "r/iteration_20", "rank3", "7"),
]


@pytest.mark.parametrize(
    ("path", "run", "worker", "span"), [row[1:] for row in WRITERS], ids=[row[0] for row in WRITERS]
)
def test_names_of_many_writers(tmp_path, path, run, worker, span):
    make(tmp_path, path)
    assert names(listed(tmp_path)) == [(run, worker, span)]


def test_hidden_and_foreign_files_are_left_alone(tmp_path):
    make(tmp_path, "r/.rank0.pt.trace.json", ".git/rank0.pt.trace.json", "r/events.out.tfevents.1")
    make(tmp_path, "r/config.json", "r/trace_settings.json", "r/zero.json.tmp", content=b'{"a": 1}')
    make(tmp_path, "r/rank0_memory_snapshot.pickle", "r/zero.json", content=b"")
    assert listed(tmp_path).files == ()
    assert listed(tmp_path).problems == ()


@pytest.mark.parametrize("name", ["rank0.5.pt.trace.json.tmp", "rank0.5.pt.trace.json.gz.tmp-1234"])
def test_what_a_broken_recording_left_is_a_problem(tmp_path, name):
    make(tmp_path, f"r/{name}")
    listing = listed(tmp_path)
    assert listing.files == ()
    assert [p.path for p in listing.problems] == [f"r/{name}"]
    assert "isn't complete" in listing.problems[0].reason


def test_an_empty_file_is_a_problem(tmp_path):
    make(tmp_path, "r/rank0.5.pt.trace.json", content=b"")
    assert [p.path for p in listed(tmp_path).problems] == ["r/rank0.5.pt.trace.json"]


def test_two_files_of_one_span_are_both_shown(tmp_path):
    make(tmp_path, "r/rank0.5.pt.trace.json", "r/rank0.5.pt.trace.json.gz")
    listing = listed(tmp_path)
    assert names(listing) == [("r", "rank0", "5"), ("r", "rank0", "5 (r/rank0.5.pt.trace.json.gz)")]
    assert listing.problems == ()


# ---- what the first bytes say

CHAKRA = b'{"schema": "1.1.1-chakra.0.0.4", "pid": 1, "time": "x", "start_ts": 2, "nodes": [{"id": 1, "name": "x"}]}'


@pytest.mark.parametrize(
    "content",
    [
        begins(),
        b'[{"ph": "X", "name": "op"}]',
        b' [\n{"name": "process_name", "ph": "M"},',
        b'{"schemaVersion": 1, "deviceProperties": [' + b'{"name": "H100"},' * 9000,
        b"\xef\xbb\xbf" + begins(),
        b"\xff\xfe" + begins().decode().encode("utf-16-le"),
        gzip.compress(begins()),
        gzip.compress(begins())[:-9],
    ],
)
def test_a_file_of_any_name_that_begins_like_a_trace_is_one(tmp_path, content):
    make(tmp_path, "r/anything.json", "r/more.json.gz", content=content)
    assert [f.worker for f in listed(tmp_path).files] == ["anything", "more"]


@pytest.mark.parametrize(
    "content",
    [
        CHAKRA,
        gzip.compress(CHAKRA),
        b"{}",
        b"[]",
        b"[[1, 2], [3, 4]]",  # a memory timeline
        b'{"schemaVersion": 2, "mediaType": "application/vnd.docker"}',
        b"\x00\x01",
        b"\x1f\x8b no gzip at all",
    ],
)
def test_other_files_are_left_alone(tmp_path, content):
    make(tmp_path, "r/anything.json", "r/more.json.gz", content=content)
    assert listed(tmp_path) == Listing()


def test_execution_traces_that_are_called_like_traces_are_left_alone(tmp_path):
    make(tmp_path, "n/host/rank-3.json", "chakra/rank-3.json.gz", "r/my_trace.json", content=CHAKRA)
    make(tmp_path, "n/device/rank-3.json")
    assert names(listed(tmp_path)) == [("n/device", "rank-3", "default")]


@pytest.mark.parametrize(
    "top",
    [
        {"kinetoscope": {"run": "r", "place": {"global_rank": 3}}, "distributedInfo": {"rank": 4}},
        {"distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8, "pg_config": [{"rank": 5}]}},
        {"global_rank": 3},
    ],
)
def test_a_worker_without_a_rank_in_its_name_is_called_by_the_rank_inside(tmp_path, top):
    make(tmp_path, f"r/host_4711.{NS}.pt.trace.json", content=begins(**top))
    assert names(listed(tmp_path)) == [("r", "rank3", NS)]


def test_a_rank_that_an_event_speaks_of_is_not_the_worker_s(tmp_path):
    content = b'{"schemaVersion": 1, "traceEvents": [{"ph": "X", "args": {"global_rank": 3}}]}'
    make(tmp_path, "r/host_4711.5.pt.trace.json", content=content)
    assert names(listed(tmp_path)) == [("r", "host_4711", "5")]


def test_a_process_that_was_started_anew_is_the_same_worker(tmp_path):
    for pid, at in ((4711, 20), (4800, 10)):
        make(
            tmp_path, f"r/host_{pid}.{at}.pt.trace.json", content=begins(distributedInfo={"rank": 3}, host_name="host")
        )
    assert names(listed(tmp_path)) == [("r", "rank3", "10"), ("r", "rank3", "20")]


def test_one_rank_on_two_hosts_is_two_workers(tmp_path):
    for host in ("a", "b"):
        make(tmp_path, f"r/{host}_1.10.pt.trace.json", content=begins(distributedInfo={"rank": 3}, host_name=host))
    assert names(listed(tmp_path)) == [("r", "rank3@a", "10"), ("r", "rank3@b", "10")]


def test_local_ranks_of_two_nodes_are_two_workers(tmp_path):
    for rank, span in ((0, 10), (8, 11)):
        name = f"r/fit-0-[Strategy]DDPStrategy.training_step.{span}.pt.trace.json"
        make(tmp_path, name, content=begins(distributedInfo={"rank": rank}))
    worker = "fit-0-[Strategy]DDPStrategy.training_step"
    assert names(listed(tmp_path)) == [("r", f"{worker}@rank0", "10"), ("r", f"{worker}@rank8", "11")]


def test_names_that_differ_by_the_time_alone_are_one_worker(tmp_path):
    make(tmp_path, f"o/iteration_20/r3-2024-12-9-18-44.{NS}.pt.trace.json.gz")
    make(tmp_path, f"o/iteration_30/r3-2024-12-9-19-2.{NS}.pt.trace.json.gz")
    assert names(listed(tmp_path)) == [("o", "r3", "20"), ("o", "r3", "30")]


def test_a_second_recording_of_one_iteration_is_shown_too(tmp_path):
    make(tmp_path, "o/iteration_20/r3-2024-12-9-18-44.1733770537022695153.pt.trace.json")
    make(tmp_path, "o/iteration_20/r3-2024-12-9-19-2.1733770999022695153.pt.trace.json")
    second = "20 (o/iteration_20/r3-2024-12-9-19-2.1733770999022695153.pt.trace.json)"
    assert names(listed(tmp_path)) == [("o", "r3", "20"), ("o", "r3", second)]


def test_a_trace_with_damaged_gzip_at_its_beginning_is_a_problem(tmp_path):
    make(tmp_path, "r/rank0.5.pt.trace.json.gz", content=b"\x1f\x8b\x08\0" + b"\xff" * 99)
    listing = listed(tmp_path)
    assert listing.files == ()
    assert [p.path for p in listing.problems] == ["r/rank0.5.pt.trace.json.gz"]
    assert "gzip data is damaged" in listing.problems[0].reason


def test_a_trace_that_may_not_be_read_is_a_problem_until_it_may(tmp_path, monkeypatch):
    make(tmp_path, "r/rank0.5.pt.trace.json")
    heads = Heads()

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr("kinetoscope_tb.storage.files._local", refuse)
        refused = list_traces([Logdir(str(tmp_path))], heads)
    assert [(p.path, p.reason) for p in refused.problems] == [
        ("r/rank0.5.pt.trace.json", "the file can't be read: Permission denied.")
    ]
    assert names(list_traces([Logdir(str(tmp_path))], heads)) == [("r", "rank0", "5")]


def counted(monkeypatch):
    """Counts the heads that are read."""
    read = []

    def stored(path, start, count, **options):
        read.append(path)
        return stored_bytes(path, start, count, **options)

    monkeypatch.setattr("kinetoscope_tb.discovery.sniffing.stored_bytes", stored)
    return read


def test_a_file_is_looked_into_once_while_it_stays_as_it_is(tmp_path, monkeypatch):
    make(tmp_path, "r/a.json", "r/b.json")
    heads, read = Heads(), counted(monkeypatch)
    for _ in range(3):
        list_traces([Logdir(str(tmp_path))], heads)
    assert len(read) == 2
    make(tmp_path, "r/b.json", content=begins() + b" ")
    list_traces([Logdir(str(tmp_path))], heads)
    assert len(read) == 3


def test_what_is_remembered_has_a_bound(tmp_path, monkeypatch):
    make(tmp_path, *(f"r/{n}.json" for n in range(5)))
    heads, read = Heads(most=3), counted(monkeypatch)
    for _ in range(3):
        assert len(list_traces([Logdir(str(tmp_path))], heads).files) == 3
    assert len(read) == 3
    for path in sorted((tmp_path / "r").iterdir())[:3]:
        path.unlink()
    list_traces([Logdir(str(tmp_path))], heads)
    assert len(list_traces([Logdir(str(tmp_path))], heads).files) == 2


def test_of_a_remote_place_some_files_are_looked_into_for_each_listing():
    files = fsspec.filesystem("memory")
    files.pipe({f"/few/r/{n}.json": begins() for n in range(5)})
    heads = Heads(most_remote=2)
    seen = [len(list_traces([Logdir("memory://few")], heads).files) for _ in range(4)]
    assert seen == [2, 4, 5, 5]


def test_runs_are_shown_without_the_folders_that_trainers_put_between():
    runs = ["a/torch_traces", "b/profiling/traces", "c/device", "c", "torch_traces", "d/torch_profile", "e"]
    assert run_labels(runs) == {
        "a/torch_traces": "a",
        "b/profiling/traces": "b",
        "c/device": "c/device",
        "c": "c",
        "torch_traces": "torch_traces",
        "d/torch_profile": "d",
        "e": "e",
    }


def test_times_are_shown_as_times():
    spans = ["1733769848514071115", "1733769848914071115", "1733770537022695153", "1623143089861", "42", "default"]
    assert span_labels(spans) == {
        "1733769848514071115": "2024-12-09 18:44:08.514071 UTC",
        "1733769848914071115": "2024-12-09 18:44:08.914071 UTC",
        "1733770537022695153": "2024-12-09 18:55:37 UTC",
        "1623143089861": "2021-06-08 09:04:49 UTC",
        "42": "42",
        "default": "default",
    }


def test_two_times_in_one_microsecond_stay_numbers():
    spans = ["1733769848514071115", "1733769848514071116"]
    assert span_labels(spans) == {span: span for span in spans}


# ---- folders


def test_a_name_that_no_address_can_hold_is_a_problem(tmp_path):
    folder = os.fsencode(tmp_path)
    with open(folder + b"/rank\xff.pt.trace.json", "wb") as file:  # noqa: PTH123
        file.write(b"{}")
    listing = listed(tmp_path)
    assert listing.files == ()
    assert [p.path for p in listing.problems] == [r"rank\udcff.pt.trace.json"]


def test_links_in_a_circle_end_and_a_folder_is_listed_once(tmp_path):
    make(tmp_path, "logs/r/rank0.pt.trace.json", "elsewhere/rank1.pt.trace.json")
    (tmp_path / "logs/r/up").symlink_to(tmp_path / "logs")
    (tmp_path / "logs/z").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "logs/nothing.pt.trace.json").symlink_to(tmp_path / "gone")
    assert names(listed(tmp_path / "logs")) == [("r", "rank0", "default"), ("z", "rank1", "default")]


def test_a_logdir_that_does_not_exist_is_a_problem_not_an_exception(tmp_path):
    listing = listed(tmp_path / "gone")
    assert listing.files == ()
    assert [p.path for p in listing.problems] == [str(tmp_path / "gone")]


def test_a_folder_that_may_not_be_listed_does_not_hide_the_others(tmp_path, monkeypatch):
    make(tmp_path, "a/rank0.pt.trace.json", "b/rank0.pt.trace.json")
    scandir = os.scandir

    def refuse(path):
        if str(path).endswith("/a"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    listing = listed(tmp_path)
    assert names(listing) == [("b", "rank0", "default")]
    assert [(p.path, p.reason) for p in listing.problems] == [("a", "This folder can't be listed: Permission denied.")]


def test_a_remote_logdir_is_listed_like_a_local_one():
    files = fsspec.filesystem("memory")
    files.pipe({"/logs/r/rank0.2.pt.trace.json": b"{}", "/logs/r/rank0.10.pt.trace.json": b"{}", "/logs/r/.x": b"{}"})
    listing = list_traces([Logdir("memory://logs")])
    assert names(listing) == [("r", "rank0", "2"), ("r", "rank0", "10")]
    assert fsspec.open(listing.files[0].path).open().read() == b"{}"


@pytest.mark.parametrize(
    ("logdir", "spec", "expected"),
    [
        ("/x/", None, [Logdir("/x")]),
        ("/x,y", None, [Logdir("/x,y")]),
        ("gs://bucket/x/", None, [Logdir("gs://bucket/x")]),
        ("", "a:/x,b:/y", [Logdir("/x", "a"), Logdir("/y", "b")]),
        ("", "/x,/y:z", [Logdir("/x", "x"), Logdir("/y:z", "y:z")]),
        ("", "/x", [Logdir("/x")]),
        ("", "gs://b/x,n:gs://b/y", [Logdir("gs://b/x", "x"), Logdir("gs://b/y", "n")]),
        (None, None, []),
    ],
)
def test_the_flags_of_tensorboard(logdir, spec, expected):
    assert list(parse_logdirs(logdir, spec)) == expected


def test_names_of_a_logdir_spec_stand_before_the_runs(tmp_path):
    make(tmp_path, "x/r/rank0.pt.trace.json", "y/rank0.pt.trace.json")
    listing = list_traces(parse_logdirs("", f"a:{tmp_path}/x,b:{tmp_path}/y"))
    assert [(f.run, f.shown) for f in listing.files] == [
        ("a/r", "a/r/rank0.pt.trace.json"),
        ("b", "b/rank0.pt.trace.json"),
    ]


def test_logdirs_of_one_name_hide_nothing(tmp_path):
    make(tmp_path, *(f"{logdir}/r/rank0.pt.trace.json" for logdir in "xyz"))
    listing = list_traces(parse_logdirs("", ",".join(f"a:{tmp_path}/{logdir}" for logdir in "xyz")))
    assert {f.span: f.path for f in listing.files} == {
        "default": f"{tmp_path}/x/r/rank0.pt.trace.json",
        "default (a/r/rank0.pt.trace.json)": f"{tmp_path}/y/r/rank0.pt.trace.json",
        f"default ({tmp_path}/z/r/rank0.pt.trace.json)": f"{tmp_path}/z/r/rank0.pt.trace.json",
    }


def test_names_are_looked_up_never_opened(tmp_path):
    make(tmp_path, "logs/r/rank0.pt.trace.json", "secret/rank0.pt.trace.json")
    listing = listed(tmp_path / "logs")
    assert listing.find("r", "rank0", "default").shown == "r/rank0.pt.trace.json"
    for asked in [("../secret", "rank0", "default"), ("r", "../../secret/rank0", "default"), ("r", "rank0", "../x")]:
        with pytest.raises(NotFound):
            listing.find(*asked)


def test_any_file_may_be_named(tmp_path):
    make(tmp_path, "some/odd.json", "some/rank0.5.pt.trace.json.gz")
    assert names(list_given(str(tmp_path / "some/odd.json"))) == [("some", "odd", "default")]
    assert names(list_given(str(tmp_path / "some/rank0.5.pt.trace.json.gz"))) == [("some", "rank0", "5")]


@pytest.mark.parametrize("path", ["gone", "empty", "trace/zero"])
def test_naming_what_holds_no_trace_is_an_error_that_says_what_to_do(tmp_path, path):
    make(tmp_path, "empty/trace.json", content=b"")
    with pytest.raises(LogdirError, match="There is no trace in"):
        list_given(str(tmp_path / path))


def test_every_real_trace_is_found(traces):
    listing = list_traces([Logdir(str(traces))])
    lie_there = {p.relative_to(traces).as_posix() for p in traces.rglob("*") if p.name.endswith((".json", ".json.gz"))}
    assert {f.shown for f in listing.files} == lie_there - {"derived_malformed/empty.pt.trace.json"}
    assert [p.path for p in listing.problems] == ["derived_malformed/empty.pt.trace.json"]
    assert list(listing.runs["runs/dlrm_8gpu_nccl"]) == [f"rank{rank}" for rank in range(8)]
