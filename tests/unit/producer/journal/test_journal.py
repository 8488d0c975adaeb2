"""What a killed process leaves, and the trace that becomes of it."""

import gzip
import json
import os
import shutil
import socket
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kinetoscope_tb
from kinetoscope.journal import journal as journal_files
from kinetoscope.journal.journal import JournalWriter, header_of, journal_file, lines_of, older_file
from kinetoscope.journal.recover import recover_journals
from kinetoscope.journal.status import rank_statuses
from kinetoscope.output.manifest import write_status
from support.processes import steps_of

BASE = 1_790_857_026_000_000_123
GONE = {"host": socket.gethostname(), "pid": 2**22 + 1}  # no process of Linux has such a number
FACTS = {"run": "run", "global_rank": 3, "world_size": 8, "tid": 77, **GONE}
MS = 1_000_000


def written(folder, steps=3, facts=FACTS, open_markers=(), close=None):
    journal_path = JournalWriter({"version": "1", "listens": True}, lambda: list(open_markers))
    journal_path.open(folder, 3, facts)
    for step in range(steps):
        journal_path.add("s", step, BASE + step * 10 * MS, BASE + (step * 10 + 9) * MS)
        journal_path.add("m", 'fo"rward é', 77, BASE + (step * 10 + 1) * MS, 2 * MS)
    journal_path.add("i", "checkpoint", 78, BASE + 5 * MS)
    journal_path.add("c", "loss", BASE + 6 * MS, {"loss": 0.5, "bad": float("nan"), "text": "x"})
    journal_path.write()
    if close:
        journal_path.close(close)
    return journal_file(folder, 3).path


def the_trace(folder):
    (result,) = recover_journals(folder)
    assert result.problem == ""
    return result, json.loads(gzip.decompress(result.trace.read_bytes()))


def test_steps_markers_and_counters_become_a_trace_on_their_own_clock(tmp_path):
    written(tmp_path, open_markers=["epoch", "save"])
    result, trace = the_trace(tmp_path)
    assert result.trace.name == "rank3.3.pt.trace.json.gz"
    assert trace["baseTimeNanoseconds"] == BASE
    events = {(e["ph"], e["name"]): e for e in trace["traceEvents"] if e["ph"] != "M"}
    assert events["X", "ProfilerStep#2"] | {"cat": ""} == {
        "ph": "X",
        "cat": "",
        "name": "ProfilerStep#2",
        "pid": GONE["pid"],
        "tid": 77,
        "ts": 20000.0,
        "dur": 9000.0,
    }
    assert events["X", 'fo"rward é']["dur"] == 2000.0
    assert (events["i", "checkpoint"]["tid"], events["i", "checkpoint"]["ts"]) == (78, 5000.0)
    assert events["C", "loss"]["args"] == {"loss": 0.5}
    metadata = trace["kinetoscope"]
    assert (metadata["reason"], metadata["is_complete"], metadata["is_recovered"]) == ("killed", False, True)
    assert (metadata["global_rank"], metadata["step_first"], metadata["step_last"]) == (3, 0, 2)
    assert metadata["open_markers"] == ["epoch", "save"]
    steps = kinetoscope_tb.open(result.trace).steps
    assert steps["step"].to_list() == ["0", "1", "2"]
    assert steps["total_ns"].to_list() == [9 * MS] * 3
    assert recover_journals(tmp_path) == []


def test_an_existing_trace_stays(tmp_path):
    written(tmp_path)
    (tmp_path / "rank3.3.pt.trace.json.gz").write_bytes(b"saved whole")
    result, _ = the_trace(tmp_path)
    assert result.trace.name == "rank3.recovered.3.pt.trace.json.gz"
    assert (tmp_path / "rank3.3.pt.trace.json.gz").read_bytes() == b"saved whole"


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_sidecar_that_is_cut_or_damaged_anywhere_gives_what_is_left_of_it(tmp_path, data):
    file = written(tmp_path)
    content = bytearray(file.read_bytes())
    head = content.index(b"\n") + 1
    cut = data.draw(st.integers(head, len(content)))
    if data.draw(st.booleans()):
        del content[cut:]
    elif cut < len(content):
        content[cut] = data.draw(st.integers(0, 255))
    file.write_bytes(content)
    for result in recover_journals(tmp_path):
        assert (result.trace is None) != (result.problem == "")
        if result.trace:
            trace = json.loads(gzip.decompress(result.trace.read_bytes()))
            assert set(steps_of(trace)) <= {0, 1, 2} or len(content) > cut
            result.trace.unlink()
    for left in (tmp_path / ".work").iterdir():
        left.unlink()


