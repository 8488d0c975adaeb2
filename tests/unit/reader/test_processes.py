"""A file of several processes is a recording of each, with the same columns as its own file."""

import io
import json
from functools import cache

import polars as pl
import pytest

from kinetoscope_tb.diagnostics.diagnose import diagnose
from kinetoscope_tb.discovery import list_path
from kinetoscope_tb.engine.answers import compute
from kinetoscope_tb.errors import TraceError
from kinetoscope_tb.export.merge import merge
from kinetoscope_tb.names.processes import Process
from kinetoscope_tb.reader import read, read_blocks, read_each
from kinetoscope_tb.reader.processes.ownership import MOST_PROCESSES
from kinetoscope_tb.trace.model import COLLECTED
from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder
from support.merged import by_combining, by_sglang, by_time, by_trace_fuse, dump, load
from support.real_traces import FOLDER, MISSING

needs_traces = pytest.mark.skipif(not FOLDER.is_dir(), reason=MISSING)
CASES = FOLDER.parent / "cases"
DLRM = sorted((FOLDER / "runs/dlrm_8gpu_nccl").glob("*.json"))
SAMPLED = sorted((FOLDER / "claims/hta_sampled_2_of_128_ranks").glob("*.json.gz"))
PAIRS = [
    *zip(DLRM[::2], DLRM[1::2], strict=True),
    SAMPLED,
    sorted((FOLDER / "runs/particle_cpu_logs").glob("*.json")),
]
PLACES = {"offset", "length"}  # of events in the file
LINKS = {"correlation", "external_id", "id", "wait_on_record"}  # which tools renumber
NOT_FUSED = ("Trace", "python_function")  # categories that TraceFuse leaves out
of_each_pair = pytest.mark.parametrize(
    "pair", [pytest.param(tuple(pair), id=pair[0].name[:20]) for pair in PAIRS if pair]
)


def columns_of(trace):
    """All columns but the places in the file and the numbers of links; texts as texts, however they are coded."""
    frames = {name: getattr(trace, name) for name in (*COLLECTED, "collectives", "counters", "threads", "steps")}
    return {
        name: frame.drop(PLACES | LINKS, strict=False).with_columns(pl.col(pl.Enum).cast(pl.String))
        for name, frame in frames.items()
    }


def differences(one, other):
    """The frames in which two recordings differ, and their windows."""
    theirs = columns_of(other)
    differ = [name for name, frame in columns_of(one).items() if not frame.equals(theirs[name])]
    return differ + ["window"] * (one.window != other.window)


@cache
def document(path):
    return load(path)


@cache
def own(path):
    return read(path)


@needs_traces
@of_each_pair
@pytest.mark.parametrize("tool", [by_sglang, by_combining])
def test_ranks_in_one_file_are_those_of_their_own_files(pair, tool, tmp_path):
    merged = dump(tool(list(map(document, pair))), tmp_path / "merged.json")
    for path, split in zip(pair, read_each(merged), strict=True):
        assert differences(own(path), split) == []
        assert split.meta.events == own(path).meta.events


@needs_traces
@of_each_pair
def test_fused_ranks_are_those_of_their_own_files(pair, tmp_path):
    merged = dump(by_trace_fuse(list(map(document, pair))), tmp_path / "merged.json")
    traces = list(read_each(merged))
    assert [trace.meta.process.worker for trace in traces] == ["rank0", "rank1"]
    for path, split in zip(pair, traces, strict=True):
        events = [event for event in document(path)["traceEvents"] if event.get("cat") not in NOT_FUSED]
        whole = read(dump({"traceEvents": events}, tmp_path / "own.json"))
        assert differences(whole, split) == []


@needs_traces
@of_each_pair
def test_our_own_merge_gives_the_recordings_back(pair, tmp_path):
    (tmp_path / "job").mkdir()
    for nth, path in enumerate(pair):
        dump(document(path), tmp_path / f"job/rank{nth}.5.pt.trace.json")
    with (tmp_path / "merged.json").open("wb") as out:
        merge(list_path(str(tmp_path / "job")).files, out)
    traces = list(read_each(tmp_path / "merged.json"))
    assert [trace.meta.process.worker for trace in traces] == ["rank0", "rank1"]
    for nth, split in enumerate(traces):
        whole = read(tmp_path / f"job/rank{nth}.5.pt.trace.json")
        assert differences(whole, split) == []
        assert (split.origin_ns, split.meta.top) == (whole.origin_ns, whole.meta.top)
        assert split.meta.fingerprint == whole.meta.fingerprint
        assert split.diagnostics == whole.diagnostics


