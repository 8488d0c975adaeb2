"""Compiled code is kept where that is possible and safe, and nothing depends on it."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import kinetoscope_tb
from kinetoscope_tb.arrays.private_folders import privacy_problem, temporary_folder

PACKAGE = Path(kinetoscope_tb.__file__).parent
NOWHERE = "/dev/null/nowhere"  # nobody can make a folder there, not even root
PROGRAM = """
import sys, tempfile
if sys.argv[1:]:
    tempfile.tempdir = sys.argv[1]
import numpy as np
import kinetoscope_tb.reader, kinetoscope_tb.timeline, kinetoscope_tb.distributed
from kinetoscope_tb.arrays.nesting import nearest
print(nearest(np.array([True, False]), np.array([-1, 0], np.int32)).tolist(), sum(nearest.stats.cache_hits.values()))
"""

needs_posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")


@pytest.fixture
def installed(tmp_path):
    """An installation in which nothing can be written: where compiled code would go, a file is in the way."""
    copy = shutil.copytree(PACKAGE, tmp_path / "kinetoscope_tb", ignore=shutil.ignore_patterns("__pycache__", "static"))
    for folder in [copy, *(path for path in copy.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").touch()
    return tmp_path


def run(installed, temporary, *arguments):
    names = ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "LOCALAPPDATA", "USERPROFILE", "PYTHONPATH", "TMPDIR")
    environ = {name: value for name, value in os.environ.items() if name not in names}
    environ |= {"HOME": NOWHERE, "PYTHONPATH": str(installed), "TMPDIR": str(temporary)}
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


@needs_posix
def test_without_a_place_of_its_own_code_is_kept_among_the_temporary_files(installed, tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    first, second = run(installed, temporary), run(installed, temporary)
    assert (first.stdout, second.stdout) == ("[0, 0] 0\n", "[0, 0] 1\n"), first.stderr
    assert first.stderr.count("so compiled code is cached in") == 1
    (folder,) = temporary.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert next(folder.rglob("*.nbi"), None)


@needs_posix
def test_where_nothing_can_be_written_at_all_it_works_all_the_same(installed, tmp_path):
    found = run(installed, tmp_path, NOWHERE)
    assert found.stdout == "[0, 0] 0\n", found.stderr
    assert found.stderr.count("each start compiles again") == 1


@pytest.fixture
def shared(tmp_path, monkeypatch):
    """A folder for temporary files, which others use too."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    temporary_folder.cache_clear()
    yield tmp_path
    temporary_folder.cache_clear()


def test_the_temporary_folder_is_the_same_next_time(shared):
    first = temporary_folder()
    temporary_folder.cache_clear()
    assert temporary_folder() == first
    assert first.parent == shared
    assert privacy_problem(first) == ""


def a_link(place):
    (place.parent / "elsewhere").mkdir(mode=0o777)
    (place.parent / "elsewhere").chmod(0o777)
    place.symlink_to(place.parent / "elsewhere")


def a_folder_for_all(place):
    place.mkdir()
    place.chmod(0o777)


def of_another_user(place):
    place.mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(place, 65534, 65534)
    else:
        place.chmod(0o770)  # only root can give it away


@needs_posix
@pytest.mark.parametrize("plant", [a_link, a_folder_for_all, of_another_user, Path.touch])
def test_what_another_user_put_there_is_not_used(shared, plant):
    place = temporary_folder()
    place.rmdir()
    temporary_folder.cache_clear()
    plant(place)
    found = temporary_folder()
    assert found != place
    assert found.parent == shared
    assert privacy_problem(found) == ""
