"""Jobs in processes of their own, which may be killed and end with this one."""

import os
import signal
import subprocess
import sys

import pytest

from kinetoscope_tb.engine.executors import local_executors
from kinetoscope_tb.engine.processes import Processes
from kinetoscope_tb.engine.workers import BACKGROUND
from kinetoscope_tb.errors import TraceError
from support.waiting import wait_for

MODULE = """
import os, signal, sys, time
from kinetoscope_tb.errors import TraceError

def process_of(path):
    print("said by a library")
    return os.getpid(), os.nice(0), "polars" in sys.modules

def refuse(path):
    raise TraceError(path, "it is broken")

def die(path):
    os.kill(os.getpid(), signal.SIGKILL)

def hang(path):
    with open(path, "w") as file:
        file.write(str(os.getpid()))
    time.sleep(600)
"""


@pytest.fixture
def jobs(tmp_path, monkeypatch):
    """Functions that the processes can import."""
    (tmp_path / "jobs_of_processes.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    import jobs_of_processes

    yield jobs_of_processes
    del sys.modules["jobs_of_processes"]


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_jobs_run_in_another_process_of_low_priority_which_is_used_again(jobs):
    processes = Processes(1, BACKGROUND)
    first, second = (processes.submit(jobs.process_of, "").result() for _ in range(2))
    assert first == second
    assert first[0] != os.getpid()
    assert first[1] == min(os.nice(0) + 10, 19)


def test_processes_of_the_command_line_have_its_priority(jobs):
    assert local_executors(100).make().submit(jobs.process_of, "").result()[1] == os.nice(0)


def test_an_exception_of_a_job_is_raised_here_and_its_process_goes_on(jobs):
    processes = Processes(1)
    before = processes.submit(jobs.process_of, "").result()
    with pytest.raises(TraceError, match="it is broken"):
        processes.submit(jobs.refuse, "file").result()
    assert processes.submit(jobs.process_of, "").result() == before


def test_a_process_that_is_killed_fails_its_job_alone(jobs):
    from concurrent.futures import BrokenExecutor

    processes = Processes(1)
    pid = processes.submit(jobs.process_of, "").result()[0]
    with pytest.raises(BrokenExecutor):
        processes.submit(jobs.die, "").result()
    assert not is_alive(pid)
    other = processes.submit(jobs.process_of, "").result()[0]
    os.kill(other, signal.SIGKILL)  # while it is idle
    wait_for(lambda: processes.submit(jobs.process_of, "").result()[0] != other)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_process_outlives_this_one(jobs, tmp_path, end):
    program = (
        "import jobs_of_processes as jobs, sys\nfrom kinetoscope_tb.engine.processes import Processes\n"
        "Processes(1).submit(jobs.hang, sys.argv[1]).result()"
    )
    file = tmp_path / "pid"
    path = os.pathsep.join(entry for entry in sys.path if entry)
    parent = subprocess.Popen(
        [sys.executable, "-c", program, str(file)], env={**os.environ, "PYTHONPATH": path}, stderr=subprocess.DEVNULL
    )
    wait_for(lambda: file.exists() and file.read_text())
    child = int(file.read_text())
    parent.send_signal(end)
    parent.wait()
    wait_for(lambda: not is_alive(child))
