"""How far the clock of this process's machine is from that of rank 0's, and how sure that is.

Ranks on one machine share its clock. For others, a thread of rank 0 answers and a thread of one process per machine
asks, over connections of their own to torch.distributed's store: no collective, no GPU, and no training that waits.
Each exchange has four times: asked, received, answered, heard. The offset lies within half of the time that the
message was under way; the quickest exchange says it best. (Mills, RFC 5905, section 8.)

What is measured is told, and not applied: the times in a file stay those of its machine's clock.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import socket
import threading
import time
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .identity import current_place, default_store, is_distributed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .identity import Place

_LOG = logging.getLogger("kinetoscope")

ROUNDS = 20
_TIMEOUT = timedelta(seconds=10)
_ENDS_WITHIN_S = 2.0
_LOOK_S = 0.1
"""How often whoever answers looks for questions."""
_QUICK_S = 0.02
"""How long after an answer the next question is awaited without a pause: they come in rows."""

_count = itertools.count()


@dataclass(frozen=True, kw_only=True)
class Offset:
    """One measurement.

    Args:
        offset_ns: This clock's time minus the reference's at the same moment.
        error_ns: The offset is wrong by at most this.
        method: `reference` (it is the clock that others compare with), `same machine`, or `store ping-pong`.
        measured_ns: When, in Unix time.
        reference_rank: Whose clock the reference is.
    """

    offset_ns: int
    error_ns: int
    method: str
    measured_ns: int = field(default_factory=time.time_ns)
    reference_rank: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)


def offset_of(exchanges: Iterable[tuple[int, int, int, int]]) -> tuple[int, int]:
    """Return (offset, its error) in ns by the quickest of some exchanges: asked, received, answered, heard."""
    asked, received, answered, heard = min(exchanges, key=lambda e: (e[3] - e[0]) - (e[2] - e[1]))
    under_way = max(0, (heard - asked) - (answered - received))
    return ((asked - received) + (heard - answered)) // 2, under_way // 2 + 1


def answer(store: Any, key: str, number: int, clock_ns: Callable[[], int] = time.time_ns) -> None:
    """Answer a question.

    Raises:
        RuntimeError: Nobody asked it for a while, or the store is gone.
    """
    store.get(f"{key}/asked/{number}")
    received = clock_ns()
    store.set(f"{key}/answer/{number}", f"{received} {clock_ns()}")


def ask(store: Any, key: str, number: int, clock_ns: Callable[[], int] = time.time_ns) -> tuple[int, int, int, int]:
    """Return one exchange with whoever answers; `number` tells questions apart.

    Raises:
        RuntimeError: Nobody does, or the store is gone.
    """
    asked = clock_ns()
    store.set(f"{key}/asked/{number}", "")
    text = store.get(f"{key}/answer/{number}")
    heard = clock_ns()
    received, answered = map(int, text.split())
    for name in ("asked", "answer"):
        store.delete_key(f"{key}/{name}/{number}")
    return asked, received, answered, heard


def machine() -> str:
    """What tells this machine's clock from others': its boot's random number, which containers share as they do it."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return socket.gethostname()


def connection(store: Any) -> Any:
    """Return another connection to a store: a call that waits keeps all others of its connection waiting.

    Raises:
        RuntimeError: There is none to be had.
    """
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    if isinstance(store, TCPStore):
        return TCPStore(store.host, store.port, is_master=False, timeout=_TIMEOUT, wait_for_workers=False)
    clone = getattr(store, "clone", None)
    if clone is None:
        raise RuntimeError(f"no second connection to a {type(store).__name__}")
    return clone()


