"""The folder of unfinished recordings, which is private to this user."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from kinetoscope.atomic_write import write_json
from kinetoscope.child_process import python_command
from kinetoscope.journal.recover import finish_spools
from kinetoscope.output.scratch import (
    VARIABLE,
    NotPrivate,
    check_private,
    make_spool_folder,
    scratch_root,
    spool_folders,
)
from kinetoscope.output.spool import PROCESS, Spool

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="owners and modes of files")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_queues_lie_in_a_root_that_only_this_user_may_enter(scratch):
    first, second = make_spool_folder(), make_spool_folder()
    assert first.parent == second.parent == scratch_root()
    assert scratch_root().parent == scratch
    assert {mode(first), mode(second), mode(scratch_root())} == {0o700}
    assert spool_folders() == sorted([first, second])
    Spool(first).discard()
    assert spool_folders() == [second]
    Spool(second).discard()
    assert list(scratch.iterdir()) == []
    assert spool_folders() == []


def test_the_environment_may_name_the_root_which_stays(tmp_path, monkeypatch):
    root = tmp_path / "large disk" / "recordings"
    monkeypatch.setenv(VARIABLE, str(root))
    spool = make_spool_folder()
    assert spool.parent == root
    assert mode(root) == 0o700
    Spool(spool).discard()
    assert list(root.iterdir()) == []


def open_to_others(root):
    root.mkdir(mode=0o700)
    root.chmod(0o755)


def a_link(root):
    (root.parent / "elsewhere").mkdir(mode=0o700)
    root.symlink_to(root.parent / "elsewhere")


def a_file(root):
    root.touch(mode=0o700)


def another_user_s(root):
    root.mkdir(mode=0o700)
    try:
        os.chown(root, os.getuid() + 1, -1)
    except PermissionError:
        pytest.skip("only root may give a folder away")


@pytest.mark.parametrize("make_root", [open_to_others, a_link, a_file, another_user_s])
def test_a_root_that_others_have_prepared_is_not_used(scratch, make_root, log):
    make_root(scratch_root())
    with pytest.raises(NotPrivate, match=r"kinetoscope-\d+"):
        spool_folders()
    spool = make_spool_folder()
    assert spool.parent != scratch_root()
    check_private(spool.parent)
    check_private(spool)
    (message,) = log()
    assert f"{VARIABLE}={spool.parent} kinetoscope recover" in message


def test_without_any_private_folder_there_is_no_queue(scratch, monkeypatch):
    def on_a_disk_without_modes(**_):
        folder = scratch / f"folder{len(list(scratch.iterdir()))}"
        folder.mkdir(mode=0o755)
        return str(folder)

    open_to_others(scratch_root())
    monkeypatch.setattr("kinetoscope.output.scratch.tempfile.mkdtemp", on_a_disk_without_modes)
    with pytest.raises(NotPrivate, match=VARIABLE):
        make_spool_folder()


def test_a_queue_that_others_may_enter_is_passed_over():
    spool, link = make_spool_folder(), scratch_root() / "link"
    open_ = make_spool_folder()
    open_.chmod(0o750)
    link.symlink_to(spool)
    assert spool_folders() == [spool]


def test_a_folder_for_raw_files_in_the_run_is_private(tmp_path):
    spool = Spool(make_spool_folder())
    folder = spool.make_in_run(tmp_path)
    assert mode(folder) == 0o700
    assert folder == tmp_path / ".work" / "scratch" / spool.folder.name
    folder.chmod(0o777)
    with pytest.raises(NotPrivate):
        spool.make_in_run(tmp_path)


@pytest.mark.parametrize("level", [".work", ".work/scratch", ".work/scratch/{spool}"])
def test_a_link_in_the_run_is_not_followed(tmp_path, level):
    spool = Spool(make_spool_folder())
    elsewhere, link = tmp_path / "elsewhere", tmp_path / "run" / level.format(spool=spool.folder.name)
    elsewhere.mkdir(mode=0o700)
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere)
    with pytest.raises(OSError, match=r"link|no folder"):
        spool.make_in_run(tmp_path / "run")
    assert list(elsewhere.iterdir()) == []


def test_the_root_is_an_absolute_path(monkeypatch):
    monkeypatch.setenv(VARIABLE, "here")
    assert scratch_root() == Path.cwd() / "here"


END_DURING_REMOVAL = """
import os, tempfile
from pathlib import Path
from kinetoscope.atomic_write import write_json
from kinetoscope.output.scratch import make_spool_folder
from kinetoscope.output.spool import PROCESS, STATE, Spool

tempfile.tempdir, run, removals_left = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
spool = Spool(make_spool_folder())
if removals_left < 0:
    os._exit(0)
spool.make_in_run(run)
spool.lock()
facts = {"folder": str(run), "global_rank": 0, "world_size": 1, "pid": os.getpid(), "run": "run", "state": "ended"}
write_json(spool.folder / PROCESS, facts)
write_json(spool.folder / STATE, {"windows": [], "pruned_to": -1})

def end(event, _arguments):
    global removals_left
    if event in ("os.remove", "os.rmdir"):
        removals_left -= 1
        if removals_left < 0:
            os._exit(0)

sys.addaudithook(end)
spool.discard()
os._exit(1)
"""


@pytest.mark.parametrize("removals", range(-1, 6))
def test_recover_removes_what_is_left_of_a_queue_whose_process_ended_while_it_made_or_removed_it(
    scratch, tmp_path, removals
):
    command = python_command(f"exec({END_DURING_REMOVAL!r})", str(scratch), str(tmp_path / "run"), str(removals))
    subprocess.run(command, check=True)
    assert list(scratch.iterdir())
    finish_spools(tmp_path / "run")
    assert list(scratch.iterdir()) == []
    assert list(tmp_path.glob("run/.work/scratch/*")) == []


@pytest.mark.parametrize("content", [PROCESS, "0000.json", "0000.raw.json"])
def test_recover_keeps_queues_with_a_recording_and_those_of_running_processes(scratch, tmp_path, content):
    own, other = make_spool_folder(), make_spool_folder()
    ended = other.rename(other.with_name(f"{2**31 - 1}-{other.name}"))
    facts = {"folder": str(tmp_path / "another run"), "global_rank": 0}
    write_json(ended / content, facts)
    finish_spools(tmp_path / "run")
    assert spool_folders() == sorted([own, ended])
