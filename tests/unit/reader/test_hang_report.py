"""What Tracer adds to a dump: where its rank is; any value may be damaged."""

import json

import pytest

from kinetoscope.atomic_write import replace_file
from kinetoscope.output.ring import STEP, Ring, ring_file
from kinetoscope_tb.reader.flight_recorder.files import read_folder
from kinetoscope_tb.reader.flight_recorder.hang_report import KEY, hang_report
from kinetoscope_tb.reader.flight_recorder.schema import DumpError, parse_dump
from support.job_ends import write_living_run

USER = ["/job/train.py", 88, "__main__.load", 141.0]
LIBRARY = ["/venv/lib/python3.12/site-packages/torch/serialization.py", 1500, "torch.serialization.load", 140.0]
INNER = ["/venv/lib/python3.12/site-packages/torch/serialization.py", 2100, "torch.serialization._load", 3.0]
WRAPPER = ["/venv/lib/python3.12/site-packages/torch/x.py", 3, "torch.x.logger.<locals>.wrapper", 140.0]
RECORDER = ["/src/producer/kinetoscope/session/step_loop.py", 9, "kinetoscope.session.step_loop.steps", 200.0]
REPORT = {
    "world_size": 4,
    "written_ns": 1_795_650_000_000_000_000,
    "step": {"number": 812, "seconds": 150.5, "usual_s": 0.2},
    "reason": "step",
    "stack": [INNER, LIBRARY, USER, RECORDER],
    "message": None,
    "threads": [{"tid": 7, "name": "MainThread", "state": "D", "waits_in": "nfs_wait", "stack": []}],
    "markers": [{"name": "load", "seconds": 141.0}],
    "last_saved": "rank3.40.pt.trace.json.gz",
}


def changed(**values):
    return hang_report({**REPORT, **values})


def test_a_report_says_where_the_rank_is():
    report = hang_report(REPORT)
    assert (report.world_size, report.step, report.step_s, report.reason) == (4, 812, 150.5, "step")
    assert (report.state, report.waits_in, report.markers) == ("D", "nfs_wait", (("load", 141.0),))
    assert report.last_saved == "rank3.40.pt.trace.json.gz"
    assert report.message is None


@pytest.mark.parametrize(
    ("stack", "function", "line"),
    [
        ([INNER, LIBRARY, USER, RECORDER], "torch.serialization.load", 88),
        ([INNER, LIBRARY, WRAPPER, USER], "torch.serialization.load", 88),
        ([USER, LIBRARY], "load", 88),
        ([LIBRARY, RECORDER, USER], "kinetoscope.session.step_loop.steps", 88),
    ],
)
def test_the_activity_is_what_the_program_s_innermost_line_calls(stack, function, line):
    activity = changed(stack=stack).activity
    assert (activity.function, activity.file, activity.line, activity.seconds) == (function, "/job/train.py", line, 141)


def test_a_stack_without_the_program_has_no_activity():
    assert changed(stack=[LIBRARY]).activity is None


@pytest.mark.parametrize(
    ("value", "wait"),
    [
        ({"operation": "read", "file": "/mnt/7.tar"}, ("read", "/mnt/7.tar")),
        ({}, None),
        (None, None),
        ({"operation": "unlink", "file": "/mnt/7.tar"}, None),
        ({"operation": ["read"], "file": "/mnt/7.tar"}, None),
        ({"operation": "read", "file": 7}, None),
        ({"operation": "read", "file": ""}, None),
    ],
)
def test_what_the_main_thread_waits_for_is_checked(value, wait):
    assert changed(threads=[{"name": "MainThread", "waits_for": value}]).waits_for == wait


