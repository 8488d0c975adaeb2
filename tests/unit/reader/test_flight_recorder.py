"""Dumps of torch's flight recorder: names, forms, versions, and what isn't a dump."""

import json
import pickle

import pytest

from kinetoscope_tb.errors import LogdirError
from kinetoscope_tb.reader.flight_recorder import files
from kinetoscope_tb.reader.flight_recorder.files import rank_in_name, read_dump, read_folder
from kinetoscope_tb.reader.flight_recorder.schema import DumpError, parse_dump
from support.flight_recorder import LAYOUTS, Simulation, stopped

WORLD = LAYOUTS[0]
ENTRY = {
    "record_id": 3,
    "pg_id": 0,
    "process_group": ("0", "default_pg"),
    "collective_seq_id": 4,
    "p2p_seq_id": 0,
    "profiling_name": "nccl:all_reduce",
}
WHOLE = {"version": "2.10", "pg_config": {}, "pg_status": {}, "entries": []}


@pytest.fixture
def job():
    return Simulation(WORLD.groups, stopped(WORLD, 2, 5)).run()


def entry(**changes):
    return parse_dump({**WHOLE, "entries": [{**ENTRY, **changes}]}, 0, "").entries[0]


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("nccl_trace_rank_7", 7),
        ("comm_lib_trace_rank_12", 12),
        ("nccl_trace_rank_node12.cluster_3", 3),
        ("nccl_trace_rank_10.0.0.5_3", 3),
        ("rank0.json", 0),
        ("rank-5.pickle", 5),
        ("dump31.pkl", 31),
        ("rank3_dump.json", 3),
        ("rank0.1.json", 0),
        ("fr_2026_4.txt", 4),
        ("run.json", None),
        ("rank99999999999", None),
    ],
)
def test_the_rank_is_in_the_name(name, rank):
    assert rank_in_name(name) == rank


def test_a_pickle_and_json_give_the_same_dump(job, tmp_path):
    for text in (False, True):
        job.write(tmp_path / str(text), text=text, name="fr_")
    pickled, json_dumps = (read_folder(str(tmp_path / str(text))).dumps for text in (False, True))
    assert [(d.rank, d.groups, d.last_enqueued, d.entries) for d in pickled] == [
        (d.rank, d.groups, d.last_enqueued, d.entries) for d in json_dumps
    ]
    assert pickled[2].entries[-1].seq == 5


def test_of_two_dumps_of_a_rank_the_newest_is_used(job, tmp_path):
    job.write(tmp_path)
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "nccl_trace_rank_1").write_bytes(pickle.dumps(Simulation(WORLD.groups, {1: []}).dump(1), 2))
    job.write(tmp_path, text=True, name="rank")  # the same dumps in another form
    folder = read_folder(str(tmp_path))
    assert len(folder.dumps[1].entries) == 8
    assert [(problem.rank, problem.path.rsplit("/", 2)[-2]) for problem in folder.problems] == [(1, "old")]


@pytest.mark.parametrize(
    ("changes", "is_started", "is_complete"),
    [
        ({"state": "scheduled", "retired": False}, False, False),
        ({"state": "started"}, True, False),
        ({"state": "completed"}, True, True),
        ({"time_discovered_started_ns": 5, "time_discovered_completed_ns": 0}, True, False),
        ({"time_discovered_completed_ns": 7}, True, True),
        ({"state": "scheduled", "retired": True}, False, False),  # what NCCL's watchdog gave up
        ({"state": "scheduled", "retired": True, "profiling_name": "gloo:all_reduce"}, False, True),
    ],
)
def test_how_an_operation_ended(changes, is_started, is_complete):
    read = entry(**changes)
    assert (read.is_started, read.is_complete) == (is_started, is_complete)


def test_numbers_may_be_texts():
    value = {
        "version": "2.4",
        "pg_config": {
            "0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 12]"},
            "x": {"ranks": [3, 4]},
            "": {"ranks": "[]"},
        },
        "pg_status": {
            "0": {"last_enqueued_collective": "12", "last_completed_collective": "-1"},
            1: {"last_enqueued_collective": 3},
        },
    }
    dump = parse_dump(value, 0, "")
    assert dump.groups == {"0": (0, 1, 12), "x": (3, 4)}
    assert dump.last_enqueued == {0: 12, 1: 3}
    assert dump.entries == ()


