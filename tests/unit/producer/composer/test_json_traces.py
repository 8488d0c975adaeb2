"""Chrome JSON of several writers, on one clock and with every process in its place."""

import gzip
import json
import subprocess
import threading

import pytest

from kinetoscope.child_process import python_command
from kinetoscope.composer.json_traces.node_file import discard_node_file, merge_window, shift_line
from kinetoscope.composer.json_traces.writer_process import run_job
from kinetoscope.output.chrome import ChromeTrace, nanoseconds

BASE = 1_790_857_026_000_000_000
US = 1_000


def torch_trace(path, *, pid=77, at_us=5.001, clock=None, has_base_last=False, indent=2):
    """A trace as kineto writes it: times from a base, a GPU as process 0, texts for others."""
    values = {"kinetoscope": {"clock": {"offset_ns": clock, "error_ns": 9}}} if clock is not None else {}
    events = [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "ts": 1.0, "args": {"name": "python"}},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": pid, "tid": 1, "ts": at_us, "dur": 2},
        {
            "ph": "X",
            "name": "autograd::engine::evaluate_function: MulBackward0",
            "pid": pid,
            "tid": 2,
            "ts": 9,
            "dur": 2,
        },
        {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 6.5, "dur": 1},
        {"ph": "s", "id": 3, "pid": pid, "tid": 1, "ts": 5.5, "name": "ac2g", "cat": "ac2g"},
        {"ph": "X", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "x", "ts": 0.0, "dur": 20},
        {"ph": "i", "name": "of no thread", "pid": pid, "ts": 1},
    ]
    values |= {} if has_base_last else {"baseTimeNanoseconds": BASE}
    after = {"ERROR": ["x"], "traceName": "t", "baseTimeNanoseconds": BASE} if has_base_last else {}
    text = json.dumps({**values, "traceEvents": events, **after}, indent=indent).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return str(path)


def job(folder, rank=0, *, sources=(), events=(), file=None, **more):
    return {
        "folder": str(folder),
        "file": file or f"ba1-rank{rank}.json",
        "rank": rank,
        "pid": 77,
        "events": list(events),
        "sources": list(sources),
        "files_of_node": [f"ba1-rank{r}.json" for r in range(2)],
        "merged": "node0.json",
        "remote": None,
        "merged_remote": None,
        "overwrite": False,
        "remove": [],
        "temporary": [],
        **more,
    }


def marker(phase, at_ns, name="m", tid=1):
    return {"ph": phase, "name": name, "cat": "c", "tid": tid, "ns": at_ns, "args": {"epoch": 0, "batch": 1}}


def events_in(path):
    return json.loads(path.read_text())


def named(events, name):
    return [event for event in events if event["name"] == name]


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_markers_and_operators_are_on_one_clock(tmp_path, suffix):
    source = torch_trace(tmp_path / f"torch{suffix}")
    program_events = [marker("E", BASE + 8 * US), marker("B", BASE + 4 * US)]
    assert run_job(job(tmp_path, sources=[source], events=program_events)) == []
    text = (tmp_path / "ba1-rank0.json").read_text()
    assert f'"ts": {BASE // 1000 + 5}.001' in text  # to the nanosecond, which no double can say
    events = json.loads(text)
    begin, end = named(events, "m")
    (op,) = named(events, "aten::mm")
    assert begin["ts"] < op["ts"] < end["ts"]
    assert (begin["pid"], op["pid"], begin["ph"], end["ph"]) == (0, 0, "B", "E")


def test_gpus_and_texts_have_processes_of_their_own_by_rank(tmp_path):
    for rank in range(2):
        assert run_job(job(tmp_path, rank, sources=[torch_trace(tmp_path / f"{rank}.json")])) == []
    events = events_in(tmp_path / "node0.json")
    assert [event["pid"] for event in named(events, "aten::mm")] == [0, 1]
    gpus = [event["pid"] for event in named(events, "gemm")]
    assert len({0, 1, *gpus}) == 4
    names = {event["pid"]: event["args"]["name"] for event in named(events, "process_name")}
    assert [names[pid] for pid in (0, 1, *gpus)] == ["rank 0", "rank 1", "rank 0 · device 0", "rank 1 · device 0"]
    assert [event["id"] for event in named(events, "ac2g")] == ["0:3", "1:3"]
    assert named(events, "of no thread") == []
    (backward,) = [e for e in named(events, "thread_sort_index") if e["pid"] == 1]
    assert (backward["tid"], backward["args"]) == (2, {"sort_index": 1})


