"""How many cores this process may use: its affinity, and the limit of its container.

Linux limits a cgroup's processor time by a quota per period: `cpu.max` of version 2 (Documentation/admin-guide/
cgroup-v2.rst), `cpu.cfs_quota_us` and `cpu.cfs_period_us` of version 1 (Documentation/scheduler/sched-bwc.rst). The
limits of all groups above it hold, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_OWN_GROUPS, _MOUNT = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


class Cores(NamedTuple):
    """How many cores threads may use at the same time; with a quota a fraction of one is possible.

    Attributes:
        usable: Those of this process.
        shared: Those of all processes in its container, or on its machine: each may be bound to some of them.
    """

    usable: float
    shared: float


def usable_cores(limit: float | None = None) -> Cores:
    """Return how many cores there are.

    Args:
        limit: That of the process's container; None if it has none.
    """
    affinity = getattr(os, "sched_getaffinity", None)  # Linux has it
    machine = os.cpu_count() or 1
    all_cores = float(machine) if limit is None else min(limit, float(machine))
    return Cores(min(float(len(affinity(0)) if affinity else machine), all_cores), all_cores)


def container_limit(groups: Path = _OWN_GROUPS, mount: Path = _MOUNT) -> float | None:
    """Return the limit of the process's container in cores; None if it has none. It takes up to a millisecond.

    Args:
        groups: The file that lists the process's control groups.
        mount: Where these are mounted.
    """
    return min(_limits(groups, mount), default=None)


def _limits(groups: Path, mount: Path) -> Iterator[float]:
    """The limits in cores of all groups that this process is in."""
    try:
        lines = groups.read_text(errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = mount / controllers
        own = top / path.lstrip("/")
        # A container may see its own group as the top one, under the path that it has outside.
        for folder in {own, top, *(above for above in own.parents if top in above.parents)}:
            yield from _limit(folder)


def _limit(folder: Path) -> Iterator[float]:
    """A group's limit in cores, if it has one."""
    for files in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
        try:
            quota, period = (int(text) for name in files for text in (folder / name).read_text().split())
        except (OSError, ValueError):  # no such group, or `max`: no limit
            continue
        if quota > 0 and period > 0:
            yield quota / period
