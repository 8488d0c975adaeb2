"""Trainings on a small disk, run as `disks.py FOLDER` where FOLDER/small is one: in a file system of this process alone.

The second window has no room next to the first one, or the profiler's file finds none in the scratch folder.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from torture.conftest import Server
from torture.truth import Window, assert_check, assert_windows, run_command

FIRST, SECOND = {(0, 5): Window((2, 3, 4))}, {(0, 10): Window((7, 8, 9))}


def fill(job):
    """Fill the disk when the first window is saved, and let the training go on."""
    job.wait_for_file("paused")
    filler = job.folder.parent / "small" / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 12, 1):
            try:
                while file.write(bytes(size)):
                    pass
            except OSError:
                continue
    (job.folder / "go on").touch()
    return filler


def traces_have_no_room(server, folder):
    """The disk of the logdir is full; with room again, `recover` finishes what was recorded."""
    job = server.start(folder, at="between", event="pause_when_saved", logdir=str(folder.parent / "small" / "logdir"))
    filler = fill(job)
    assert job.ended() == 0, job.words
    assert "No space left on device" in job.words, job.words
    assert "`kinetoscope recover` tries again" in job.words
    filler.unlink()
    job.logdir = folder.parent / "small" / "logdir"
    assert_windows(job.run, FIRST)
    assert "rank 0: ended (end), 12 steps, " in run_command("status", job.run, scratch=job.scratch).out
    assert_check(job.run, job.scratch, 1, ("rank 0", r"\b10\b"))
    recovering = run_command("recover", job.run, scratch=job.scratch)
    assert recovering.status == 0, recovering.text
    assert_windows(job.run, {**FIRST, **SECOND})
    assert "rank 0: ended (end), 12 steps, " in run_command("status", job.run, scratch=job.scratch).out
    assert_check(job.run, job.scratch, 0, ())


if __name__ == "__main__":
    own = Path(sys.argv[1]) / "traces"
    own.mkdir()
    server = Server()
    traces_have_no_room(server, own)
    server.end()
