"""States of this process's threads according to the kernel: running, asleep, or in a wait that nothing interrupts.

Source: proc(5). Systems without /proc have none.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .system_calls import SystemCalls

_TASKS = Path("/proc/self/task")
_MOST_THREADS = 256


def thread_states(tasks: Path = _TASKS) -> dict[int, dict[str, Any]]:
    """Return the state of each thread by its native id, of very many threads the first ones.

    `state` is the kernel's letter, such as S or D; `waits_in` the kernel's function, empty if the kernel hides it;
    `waits_for` says what its system call reads, writes, flushes, locks or connects to.
    """
    try:
        tids = sorted(int(path.name) for path in tasks.iterdir() if path.name.isdecimal())
    except OSError:
        return {}
    calls = SystemCalls()
    return {tid: _state(tasks / str(tid), calls) for tid in tids[:_MOST_THREADS]}


def _state(task: Path, calls: SystemCalls) -> dict[str, Any]:
    name, _, rest = _text(task / "stat").partition("(")[2].rpartition(")")
    wait = _text(task / "wchan")
    return {
        "name": name,
        "state": rest.strip()[:1],
        "waits_in": "" if wait == "0" else wait,
        "waits_for": calls.waited_for(task),
    }


def _text(file: Path) -> str:
    """Return the beginning of a file; empty if the thread has just ended, or the system hides it."""
    try:
        return file.read_bytes()[:1024].decode("utf-8", "replace")
    except OSError:
        return ""
