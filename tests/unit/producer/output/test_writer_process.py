"""Jobs without a training: what becomes of them, and what the manifest says."""

import errno
import gzip
import json
import os
import socket
import sys
from dataclasses import replace

import pytest

from kinetoscope import SaveError
from kinetoscope.atomic_write import write_json
from kinetoscope.journal.recover import finish_spools
from kinetoscope.output import writer_process
from kinetoscope.output.manifest import write_status
from kinetoscope.output.scratch import make_spool_folder
from kinetoscope.output.spool import PROCESS, Job, Spool
from kinetoscope.output.writer_client import WriterClient
from kinetoscope.output.writer_process import SpoolWriter, finish_spool

TRACE = '{"baseTimeNanoseconds": 0, "traceEvents": [{"ph": "X"}]}'


@pytest.fixture
def spool(tmp_path):
    spool = Spool(make_spool_folder())
    facts = {"folder": str(tmp_path / "run"), "global_rank": 0, "world_size": 1, "pid": os.getpid(), "run": "run"}
    write_json(spool.folder / PROCESS, {**facts, "state": "recording"})
    return spool


@pytest.fixture
def put(spool, tmp_path):
    def put(number, **more):
        raw = spool.folder / f"{number:04d}.raw.json"
        raw.write_text(TRACE)
        metadata = {"window": number, "steps_completed": 3 * (number + 1), "pid": 1, "reason": "schedule"}
        file = f"rank0.{metadata['steps_completed']}.pt.trace.json.gz"
        job = Job(number=number, raw=str(raw), folder=str(tmp_path / "run"), file=file, metadata=metadata)
        job = replace(job, **more)
        spool.put(job)
        return job

    return put


@pytest.fixture
def uploads(monkeypatch):
    """Names of what is uploaded; a URL with `refuses` is refused."""
    done = []

    def upload(path, url, *, overwrite, tries=4):
        if "refuses" in url:
            raise SaveError(f"{url} wasn't written: access denied")
        done.append((path.name, url))

    monkeypatch.setattr(writer_process, "upload", upload)
    return done


def states(tmp_path):
    windows = json.loads((tmp_path / "run" / "run.json").read_text())["windows"]
    return [(w["span"], w["ranks"]["0"]) for w in windows]


def traces(tmp_path):
    return sorted(path.name for path in (tmp_path / "run").glob("rank*"))


def test_jobs_become_traces_with_own_events_and_a_manifest(spool, put, tmp_path):
    put(0)
    put(1, is_partial=True)
    events = [["counter", f"event {n}", [], 5, 1000 * n, None, {"v": n}] for n in range(2500)]
    write_json(
        spool.program_events_file(0),
        {"pid": 1, "since_ns": 0, "until_ns": 10**9, "threads": {}, "events": events, "metadata": {}},
    )
    SpoolWriter(spool).work()
    first = json.loads(gzip.decompress((tmp_path / "run" / "rank0.3.pt.trace.json.gz").read_bytes()))
    assert [event.get("name") for event in first["traceEvents"]] == [*(f"event {n}" for n in range(2500)), None]
    assert first["traceEvents"][7]["ts"] == 7
    assert [(span, rank["state"]) for span, rank in states(tmp_path)] == [(3, "saved"), (6, "partial")]
    assert states(tmp_path)[0][1]["bytes"] == (tmp_path / "run" / "rank0.3.pt.trace.json.gz").stat().st_size
    assert spool.jobs() == []
    assert sorted(path.name for path in spool.folder.iterdir()) == ["process.json", "state.json"]


def test_a_window_that_was_lost_already_is_named_with_its_reason(spool, put, tmp_path):
    put(0, lost="the profiler wrote nothing")
    SpoolWriter(spool).work()
    assert states(tmp_path) == [(3, states(tmp_path)[0][1])]
    assert states(tmp_path)[0][1]["state"] == "lost"
    assert states(tmp_path)[0][1]["problem"] == "the profiler wrote nothing"


def test_a_raw_file_that_is_no_trace_is_retained_and_the_next_window_saved(spool, put, tmp_path):
    (spool.folder / "0000.raw.json").write_text("x")
    job = put(0)
    (spool.folder / "0000.raw.json").write_text("nothing")
    put(1)
    SpoolWriter(spool).work()
    assert [(span, rank["state"]) for span, rank in states(tmp_path)] == [(3, "kept"), (6, "saved")]
    assert "not a trace" in states(tmp_path)[0][1]["problem"]
    assert states(tmp_path)[0][1]["raw"] == job.raw


def test_a_fault_in_one_job_does_not_stop_the_others(spool, put, tmp_path):
    put(0, metadata={"window": 0, "steps_completed": 3, "loss": float("nan")})
    put(1)
    SpoolWriter(spool).work()
    assert [(span, rank["state"]) for span, rank in states(tmp_path)] == [(3, "kept"), (6, "saved")]
    assert "JSON" in states(tmp_path)[0][1]["problem"]


