"""Consensus on plans: which steps all ranks record on request, without waiting for each other.

A rank with a request proposes a plan under the next number in a log that all ranks read: torch.distributed's store, or
a shared folder. The first proposal of a number is the plan. It begins some seconds later, so that all ranks read it in
time; no rank waits for another.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from ..atomic_write import create_file
from ..errors import UsageError
from ..untrusted_files import read_plain
from .request import MOST_BYTES, Request, request_from_json

if TYPE_CHECKING:
    from ..path_below import PathBelow

LEAD_S = 3.0
"""Ranks read the logs once a second; the rest is for a slow network."""

LEAST_LEAD = 2


@dataclass(frozen=True)
class Plan:
    """One window on request.

    Args:
        first: The first step that is recorded, counted from 0.
        request: The request.
    """

    first: int
    request: Request

    @property
    def begin(self) -> int:
        """The first step that the profiler runs in."""
        return max(0, self.first - self.request.warmup)

    @property
    def end(self) -> int:
        """The step after the last one: how many steps are complete when the window is saved."""
        return self.first + self.request.steps

    def with_begin(self, begin: int) -> Plan:
        """Return the plan moved to another first step of the profiler."""
        return replace(self, first=begin + self.request.warmup)

    def includes_rank(self, rank: int, *, is_selected_rank: bool) -> bool:
        """Whether a rank records: one that the request names, or else one that the Tracer selects."""
        return is_selected_rank if self.request.ranks is None else rank in self.request.ranks

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {**asdict(self), "request": self.request.to_json()}

    def to_text(self) -> str:
        """Return it as a text for the log."""
        return json.dumps(self.to_json())


def plan_from(text: str) -> Plan:
    """Parse a plan from a text of the log.

    Raises:
        UsageError: It isn't a plan.
    """
    try:
        value = json.loads(text[:MOST_BYTES])
        first = value["first"]
        if not isinstance(first, int) or first < 0:
            raise UsageError(f"This isn't a plan: first={first!r}.")
        return Plan(first, request_from_json(value["request"]))
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"This isn't a plan: {text[:100]!r}.") from error


def first_step(request: Request, completed_steps: int, step_s: float | None, *, is_alone: bool) -> int:
    """Return the first step to record.

    Args:
        request: The request.
        completed_steps: How many steps the training has completed.
        step_s: How long a step takes.
        is_alone: Whether there are no other ranks.
    """
    lead = 0 if is_alone else LEAST_LEAD + math.ceil(LEAD_S / max(step_s or LEAD_S, 1e-6))
    earliest = max(completed_steps + lead + request.warmup, request.at or 0)
    return -(-earliest // request.roundup) * request.roundup


def log_key(attempt: str, number: int) -> str:
    """Return the key of one recorder's log, a name of plain letters.

    A log may outlive the ranks: torchrun's store retains the entries of an attempt for the next one, and so does a
    run's folder that is used again. Such plans are obsolete.

    Args:
        attempt: The token of the attempt; see `job.run_name.Run`.
        number: The number of the recorder in each process.
    """
    return f"{hashlib.sha256(attempt.encode()).hexdigest()[:16]}.{number}"


class ConsensusLog(Protocol):
    """A shared, append-only log: texts by number, which all ranks see and which never change."""

    def read(self, number: int) -> str | None:
        """Return the text of a number; None if it has none."""

    def propose(self, number: int, text: str) -> str:
        """Set the text of a number if it has none; return the number's text."""


class FolderLog:
    """A log in a shared folder.

    Args:
        folder: The folder.
        key: Identifies this recorder among others that use the same folder; see `log_key`.
    """

    def __init__(self, folder: PathBelow, key: str) -> None:
        self._folder, self._key = folder, key

    def _file(self, number: int) -> PathBelow:
        return self._folder / f"{self._key}.{number}.json"

    def read(self, number: int) -> str | None:
        """See `ConsensusLog`.

        Raises:
            OSError: The folder doesn't allow it.
        """
        try:
            return read_plain(self._file(number), MOST_BYTES).decode(errors="replace")
        except FileNotFoundError:
            return None

    def propose(self, number: int, text: str) -> str:
        """See `ConsensusLog`. Files are created atomically, so only the first one gets the name.

        Raises:
            OSError: The folder doesn't allow it.
        """
        self._folder.make()
        if create_file(self._file(number), text.encode()):
            return text
        return self.read(number) or text


class StoreLog:
    """A log in torch.distributed's store.

    Args:
        store: The store. The log has its own connection if this torch can make one, because of the connection's lock.
        key: Identifies this recorder among others that use the store; see `log_key`.
    """

    def __init__(self, store: Any, key: str) -> None:
        clone = getattr(store, "clone", None)
        try:
            self._store = store if clone is None else clone()
        except (RuntimeError, NotImplementedError):  # a store that doesn't support it
            self._store = store
        self._key = key

    def read(self, number: int) -> str | None:
        """See `ConsensusLog`.

        Raises:
            RuntimeError: The store's server is gone.
        """
        key = f"{self._key}/{number}"
        # get() would wait for a missing key.
        return self._store.get(key).decode() if self._store.check([key]) else None

    def propose(self, number: int, text: str) -> str:
        """See `ConsensusLog`.

        Raises:
            RuntimeError: The store's server is gone.
        """
        return str(self._store.compare_set(f"{self._key}/{number}", "", text).decode())
