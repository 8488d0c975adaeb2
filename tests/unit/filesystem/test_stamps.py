"""A file with other contents has another stamp, whatever its size and time are made to be."""

import os
import shutil

import pytest

from kinetoscope_tb.filesystem import entry_at, folders


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rank0.pt.trace.json"
    path.write_bytes(b"the first")
    return path


def let_time_pass(path):
    """Until a change has another time, as coarse as the file system's clock is."""
    probe, before = path.with_name("probe"), path.stat().st_ctime_ns
    probe.touch()
    while probe.stat().st_ctime_ns <= before:
        probe.touch()


def rewrite(path):
    path.write_bytes(b"another 1")


def replace_as_rsync_does(path):
    part = path.with_name(".part")
    part.write_bytes(b"another 1")
    shutil.copystat(path, part)
    part.replace(path)


def move_older_in_place(path):
    path.with_name("older").replace(path)


@pytest.mark.parametrize("change", [rewrite, replace_as_rsync_does, move_older_in_place])
def test_other_contents_of_the_same_size_and_time_are_noticed(file, change):
    older = file.with_name("older")
    older.write_bytes(b"another 1")
    shutil.copystat(file, older)
    before, info = entry_at(str(file)).stamp, file.stat()
    let_time_pass(file)
    change(file)
    os.utime(file, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (info.st_size, info.st_mtime_ns)
    assert entry_at(str(file)).stamp != before


def test_a_listing_says_the_same_as_a_look_at_the_file(file):
    (folder,) = folders(str(file.parent), lambda name: True)
    assert [entry.stamp for entry in folder.entries] == [entry_at(str(file)).stamp]