class Clock:
    """Keeps measuring for one Tracer. Nothing in it raises, and the training never waits for it."""

    def __init__(self) -> None:
        # Each process of a job makes its Tracers in the same order: the n-th of each belong together.
        self._key = f"kinetoscope/clock/{next(_count)}"
        self._thread: threading.Thread | None = None
        self._is_settled = False
        self._over, self._wanted, self._first = threading.Event(), threading.Event(), threading.Event()
        self._offset: Offset | None = None
        self._waker: Any = None
        self._waits_for = ""

    @property
    def offset(self) -> Offset | None:
        """The last measurement; None if there is none, or nobody to compare with."""
        if self._thread is not None and self._offset is None:
            self._first.wait(0.2)  # a first measurement takes some milliseconds
        return self._offset

    def settle(self) -> None:
        """Begin, once torch.distributed is there."""
        if not self._is_settled and not self._over.is_set() and is_distributed():
            self._is_settled = True
            place = current_place()
            if place.world_size > 1:
                self._thread = threading.Thread(target=self._run, args=(place,), name="kinetoscope-clock", daemon=True)
                self._thread.start()

    def measure(self) -> None:
        """Measure anew, soon."""
        self._wanted.set()

    def close(self) -> None:
        """Measure no more. A thread that hangs on a network is left behind.

        All others are waited for: one that comes back from a store while the interpreter ends aborts the process.
        """
        self._over.set()
        self._wanted.set()
        thread = self._thread
        if thread is not None and thread.is_alive():
            waker = threading.Thread(target=self._wake, name="kinetoscope-clock-waker", daemon=True)
            waker.start()
            until_s = time.monotonic() + _ENDS_WITHIN_S
            for each in (thread, waker):
                each.join(max(0.0, until_s - time.monotonic()))

    def _wake(self) -> None:
        """Write what the thread waits for; it looks whether it is over before it uses that."""
        with contextlib.suppress(RuntimeError):
            if self._waker is not None and self._waits_for:
                self._waker.set(self._waits_for, "0 0")

    def _run(self, place: Place) -> None:
        try:
            store = default_store()
            if store is None:
                return
            mine, self._waker = connection(store), connection(store)
            del store  # here it would outlive its process group
            if place.global_rank == 0:
                self._answer(mine)
            else:
                self._ask(mine, place)
        except Exception as error:  # noqa: BLE001  a store that is gone, or is one that nobody knew of
            _LOG.debug("Clocks aren't compared any more: %s", error)
        finally:
            self._first.set()

    def _answer(self, store: Any) -> None:
        store.set(f"{self._key}/machine", machine())
        self._offset = Offset(offset_ns=0, error_ns=0, method="reference")
        self._first.set()
        number, quick_until_s = 1, 0.0
        while not self._over.is_set():
            # Waiting for a question that doesn't come would make torch write a warning every ten seconds.
            if store.add(f"{self._key}/questions", 0) < number:
                if time.monotonic() > quick_until_s:
                    self._over.wait(_LOOK_S)
                continue
            self._waits_for = f"{self._key}/asked/{number}"
            with contextlib.suppress(RuntimeError):  # whoever was to ask it is gone
                answer(store, self._key, number)
            number += 1
            quick_until_s = time.monotonic() + _QUICK_S

    def _ask(self, store: Any, place: Place) -> None:
        here = machine()
        while not self._over.is_set():
            try:
                if store.get(f"{self._key}/machine").decode() == here:
                    self._offset = Offset(offset_ns=0, error_ns=0, method="same machine")
                    return
                self._offset = self._measured(store, f"{self._key}/of/{here}", is_first=not place.local_rank)
                self._first.set()
                self._wanted.wait()
                self._wanted.clear()
            except RuntimeError:  # nobody answered
                self._over.wait(1.0)

    def _measured(self, store: Any, result: str, *, is_first: bool) -> Offset:
        """Measure, or take what the first process of this machine measured."""
        if is_first:
            exchanges = []
            for _ in range(ROUNDS):
                number = store.add(f"{self._key}/questions", 1)
                self._waits_for = f"{self._key}/answer/{number}"
                exchanges.append(ask(store, self._key, number))
                if self._over.is_set():
                    raise RuntimeError("too late")
            offset_ns, error_ns = offset_of(exchanges)
            store.set(result, f"{offset_ns} {error_ns} {time.time_ns()}")
        self._waits_for = result
        offset_ns, error_ns, measured_ns = map(int, store.get(result).split())
        return Offset(offset_ns=offset_ns, error_ns=error_ns, measured_ns=measured_ns, method="store ping-pong")