@pytest.mark.parametrize(
    "ranks", ["[0, 1", "[0, -1]", "[a]", "__import__('os')", [0, "b"], [True], None, 5, "[" * 9999, {}]
)
def test_ranks_that_cannot_be_read_are_none(ranks):
    groups = parse_dump({**WHOLE, "pg_config": {"0": {"name": "0", "ranks": ranks}}}, 0, "").groups
    assert groups in ({}, {"0": (0, 1)})


def test_sizes_and_stacks():
    frames = [
        {"name": "all_reduce", "filename": "/env/lib/python3.12/site-packages/torch/distributed/c10d.py", "line": 9},
        {"name": "train", "filename": "/home/me/train.py", "line": 88},
        {"name": "<module>", "filename": "/home/me/train.py", "line": 120},
    ]
    read = entry(frames=frames, input_sizes=[[2, 3], [], "x"], input_dtypes=("Float", "Long", 5))
    assert (read.line, read.in_sizes, read.in_dtypes) == ("/home/me/train.py:88", (6, 1, -1), ("Float", "Long", ""))


def test_what_cannot_be_read_of_an_entry_is_counted():
    bad = [{**ENTRY, key: None} for key in ("record_id", "collective_seq_id", "profiling_name", "process_group")]
    dump = parse_dump({**WHOLE, "entries": [ENTRY, *bad, 7, {**ENTRY, "collective_seq_id": 1 << 70}]}, 0, "")
    assert (len(dump.entries), dump.unreadable) == (1, 6)


@pytest.mark.parametrize(
    "value", [None, [], {}, {"version": "2"}, {**WHOLE, "entries": "abc"}, {**WHOLE, "entries": 5}]
)
def test_what_is_no_dump_is_refused(value):
    with pytest.raises(DumpError):
        parse_dump(value, 0, "")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x80\x02cos\nsystem\nX\x07\0\0\0version\x85R.", "it names code"),
        (b'{"version": "2.10", "entries": [', "it isn't JSON"),
        (b'{"version": ' + b"[" * 10**5, "it isn't JSON"),
        (b"\x80\x02}q\0(X\x07\0\0\0version", "it ends too early"),
        (json.dumps({"version": "2", "pg_config": {"0": {"ranks": "[0, 1]"}}}).encode(), "its name has rank 5"),
        (b"", None),
        (b"version", None),
    ],
)
def test_a_file_that_is_no_dump_is_a_problem_of_that_file_alone(job, tmp_path, data, reason):
    job.write(tmp_path, text=True)
    (tmp_path / "nccl_trace_rank_5").write_bytes(data)
    folder = read_folder(str(tmp_path))
    assert [dump.rank for dump in folder.dumps] == [0, 1, 2, 3]
    assert [problem.rank for problem in folder.problems] == [5]
    assert (reason or "it isn't a dump") in folder.problems[0].reason


def test_other_files_are_left_alone(job, tmp_path):
    job.write(tmp_path)
    (tmp_path / "rank0.1.pt.trace.json").write_text('{"traceEvents": []}')
    (tmp_path / "events.out.tfevents.17").write_bytes(b"\0" * 100)
    folder = read_folder(str(tmp_path))
    assert (len(folder.dumps), folder.problems) == (4, ())


def test_a_dump_has_a_largest_size(job, tmp_path, monkeypatch):
    job.write(tmp_path)
    monkeypatch.setattr(files, "MOST_BYTES", 100)
    with pytest.raises(DumpError, match="more than 0 MiB"):
        read_dump(str(tmp_path / "nccl_trace_rank_0"), 0)


def test_a_folder_without_a_dump_is_an_error(tmp_path):
    with pytest.raises(LogdirError, match="has no dump of torch's flight recorder"):
        read_folder(str(tmp_path))
    with pytest.raises(LogdirError, match="There is no folder"):
        read_folder(str(tmp_path / "nowhere"))
