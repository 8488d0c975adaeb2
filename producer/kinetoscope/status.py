"""What each rank of a run does, or did last, as its sidecar tells. Imports nothing but the standard library."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from .requests import WORK
from .sidecar import MOST_NEWS, header_of, lines_of, sidecars

if TYPE_CHECKING:
    from pathlib import Path

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
        told = [value for kind, value, _ in self.news if kind == "hanging" and isinstance(value, dict)]
        return told[-1] if told and told[-1].get("step") == (self.completed or 0) and self.state != "ended" else None

    @property
    def left_out(self) -> tuple[dict[str, Any], ...]:
        """The windows that it should have recorded and didn't: the step about which each was to begin, and why."""
        return tuple(value for kind, value, _ in self.news if kind == "left out" and isinstance(value, dict))

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {**asdict(self), "news": [list(piece) for piece in self.news]}


def rank_statuses(run: Path, *, now_s: float | None = None) -> list[RankStatus]:
    """What is known of a run's ranks, in their order; what can't be read is left out.

    Args:
        run: The run's folder.
        now_s: Unix time.
    """
    found: dict[int, tuple[int, RankStatus]] = {}
    for file in sidecars(run):
        try:
            status = _status(file, time.time() if now_s is None else now_s)
            written = file.stat().st_mtime_ns
        except (OSError, ValueError, KeyError, TypeError):  # damaged, or taken away in this moment
            continue
        if status.rank not in found or found[status.rank][0] < written:
            found[status.rank] = (written, status)
    return [found[rank][1] for rank in sorted(found)]


def has_recorder(run: Path) -> bool:
    """Whether a folder is one that a Tracer records into, or did."""
    return (run / WORK).is_dir()


def _status(file: Path, now_s: float) -> RankStatus:
    head = header_of(file)
    if head is None:
        raise ValueError(f"{file} doesn't say who writes it.")
    lines = lines_of(file, _TAIL_BYTES)
    steps = [line for line in lines if line[0] == "s"]
    news = [(str(line[1]), line[2], int(line[3])) for line in lines if line[0] == "n"]
    ended = next((line for line in reversed(lines) if line[0] == "e"), None)
    age_s = max(0.0, now_s - file.stat().st_mtime)
    windows = [kind for kind, _, _ in news if kind in ("recording", "saved")]
    return RankStatus(
        rank=int(head["global_rank"]),
        world_size=int(head["world_size"]),
        host=str(head["host"]),
        pid=int(head["pid"]),
        state="ended" if ended is not None else _state(head, age_s),
        reason=None if ended is None else str(ended[1]),
        completed=int(steps[-1][1]) + 1 if steps else None,
        step_s=(steps[-1][3] - steps[-1][2]) / 1e9 if steps else None,
        is_recording=ended is None and windows[-1:] == ["recording"],
        listens=ended is None and bool(head.get("listens")),
        records=head.get("records") is not False,
        age_s=age_s,
        news=tuple(news[-MOST_NEWS:]),
    )


def _state(head: dict[str, Any], age_s: float) -> State:
    if head["host"] == socket.gethostname() and not _is_alive(int(head["pid"])):
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
