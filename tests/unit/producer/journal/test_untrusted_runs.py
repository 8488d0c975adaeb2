"""Run folders of other users: files that they name are never written, deleted, copied or waited for."""

import json
import os
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from kinetoscope.atomic_write import write_json
from kinetoscope.errors import UsageError
from kinetoscope.job.run_attempts import claim_folder
from kinetoscope.journal.recover import finish_spools
from kinetoscope.output.manifest import statuses, write_status
from kinetoscope.output.scratch import make_spool_folder
from kinetoscope.output.spool import PROCESS, STATE, Spool
from kinetoscope.path_below import PathBelow
from kinetoscope.scheduling.consensus import FolderLog
from kinetoscope.scheduling.request import Request, take_request, write_request

TRACE = '{"baseTimeNanoseconds": 0, "traceEvents": [{"ph": "X"}]}'


@pytest.fixture
def mine(tmp_path):
    """Files of this user outside the run."""
    folder = tmp_path / "home"
    folder.mkdir()
    for name in (".bashrc", "thesis.txt", "id_ed25519"):
        (folder / name).write_text(f"the user's own {name}")
    return folder


def contents(folder):
    return {
        path.relative_to(folder): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
        if not path.is_symlink()
    }


def hostile_run(tmp_path, *jobs, windows=(), **process):
    """A run whose status names a queue inside the run, as a downloaded archive may hold it."""
    run = tmp_path / "run"
    spool = run / ".work" / "q"
    (run / ".work" / "status").mkdir(parents=True)
    spool.mkdir(mode=0o700)
    facts = {"folder": str(run), "host": socket.gethostname(), "global_rank": 0, "world_size": 1, "pid": 1}
    (spool / PROCESS).write_text(json.dumps({**facts, **process}))
    (spool / STATE).write_text(json.dumps({"windows": list(windows)}))
    raw = spool / "0000.raw.json"
    raw.write_text(TRACE)
    for number, job in enumerate(jobs):
        whole = {"number": number, "raw": str(raw), "folder": str(run), "file": "a.gz", "metadata": {}, **job}
        (spool / f"{number:04d}.json").write_text(json.dumps(whole))
    status = {**facts, "queue": str(spool), "windows": [{"state": "kept", "file": "x", "span": 1}]}
    (run / ".work" / "status" / "rank0.json").write_text(json.dumps(status))
    return run


def test_a_queue_inside_a_run_replaces_no_file_of_the_user(tmp_path, mine):
    run = hostile_run(tmp_path, {"folder": str(mine), "file": ".bashrc", "overwrite": True})
    before = contents(mine)
    finish_spools(run)
    assert contents(mine) == before


def test_a_queue_inside_a_run_deletes_no_file_of_the_user(tmp_path, mine):
    window = {"window": 7, "span": 1, "state": "saved", "file": "a.gz", "path": str(mine / "thesis.txt")}
    jobs = [{"raw": str(mine / ".bashrc"), "lost": "so it can go"}, {"keep": 0, "file": "b.gz"}]
    run = hostile_run(tmp_path, *jobs, windows=[window])
    before = contents(mine)
    finish_spools(run)
    assert contents(mine) == before


def test_a_queue_inside_a_run_copies_no_file_of_the_user(tmp_path, mine):
    goal = tmp_path / "elsewhere" / "key"
    job = {"path": str(mine / "id_ed25519"), "remote": goal.as_uri(), "overwrite": True}
    run = hostile_run(tmp_path, job, remote=f"{goal.as_uri()}.json")
    finish_spools(run)
    assert not goal.parent.exists()


def test_where_a_run_says_its_queue_is_stands_in_the_message_alone(tmp_path):
    run = hostile_run(tmp_path, {})
    spool = run / ".work" / "q"
    before = contents(spool)
    (process,) = finish_spools(run)
    assert str(spool) in process.problem
    assert contents(spool) == before
    assert [path.name for path in run.iterdir()] == [".work"]


@pytest.fixture
def spool(tmp_path):
    """A queue of this user's own, of which the run is `run`."""
    spool = Spool(make_spool_folder())
    facts = {"folder": str(tmp_path / "run"), "global_rank": 0, "world_size": 1, "pid": 2**22 + 1}
    write_json(spool.folder / PROCESS, facts)
    return spool