def test_what_a_full_disk_refused_is_written_when_there_is_room(spool, put, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    put(0)
    work = SpoolWriter(spool)
    with monkeypatch.context() as patch:
        patch.setattr(writer_process, "commit_trace", full)
        work.work()
        assert states(tmp_path)[0][1]["state"] == "kept"
        assert "No space left" in states(tmp_path)[0][1]["problem"]
    assert finish_spool(spool.folder)[0]["state"] == "saved"
    assert [(span, rank["state"]) for span, rank in states(tmp_path)] == [(3, "saved")]
    assert "raw" not in states(tmp_path)[0][1]
    assert traces(tmp_path) == ["rank0.3.pt.trace.json.gz"]


def test_raw_files_that_can_not_be_written_as_traces_do_not_fill_the_disk(spool, put, tmp_path, monkeypatch):
    (tmp_path / "run").write_text("not a folder")
    monkeypatch.setattr(writer_process, "MAX_SPOOLED_BYTES", int(2.5 * len(TRACE)))
    for number in range(3):
        put(number)
    windows = [w["state"] for w in SpoolWriter(spool).close() or []]
    assert windows == []
    work = SpoolWriter(spool)
    work.work()
    assert sorted(w["state"] for w in work.close()) == ["kept", "kept", "lost"]
    assert len(list(spool.folder.glob("*.raw.json"))) == 2


def test_a_job_that_kills_its_writer_process_is_given_up(spool, put, tmp_path):
    put(0, attempts=3)
    put(1)
    SpoolWriter(spool).work()
    assert [(span, rank["state"]) for span, rank in states(tmp_path)] == [(3, "lost"), (6, "saved")]
    assert "died 3 times" in states(tmp_path)[0][1]["problem"]


@pytest.mark.parametrize(
    ("keep", "remote", "left"),
    [
        (-1, None, [3, 6, 9, 12]),
        (2, None, [9, 12]),
        (1, "s3://bucket/trace{}", [12]),
        (0, "s3://bucket/trace{}", []),
        (1, "s3://refuses/trace{}", [3, 6, 9, 12]),
    ],
    ids=["all", "two", "one, uploaded", "none, uploaded", "one, but uploads fail"],
)
def test_the_newest_stay_and_none_is_deleted_before_it_is_copied(put, spool, tmp_path, uploads, keep, remote, left):
    for number in range(4):
        put(number, keep=keep, remote=remote and remote.format(number))
        SpoolWriter(spool, url_prefixes=["s3://bucket/", "s3://refuses"]).work()
    assert traces(tmp_path) == sorted(f"rank0.{span}.pt.trace.json.gz" for span in left)
    record = states(tmp_path)
    assert [rank["state"] for _, rank in record] == ["saved"] * 4
    assert [span for span, rank in record if not rank.get("pruned")] == left
    if remote and "refuses" in remote:
        assert record[0][1]["upload"]["state"] == "failed"
        assert "access denied" in record[0][1]["upload"]["problem"]
        assert len(spool.jobs()) == 4
    elif remote:
        assert [url for _, url in uploads] == [f"s3://bucket/trace{number}" for number in range(4)]


def test_windows_deleted_long_ago_are_dropped_from_the_records_and_not_missing(spool, put, tmp_path, monkeypatch):
    monkeypatch.setattr(writer_process, "MAX_PRUNED_RECORDS", 2)
    process = json.loads((spool.folder / PROCESS).read_text())
    write_json(spool.folder / PROCESS, {**process, "world_size": 2})
    other = [{"span": span, "state": "saved", "file": f"rank1.{span}", "pruned": True} for span in (3, 6, 9)]
    status = {**process, "global_rank": 1, "world_size": 2, "windows": other}
    write_status(tmp_path / "run", 1, status)
    for number in range(6):
        put(number, keep=1)
        SpoolWriter(spool).work()  # each time another one, that knows what the one before wrote down
    windows = json.loads((spool.folder / "state.json").read_text())["windows"]
    assert [(window["span"], window.get("pruned", False)) for window in windows] == [
        (12, True),
        (15, True),
        (18, False),
    ]
    record = json.loads((tmp_path / "run" / "run.json").read_text())["windows"]
    assert [(w["span"], w["ranks"]["0"]["state"]) for w in record] == [(span, "saved") for span in range(3, 19, 3)]
    assert [w["ranks"]["0"].get("pruned", False) for w in record] == [True] * 5 + [False]


def attempt(spool, name, **facts):
    """Let the queue be of another attempt of the rank, with overwrite=True."""
    process = json.loads((spool.folder / PROCESS).read_text())
    write_json(spool.folder / PROCESS, {**process, "attempt": name, "started_ns": ord(name), **facts})
    (spool.folder / "state.json").unlink(missing_ok=True)
    return SpoolWriter(spool)


def test_traces_of_earlier_attempts_in_the_folder_count_for_keep(spool, put, tmp_path):
    run = tmp_path / "run"
    for name, spans in (("a", [3, 6, 9]), ("b", [9, 12]), ("c", [15])):
        work = attempt(spool, name)
        for number, span in enumerate(spans):
            put(number, keep=3, overwrite=True, file=f"rank0.{span}.pt.trace.json.gz")
            work.work()
        if name == "a":
            (run / "rank1.3.pt.trace.json.gz").write_text("another rank's")
    assert traces(tmp_path) == [f"rank{name}.pt.trace.json.gz" for name in ("0.12", "0.15", "0.9", "1.3")]


def test_what_was_put_in_the_place_of_an_earlier_trace_and_what_lies_elsewhere_stays(spool, put, tmp_path, uploads):
    run, other = tmp_path / "run", tmp_path / "other.gz"
    work = attempt(spool, "a")
    for number in range(4):
        put(number, remote="s3://refuses/x" if number == 2 else None)
    work.work()
    (run / "rank0.6.pt.trace.json.gz").write_text("the program's own")
    other.write_bytes(b"1234")
    status = run / ".work" / "status" / "rank0.json"
    value = json.loads(status.read_text())
    windows = [{"state": "saved", "file": file, "bytes": 4} for file in ("../other.gz", str(other), None)]
    write_json(status, {**value, "windows": [*value["windows"], *windows, "no window"]})
    for left in spool.jobs():
        spool.remove(left)
    work = attempt(spool, "b")
    put(9, keep=1, overwrite=True)
    work.work()
    assert traces(tmp_path) == [f"rank0.{span}.pt.trace.json.gz" for span in (30, 6, 9)]  # 9 waits for its copy
    assert other.exists()


def test_a_late_writer_process_of_an_earlier_attempt_does_not_overwrite_the_later_one_s_manifest(spool, put, tmp_path):
    attempt(spool, "b").report()
    put(0)
    attempt(spool, "a").work()
    assert json.loads((tmp_path / "run" / "run.json").read_text())["attempt"] == "b"
    assert traces(tmp_path) == ["rank0.3.pt.trace.json.gz"]


def test_traces_are_written_before_any_is_uploaded(put, spool, tmp_path, uploads):
    for number in range(2):
        put(number, remote=f"s3://bucket/{number}")
    counts = []
    SpoolWriter(
        spool, lambda: counts.append((len(traces(tmp_path)), len(uploads))), url_prefixes=["s3://bucket"]
    ).work()
    assert counts[-1] == (2, 2)
    assert (1, 0) in counts


def test_a_process_that_was_killed_is_named(spool, put, tmp_path):
    process = json.loads((spool.folder / PROCESS).read_text())
    write_json(spool.folder / PROCESS, {**process, "recording_since_step": 40, "pid": 2**22 + 1})
    put(0)
    assert finish_spool(spool.folder) is not None
    (rank,) = json.loads((tmp_path / "run" / "run.json").read_text())["ranks"]
    assert rank["state"] == "killed"
    assert "while it recorded, since step 40" in rank["problem"]
    assert not spool.folder.exists()
    assert finish_spool(spool.folder) is None


def test_only_one_works_on_a_queue(spool, put):
    lock = spool.lock()
    put(0)
    assert finish_spool(spool.folder) is None
    os.close(lock)
    assert finish_spool(spool.folder)[0]["state"] == "saved"


@pytest.mark.parametrize("executable", ["/missing/python", "/bin/false"], ids=["can't start", "dies"])
def test_without_a_writer_process_the_end_of_the_training_writes(tmp_path, scratch, monkeypatch, executable):
    outcomes = []
    monkeypatch.setattr(sys, "executable", executable)
    client = WriterClient(outcomes.append)
    raw = client.spool.folder / "0000.raw.json"
    raw.write_text(TRACE)
    client.put(Job(number=0, raw=str(raw), folder=str(tmp_path / "run"), file="a.gz", metadata={}))
    assert client.close(60) == 0
    assert [outcome["state"] for outcome in outcomes] == ["saved"]
    assert (tmp_path / "run" / "a.gz").exists()
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("survivors", list(range(1, 8)))
def test_a_removal_that_a_signal_interrupts_leaves_the_manifest_as_it_is(spool, put, tmp_path, monkeypatch, survivors):
    put(0)
    assert finish_spool(spool.folder)[0]["state"] == "saved"
    before = states(tmp_path)
    write_json(spool.folder / PROCESS, {**json.loads((spool.folder / PROCESS).read_text()), "state": "ended"})
    files = sorted(spool.folder.iterdir())
    assert {"process.json", "state.json", "lock"} == {path.name for path in files}

    def remove_some(folder, **_):
        for n, path in enumerate(files):
            if not survivors >> n & 1:
                path.unlink(missing_ok=True)

    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", remove_some)
        spool.discard()
    finish_spool(spool.folder)
    assert states(tmp_path) == before


def test_the_spool_of_a_killed_writer_process_is_finished_with_the_run(spool, put, tmp_path, monkeypatch):
    process = json.loads((spool.folder / "process.json").read_text())
    (spool.folder / "process.json").write_text(json.dumps({**process, "host": socket.gethostname()}))
    put(0)
    with monkeypatch.context() as patch:
        patch.setattr(writer_process, "commit_trace", lambda *_, **__: (_ for _ in ()).throw(OSError("killed")))
        SpoolWriter(spool).work()
    put(1)
    (done,) = finish_spools(tmp_path / "run")
    assert (done.problem, [window["state"] for window in done.windows]) == ("", ["saved", "saved"])
    assert traces(tmp_path) == ["rank0.3.pt.trace.json.gz", "rank0.6.pt.trace.json.gz"]
    assert finish_spools(tmp_path / "run") == []


class Killed(BaseException):
    """What no handler of errors catches."""


def killed_after(function):
    def call(*args, **keywords):
        function(*args, **keywords)
        raise Killed

    return call


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        pytest.param(writer_process, "commit_trace", id="published"),
        pytest.param(SpoolWriter, "report", id="reported"),
        pytest.param(Spool, "remove", id="removed"),
    ],
)
def test_a_trace_that_a_killed_process_published_is_saved_and_not_written_again(
    spool, put, tmp_path, monkeypatch, owner, name
):
    put(0)
    work = SpoolWriter(spool)
    work._windows[0] = writer_process.new_window(spool.jobs()[0])
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, killed_after(getattr(owner, name)))
        with pytest.raises(Killed):
            work._run_job(spool.jobs()[0])
    (inode,) = {path.stat().st_ino for path in (tmp_path / "run").glob("*.gz")}
    assert [window["state"] for window in finish_spool(spool.folder)] == ["saved"]
    assert [(span, rank["state"]) for span, rank in states(tmp_path)] == [(3, "saved")]
    assert [path.stat().st_ino for path in (tmp_path / "run").glob("*.gz")] == [inode]


