import json
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from support.processes import ENVIRON
from support.waiting import wait_for

pytest.register_assert_rewrite("torture.truth")
from torture.truth import LIMIT_S, assert_truth, wait_until_gone  # noqa: E402

TESTS = Path(__file__).parents[1]
collect_ignore_glob = ["test_*.py"] if sys.platform != "linux" else []  # signals, forks, /proc, disks of one's own


class Job:
    """One training that the server forked.

    Args:
        server: It.
        folder: The training's own folder: its logdir and its scratch folder lie there.
        pid: The process.
        mark: What the environment of its processes holds.
    """

    def __init__(self, server, folder, pid, mark):
        self.server, self.folder, self.pid, self.mark = server, folder, pid, mark
        self.logdir = folder / "logdir"

    @property
    def run(self):
        """The run's folder."""
        return self.logdir / "job"

    @property
    def scratch(self):
        """The temporary folder of its processes."""
        return self.folder / "scratch"

    @property
    def words(self):
        """Its standard error."""
        return (self.folder / "stderr").read_text()

    def wait_for_file(self, name, limit_s=LIMIT_S):
        """Wait until the training leaves a file of that name."""
        wait_for((self.folder / name).exists, limit_s, context=lambda: self.words)

    def ended(self, limit_s=LIMIT_S):
        """Wait for its end, and that of all its processes; return its exit status."""
        status = self.server.ask(wait=self.pid, limit_s=limit_s)
        wait_until_gone(self.mark)
        return status

    def holds(self, truth):
        """Hold the truth of its run."""
        assert_truth(self.run, self.scratch, truth)


class Server:
    """The process that forks trainings."""

    def __init__(self):
        path = [str(TESTS), str(TESTS / "torture"), *sys.path]
        program = f"import sys; sys.path[:] = {path!r}; from torture.server import main; main()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRON
        )

    def ask(self, **request):
        """Ask it for something."""
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def start(self, folder, *, is_weak=False, environ=None, **arguments):
        """Start a training in a folder, with more variables in its environment; permissions count for a weak one."""
        (folder / "scratch").mkdir(exist_ok=True)
        (folder / "belongs to one training").touch()
        mark = uuid.uuid4().hex
        environ = {"KINETOSCOPE_TORTURE": mark, "KINETOSCOPE_SCALARS": "off", **(environ or {})}
        pid = self.ask(start=str(folder), arguments=arguments, environ=environ, is_weak=is_weak)
        return Job(self, folder, pid, mark)

    def end(self):
        """End it."""
        self.process.stdin.close()
        self.process.stdout.close()
        assert self.process.wait(60) == 0


@pytest.fixture(scope="session")
def server():
    server = Server()
    yield server
    server.end()