def put(spool, run, **changed):
    raw = spool.folder / "0000.raw.json"
    raw.write_text(TRACE)
    whole = {"number": 0, "raw": str(raw), "folder": str(run), "file": "a.gz", "metadata": {"steps_completed": 1}}
    write_json(spool.folder / "0000.json", {**whole, **changed})


def outside(home):
    """Jobs that name a file outside the queue and the run, with the message about each."""
    return {
        "raw": ({"raw": str(home / "thesis.txt"), "lost": "gone"}, "thesis.txt"),
        "folder": ({"folder": str(home), "file": ".bashrc", "overwrite": True}, str(home)),
        "up": ({"file": f"../{home.name}/.bashrc", "overwrite": True}, "leads out"),
        "absolute": ({"file": str(home / ".bashrc"), "overwrite": True}, "leads out"),
        "path": ({"path": str(home / "id_ed25519"), "remote": (home / "copy").as_uri()}, "id_ed25519"),
        "number": ({"number": 7}, "number"),
        "type": ({"raw": 3}, "raw"),
        "surrogate": ({"file": "\ud800"}, "file"),
        "unknown": ({"command": "rm"}, "command"),
        "attempts": ({"attempts": True}, "attempts"),
    }


@pytest.mark.parametrize("kind", outside(Path("/")))
def test_a_job_that_names_what_lies_elsewhere_is_refused_and_left_alone(tmp_path, mine, spool, kind):
    changed, words = outside(mine)[kind]
    put(spool, tmp_path / "run", **changed)
    before = contents(mine)
    (process,) = finish_spools(tmp_path / "run", url_prefixes=["file://"])
    assert words in process.problem
    assert contents(mine) == before
    assert (spool.folder / "0000.json").exists()
    assert (spool.folder / "0000.raw.json").exists()


def test_a_link_in_the_run_leads_no_trace_out_of_it(tmp_path, mine, spool):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "rank0").symlink_to(mine)
    put(spool, tmp_path / "run", file="rank0/.bashrc", overwrite=True)
    before = contents(mine)
    (process,) = finish_spools(tmp_path / "run")
    assert "is a link" in process.problem
    assert contents(mine) == before


def test_a_link_in_the_place_of_a_trace_is_replaced_not_followed(tmp_path, mine, spool):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "a.gz").symlink_to(mine / ".bashrc")
    put(spool, tmp_path / "run", overwrite=True)
    before = contents(mine)
    (process,) = finish_spools(tmp_path / "run")
    assert process.problem == ""
    assert contents(mine) == before
    assert not (tmp_path / "run" / "a.gz").is_symlink()


@pytest.mark.parametrize("keeps", ["window", "earlier"])
def test_pruning_deletes_nothing_that_lies_elsewhere(tmp_path, mine, spool, keeps):
    run = tmp_path / "run"
    (run / ".work" / "status").mkdir(parents=True)
    (run / "link").symlink_to(mine)
    size = (mine / "thesis.txt").stat().st_size
    if keeps == "window":
        window = {"window": 7, "span": 1, "state": "saved", "file": "a.gz", "path": str(run / "link" / "thesis.txt")}
        write_json(spool.folder / STATE, {"windows": [window]})
    else:
        named = {"file": "link/thesis.txt", "bytes": size, "state": "saved", "span": 1}
        status = {"global_rank": 0, "attempt": "before", "windows": [named]}
        write_json(run / ".work" / "status" / "rank0.json", status)
    put(spool, run, keep=0)
    before = contents(mine)
    finish_spools(run)
    assert contents(mine) == before


def test_copies_go_only_where_the_user_allows(tmp_path, spool):
    goal = tmp_path / "bucket" / "run" / "a.gz"
    put(spool, tmp_path / "run", remote=goal.as_uri())
    for places in ([], ["s3://bucket"], [(tmp_path / "buck").as_uri()], [f"{goal.as_uri()}/below"]):
        (process,) = finish_spools(tmp_path / "run", url_prefixes=places)
        assert process.pending_copies == (goal.as_uri(),)
        assert process.problem == ""
        assert (tmp_path / "run" / "a.gz").exists()
        assert not goal.exists()
    (process,) = finish_spools(tmp_path / "run", url_prefixes=[(tmp_path / "bucket").as_uri()])
    assert process.pending_copies == ()
    assert goal.read_bytes() == (tmp_path / "run" / "a.gz").read_bytes()
    assert not spool.folder.exists()


