"""Empty homes with the files that the documents speak of: recordings of a CPU, of GPUs, and of a server."""

from __future__ import annotations

import fcntl
import gzip
import os
import pty
import shutil
import struct
import subprocess
import termios
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from newcomer.installing import ROOT
from support.build import TraceBuilder
from support.snapshots import MIB, START_US, Allocator

if TYPE_CHECKING:
    from support.forks import Server

COLUMNS = 80
RUNS = ("a", "b", "monday", "tuesday", "main", "branch", "ddp", "job", "resnet")  # that the documents name


@dataclass
class Home:
    """A home of one kind of recording.

    Args:
        folder: The home, and the folder in which commands run.
        kind: cpu, gpu or server.
    """

    folder: Path
    kind: str

    def run(self, programs: Path, words: list[str], forks: Server | None = None, **variables: str) -> tuple[int, str]:
        """The exit status of a command, and what a terminal of 80 columns shows of it.

        Args:
            programs: The folder of the programs.
            words: The program's name, and its arguments.
            forks: What forks the program, one written in Python; by default, it is started.
            variables: Of its environment.
        """
        env = {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.folder),
            "COLUMNS": str(COLUMNS),
            "TERM": "dumb",
            "LANG": "C.UTF-8",
            **variables,
        }
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
        try:
            if forks is None:
                process = subprocess.Popen(words, cwd=self.folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
            else:
                script = [programs / words[0], *words[1:]]
                process = forks.start_in_terminal(os.ttyname(theirs), *script, environ=env, folder=self.folder)
            os.close(theirs)
            shown = _all_of(ours)
            process.communicate(timeout=60)
            return process.returncode, shown.replace("\r\n", "\n")
        finally:
            os.close(ours)


def _all_of(descriptor: int) -> str:
    parts = []
    while True:
        try:
            part = os.read(descriptor, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts).decode()


def furnish(folder: Path, kind: str, recordings: list[Path]) -> Home:
    """A home with these recordings of a run under every name that the documents use."""
    for run in RUNS:
        (folder / "runs" / run).mkdir(parents=True)
        for rank, path in enumerate(recordings):
            shutil.copyfile(path, folder / "runs" / run / f"rank{rank}.9.pt.trace.json.gz")
        for path in recordings[0].parent.glob(".work/**/*"):  # of our recorder
            if path.is_file():
                copy = folder / "runs" / run / path.relative_to(recordings[0].parent)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)
    (folder / "out" / "profiles").mkdir(parents=True)
    shutil.copyfile(recordings[0], folder / "out" / "profiles" / "rank0_trace.json.gz")
    for name in ("before.pt.trace.json.gz", "after.pt.trace.json.gz", "trace.json.gz", "elsewhere.json.gz"):
        shutil.copyfile(recordings[0], folder / name)
    snapshot = ROOT / "samples" / "h100_snapshots" / "leak.pickle.gz"
    for name in ("snapshot.pickle", "before.pickle", "after.pickle"):
        (folder / name).write_bytes(gzip.decompress(snapshot.read_bytes()))
    _write_snapshot_of_window(folder)
    text = gzip.decompress(recordings[0].read_bytes())
    (folder / "trace.json").write_bytes(text)
    (folder / "broken.json").write_bytes(text[: len(text) // 2])
    return Home(folder, kind)


def _write_snapshot_of_window(folder: Path) -> None:
    """A window's trace, and the memory snapshot of the same time: step 105 allocates 2 MiB in a matmul."""
    trace = TraceBuilder(START_US * 1000).step(105, 300_000, 400_000).op("aten::mm", 400_000, 200_000)
    (folder / "rank0.104.pt.trace.json.gz").write_bytes(gzip.compress(trace.text().encode()))
    allocator = Allocator()
    allocator._now = START_US + 480
    allocator.allocate(2 * MIB)
    (folder / "rank0.104.memory.pickle").write_bytes(allocator.dumped())
