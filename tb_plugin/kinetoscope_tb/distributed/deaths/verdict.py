"""Who failed first, or why nobody can tell: rules in the order in which they are certain.

A rank that fails takes the others with it: they lose their connection to it, or wait for it until a timeout, and its
launcher sends them SIGTERM. So such ends count only if no rank ended otherwise. Of several that did, the first one
counts. Clocks of different machines differ, so there nobody is first by less than that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kinetoscope.journal.status import RankStatus

from .deaths import ABORT, CONSEQUENCES, GONE, SILENCE_S, STOPPED, Death, deaths_of
from .exceptions import PEER_LOST, TIMEOUT, ranks_of_barrier

CULPRIT, CANNOT_TELL, STOPPED_FROM_OUTSIDE = "culprit", "cannot tell", "stopped from outside"
LEFT, ABSENT, NEVER_STARTED, NOBODY = "left", "absent", "never started", "nobody else"

_TOGETHER_NS, _CLOCKS_NS, _TOUCH_NS = 1_000_000_000, 100_000_000, 2_500_000_000
_SIGNALS_NS = 500_000_000  # a signal to a rank that waits in C is noticed a fifth of a second later


@dataclass(frozen=True)
class DeathVerdict:
    """What is known of the end of a job.

    Args:
        outcome: CULPRIT, CANNOT_TELL or STOPPED_FROM_OUTSIDE.
        kind: How the culprits ended; else which rule decided.
        deaths: The ends of all ranks that weren't good ones, the first one first.
        statuses: What is known of each rank.
        ranks: The culprits, or those that may be; else all that were stopped.
    """

    outcome: str
    kind: str
    deaths: tuple[Death, ...]
    statuses: tuple[RankStatus, ...]
    ranks: tuple[int, ...] = ()

    @property
    def first(self) -> Death | None:
        """The first end of the ranks in question; None if nothing is known of it."""
        return next((death for death in self.deaths if death.rank in self.ranks), None)

    @property
    def others(self) -> tuple[Death, ...]:
        """The ends of the other ranks."""
        return tuple(death for death in self.deaths if death.rank not in self.ranks)

    @property
    def world(self) -> range:
        """All ranks of the job."""
        return range(max((status.world_size for status in self.statuses), default=0))


def death_verdict(statuses: Sequence[RankStatus]) -> DeathVerdict | None:
    """The verdict on how the ranks of a job ended; None if no rank ended badly."""
    deaths = _with_silent_ranks(deaths_of(statuses), statuses)
    if not any(_is_bad(death) for death in deaths):
        return None
    base = DeathVerdict(CANNOT_TELL, NOBODY, deaths, tuple(statuses))
    return next((answer for rule in _RULES if (answer := rule(base)) is not None), base)


def _is_bad(death: Death) -> bool:
    """Whether it is more than an exception that was in flight, perhaps handled, when the program called `stop`."""
    return death.status.reason != "end"


def _with_silent_ranks(deaths: tuple[Death, ...], statuses: Sequence[RankStatus]) -> tuple[Death, ...]:
    """Add ranks on other machines that were silent before others lost their connection: not even their writers live."""
    lost_ns = min((death.ns for death in deaths if death.kind in CONSEQUENCES), default=None)
    if lost_ns is None:
        return deaths
    silent = [s for s in statuses if s.state in ("running", "silent") and s.age_s > SILENCE_S]
    silent = [status for status in silent if status.written_ns <= lost_ns + _TOUCH_NS]
    silent_deaths = [Death(GONE, status.written_ns, status, is_exact=False) for status in silent]
    return tuple(sorted([*deaths, *silent_deaths], key=lambda death: (death.ns, death.rank)))


def _failure(base: DeathVerdict) -> DeathVerdict | None:
    """The first rank that ended by itself, with those that ended alike at the same time."""
    failures = [death for death in base.deaths if death.kind not in (*CONSEQUENCES, ABORT)]
    if not failures:
        return None
    first = failures[0]
    together = [death for death in failures if _is_alike(first, death)]
    rivals = [death for death in failures if death not in together and _may_be_earlier(death, first)]
    ranks = tuple(sorted(death.rank for death in (*together, *rivals)))
    return replace(
        base, outcome=CANNOT_TELL if rivals else CULPRIT, kind="order" if rivals else first.kind, ranks=ranks
    )


def _is_alike(first: Death, death: Death) -> bool:
    """Whether two ended in the same way: at the same time, or by the same error in the same line of the same step."""
    of_first, of_other = first.ending.exception, death.ending.exception
    types = [item.type if item else "" for item in (of_first, of_other)]
    room_ns = _TOGETHER_NS if first.is_exact and death.is_exact else _TOGETHER_NS + _TOUCH_NS
    is_same_kind = first.kind == death.kind and types[0] == types[1]
    return is_same_kind and (death.ns - first.ns <= room_ns or _is_same_error(first, death))


def _is_same_error(first: Death, death: Death) -> bool:
    """Whether both raised in the same line of the same step, before they could learn of each other."""
    if first.ending.exception is None or first.activity is None or first.was_waiting or death.was_waiting:
        return False
    lines = [(end.activity.file, end.activity.line) for end in (first, death) if end.activity is not None]
    return len(lines) == 2 and lines[0] == lines[1] and first.status.completed == death.status.completed


def _may_be_earlier(death: Death, first: Death) -> bool:
    """Whether a rank may have ended before the first one, as far as clocks and journals tell."""
    if not first.is_exact:
        return death.ns - first.ns <= _TOUCH_NS
    return death.status.host != first.status.host and death.ns - first.ns <= _CLOCKS_NS


def _barrier(base: DeathVerdict) -> DeathVerdict | None:
    """The ranks that a monitored barrier names."""
    ranks = sorted({rank for death in base.deaths for rank in ranks_of_barrier(death.ending)})
    return replace(base, outcome=CULPRIT, kind=ABSENT, ranks=tuple(ranks)) if ranks else None


def _departure(base: DeathVerdict) -> DeathVerdict | None:
    """Ranks that ended well, after fewer steps than the others, which then waited for them."""
    if not any(death.kind in (PEER_LOST, TIMEOUT) for death in base.deaths):
        return None
    bad_ranks = {death.rank for death in base.deaths}
    most = max(status.completed or 0 for status in base.statuses if status.rank in bad_ranks)
    left = [
        s.rank for s in base.statuses if s.state == "ended" and s.rank not in bad_ranks and (s.completed or 0) <= most
    ]
    return replace(base, outcome=CULPRIT, kind=LEFT, ranks=tuple(left)) if left else None


def _abort(base: DeathVerdict) -> DeathVerdict | None:
    """A rank that called abort; several do so when NCCL's watchdog gives up, which tells nothing."""
    ranks = tuple(sorted(death.rank for death in base.deaths if death.kind == ABORT))
    if not ranks:
        return None
    return replace(base, outcome=CULPRIT if len(ranks) == 1 else CANNOT_TELL, kind=ABORT, ranks=ranks)


