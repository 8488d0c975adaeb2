"""Requests to a running job: "record the next three steps", from a shell, a signal, the page or the program itself.

A request from outside is a file, `{run}/.work/trace`, with JSON, or empty (`touch`) for the defaults. The job removes
the file when it reads it. This module imports nothing but the standard library: senders of requests use it too.
"""

from __future__ import annotations

import json
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..atomic_write import write_json
from ..errors import UsageError
from ..path_below import PathBelow
from ..untrusted_files import read_plain

if TYPE_CHECKING:
    from collections.abc import Mapping

WORK = ".work"
"""The folder in a run's folder for files that aren't traces; hidden, so that it isn't taken for a run."""

OPTIONS = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")
"""The options that a request may set: switches of torch.profiler.profile."""

MOST_BYTES = 1 << 16
_FILE = "trace"
_LONGEST_WHY = 300
_MOST = {"steps": 10_000, "warmup": 1_000, "roundup": 1_000_000, "at": 10**15}


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request for a window.

    Args:
        steps: How many steps to record.
        warmup: How many steps before them to profile and discard.
        at: The first step to record, counted from 0; by default as soon as all ranks can know of the request.
        roundup: The first step to record is a multiple of this.
        ranks: The ranks that record; None for all.
        options: Options that differ from the Tracer's: some of `OPTIONS`.
        memory: Whether to record the history of allocations too, and save a memory snapshot at the end.
        reason: The source of the request, for the trace's metadata.
        why: What the recorder noticed, as a sentence without its period, for the trace's metadata; empty for nothing.
        id: Identifies the request, so that its sender can follow it.

    Raises:
        UsageError: An invalid value.
    """

    steps: int = 3
    warmup: int = 1
    at: int | None = None
    roundup: int = 1
    ranks: tuple[int, ...] | None = None
    options: Mapping[str, bool] = field(default_factory=dict)
    memory: bool = False
    reason: str = "file"
    why: str = ""
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])

    def __post_init__(self) -> None:
        for name, least in (("steps", 1), ("warmup", 0), ("roundup", 1), ("at", 0)):
            value = getattr(self, name)
            if not (value is None and name == "at"):
                _check_number(name, value, least)
        for name, value in self.options.items():
            if name not in OPTIONS or not isinstance(value, bool):
                raise UsageError(f"{name}={value!r}: a request may switch {', '.join(OPTIONS)} on and off.")
        if not isinstance(self.memory, bool):
            raise UsageError(f"memory={self.memory!r}: true for a memory snapshot at the end, or false.")
        ranks = () if self.ranks is None else self.ranks
        if self.ranks == () or not all(_is_number(rank) and 0 <= rank < 1 << 24 for rank in ranks):
            raise UsageError(f"ranks={self.ranks!r}: give the numbers of the ranks to record, or none for all.")
        if not all(isinstance(text, str) and 0 < len(text) <= 100 for text in (self.reason, self.id)):
            raise UsageError("A request's reason and id must be short texts.")
        if not isinstance(self.why, str) or len(self.why) > _LONGEST_WHY:
            raise UsageError(f"A request's why must be a text of at most {_LONGEST_WHY} characters.")

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {**asdict(self), "ranks": None if self.ranks is None else list(self.ranks)}


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_number(name: str, value: Any, least: int) -> None:
    if not _is_number(value) or not least <= value <= _MOST[name]:
        raise UsageError(f"{name}={value!r}: a request needs a whole number from {least} to {_MOST[name]} here.")


def request_from_json(value: object) -> Request:
    """Make a request of JSON values.

    Raises:
        UsageError: They aren't valid.
    """
    if not isinstance(value, dict):
        raise UsageError(f'A request is a JSON object such as {{"steps": 3}}, not {str(value)[:100]!r}.')
    names = [f.name for f in fields(Request)]
    unknown_names = [name for name in value if name not in names]
    if unknown_names:
        raise UsageError(f"A request has no {unknown_names[0]!r}; it has {', '.join(names)}.")
    ranks, options = value.get("ranks"), value.get("options", {})
    if not (ranks is None or isinstance(ranks, list)) or not isinstance(options, dict):
        raise UsageError("A request's ranks are a list of numbers, and its options an object of true and false.")
    return Request(**{**value, "ranks": None if ranks is None else tuple(ranks), "options": options})


def parse_request(data: bytes) -> Request:
    """Parse the content of a request file.

    Raises:
        UsageError: It isn't a request.
    """
    if not data.strip():
        return Request()
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"A request is JSON, or empty: {error}.") from error
    return request_from_json(value)


def write_request(run: Path, request: Request) -> Path:
    """Write a request for the job that records into the run's folder; return the file.

    Raises:
        OSError: The folder doesn't allow it.
    """
    folder = PathBelow(run, WORK)
    folder.make()
    write_json(folder / _FILE, request.to_json())
    return (folder / _FILE).path


def take_request(run: Path) -> Request | None:
    """Remove a request from the run's folder and return it; None if there is none. Of concurrent calls, one gets it.

    Raises:
        UsageError: The file wasn't a request; it is removed, too.
        OSError: The folder doesn't allow it.
    """
    file = PathBelow(run, WORK, _FILE)
    if not file.exists():
        return None
    mine = file.with_name(f"{_FILE}.taken-{uuid.uuid4().hex}")
    try:
        file.replace(mine.name)
    except FileNotFoundError:
        return None
    try:
        data = read_plain(mine, MOST_BYTES)
    except OSError as error:
        raise UsageError(f"A request must be a plain file of at most {MOST_BYTES} bytes: {error}.") from error
    finally:
        with suppress(OSError):  # a folder
            mine.unlink()
    return parse_request(data)
