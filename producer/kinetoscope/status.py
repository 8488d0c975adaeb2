"""What each rank of a run does, or did last, as its sidecar tells. Imports nothing but the standard library."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import asdict, dataclass, field
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal

from .requests import WORK
from .sidecar import MOST_NEWS, header_of, lines_of, sidecars

if TYPE_CHECKING:
    from pathlib import Path
    from typing import TypeGuard

SILENT_S = 15.0
_TAIL_BYTES = 1 << 16

State = Literal["running", "silent", "dead", "ended"]


@dataclass(frozen=True, kw_only=True)
class RankStatus:
    """One process of a run.

    Args:
        rank: Its number among all.
        world_size: How many there are.
        host: The machine it runs on.
        pid: Its number there.
        state: `running`; `silent`: it didn't write for 15 seconds; `dead`: it is gone without having closed its
            recording; `ended`: it closed it.
        reason: Why it ended.
        completed: How many steps were complete when it wrote last; None while none is.
        step_s: How long the last step took.
        is_recording: Whether a window is open.
        listens: Whether it takes requests.
        records: Whether it is one of the ranks that record; False for one that only does so if a request names it.
        age_s: Seconds since it wrote.
        news: The last pieces of news: kind, value and Unix time in nanoseconds.
    """

    rank: int
    world_size: int
    host: str
    pid: int
    state: State
    reason: str | None
    completed: int | None
    step_s: float | None
    is_recording: bool
    listens: bool
    records: bool
    age_s: float
    news: tuple[tuple[str, Any, int], ...] = field(default=())

    @property
    def hanging(self) -> dict[str, Any] | None:
        """Where the step stands that was under way and didn't end; None if it is usual, or ended since."""
        told = [value for kind, value, _ in self.news if kind == "hanging"]
        return told[-1] if told and told[-1].get("step") == (self.completed or 0) and self.state != "ended" else None

    @property
    def left_out(self) -> tuple[dict[str, Any], ...]:
        """The windows that it should have recorded and didn't: the step about which each was to begin, and why."""
        return tuple(value for kind, value, _ in self.news if kind == "left out")

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {**asdict(self), "news": [list(piece) for piece in self.news]}


def rank_statuses(run: Path, *, now_s: float | None = None) -> list[RankStatus]:
    """What is known of a run's ranks, in their order; what can't be read is left out.

    Args:
        run: The run's folder.
        now_s: Unix time.
    """
    return ranks_and_unreadable(run, now_s=now_s)[0]


def ranks_and_unreadable(run: Path, *, now_s: float | None = None) -> tuple[list[RankStatus], list[str]]:
    """What is known of a run's ranks, in their order, and the names of the sidecars that can't be read.

    Args:
        run: The run's folder.
        now_s: Unix time.
    """
    found: dict[int, tuple[int, RankStatus]] = {}
    unreadable = []
    for file in sidecars(run):
        try:
            status = _status(file, time.time() if now_s is None else now_s)
            written = file.stat().st_mtime_ns
        except FileNotFoundError:  # taken away in this moment
            continue
        except (OSError, ValueError):
            unreadable.append(file.name)
            continue
        if status.rank not in found or found[status.rank][0] < written:
            found[status.rank] = (written, status)
    return [found[rank][1] for rank in sorted(found)], unreadable


def has_recorder(run: Path) -> bool:
    """Whether a folder is one that a Tracer records into, or did."""
    return (run / WORK).is_dir()


def _status(file: Path, now_s: float) -> RankStatus:
    """Return what a sidecar says.

    Raises:
        OSError: It can't be read.
        ValueError: It doesn't say who writes it.
    """
    head = header_of(file) or {}
    rank, world_size, host, pid = (head.get(name) for name in ("global_rank", "world_size", "host", "pid"))
    if not (_is_number(rank) and _is_number(world_size) and _is_number(pid) and isinstance(host, str)):
        raise ValueError(f"{file} doesn't say who writes it.")
    lines = lines_of(file, _TAIL_BYTES)
    steps = [line for line in lines if line[0] == "s"]
    news = [(line[1], line[2], line[3]) for line in lines if line[0] == "n" and _is_usual(line[1], line[2])]
    ended = next((line for line in reversed(lines) if line[0] == "e"), None)
    age_s = max(0.0, now_s - file.stat().st_mtime)
    windows = [kind for kind, _, _ in news if kind in ("recording", "saved")]
    return RankStatus(
        rank=rank,
        world_size=world_size,
        host=host,
        pid=pid,
        state="ended" if ended is not None else _state(host, pid, age_s),
        reason=None if ended is None else ended[1],
        completed=steps[-1][1] + 1 if steps else None,
        step_s=(steps[-1][3] - steps[-1][2]) / 1e9 if steps else None,
        is_recording=ended is None and windows[-1:] == ["recording"],
        listens=ended is None and bool(head.get("listens")),
        records=head.get("records") is not False,
        age_s=age_s,
        news=tuple(news[-MOST_NEWS:]),
    )


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31


def _is_usual(kind: str, value: object) -> bool:
    """Whether a piece of news has the form that its readers rely on."""
    if kind == "plan":
        return _has(value, first=int, request=dict) and _has(
            value["request"], id=str, steps=int, ranks=(list, NoneType)
        )
    if kind == "hanging":
        return _has(value, step=int, seconds=(int, float), stack=list)
    return kind != "left out" or isinstance(value, dict)


def _has(value: object, **kinds: type | tuple[type, ...]) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict) and all(isinstance(value.get(name), kind) for name, kind in kinds.items())


def _state(host: str, pid: int, age_s: float) -> State:
    if host == socket.gethostname() and not _is_alive(pid):
        return "dead"
    return "running" if age_s < SILENT_S else "silent"


def _is_alive(pid: int) -> bool:
    if os.name != "posix":
        return True  # there, os.kill would end it
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