def test_a_file_that_took_the_name_of_an_unpublished_trace_stays(spool, put, tmp_path):
    put(0, complete={"name": "rank0.3.pt.trace.json.gz", "inode": 1, "bytes": 3, "problem": ""})
    (tmp_path / "run").mkdir()
    (tmp_path / "run/rank0.3.pt.trace.json.gz").write_text("abc")
    assert [window["state"] for window in finish_spool(spool.folder)] == ["saved"]
    assert traces(tmp_path) == ["rank0.3.pt.trace.json.gz", "rank0~2.3.pt.trace.json.gz"]


def test_a_writer_process_puts_nothing_into_the_spool_that_took_the_place_of_its_own(spool, put, tmp_path, monkeypatch):
    def commit(*args, **keywords):
        (spool.folder / "0000.json").unlink()
        return commit_trace(*args, **keywords)

    put(0)
    commit_trace = writer_process.commit_trace
    monkeypatch.setattr(writer_process, "commit_trace", commit)
    monkeypatch.setattr(Spool, "remove", lambda *_: None)
    work = SpoolWriter(spool)
    work._windows[0] = writer_process.new_window(spool.jobs()[0])
    work._run_job(spool.jobs()[0])
    assert traces(tmp_path) == ["rank0.3.pt.trace.json.gz"]
    assert spool.jobs() == []


@pytest.mark.parametrize("complete", [3, {}, {"name": "x", "inode": -1, "bytes": 0, "problem": ""}])
def test_a_job_with_an_odd_complete_file_is_refused(spool, put, complete):
    put(0, complete=complete)
    assert "complete" in spool.refused_jobs()[0]


def test_a_status_that_names_a_folder_of_something_else_is_not_believed(spool, put, tmp_path):
    process = json.loads((spool.folder / "process.json").read_text())
    put(0)
    other = {**process, "host": socket.gethostname(), "folder": str(tmp_path / "other")}
    (spool.folder / "process.json").write_text(json.dumps(other))
    status = {
        **other,
        "global_rank": 0,
        "queue": str(spool.folder),
        "windows": [{"state": "kept", "file": "x", "span": 1}],
    }
    (tmp_path / "run" / ".work" / "status").mkdir(parents=True)
    (tmp_path / "run" / ".work" / "status" / "rank0.json").write_text(json.dumps(status))
    (left,) = finish_spools(tmp_path / "run")
    assert "isn't in" in left.problem
    assert list(spool.folder.glob("0000.*"))
