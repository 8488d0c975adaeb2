"""A range for other viewers: `kinetoscope export`, and the routes timeline/export."""

import gzip
import json

import pytest

from contract.running import Server, a_trace

TRACE = {"run": "job", "worker": "rank1", "span": "10"}
OTHER = {"worker": "rank0", "span": "10", "shift_ns": 5_000_000}


def names(packed: bytes, kind: str = "Xi") -> list[str]:
    events = json.loads(gzip.decompress(packed))["traceEvents"]
    return [event["args"]["name"] if kind == "M" else event["name"] for event in events if event["ph"] in kind]


@pytest.fixture(scope="module")
def stamp(server: Server) -> str:
    return server.settled("timeline", **TRACE).json["stamp"]


def ask(server, stamp, path="timeline/export", **query):
    while True:
        answer = server.plugin(path, **TRACE, stamp=stamp, **query)
        if answer.headers["Content-Type"] == "application/gzip" or answer.json["state"] != "loading":
            return answer


def test_a_range_is_a_file_with_a_name(server, stamp):
    answer = ask(server, stamp, from_ns="0", to_ns="900000")
    assert answer.status == 200
    assert answer.headers["Content-Disposition"].startswith('attachment; filename="job.rank1.10.timeline.json.gz"')
    assert "Content-Encoding" not in answer.headers
    assert answer.headers["Cache-Control"] == "no-store"
    expected = [
        "ProfilerStep#5",
        "aten::copy_",
        "aten::mm",
        "ampere_sgemm_128x64_tn",
        "Memcpy HtoD (Pageable -> Device)",
    ]
    assert sorted(names(answer.body)) == sorted(
        [*expected, "cudaLaunchKernel", "cudaMemcpyAsync", "PyTorch Profiler (0)"]
    )


def test_the_size_is_known_before(server, stamp):
    range_ns = {"from_ns": "0", "to_ns": "900000", "include": "memory,args"}
    size = ask(server, stamp, "timeline/export/size", **range_ns).json
    packed = ask(server, stamp, **range_ns).body
    assert size == {
        "state": "ready",
        "name": "job.rank1.10.timeline.json.gz",
        "slices": 8,
        "bytes": len(packed),
        "is_exact": True,
    }
    assert names(packed, "C") == ["cpu memory (change)"]


def test_several_workers_come_in_one_file(server, stamp):
    answer = ask(server, stamp, workers=json.dumps([OTHER]))
    assert 'filename="job.2_workers.timeline.json.gz"' in answer.headers["Content-Disposition"]
    events = json.loads(gzip.decompress(answer.body))["traceEvents"]
    processes = {e["pid"]: e["args"]["name"].split(" · ")[0] for e in events if e["name"] == "process_name"}
    steps = [(processes[e["pid"]], e["ts"]) for e in events if e["name"] == "ProfilerStep#5"]
    assert steps == [("rank1", 0.0), ("rank0", 5000.0)]


@pytest.mark.parametrize(
    "query",
    [
        {"from_ns": "soon"},
        {"to_ns": "1.5"},
        {"include": "everything"},
        {"workers": "rank0"},
        {"workers": '[{"worker": "rank0"}]'},
        {"workers": '[{"worker": "rank0", "span": "10", "shift_ns": 0.5}]'},
        {"workers": '[{"worker": "rank0", "span": "10", "shift_ns": 1e400}]'},
        {"workers": "[" * 1000},
        {"unknown": "1"},
    ],
)
def test_what_cannot_be_asked_is_a_bad_parameter(server, stamp, query):
    answer = server.plugin("timeline/export", **TRACE, stamp=stamp, **query)
    assert (answer.status, answer.json["code"]) == (400, "bad_parameter")


def test_a_worker_that_is_not_there_and_a_file_that_changed_are_told(server, stamp):
    gone = server.plugin("timeline/export", **TRACE, stamp=stamp, workers=json.dumps([{**OTHER, "worker": "rank9"}]))
    assert (gone.status, gone.json["code"]) == (404, "not_found")
    assert server.plugin("timeline/export", **TRACE, stamp="00000000").json["code"] == "changed"