def test_a_sidecar_without_a_first_line_is_reported(tmp_path):
    file = written(tmp_path)
    file.write_text("{}\n[]\n")
    (result,) = recover_journals(tmp_path)
    assert (result.trace, "can't be read" in result.problem) == (None, True)
    file.write_text("")
    (result,) = recover_journals(tmp_path)
    assert "who wrote it" in result.problem


def test_a_process_that_may_be_alive_is_left_alone(tmp_path):
    file = written(tmp_path, facts={**FACTS, "pid": os.getpid()})
    (result,) = recover_journals(tmp_path)
    assert "wait until it has ended" in result.problem
    file.unlink()
    written(tmp_path, facts={**FACTS, "host": "elsewhere"})
    (result,) = recover_journals(tmp_path)
    assert "wait until it has ended" in result.problem
    old = time.time() - 3600
    os.utime(file, (old, old))
    (result,) = recover_journals(tmp_path)
    assert "--force" in result.problem
    (result,) = recover_journals(tmp_path, force=True)
    assert result.steps == 3


def test_what_grows_too_large_loses_its_oldest_part(tmp_path, monkeypatch):
    monkeypatch.setattr(journal_files, "MOST_BYTES", 2000)
    journal_path = JournalWriter({"version": "1"}, list)
    journal_path.open(tmp_path, 3, FACTS)
    for step in range(200):
        journal_path.add("s", step, BASE + step * MS, BASE + (step + 1) * MS)
        journal_path.write()
    file = journal_file(tmp_path, 3)
    assert file.stat().st_size <= 2000
    assert header_of(file) == header_of(older_file(file))
    _, trace = the_trace(tmp_path)
    steps = steps_of(trace)
    assert steps == list(range(steps[0], 200))
    assert 25 <= len(steps) < 90


def test_a_recording_that_was_closed_leaves_nothing_to_recover(tmp_path):
    file = written(tmp_path, close="end")
    assert [line[:2] for line in lines_of(file)] == [["s", 2], ["e", "end"]]
    assert recover_journals(tmp_path) == []
    (status,) = rank_statuses(tmp_path)
    assert (status.state, status.reason, status.listens, status.completed) == ("ended", "end", False, 3)


def test_an_ended_journal_still_has_the_last_step_and_news(tmp_path):
    journal_path = JournalWriter({"version": "1"}, list)
    journal_path.open(tmp_path, 3, FACTS)
    for number in range(30):
        journal_path.note("left out", {"step": number, "problem": "busy"})
    journal_path.write()
    journal_path.take(("s", 6, BASE, BASE + 9 * MS, 9 * MS, None, None))  # after it was written last
    journal_path.close("sigterm")
    (status,) = rank_statuses(tmp_path)
    assert (status.completed, status.step_s, status.state, status.reason) == (7, 0.009, "ended", "sigterm")
    assert [left["step"] for left in status.left_out] == list(range(10, 30))


def test_a_job_that_restarts_preserves_the_journal_of_the_killed_one(tmp_path):
    written(tmp_path, steps=5)
    written(tmp_path, steps=2, facts={**FACTS, "pid": os.getpid()})
    alive, left = sorted(recover_journals(tmp_path), key=lambda result: bool(result.trace))
    assert (left.steps, "wait" in alive.problem) == (5, True)


def test_the_status_of_a_rank_is_what_it_wrote_last(tmp_path):
    file = written(tmp_path, facts={**FACTS, "host": "elsewhere"})
    (status,) = rank_statuses(tmp_path)
    assert (status.rank, status.world_size, status.state, status.listens) == (3, 8, "running", True)
    assert (status.completed, status.step_s, status.is_recording) == (3, 0.009, False)
    (status,) = rank_statuses(tmp_path, now_s=file.stat().st_mtime + 60)
    assert (status.state, round(status.age_s)) == ("silent", 60)
    written(tmp_path)
    (status,) = rank_statuses(tmp_path)
    assert status.state == "dead"  # of the two that wrote there, the later one


