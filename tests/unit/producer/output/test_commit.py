import errno
import gzip
import json
import os
from functools import partial

import pytest

from kinetoscope import SaveError
from kinetoscope.atomic_write import partial_name
from kinetoscope.output import commit
from kinetoscope.output.commit import check_raw

commit_trace = partial(commit.commit_trace, owner="queue")
TRACE = '{"schemaVersion": 1, "traceEvents": []}\n'


def everything_below(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


@pytest.fixture
def raw(tmp_path):
    path = tmp_path / "raw.json"
    path.write_text(TRACE)
    return path


def full(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_trace_appears_whole_with_its_metadata(tmp_path, raw):
    target = tmp_path / "logdir" / "run" / "rank0.3.pt.trace.json.gz"
    path, damage = commit_trace(raw, target, {"run": "run"})
    assert (path, str(damage)) == (target, "")
    assert json.loads(gzip.decompress(target.read_bytes())) == {"kinetoscope": {"run": "run"}, **json.loads(TRACE)}
    assert everything_below(tmp_path / "logdir") == ["run", "run/rank0.3.pt.trace.json.gz"]


def test_what_is_not_called_gz_is_not_compressed(tmp_path, raw):
    path, _ = commit_trace(raw, tmp_path / "rank0.3.pt.trace.json", {})
    assert json.loads(path.read_text())["schemaVersion"] == 1


def test_the_same_recording_makes_the_same_bytes(tmp_path, raw):
    first, second = (commit_trace(raw, tmp_path / name, {})[0] for name in ("a.gz", "b.gz"))
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("step", ["os.fsync", "os.replace", "gzip.GzipFile.write"])
def test_a_full_disk_leaves_nothing_behind_and_keeps_the_older_file(tmp_path, raw, monkeypatch, step):
    folder = tmp_path / "logdir"
    older, _ = commit_trace(raw, folder / "trace.gz", {})
    before = older.read_bytes()
    monkeypatch.setattr(step, full)
    with pytest.raises(OSError, match="No space left"):
        commit_trace(raw, folder / "trace.gz", {"another": 1}, overwrite=True)
    assert everything_below(folder) == ["trace.gz"]
    assert older.read_bytes() == before
    assert raw.exists()


def test_an_existing_name_gets_a_number_unless_it_may_be_overwritten(tmp_path, raw):
    target = tmp_path / "rank0.3.pt.trace.json.gz"
    names = [commit_trace(raw, target, {})[0].name for _ in range(3)]
    assert names == [target.name, "rank0~2.3.pt.trace.json.gz", "rank0~3.3.pt.trace.json.gz"]
    assert commit_trace(raw, target, {}, overwrite=True)[0] == target


@pytest.mark.parametrize(
    ("text", "problem"),
    [(None, "wrote nothing"), ("", "only a part"), (TRACE[:20], "only a part")],
    ids=["nothing", "an empty file", "a part"],
)
def test_what_the_profiler_did_not_write_is_noticed(tmp_path, text, problem):
    raw = tmp_path / "raw.json"
    if text is not None:
        raw.write_text(text)
    with pytest.raises(SaveError, match=problem):
        check_raw(raw)
    assert not raw.exists()


def test_what_a_writer_left_that_was_killed_goes_when_the_next_one_writes(raw, tmp_path):
    target = tmp_path / "logdir" / "rank0.3.pt.trace.json.gz"
    target.parent.mkdir()
    another = target.with_name(partial_name(target.name, "another"))
    target.with_name(partial_name(target.name, "queue")).write_text("half of it")
    another.write_text("another process's")
    commit_trace(raw, target, {})
    assert everything_below(target.parent) == [another.name, target.name]