def _timeout(base: DeathVerdict) -> DeathVerdict | None:
    """Ranks that gave up waiting for others: of these, the one that wasn't waiting itself when it was stopped."""
    if not any(death.kind == TIMEOUT for death in base.deaths):
        return None
    others = [death for death in base.deaths if death.kind == STOPPED and death.ending.exception is None]
    absent = tuple(death.rank for death in others if death.activity and not death.was_waiting)
    if len(absent) == 1:
        return replace(base, outcome=CULPRIT, kind=ABSENT, ranks=absent)
    suspects = absent or tuple(sorted(death.rank for death in others))
    return replace(base, kind=TIMEOUT, ranks=suspects)


def _never_started(base: DeathVerdict) -> DeathVerdict | None:
    """Ranks of which there is nothing at all, while others lost their connection."""
    if not any(death.kind == PEER_LOST for death in base.deaths):
        return None
    missing = tuple(sorted(set(base.world) - {status.rank for status in base.statuses}))
    return replace(base, outcome=CULPRIT, kind=NEVER_STARTED, ranks=missing) if missing else None


def _stop(base: DeathVerdict) -> DeathVerdict | None:
    """A signal to all ranks at once came from outside; one to a single rank is the cause for the others."""
    stops = [death for death in base.deaths if death.kind == STOPPED]
    if not stops:
        return None
    at_once = [death for death in stops if death.ns - stops[0].ns <= _SIGNALS_NS]
    if len(at_once) > 1 or len(base.statuses) == 1:
        ranks = tuple(sorted(death.rank for death in stops))
        return replace(base, outcome=STOPPED_FROM_OUTSIDE, kind=STOPPED, ranks=ranks)
    earlier = [death for death in base.deaths if death.ns < stops[0].ns - _SIGNALS_NS]
    return None if earlier else replace(base, outcome=CULPRIT, kind=STOPPED, ranks=(stops[0].rank,))


_RULES: tuple[Callable[[DeathVerdict], DeathVerdict | None], ...] = (
    _failure,
    _barrier,
    _departure,
    _abort,
    _timeout,
    _never_started,
    _stop,
)