def test_merging_again_adds_what_is_new_and_changes_nothing_that_is_there(tmp_path):
    for rank in range(2):
        run_job(job(tmp_path, rank, events=[marker("B", BASE), marker("E", BASE + US)]))
    first = (tmp_path / "node0.json").read_text()
    files = [f"ba2-rank{rank}.json" for rank in range(2)]
    for rank in range(2):
        run_job(job(tmp_path, rank, file=files[rank], files_of_node=files, events=[marker("B", BASE + 9 * US)]))
    second = (tmp_path / "node0.json").read_text()
    assert second.startswith(first.removesuffix("\n]\n"))
    assert [event["pid"] for event in named(json.loads(second), "m")] == [0, 0, 1, 1, 0, 1]
    assert merge_window(tmp_path, files, "node0.json") is False
    assert (tmp_path / "node0.json").read_text() == second


def test_a_rank_whose_clock_is_ahead_is_moved_in_the_merged_file_alone(tmp_path):
    run_job(job(tmp_path, 0, sources=[torch_trace(tmp_path / "0.json", clock=0)]))
    run_job(job(tmp_path, 1, sources=[torch_trace(tmp_path / "1.json", clock=4001)]))
    assert f'"ts": {BASE // 1000 + 5}.001' in (tmp_path / "ba1-rank1.json").read_text()
    lines = [line for line in (tmp_path / "node0.json").read_text().splitlines() if "aten::mm" in line]
    assert f'"ts": {BASE // 1000 + 5}.001' in lines[0]
    assert f'"ts": {BASE // 1000 + 1}.000' in lines[1]


def test_all_ranks_at_once_make_one_whole_file(tmp_path):
    count = 6
    files = [f"ba1-rank{rank}.json" for rank in range(count)]
    jobs = [job(tmp_path, rank, files_of_node=files, events=[marker("i", BASE + rank)]) for rank in range(count)]
    threads = [threading.Thread(target=run_job, args=(one,)) for one in jobs]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(event["pid"] for event in named(events_in(tmp_path / "node0.json"), "m")) == list(range(count))


@pytest.mark.parametrize("cut", [1, 2, 30])
def test_arrays_will_do_also_where_they_were_cut_off(tmp_path, cut):
    events = [{"ph": "X", "name": str(n), "pid": 1, "tid": 1, "ts": n} for n in range(3)]
    path = tmp_path / "cut.json"
    path.write_text(json.dumps(events)[:-cut])
    assert [event["name"] for event in ChromeTrace(path).events()] == ["0", "1", "2"][: 3 if cut == 1 else 2]


def test_events_are_read_piece_by_piece_whatever_the_pieces(tmp_path, monkeypatch):
    expected = list(ChromeTrace(tmp_path / torch_trace(tmp_path / "a.json")).events())
    for block in (1, 7, 64):
        monkeypatch.setattr("kinetoscope.output.chrome._BLOCK", block)
        source = ChromeTrace(tmp_path / "a.json")
        assert list(source.events()) == expected
        assert source.base_ns == BASE


def test_what_is_to_be_removed_goes_only_when_the_machine_s_file_has_it(tmp_path):
    run_job(job(tmp_path, 0, events=[marker("i", BASE)], remove=["ba1-rank0.json"]))
    assert (tmp_path / "ba1-rank0.json").exists()
    run_job(job(tmp_path, 1, events=[marker("i", BASE)], remove=["ba1-rank0.json", "ba1-rank1.json"]))
    assert sorted(path.name for path in tmp_path.glob("*.json")) == ["node0.json"]