@pytest.mark.parametrize(
    "value",
    [None, [], {}, {**REPORT, "step": 5}, {**REPORT, "written_ns": "now"}, {**REPORT, "world_size": 1 << 40}],
)
def test_other_values_are_no_report(value):
    assert hang_report(value) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"stack": [["a", "b", "c", "d"], 7, [], ["a", 1, 2, 3]]},
        {"stack": "text"},
        {"message": {"operation": "os.system", "peer": 1}},
        {"threads": [1, {"name": []}], "markers": {"name": 1}},
        {"step": {"number": 812, "seconds": float("nan")}},
        {"last_saved": 1 << 80},
    ],
)
def test_damaged_values_are_left_out(changes):
    report = changed(**changes)
    assert report.step == 812
    assert report.message is None


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ({"operation": "recv", "peer": 1}, "gloo:recv 3<-1"),
        ({"operation": "send", "peer": 0}, "gloo:send 3->0"),
        ({"operation": "recv", "peer": None}, "gloo:recv"),
        ({"operation": "recv", "peer": 99}, "gloo:recv"),
    ],
)
def test_a_message_that_gloo_does_not_record_is_an_open_operation(message, name):
    (entry,) = parse_dump({KEY: {**REPORT, "message": message}}, 3, "").entries
    assert (entry.name, entry.is_p2p, entry.is_complete, entry.line) == (name, True, False, "/job/train.py:88")
    assert entry.created_ns == REPORT["written_ns"] - 141_000_000_000


def test_the_ranks_of_groups_are_those_that_tracer_wrote():
    garbage = {
        "half": {"name": "half", "ranks": "[78540246465108004, 225]"},
        "0": {"name": "0", "ranks": "[0, 1, 2, 3]"},
    }
    assert parse_dump({KEY: REPORT, "pg_config": garbage}, 3, "").groups == {"0": (0, 1, 2, 3)}
    groups = {"half": [2, 3], "damaged": ["x"], "0": 7}
    dump = parse_dump({KEY: {**REPORT, "groups": groups}, "pg_config": garbage}, 3, "")
    assert dump.groups == {"0": (0, 1, 2, 3), "half": (2, 3)}
    assert parse_dump({KEY: {**REPORT, "groups": []}}, 3, "").groups == {}


ENTRY = {
    "record_id": 7,
    "process_group": ["0", "default_pg"],
    "collective_seq_id": 8,
    "profiling_name": "gloo:all_reduce",
    "retired": True,
}


def test_the_last_operation_of_a_rank_that_ended_badly_may_have_failed(tmp_path):
    for rank, reason in ((0, "end"), (1, "step")):
        dump = {"entries": [{**ENTRY, "record_id": 6}, ENTRY], KEY: {**REPORT, "reason": reason}}
        (tmp_path / f"rank{rank}.{reason}.json").write_text(json.dumps(dump))
    folder = read_folder(str(tmp_path))
    (end,), (step,) = folder.ends, folder.dumps
    assert [entry.is_complete for entry in end.entries] == [True, False]
    assert [entry.is_complete for entry in step.entries] == [True, True]


def test_a_file_that_has_neither_is_no_dump():
    with pytest.raises(DumpError):
        parse_dump({KEY: {}}, 0, "")


def test_of_a_run_the_newest_report_of_each_rank_counts(tmp_path):
    (tmp_path / "hang").mkdir()
    (tmp_path / "rank7.json").write_text('{"version": "2.10", "pg_config": {}}')
    for step in (5, 40, 812):
        report = {**REPORT, "step": {"number": step}, "written_ns": REPORT["written_ns"] + step}
        (tmp_path / f"hang/rank3.{step}.json").write_text(json.dumps({KEY: report}))
    folder = read_folder(str(tmp_path))
    assert [(dump.rank, dump.report.step) for dump in folder.dumps] == [(3, 812)]
    assert folder.problems == folder.statuses == ()


def test_a_thousand_ranks_keep_few_steps_each_with_the_slowest_around_each_time(tmp_path):
    write_living_run(tmp_path, 1)
    ring = Ring()
    for number in range(16_000):
        dur_ns = 900 if number == 7_001 else 10 + number % 3
        ring.add(STEP, number, 1000 * number, 1000 * number + dur_ns)
    replace_file(ring_file(tmp_path, 0), ring.content())
    ring.close()
    journal = tmp_path / ".work" / "rank0.jsonl"
    journal.write_text(f"{journal.read_text().splitlines()[0]}\n")  # without steps
    minutes = read_folder(str(tmp_path)).minutes[0]
    assert 1000 < len(minutes.steps) < 1100
    assert (7_001, 7_001_000, 7_001_900) in minutes.steps
    assert [number for number, _, _ in minutes.steps[-16:]] == list(range(15_984, 16_000))
    assert minutes.usual_ns == 11
