"""Control groups with little memory, in which the kernel's out-of-memory killer ends processes: cgroups(7), v1 and v2."""

import os
import time
from contextlib import suppress
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")


def create_group(name, limit_bytes):
    """A new group below that of this process; None if this user or system can't have such groups."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            folder, limit = _ROOT / "memory" / path.lstrip("/") / name, "memory.limit_in_bytes"
        elif not controllers:
            folder, limit = _ROOT / path.lstrip("/") / name, "memory.max"
        else:
            continue
        with suppress(OSError):
            folder.mkdir()
            if (folder / limit).exists():
                (folder / limit).write_text(str(limit_bytes))
                return folder
            folder.rmdir()
    return None


def enter_group(folder):
    """Move this process there."""
    (folder / "cgroup.procs").write_text(str(os.getpid()))


def remove_group(folder):
    """Remove a group as soon as its processes have ended."""
    for _ in range(600):
        with suppress(OSError):
            folder.rmdir()
            return
        time.sleep(0.1)