@needs_traces
def test_every_view_of_a_rank_is_that_of_its_own_file(tmp_path):
    pair = SAMPLED
    traces = list(read_each(dump(by_sglang(list(map(document, pair))), tmp_path / "merged.json")))
    for path, split in zip(pair, traces, strict=True):
        for view in VIEWS.values():
            if view.id not in ("health", "environment"):  # the file's name, and places in it
                whole, part = (compute(view, trace, view.arguments({})) for trace in (own(path), split))
                assert part.equals(whole) if isinstance(part, pl.DataFrame) else part == whole, view.id


def work_of(trace):
    """Every work of a device, and what launched it."""
    device = trace.device_events
    names = {"launch": trace.launches["name"], "op": trace.host_events["name"]}
    launched = {of: pl.Series([name[row] if row >= 0 else None for row in device[of]]) for of, name in names.items()}
    return device.select(pl.col("name").cast(pl.String), "start_ns", "dur_ns", "device", **launched).sort(pl.all())


@needs_traces
def test_ranks_whose_events_alternate_are_known_by_their_launches(tmp_path):
    pair = DLRM[2:4]
    merged = by_time(list(map(document, pair)))
    traces = {trace.meta.process.id: trace for trace in read_each(dump(merged, tmp_path / "merged.json"))}
    for path, pid in zip(pair, ("59813", "59814"), strict=True):
        assert work_of(traces[pid]).equals(work_of(own(path)))
        assert traces[pid].meta.rank is None  # the metadata are those of either


@pytest.mark.skipif(not CASES.is_dir(), reason=MISSING)
@pytest.mark.parametrize(
    ("case", "workers"),
    [
        ("04_sglang_merged_profile", ["TP-0", "TP-1"]),
        ("05_ranks_merged_colliding_correlation", ["process 100", "process 101"]),
    ],
)
def test_two_ranks_with_the_same_numbers_have_their_own_steps_and_devices(case, workers):
    traces = list(read_each(CASES / case / "merged-1.trace.json"))
    assert [trace.meta.process.worker for trace in traces] == workers
    for device, trace in enumerate(traces):
        assert trace.steps["name"].to_list() == ["1", "2", "3"]
        assert trace.device_events["device"].to_list() == [device] * 3
        assert {trace.host_events["name"][op] for op in trace.device_events["op"]} == {
            ("aten::mm", "aten::conv2d")[device]
        }
        assert not any(diagnostic.fault for diagnostic in diagnose(trace))


def rank(pid, kernel, device=0, names=(), **top):
    """A recording of two operators that launch a kernel each, of the process `pid`."""
    trace = TraceBuilder(**top)
    for nth in (1, 2):
        trace.op("aten::mm", 1_000 * nth, 500).launch(1_000 * nth + 100, 50, nth).kernel(
            kernel, 1_000 * nth + 300, 90, nth
        )
    document = json.loads(trace.text())
    for event in document["traceEvents"]:
        event["pid"] = device if event["cat"] == "kernel" else pid
        if event["cat"] == "kernel":
            event["args"]["device"] = device
    document["traceEvents"] += [{"ph": "M", "name": "process_name", "pid": pid, "args": {"name": n}} for n in names]
    return document


def end():
    return {"ph": "i", "name": "Record Window End", "pid": "", "tid": "", "ts": 5, "s": "g"}


def traces_in(*documents):
    return traces_of(by_combining(documents))


def traces_of(document):
    text = json.dumps(document).encode()
    first = read_blocks([text], path="merged.json")
    return [read_blocks([text], path="merged.json", process=process.id) for process in first.meta.processes] or [first]


def kernels(trace):
    return trace.device_events["name"].unique().to_list()


def test_a_gpu_of_the_same_number_belongs_to_each_process():
    first, second = traces_in(rank(10, "k"), rank(20, "l"))
    assert (kernels(first), kernels(second)) == (["k"], ["l"])
    assert first.meta.processes == (Process("10", "process 10"), Process("20", "process 20"))


