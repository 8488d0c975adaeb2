"""Paths below a folder: what is opened stays where it was opened, whatever takes its place meanwhile."""

import pytest

from kinetoscope import path_below
from kinetoscope.atomic_write import atomic_file, create_file, replace_file
from kinetoscope.path_below import LeadsOutside, PathBelow
from kinetoscope.untrusted_files import append_plain, read_json, read_plain, touch_plain

needs_openat = pytest.mark.skipif(not path_below._HAS_OPENAT, reason="files relative to an open folder")


@pytest.fixture
def file(tmp_path):
    """A file two levels below a run that is itself a link, next to a folder with the same names in it."""
    for folder in ("real/.work/status", "home/status"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "home" / "status" / "rank0.json").write_text("the user's own")
    (tmp_path / "run").symlink_to(tmp_path / "real")
    return PathBelow(tmp_path / "run", ".work", "status", "rank0.json")


def replace_by_link(file):
    """Do what another user may do at any moment."""
    work = file.root / ".work"
    work.rename(file.root / "aside")
    work.symlink_to(file.root.parent / "home")


@needs_openat
def test_a_folder_that_is_replaced_while_a_file_is_written_gets_nothing(file, tmp_path):
    with atomic_file(file) as atomic:
        atomic.stream.write(b"ours")
        replace_by_link(file)
    assert (tmp_path / "home" / "status" / "rank0.json").read_text() == "the user's own"
    assert (tmp_path / "real" / "aside" / "status" / "rank0.json").read_bytes() == b"ours"


@needs_openat
def test_a_folder_that_is_replaced_while_it_is_open_is_neither_read_nor_changed(file, tmp_path):
    with file.parent.open_folder() as folder:
        replace_by_link(file)
        assert folder.names() == []
        assert not folder.exists("rank0.json")
        folder.unlink("rank0.json")
        folder.make_folder("below")
    assert [path.name for path in (tmp_path / "home" / "status").iterdir()] == ["rank0.json"]


@pytest.mark.parametrize("has_openat", [pytest.param(True, marks=needs_openat), False])
@pytest.mark.parametrize(
    "action",
    [
        lambda file: replace_file(file, b""),
        lambda file: create_file(file.with_name("new"), b""),
        lambda file: append_plain(file, b"more"),
        touch_plain,
        read_plain,
        PathBelow.stat,
        PathBelow.unlink,
        lambda file: file.replace("new"),
        lambda file: file.parent.make(),
    ],
)
def test_no_link_below_the_root_is_followed(file, tmp_path, monkeypatch, action, has_openat):
    monkeypatch.setattr(path_below, "_HAS_OPENAT", has_openat)
    replace_file(file, b"1")
    assert read_json(file) == 1
    replace_by_link(file)
    before = (tmp_path / "home" / "status" / "rank0.json").stat()
    with pytest.raises(LeadsOutside, match=r"run/\.work is a link, which Kinetoscope doesn't follow"):
        action(file)
    assert file.parent.children("*") == []
    assert (tmp_path / "home" / "status" / "rank0.json").stat() == before
    assert [path.name for path in (tmp_path / "home" / "status").iterdir()] == ["rank0.json"]


@pytest.mark.parametrize("names", [("..",), ("a", "../b"), ("/etc",), ("",), (".",), ("a\0b",)])
def test_a_name_is_the_name_of_one_level(tmp_path, names):
    with pytest.raises(LeadsOutside, match="leads out"):
        PathBelow(tmp_path, *names)


@pytest.mark.parametrize("path", ["run/../other", "other/a", "run"])
def test_a_path_begins_with_its_root(tmp_path, path):
    with pytest.raises(LeadsOutside, match="leads out"):
        PathBelow.of(tmp_path / path, tmp_path / "run")


def test_errors_name_the_whole_path(tmp_path):
    with pytest.raises(FileNotFoundError) as missing:
        read_plain(PathBelow(tmp_path, "status", "rank0.json"))
    assert missing.value.filename == str(tmp_path / "status")
    PathBelow(tmp_path, "status").make()
    with pytest.raises(FileNotFoundError) as missing:
        read_plain(PathBelow(tmp_path, "status", "rank0.json"))
    assert missing.value.filename == str(tmp_path / "status" / "rank0.json")
