"""What a thread reads, writes, flushes, locks or connects to: threads that wait here, and what the kernel says of them."""

import fcntl
import os
import platform
import pty
import socket
import sys
import termios
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from kinetoscope.signals.thread_states import thread_states
from support.waiting import wait_for

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"), reason="numbers of Linux's calls"
)


@pytest.fixture
def ends():
    """What lets the threads of a test go on."""
    with ExitStack() as stack:
        yield stack


def waits_for(function, *arguments):
    """What a thread is said to wait for once it sleeps."""
    thread = threading.Thread(target=function, args=arguments, daemon=True)
    thread.start()
    state = wait_for(
        lambda: thread_states()[thread.native_id], is_right=lambda state: state["state"] == "S" and state["waits_for"]
    )
    return state["waits_for"]


def pipe(ends):
    read_end, write_end = os.pipe()
    ends.callback(os.close, read_end)
    ends.callback(os.close, write_end)
    return read_end, write_end


def test_a_read_from_a_pipe(ends):
    read_end, write_end = pipe(ends)
    ends.callback(os.write, write_end, b"x")
    assert waits_for(os.read, read_end, 1) == {
        "operation": "read",
        "file": str(Path(f"/proc/self/fd/{read_end}").readlink()),
    }


def test_a_write_to_a_paused_terminal(ends):
    shown, written = pty.openpty()
    for end in (shown, written):
        ends.callback(os.close, end)
    name = os.ttyname(written)
    termios.tcflow(written, termios.TCOOFF)
    ends.callback(termios.tcflow, written, termios.TCOON)
    assert waits_for(os.write, written, b"step 5") == {"operation": "write", "file": name}


@pytest.mark.parametrize(("host", "family"), [("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)])
def test_a_read_from_a_connection(ends, host, family):
    try:
        listener = ends.enter_context(socket.create_server((host, 0), family=family))
    except OSError:
        pytest.skip(f"this machine has no {host}")
    client = ends.enter_context(socket.create_connection(listener.getsockname()[:2]))
    accepted, _ = listener.accept()
    ends.enter_context(accepted)
    ends.callback(accepted.send, b"x")
    shown = f"[{host}]" if ":" in host else host
    assert waits_for(client.recv, 1) == {"operation": "read", "file": f"{shown}:{listener.getsockname()[1]}"}


@pytest.mark.parametrize("lock", [fcntl.flock, fcntl.lockf])
def test_a_lock_that_another_process_holds(ends, tmp_path, lock):
    path = tmp_path / "cache.lock"
    ready, is_done = pipe(ends), pipe(ends)
    with path.open("w") as file:
        holder = os.fork()
        if not holder:
            with path.open("w") as held:
                lock(held, fcntl.LOCK_EX)
                os.write(ready[1], b"x")
                os.read(is_done[0], 1)
            os._exit(0)
        os.read(ready[0], 1)
        try:
            assert waits_for(lock, file, fcntl.LOCK_EX) == {"operation": "lock", "file": str(path)}
        finally:
            os.write(is_done[1], b"x")
            os.waitpid(holder, 0)


def test_a_thread_that_runs_or_sleeps_waits_for_nothing():
    thread = threading.Thread(target=time.sleep, args=(2,), daemon=True)
    thread.start()
    states = thread_states()
    assert [states[tid]["waits_for"] for tid in (threading.get_native_id(), thread.native_id)] == [{}, {}]