def test_no_place_allows_a_way_up(tmp_path, spool):
    place = (tmp_path / "bucket").as_uri()
    put(spool, tmp_path / "run", remote=f"{place}/../key")
    (process,) = finish_spools(tmp_path / "run", url_prefixes=[place])
    assert process.pending_copies == (f"{place}/../key",)
    assert not (tmp_path / "key").exists()


def test_a_run_that_can_not_be_written_is_recovered_into_another_folder(tmp_path, spool):
    (tmp_path / "run").touch()  # no trace can be put there
    put(spool, tmp_path / "run")
    (process,) = finish_spools(tmp_path / "run")
    assert "a.gz" in process.problem
    output = tmp_path / "output"
    (process,) = finish_spools(tmp_path / "run", output=output)
    assert process.problem == ""
    assert (output / "a.gz").exists()
    assert not spool.folder.exists()


def place(kind, file, mine):
    """Put something in the place of a file that the recorder reads or writes."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if kind == "link":
        file.symlink_to(mine / "id_ed25519")
    elif kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    else:
        with file.open("wb") as stream:
            stream.truncate(8 << 30)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes and links")
@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "huge"])
class TestInThePlaceOfAFile:
    """A link to a file of the user, a pipe without a writer, a folder, or a file of 8 GiB."""

    def test_a_request_is_refused_once_and_reveals_nothing_of_the_file(self, tmp_path, mine, kind):
        run = tmp_path / "run"
        place(kind, run / ".work" / "trace", mine)
        before = contents(mine)
        with pytest.raises(UsageError, match="plain file") as refused_jobs:
            take_request(run)
        assert "the user's own" not in str(refused_jobs.value)
        assert take_request(run) is None
        assert contents(mine) == before

    def test_a_request_is_left_in_its_place(self, tmp_path, mine, kind):
        run = tmp_path / "run"
        place(kind, run / ".work" / "trace", mine)
        before = contents(mine)
        with suppress(OSError):  # a folder can't be replaced
            write_request(run, Request(steps=2))
            assert take_request(run).steps == 2
        assert contents(mine) == before

    def test_the_mark_of_an_attempt_is_replaced(self, tmp_path, mine, kind):
        place(kind, tmp_path / "run" / ".work" / "attempt", mine)
        before = contents(mine)
        with suppress(OSError):
            assert claim_folder(tmp_path, "run", "token", overwrite=True) == "run"
        assert contents(mine) == before

    def test_the_token_of_an_attempt_blocks_no_reader(self, tmp_path, mine, kind):
        place(kind, tmp_path / "run" / ".work" / "attempt", mine)
        with pytest.raises(OSError, match=r"plain file|symbolic|KiB|directory"):
            claim_folder(tmp_path, "run", "token")

    def test_a_plan_blocks_no_reader(self, tmp_path, mine, kind):
        log = FolderLog(PathBelow(tmp_path, "plans"), "key")
        place(kind, tmp_path / "plans" / "key.0.json", mine)
        with pytest.raises(OSError, match=r"plain file|symbolic|KiB|directory"):
            log.read(0)

    def test_an_unusable_status_is_ignored_and_the_manifest_rewritten(self, tmp_path, mine, kind):
        run = tmp_path / "run"
        place(kind, run / ".work" / "status" / "rank1.json", mine)
        place(kind, run / "run.json", mine)
        before = contents(mine)
        with suppress(OSError):
            write_status(run, 0, {"global_rank": 0, "world_size": 2, "windows": []})
            assert [rank["state"] for rank in json.loads((run / "run.json").read_text())["ranks"]] == [None, "silent"]
        assert contents(mine) == before


@pytest.mark.parametrize("action", [write_request, write_status], ids=["request", "status"])
def test_a_recorder_s_folder_that_is_a_link_gets_nothing(tmp_path, mine, action):
    run = tmp_path / "run"
    run.mkdir()
    (run / ".work").symlink_to(mine)
    before = contents(mine)
    arguments = [Request()] if action is write_request else [0, {"global_rank": 0, "windows": []}]
    with pytest.raises(OSError, match="link"):
        action(run, *arguments)
    assert contents(mine) == before
    assert take_request(run) is None
    assert statuses(run) == []