@pytest.mark.parametrize("value", [object(), {1: 2}, b"x", "\ud800"])
def test_a_program_s_odd_values_do_not_stop_the_rest(tmp_path, value):
    journal_path = JournalWriter({"version": "1"}, list)
    journal_path.open(tmp_path, 3, FACTS)
    journal_path.add("c", "odd", BASE, value)
    journal_path.add("s", 0, BASE, BASE + MS)
    journal_path.write()
    assert [line[0] for line in lines_of(journal_file(tmp_path, 3))] == ["c", "s"]
    _, trace = the_trace(tmp_path)
    assert steps_of(trace) == [0]


def hanging(stack=("all_reduce (dist.py:9)",)):
    return {"step": 40, "seconds": 130, "stack": list(stack)}


@pytest.mark.parametrize("counters", [3, 3_000, 36_000], ids=["a few", "more than the tail", "two files"])
@pytest.mark.parametrize("frames", [1, 40])
def test_counters_do_not_hide_the_last_step_nor_where_it_hangs(tmp_path, monkeypatch, counters, frames):
    monkeypatch.setattr(journal_files, "MOST_BYTES", 1 << 20)
    journal_path = JournalWriter({"version": "1", "listens": True}, list)
    journal_path.open(tmp_path, 3, FACTS)
    for step in range(40):
        journal_path.add("s", step, BASE + step * MS, BASE + (step + 1) * MS)
    journal_path.note("left out", {"step": 12, "problem": "busy"})
    journal_path.note("recording", {"step": 39, "request": None})
    journal_path.note(
        "hanging", hanging([f"/a/long/path/of/some/library/file{n}.py:{n} function" for n in range(frames)])
    )
    for number in range(0, counters, 3_000):
        for each in range(min(3_000, counters)):
            journal_path.add("c", "memory", BASE + number + each, {"allocated": 10**9 + each, "reserved": 2 * 10**9})
        journal_path.write()
    (status,) = rank_statuses(tmp_path)
    assert (status.completed, status.step_s, status.is_recording) == (40, 0.001, True)
    assert status.recording_since_step == 39
    assert status.hang["seconds"] == 130
    assert len(status.hang["stack"]) == frames
    assert [left["step"] for left in status.left_out] == [12]
    result, trace = the_trace(tmp_path)
    assert result.trace.name == "rank3.40.pt.trace.json.gz"
    assert trace["kinetoscope"]["steps_completed"] == 40
    assert trace["kinetoscope"]["hanging"]["step"] == 40


def test_the_repeated_news_stay_small_however_many_there_are(tmp_path):
    journal_path = JournalWriter({"version": "1"}, list)
    journal_path.open(tmp_path, 3, FACTS)
    for number in range(30):
        journal_path.note("hanging", {**hanging(["frame " + "x" * 100] * 40), "step": number})
    journal_path.note("recording", {"step": 3, "request": None})
    for number in range(3_000):
        journal_path.add("c", "memory", BASE + number, {"allocated": 10**9})
    journal_path.write()
    file = journal_file(tmp_path, 3)
    latest = [line for line in file.path.read_bytes().splitlines() if line.startswith(b'["l"')]
    assert latest
    assert all(len(line) <= 1 << 15 for line in latest)
    (status,) = rank_statuses(tmp_path)
    assert status.is_recording


def test_a_journal_that_is_removed_while_it_is_written_starts_again(tmp_path):
    journal_path = JournalWriter({"version": "1"}, list)
    journal_path.open(tmp_path, 3, FACTS)
    journal_path.add("s", 6, BASE, BASE + MS)
    journal_path.write()
    shutil.rmtree(tmp_path / ".work")
    journal_path.add("c", "memory", BASE, {"allocated": 1})
    journal_path.write()
    (status,) = rank_statuses(tmp_path)
    assert status.completed == 7