def test_the_command_writes_a_range_a_step_or_all_workers(kinetoscope, logdir, tmp_path):
    out = tmp_path / "out.json.gz"
    status, text, _ = kinetoscope("export", str(logdir), str(out), "--run", "job", "--step", "6", "--include", "memory")
    assert (status, text) == (0, f"{out}: 8 slices, {out.stat().st_size} B.\n")
    assert "ProfilerStep#6" in names(out.read_bytes())
    assert "ProfilerStep#5" not in names(out.read_bytes())
    assert names(out.read_bytes(), "C") != []
    kinetoscope("export", str(logdir), str(out), "--run", "job", "--from", "1.9ms", "--to", "2ms")
    assert names(out.read_bytes()) == ["PyTorch Profiler (0)"]
    kinetoscope("export", str(logdir), str(out), "--run", "job", "--all")
    whole = [e["name"] for e in a_trace().events if e["ph"] == "X"]
    assert sorted(names(out.read_bytes())) == sorted(2 * whole)


@pytest.mark.parametrize("wrong", [["--from", "3"], ["--step", "77"], ["--step", "5", "--to", "1s"]])
def test_the_command_says_what_is_wrong_and_leaves_no_file(kinetoscope, logdir, tmp_path, wrong):
    status, out, err = kinetoscope("export", str(logdir), str(tmp_path / "x.json.gz"), "--run", "job", *wrong)
    assert (status, out) == (1, "")
    assert "Error: " in err
    assert list(tmp_path.iterdir()) == []


def test_what_a_program_says_of_itself_is_in_the_file(kinetoscope, tmp_path):
    """Counters from the value at the range's start on, with their units; moments; what isn't known is left out."""
    rows = [
        {"ph": "C", "name": "loss", "pid": 100, "ts": ts, "args": args}
        for ts, args in ((0, {"train": 4}), (2, {"train": 0.25, "eval": None}), (3, {"eval": 1}), (9, {"train": 0}))
    ]
    rows += [{"ph": "C", "name": "link", "pid": 100, "ts": 2, "args": {"link": 1024}}]
    rows += [{"ph": "i", "s": "t", "cat": "user_instant", "name": 'é"', "pid": 100, "tid": 7, "ts": 2}]
    slices = [{"ph": "X", "cat": "cpu_op", "name": "op", "pid": 100, "tid": 7, "ts": 0, "dur": 10}]
    own = {"counters": {"link": {"unit": "bytes/s"}}, "global_rank": 0}
    trace = {"schemaVersion": 1, "baseTimeNanoseconds": 10**18, "kinetoscope": own, "traceEvents": [*slices, *rows]}
    (tmp_path / "rank0.1.pt.trace.json").write_text(json.dumps(trace))
    out = tmp_path / "out.json.gz"
    status, _, err = kinetoscope(
        "export", str(tmp_path / "rank0.1.pt.trace.json"), str(out), "--from", "1us", "--to", "4us"
    )
    assert (status, err) == (0, "")
    events = json.loads(gzip.decompress(out.read_bytes()))["traceEvents"]
    counters = sorted((e["name"], e["ts"], e["args"]) for e in events if e["ph"] == "C")
    first = min(e["ts"] for e in events if e["ph"] == "X")
    assert [(name, ts - first, args) for name, ts, args in counters] == [
        ("link (bytes/s)", 2, {"link": 1024}),
        ("loss", 1, {"train": 4}),
        ("loss", 2, {"train": 0.25}),
        ("loss", 3, {"eval": 1}),
    ]
    assert [e["name"] for e in events if e["ph"] == "i"] == ['é"']
    assert len({e["pid"] for e in events if e["ph"] in "CiX"}) == 1


def test_a_range_without_slices_fails_and_says_where_there_are_some(kinetoscope, logdir, tmp_path):
    trace, out = str(logdir / "job/rank0.2.pt.trace.json"), tmp_path / "out.json.gz"
    status, _, err = kinetoscope("export", trace, str(out), "--from", "1.5s", "--to", "1.8s")
    assert (status, out.exists()) == (1, False)
    assert err == "Error: No slice lies in this range. The recording has slices from 0 ns to 2 ms.\n"
