import errno
import gzip
import json
import os
from pathlib import Path

import pytest

from kinetoscope import SaveError
from kinetoscope.writer import save

TRACE = '{"schemaVersion": 1, "traceEvents": []}\n'


def everything_below(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def writes(text):
    return lambda path: Path(path).write_text(text)


def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_trace_appears_whole_with_its_metadata(tmp_path, scratch):
    target = tmp_path / "logdir" / "run" / "rank0.3.pt.trace.json.gz"
    save(writes(TRACE), target, {"run": "run"})
    assert json.loads(gzip.decompress(target.read_bytes())) == {"kinetoscope": {"run": "run"}, **json.loads(TRACE)}
    assert everything_below(tmp_path / "logdir") == ["run", "run/rank0.3.pt.trace.json.gz"]
    assert everything_below(scratch) == []


def test_the_same_recording_makes_the_same_bytes(tmp_path, scratch):
    for name in ("a", "b"):
        save(writes(TRACE), tmp_path / name, {})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize(
    ("export", "problem"),
    [
        (full, "No space left"),
        (lambda path: None, "wrote nothing"),
        (writes(TRACE[:20]), "only a part"),
        (writes(""), "only a part"),
        (writes("[{}]}"), "not a trace"),
    ],
    ids=["the exporter fails", "nothing is written", "a part is written", "an empty file", "no trace"],
)
def test_a_failed_export_leaves_nothing_behind(tmp_path, scratch, export, problem):
    with pytest.raises(SaveError, match=problem):
        save(export, tmp_path / "logdir" / "trace", {})
    assert everything_below(scratch) == []
    assert not (tmp_path / "logdir" / "trace").exists()


@pytest.mark.parametrize("step", ["os.fsync", "pathlib.Path.replace", "shutil.copyfileobj"])
def test_a_full_disk_leaves_nothing_behind(tmp_path, scratch, monkeypatch, step):
    monkeypatch.setattr(step, full)
    with pytest.raises(SaveError, match="No space left"):
        save(writes(TRACE), tmp_path / "logdir" / "trace", {})
    assert everything_below(tmp_path / "logdir") == []
    assert everything_below(scratch) == []


def test_a_failed_save_keeps_the_older_file(tmp_path, scratch, monkeypatch):
    target = tmp_path / "trace"
    save(writes(TRACE), target, {})
    before = target.read_bytes()
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(SaveError):
        save(writes(TRACE), target, {"another": 1})
    assert target.read_bytes() == before


def test_a_folder_that_can_not_be_made_is_named(tmp_path, scratch):
    (tmp_path / "file").touch()
    with pytest.raises(SaveError, match="file/run/trace"):
        save(writes(TRACE), tmp_path / "file" / "run" / "trace", {})
