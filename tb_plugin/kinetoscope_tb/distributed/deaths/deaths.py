"""How a rank ended → `Death`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kinetoscope.journal.ending import Ending
from kinetoscope.journal.status import RankStatus

from ...reader.flight_recorder.hang_report import Activity, StackLine, activity
from .exceptions import EXCEPTION, PEER_LOST, TIMEOUT, kind_of_exception

KILLED, OUT_OF_MEMORY, CRASH, ABORT, EXIT, UNKNOWN, GONE = (
    "killed",
    "out of memory",
    "crash",
    "abort",
    "exit",
    "unknown",
    "gone",
)
STOPPED = "stopped"
"""By SIGTERM, Ctrl-C or SIGHUP: by the person who runs the job, or by its launcher once another rank has failed."""

CONSEQUENCES = (TIMEOUT, PEER_LOST, STOPPED)
"""What ends a rank because of another one, or of somebody outside."""

SILENCE_S = 5.0
"""A process that lives touches its journal every two seconds."""

_WAITING = ("torch.distributed.", "torch.nn.parallel.distributed.", "torch.autograd.")


@dataclass(frozen=True)
class Death:
    """The end of a rank that isn't a good one.

    Args:
        kind: Its class of cause.
        ns: When, in ns since 1970; of a rank that left no word, when it last wrote its journal.
        status: What is known of the rank.
        is_exact: Whether it ended then, and not up to some seconds later.
    """

    kind: str
    ns: int
    status: RankStatus
    is_exact: bool = True

    @property
    def rank(self) -> int:
        """Its global rank."""
        return self.status.rank

    @property
    def ending(self) -> Ending:
        """What is known of the end."""
        return self.status.ending or Ending(self.ns)

    @property
    def activity(self) -> Activity | None:
        """Where the program's own code was; None if that isn't known."""
        return activity(self.calls)

    @property
    def calls(self) -> list[StackLine]:
        """Where it was, the innermost call first, without the recorder's own ones."""
        calls = [StackLine(*call, 0.0) for call in self.ending.calls]
        return [call for call in calls if not call.function.startswith("kinetoscope.")]

    @property
    def was_waiting(self) -> bool:
        """Whether it was in torch's communication, or in a backward pass, which may be."""
        return bool(self.calls) and self.calls[0].function.startswith(_WAITING)


def deaths_of(statuses: Sequence[RankStatus]) -> tuple[Death, ...]:
    """The ends of ranks that aren't good ones, the first one first."""
    deaths = [death for status in statuses if (death := _death(status)) is not None]
    return tuple(sorted(deaths, key=lambda death: (death.ns, death.rank)))


def _death(status: RankStatus) -> Death | None:
    ending = status.ending
    if status.state == "ended":
        kind, is_exact = _kind_of_end(status.reason or "", ending), ending is None or ending.is_exact
        return Death(kind, ending.ns if ending else status.written_ns, status, is_exact) if kind else None
    if status.state == "dead":
        if ending is None:
            return Death(STOPPED if status.ignored_signal else UNKNOWN, status.written_ns, status, is_exact=False)
        return Death(STOPPED if status.ignored_signal else _kind_of_kill(ending), ending.ns, status)
    return None


def _kind_of_end(reason: str, ending: Ending | None) -> str | None:
    """The kind of an end that the process itself wrote; None for a good one."""
    if reason.startswith("sig"):
        return STOPPED
    if ending is None or ending.exception is None:
        return EXCEPTION if reason.startswith("exception") else None
    if ending.exception.type == "KeyboardInterrupt":
        return STOPPED
    if ending.exception.type == "SystemExit":
        return EXIT if ending.exit_code else None
    return kind_of_exception(ending)


def _kind_of_kill(ending: Ending) -> str:
    """The kind of an end that the process could not write."""
    if ending.signal is None:
        return UNKNOWN if ending.exit_code is None else EXIT
    if ending.signal_name == "SIGKILL":
        return OUT_OF_MEMORY if ending.oom_kills else KILLED
    if ending.signal_name in ("SIGTERM", "SIGINT", "SIGHUP"):
        return STOPPED
    return ABORT if ending.signal_name == "SIGABRT" else CRASH