def test_processes_of_containers_may_have_the_same_number():
    parts = [rank(57, "k"), rank(57, "l")]
    for part in parts:
        part["traceEvents"].append(end())
    first, second = traces_in(*parts)
    assert (kernels(first), kernels(second)) == (["k"], ["l"])
    assert [process.worker for process in first.meta.processes] == ["process 57 #1", "process 57 #2"]


def test_ranks_are_named_in_the_names_of_processes():
    first, _ = traces_in(rank(10, "k", names=["Rank 4"]), rank(20, "l", names=["python", "rank_5 (GPU 1)"]))
    assert [process.worker for process in first.meta.processes] == ["rank4", "rank5"]


def test_the_metadata_are_those_of_the_first_process():
    ours = {"kinetoscope": {"global_rank": 3, "world_size": 8, "clock": {"offset_ns": 7, "error_ns": 1}}}
    first, second = traces_in(rank(10, "k", **ours), rank(20, "l"))
    assert (first.meta.rank, first.meta.world_size, first.meta.clock) == (3, 8, (7, 1))
    assert (second.meta.rank, second.meta.world_size, second.meta.clock) == (None, 8, None)
    assert [process.worker for process in first.meta.processes] == ["rank3", "process 20"]


def test_a_process_without_device_work_is_a_frontend_and_no_rank():
    server = rank(5, "k", distributedInfo={"rank": 0, "world_size": 2})
    server["traceEvents"] = [event for event in server["traceEvents"] if event["cat"] == "cpu_op"]
    frontend, first, second = traces_in(server, rank(10, "k", device=0), rank(20, "l", device=1))
    assert [trace.meta.process.worker for trace in (frontend, first, second)] == ["frontend", "rank0", "process 20"]
    assert frontend.meta.rank is None


def test_ranks_on_cpus_are_no_frontends():
    parts = [rank(10, "k"), rank(20, "l")]
    for part in parts:
        part["traceEvents"] = [event for event in part["traceEvents"] if event["cat"] == "cpu_op"]
    assert [trace.meta.process.worker for trace in traces_in(*parts)] == ["process 10", "process 20"]


def test_helpers_without_operators_are_no_processes():
    part = rank(10, "k")
    for pid in (11, 12):
        part["traceEvents"] += [
            {"ph": "X", "cat": "user_annotation", "name": "load", "pid": pid, "tid": pid, "ts": at, "dur": 1}
            for at in range(5)
        ]
    (trace,) = traces_in(part)
    assert trace.meta.processes == ()
    assert trace.threads["pid"].to_list() == ["10", "11", "12"]


def test_one_operator_with_a_damaged_number_is_no_process():
    part = rank(10, "k")
    part["traceEvents"][3]["pid"] = 1
    assert len(traces_in(part)) == 1


def test_helpers_belong_to_the_process_before_them():
    parts = [rank(10, "k"), rank(20, "l")]
    for nth, part in enumerate(parts):
        part["traceEvents"].insert(
            4, {"ph": "X", "cat": "user_annotation", "name": "load", "pid": 99, "tid": nth, "ts": 1, "dur": 1}
        )
    first, second = traces_in(*parts)
    assert [trace.threads["tid"].to_list() for trace in (first, second)] == [["1", "0"], ["1", "1"]]


def test_more_processes_than_events_can_be_compared_with_are_refused():
    ranks = [rank(10 + nth, "k") for nth in range(MOST_PROCESSES + 1)]
    with pytest.raises(TraceError, match=r"operators of 257 processes .* Merge at most 256"):
        traces_in(*ranks)


def test_a_process_that_left_the_file_is_named():
    with pytest.raises(TraceError, match="isn't in the file any more"):
        read_blocks([json.dumps(rank(10, "k")).encode()], path="merged.json", process="20")


@pytest.mark.parametrize("damage", ["worker", "processes", "metadata"])
def test_a_damaged_record_of_our_merge_leaves_what_the_events_show(tmp_path, damage):
    for nth, pid in enumerate((10, 20)):
        (tmp_path / f"rank{nth}.5.pt.trace.json").write_text(json.dumps(rank(pid, "kl"[nth])))
    out = io.BytesIO()
    merge(list_path(str(tmp_path)).files, out)
    document = json.loads(out.getvalue())
    assert [trace.threads["pid"].to_list() for trace in traces_of(document)] == [["10"], ["20"]]
    document["merged"][1][damage] = 5
    assert [kernels(trace) for trace in traces_of(document)] == [["k"], ["l"]]
