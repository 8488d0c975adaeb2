"""Watches the training from its writer process: one that is killed can't report how it ended, and this can.

Linux shows how a process ended until its parent reaps it (proc(5): field 52 of `stat`), and since 6.15 afterwards too,
to holders of a file descriptor of the process (linux/pidfd.h). The kernel counts in a control group which processes
its out-of-memory killer ended (`oom_kill`, in cgroup v2's memory.events and v1's memory.oom_control); one that was
killed while the count rose was killed by it.

This module imports nothing but the standard library.
"""

from __future__ import annotations

import os
import select
import struct
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any

if sys.platform == "linux":
    import fcntl

_LOOK_S = 2.0
_LOOKS = 6  # a process with much memory takes a while to end after it was killed
_PATIENCE_S = 5.0
_PIDFD_GET_INFO, _PIDFD_INFO_EXIT, _PIDFD_INFO_BYTES = 0xC040FF0B, 1 << 3, 64
_EXIT_CODE = struct.Struct("=i")
_EXIT_CODE_AT = 60
_CONTROL_GROUPS = Path("/sys/fs/cgroup")


class ProcessWatch:
    """Waits on a thread until a process has ended, and notes when and how.

    Args:
        pid: The process: this one's parent.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._descriptor: int | None = None
        with suppress(OSError, AttributeError):  # it is gone already, or the system has no such descriptors
            self._descriptor = os.pidfd_open(pid)
        self._oom_kills = deque([oom_kills()], maxlen=_LOOKS)
        self._facts: dict[str, Any] = {}
        self._thread = threading.Thread(target=self._watch, name="kinetoscope-watch", daemon=True)

    def begin(self) -> None:
        """Start watching."""
        self._thread.start()

    def facts(self) -> dict[str, Any]:
        """Return `ns`, and as far as they are known `signal` or `exit_code`, and `oom_kills`; none if it lives on."""
        self._thread.join(_PATIENCE_S)
        return self._facts

    def _watch(self) -> None:
        while not self._has_ended():
            self._oom_kills.append(oom_kills())
        facts: dict[str, Any] = {"ns": time.time_ns()}
        status, count = exit_status(self._pid, self._descriptor), oom_kills()
        if status is not None:
            code = os.waitstatus_to_exitcode(status)
            facts |= {"signal": -code} if code < 0 else {"exit_code": code}
        if count is not None and self._oom_kills[0] is not None:
            facts["oom_kills"] = count - self._oom_kills[0]
        self._facts = facts

    def _has_ended(self) -> bool:
        """Wait for its end for two seconds; return whether it came."""
        if self._descriptor is not None:
            return bool(select.select([self._descriptor], [], [], _LOOK_S)[0])
        time.sleep(_LOOK_S)
        return os.getppid() != self._pid


def exit_status(pid: int, descriptor: int | None) -> int | None:
    """Return the status of a process that has ended, as `os.waitpid` does; None if the system doesn't say.

    Args:
        pid: The process.
        descriptor: From `os.pidfd_open`; None if there is none.
    """
    with suppress(OSError, ValueError, IndexError):  # its parent has reaped it, or this isn't Linux
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        if fields[0] in ("Z", "X"):
            return int(fields[49])
    return None if descriptor is None else _status_after_reaping(descriptor)


def _status_after_reaping(descriptor: int) -> int | None:
    if sys.platform != "linux":
        return None
    info = bytearray(_PIDFD_INFO_BYTES)
    struct.pack_into("=Q", info, 0, _PIDFD_INFO_EXIT)
    try:
        fcntl.ioctl(descriptor, _PIDFD_GET_INFO, info)
    except OSError:  # an older kernel
        return None
    is_known = struct.unpack_from("=Q", info)[0] & _PIDFD_INFO_EXIT
    return int(_EXIT_CODE.unpack_from(info, _EXIT_CODE_AT)[0]) if is_known else None


def oom_kills(groups: Path = _CONTROL_GROUPS, own: Path = Path("/proc/self/cgroup")) -> int | None:
    """Return how many processes of this one's control group the out-of-memory killer has ended; None if unknown."""
    for file in _counters(groups, own):
        with suppress(OSError, ValueError, IndexError):
            lines = (line.split() for line in file.read_text(encoding="ascii").splitlines())
            return next(int(line[1]) for line in lines if line[:1] == ["oom_kill"])
    return None


def _counters(groups: Path, own: Path) -> list[Path]:
    """Return the files that may have the count: in a container, the root may be the own group."""
    files = []
    with suppress(OSError, ValueError):
        for line in own.read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if "memory" in controllers.split(","):
                folder, name = groups / "memory", "memory.oom_control"
            elif not controllers:
                folder, name = groups, "memory.events"
            else:
                continue
            files += [folder / path.lstrip("/") / name, folder / name]
    return files