def test_what_only_the_summary_has_is_recovered(tmp_path):
    """The file was removed, and the process was killed before it wrote another step."""
    journal_path = JournalWriter({"version": "1"}, list)
    journal_path.open(tmp_path, 3, FACTS)
    journal_path.add("s", 6, BASE, BASE + MS)
    journal_path.note("recording", {"step": 7, "request": None})
    journal_path.write()
    shutil.rmtree(tmp_path / ".work")
    journal_path.add("o", ["epoch"], BASE + MS)
    journal_path.write()
    file = journal_file(tmp_path, 3)
    file.path.write_text("".join(line for line in file.path.read_text().splitlines(True) if line[:4] != '["o"'))
    result, trace = the_trace(tmp_path)
    assert (result.steps, steps_of(trace), trace["kinetoscope"]["is_window_lost"]) == (1, [6], True)


def test_a_window_in_which_no_step_ended_is_recovered_as_lost(tmp_path):
    """The window before it was saved after this one opened."""
    journal_path = JournalWriter({"version": "1"}, list)
    journal_path.open(tmp_path, 3, FACTS)
    journal_path.add("s", 6, BASE, BASE + MS)
    journal_path.note("recording", {"step": 7, "request": None})
    journal_path.write()
    saved = {"span": 7, "state": "saved", "file": "x", "step_first": 6, "ended_ns": time.time_ns()}
    write_status(tmp_path, 3, {**FACTS, "attempt": "a", "started_ns": 1, "state": "recording", "windows": [saved]})
    result, trace = the_trace(tmp_path)
    assert (result.steps, trace["kinetoscope"]["is_window_lost"]) == (0, True)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes and links")
class TestSomethingElseInTheRunsFolder:
    """Links and pipes in the place of files that the recorder writes."""

    def test_a_pipe_blocks_no_reader(self, tmp_path):
        file = written(tmp_path)
        file.unlink()
        os.mkfifo(file)
        assert rank_statuses(tmp_path) == []
        (result,) = recover_journals(tmp_path)
        assert "isn't a plain file" in result.problem

    def test_a_recorder_writes_through_no_link(self, tmp_path):
        run, mine = tmp_path / "run", tmp_path / ".bashrc"
        mine.write_text("the user's own")
        file = journal_file(run, 3).path
        file.parent.mkdir(parents=True)
        file.symlink_to(mine)
        (file.parent / f".{file.name}.tmp-{os.getpid()}").symlink_to(mine)
        written(run)
        assert rank_statuses(run)[0].completed == 3
        journal_path = JournalWriter({"version": "1"}, list)
        journal_path.open(run, 3, FACTS)
        journal_path.write()
        file.unlink()
        file.symlink_to(mine)
        journal_path.add("s", 1, BASE, BASE + MS)
        with pytest.raises(OSError, match="symbolic"):
            journal_path.write()
        assert mine.read_text() == "the user's own"

    def test_a_trace_is_recovered_through_no_link(self, tmp_path):
        run, mine = tmp_path / "run", tmp_path / ".bashrc"
        mine.write_text("the user's own")
        written(run)
        (run / f".rank3.3.pt.trace.json.gz.tmp-{os.getpid()}").symlink_to(mine)
        (run / "rank3.3.pt.trace.json.gz").symlink_to(tmp_path / "created")
        result, _ = the_trace(run)
        assert result.trace.name == "rank3.recovered.3.pt.trace.json.gz"
        assert mine.read_text() == "the user's own"
        assert not (tmp_path / "created").exists()

    def test_a_folder_for_the_recorder_that_is_a_link_is_not_used(self, tmp_path):
        run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
        run.mkdir()
        written(elsewhere)
        (run / ".work").symlink_to(elsewhere / ".work")
        before = {path: path.read_bytes() for path in (elsewhere / ".work").iterdir()}
        assert rank_statuses(run) == []
        assert recover_journals(run) == []
        with pytest.raises(OSError, match="link"):
            written(run)
        assert {path: path.read_bytes() for path in (elsewhere / ".work").iterdir()} == before

    def test_a_file_that_is_too_large_is_not_read(self, tmp_path):
        file = written(tmp_path)
        with file.open("ab") as stream:
            stream.truncate(10 << 30)
        assert [status.completed for status in rank_statuses(tmp_path)] == [None]
        (result,) = recover_journals(tmp_path)
        assert "more than a recorder writes" in result.problem
