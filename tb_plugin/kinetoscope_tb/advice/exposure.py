"""What the evidence of exposed communication consists of: recordings of the other ranks know more of some of it."""

from __future__ import annotations

from dataclasses import dataclass

from ..names import text

_MAY_WAIT = " It may hold time that others made this rank wait."
_WAITS_AT_LEAST = (
    " At least {} of it{} is waiting for other ranks: even at 0.5 GB/s plus 100 µs per call, or at twice the time of "
    "the fastest equal call, moving the data takes no longer than the rest."
)


@dataclass(frozen=True)
class KindOfCalls:
    """The kind of calls that most of the exposed time is in.

    Args:
        name: Such as `all_reduce`.
        share: How much of the exposed time it is, in words.
        often: How often it is called, in words.
        others: The other kinds, in words.
        fastest: Bytes and time of its fastest large call; None if none is large, or its size is unknown.
    """

    name: str
    share: str
    often: str
    others: str
    fastest: tuple[int, int] | None


@dataclass(frozen=True)
class Transfers:
    """What all ranks of a run know of a rank's exposed communication.

    Args:
        wait_ns: How much of it is waiting for other ranks, in the average step.
        transfer_ns: How much is moving data.
        fastest: Bytes of the kind's fastest large call, and how long it takes once all ranks have come; None: unknown.
    """

    wait_ns: float
    transfer_ns: float
    fastest: tuple[int, int] | None


@dataclass(frozen=True)
class Exposure:
    """The parts of the evidence of a claim about exposed communication.

    Args:
        start: How much is exposed, and how much is hidden.
        kind: The kind of calls that most of it is in; None if none is.
        least_wait_ns: How much of it must be waiting, by this recording; None if that is less than half of it.
        per: Behind a mean, that it is one.
        end: The way that the data take, if that is worth a word.
        more: What else there is to say of the claim.
    """

    start: str
    kind: KindOfCalls | None
    least_wait_ns: float | None
    per: str
    end: str = ""
    more: str = ""

    def evidence(self, of_ranks: Transfers | None = None) -> str:
        """The evidence as text, by this recording alone, or by all ranks."""
        if of_ranks is not None:
            transfer = f"moving data {text.time(of_ranks.transfer_ns)}"
            waits = f" Waiting for other ranks takes {text.time(of_ranks.wait_ns)} of it, {transfer}."
        else:
            waits = _MAY_WAIT
            if self.least_wait_ns is not None:
                waits = _WAITS_AT_LEAST.format(text.time(self.least_wait_ns), self.per)
        return f"{self.start}{self._calls(of_ranks)}{waits}{self.end}{self.more}"

    def _calls(self, of_ranks: Transfers | None) -> str:
        """Which calls it is, and how fast the fastest large one is."""
        if self.kind is None:
            return ""
        fastest = self.kind.fastest if of_ranks is None else of_ranks.fastest
        pace = "" if fastest is None else _pace(*fastest, is_transfer=of_ranks is not None)
        kind = self.kind
        return f" {kind.share} of the exposed time is {kind.name} ({kind.often}){pace}{kind.others}."


def _pace(size: int, ns: int, *, is_transfer: bool) -> str:
    """How fast a call is, as a clause: its size by its time, as nccl-tests' algorithm bandwidth is.

    Args:
        size: Bytes of its message.
        ns: How long it takes.
        is_transfer: Whether that is how long it takes once all ranks have come.
    """
    amount, rate = f"{text.digits(size / 1e6)} MB", f"({text.digits(size / ns)} GB/s)"
    if is_transfer:
        return f", which moves {amount} in {text.time(ns)} once all ranks have come {rate}"
    return f", whose fastest large call takes {text.time(ns)} for {amount} {rate}"