def test_a_file_goes_when_another_rank_s_process_has_put_it_into_the_machine_s_file(tmp_path):
    run_job(job(tmp_path, 0, events=[marker("i", BASE)], remove=["ba1-rank0.json"]))
    run_job(job(tmp_path, 1, events=[marker("i", BASE)]))
    assert sorted(path.name for path in tmp_path.glob("*.json")) == ["ba1-rank1.json", "node0.json"]
    assert len([e for e in json.loads((tmp_path / "node0.json").read_text()) if e["ph"] == "i"]) == 2


def test_a_copy_that_fails_keeps_its_own_file_and_no_older_one(tmp_path):
    (tmp_path / "no folder").touch()
    alone = {"merged": None, "remote": f"file://{tmp_path}/no folder/x.json"}
    run_job(job(tmp_path, file="ba1.json", merged=None))
    problems = run_job(job(tmp_path, file="ba2.json", remove=["ba1.json", "ba2.json"], **alone))
    assert len(problems) == 1
    assert [path.name for path in tmp_path.glob("*.json")] == ["ba2.json"]


def test_what_an_earlier_training_put_into_the_machine_s_file_is_forgotten(tmp_path):
    files = ["ba1-rank0.json"]
    run_job(job(tmp_path, events=[marker("i", BASE, "old")], files_of_node=files))
    discard_node_file(tmp_path, "node0.json")
    run_job(job(tmp_path, events=[marker("i", BASE, "new")], files_of_node=files, remove=files))
    assert [path.name for path in tmp_path.glob("*.json")] == ["node0.json"]
    assert [e["name"] for e in json.loads((tmp_path / "node0.json").read_text()) if e["ph"] == "i"] == ["new"]


def test_copies_go_where_the_job_says(tmp_path):
    remote = f"file://{tmp_path}/bucket"
    urls = {"remote": f"{remote}/rank.json", "merged_remote": f"{remote}/node.json"}
    assert run_job(job(tmp_path / "run", files_of_node=["ba1-rank0.json"], events=[marker("i", BASE)], **urls)) == []
    for name, original in (("rank.json", "ba1-rank0.json"), ("node.json", "node0.json")):
        assert (tmp_path / "bucket" / name).read_text() == (tmp_path / "run" / original).read_text()


def test_errors_are_reported(tmp_path):
    (tmp_path / "file").touch()
    (problem,) = run_job(job(tmp_path / "file"))
    assert "file/ba1-rank0.json" in problem


def test_the_process_takes_a_job_and_needs_no_torch_and_nothing_of_the_working_folder(tmp_path):
    (tmp_path / "json.py").write_text("raise SystemExit('the training has a json.py of its own')")
    statement = (
        "from kinetoscope.composer.json_traces.writer_process import main; main(); assert 'torch' not in sys.modules"
    )
    values = json.dumps(job(tmp_path, events=[marker("i", BASE)]))
    done = subprocess.run(python_command(statement), input=values, text=True, capture_output=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(events_in(tmp_path / "ba1-rank0.json")) == 4


def test_times_are_exact():
    assert nanoseconds(7_889_238_000_000.123) == 7_889_238_000_000_123
    assert shift_line('{"name": "x", "ts": 1790857026000000.001}', -2) == '{"name": "x", "ts": 1790857025999999.999}'
    assert shift_line('{"ph": "M"}', 5) == '{"ph": "M"}'


@pytest.mark.parametrize("name", ["rank0.json", "rank0.json.gz"])
@pytest.mark.parametrize("indent", [2, None])
def test_the_base_is_found_after_the_events_where_torch_2_4_to_2_11_write_it(tmp_path, name, indent):
    first, last = (
        ChromeTrace(tmp_path / torch_trace(tmp_path / f"{is_last}-{name}", has_base_last=is_last, indent=indent))
        for is_last in (False, True)
    )
    assert list(first.events()) == list(last.events()) != []
    assert first.base_ns == last.base_ns == BASE


def test_a_truncated_file_without_a_base_keeps_its_events(tmp_path):
    path = tmp_path / "rank0.json.gz"
    torch_trace(path, has_base_last=True)
    path.write_bytes(path.read_bytes()[:-20])
    trace = ChromeTrace(path)
    with pytest.raises(EOFError):
        list(trace.events())
    assert trace.base_ns == 0
