"""The offset between the clocks of this machine and rank 0's machine, and its error.

Ranks on one machine share its clock. For others, a thread of one process per machine sends messages and a thread of
rank 0 replies, over separate connections to torch.distributed's store: without collectives, without the GPU, and
without delaying the training. Each exchange has four times: sent, received, replied, returned. The offset is known to
half of the round-trip time, so the quickest exchange is the best (NTP's algorithm: Mills, RFC 5905, section 8).

The offset is reported, but not applied: the times in a file are those of its machine's clock.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import socket
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..job.job_store import connection, default_store
from ..job.rank_info import current_rank_info, is_distributed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..job.rank_info import RankInfo

_LOG = logging.getLogger("kinetoscope")

ROUNDS = 20
_ENDS_WITHIN_S = 2.0
_LOOK_S = 0.1
"""How often rank 0's thread looks for messages."""
_QUICK_S = 0.02
"""How long after a reply the next message is awaited without a pause: messages come in bursts."""

_count = itertools.count()


@dataclass(frozen=True, kw_only=True)
class Offset:
    """One measurement.

    Args:
        offset_ns: This clock's time minus the reference's at the same moment.
        error_ns: The offset is wrong by at most this.
        method: `reference` (it is the clock that others compare with), `same machine`, or `store ping-pong`.
        measured_ns: When it was measured, in Unix time.
        reference_rank: The rank whose clock is the reference.
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
    """Return (offset, its error) in ns from the quickest of some exchanges: sent, received, replied, returned."""
    sent_ns, received_ns, replied_ns, returned_ns = min(exchanges, key=lambda e: (e[3] - e[0]) - (e[2] - e[1]))
    under_way = max(0, (returned_ns - sent_ns) - (replied_ns - received_ns))
    return ((sent_ns - received_ns) + (returned_ns - replied_ns)) // 2, under_way // 2 + 1


def pong(store: Any, key: str, number: int, clock_ns: Callable[[], int] = time.time_ns) -> None:
    """Reply to a message.

    Raises:
        RuntimeError: No message arrived for a while, or the store is gone.
    """
    store.get(f"{key}/asked/{number}")
    received_ns = clock_ns()
    store.set(f"{key}/answer/{number}", f"{received_ns} {clock_ns()}")


def ping(store: Any, key: str, number: int, clock_ns: Callable[[], int] = time.time_ns) -> tuple[int, int, int, int]:
    """Return one exchange with rank 0's thread; `number` identifies the message.

    Raises:
        RuntimeError: There is no reply, or the store is gone.
    """
    sent_ns = clock_ns()
    store.set(f"{key}/asked/{number}", "")
    text = store.get(f"{key}/answer/{number}")
    returned_ns = clock_ns()
    received_ns, replied_ns = map(int, text.split())
    for name in ("asked", "answer"):
        store.delete_key(f"{key}/{name}/{number}")
    return sent_ns, received_ns, replied_ns, returned_ns


def boot_id() -> str:
    """Return an id of this machine's clock: the kernel's boot id, which containers share as they share the clock."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return socket.gethostname()


class ClockSync:
    """Measures periodically for one Tracer. Nothing in it raises, and the training never waits for it."""

    def __init__(self) -> None:
        # Each process of a job creates its Tracers in the same order: the n-th of each belong together.
        self._key = f"kinetoscope/clock/{next(_count)}"
        self._thread: threading.Thread | None = None
        self._is_started = False
        self._stop, self._wake_event, self._first_done = threading.Event(), threading.Event(), threading.Event()
        self._offset: Offset | None = None
        self._waker: Any = None
        self._waits_for = ""

    @property
    def offset(self) -> Offset | None:
        """The last measurement; None if there is none, or no other process."""
        if self._thread is not None and self._offset is None:
            self._first_done.wait(0.2)  # a first measurement takes some milliseconds
        return self._offset

    def start(self) -> None:
        """Start measuring, once torch.distributed is initialized."""
        if not self._is_started and not self._stop.is_set() and is_distributed():
            self._is_started = True
            rank_info = current_rank_info()
            if rank_info.world_size > 1:
                self._thread = threading.Thread(
                    target=self._run, args=(rank_info,), name="kinetoscope-clock", daemon=True
                )
                self._thread.start()

    def measure(self) -> None:
        """Request a new measurement soon."""
        self._wake_event.set()

    def close(self) -> None:
        """Stop measuring. A thread that hangs on a network is abandoned.

        Others are joined: a thread that returns from a store while the interpreter ends would abort the process.
        """
        self._stop.set()
        self._wake_event.set()
        thread = self._thread
        if thread is not None and thread.is_alive():
            waker = threading.Thread(target=self._wake, name="kinetoscope-clock-waker", daemon=True)
            waker.start()
            until_s = time.monotonic() + _ENDS_WITHIN_S
            for helper in (thread, waker):
                helper.join(max(0.0, until_s - time.monotonic()))

    def _wake(self) -> None:
        """Write the key that the thread waits for, which then sees that it should end."""
        with contextlib.suppress(RuntimeError):
            if self._waker is not None and self._waits_for:
                self._waker.set(self._waits_for, "0 0")

    def _run(self, rank_info: RankInfo) -> None:
        try:
            store = default_store()
            if store is None:
                return
            mine, self._waker = connection(store), connection(store)
            del store  # it would outlive its process group here
            if rank_info.global_rank == 0:
                self._pong_loop(mine)
            else:
                self._ping_loop(mine, rank_info)
        except Exception as error:  # noqa: BLE001  the store is gone, or of an unknown kind
            _LOG.debug("Clocks are no longer compared: %s", error)
        finally:
            self._first_done.set()

    def _pong_loop(self, store: Any) -> None:
        store.set(f"{self._key}/machine", boot_id())
        self._offset = Offset(offset_ns=0, error_ns=0, method="reference")
        self._first_done.set()
        number, quick_until_s = 1, 0.0
        while not self._stop.is_set():
            # Waiting for a message that doesn't come would make torch write a warning every ten seconds.
            if store.add(f"{self._key}/questions", 0) < number:
                if time.monotonic() > quick_until_s:
                    self._stop.wait(_LOOK_S)
                continue
            self._waits_for = f"{self._key}/asked/{number}"
            with contextlib.suppress(RuntimeError):  # the process that should send it is gone
                pong(store, self._key, number)
            number += 1
            quick_until_s = time.monotonic() + _QUICK_S

    def _ping_loop(self, store: Any, rank_info: RankInfo) -> None:
        here = boot_id()
        while not self._stop.is_set():
            try:
                if store.get(f"{self._key}/machine").decode() == here:
                    self._offset = Offset(offset_ns=0, error_ns=0, method="same machine")
                    return
                self._offset = self._measure(store, f"{self._key}/of/{here}", is_first=not rank_info.local_rank)
                self._first_done.set()
                self._wake_event.wait()
                self._wake_event.clear()
            except RuntimeError:  # no reply
                self._stop.wait(1.0)

    def _measure(self, store: Any, result: str, *, is_first: bool) -> Offset:
        """Measure, or get the measurement of this machine's first process."""
        if is_first:
            exchanges = []
            for _ in range(ROUNDS):
                number = store.add(f"{self._key}/questions", 1)
                self._waits_for = f"{self._key}/answer/{number}"
                exchanges.append(ping(store, self._key, number))
                if self._stop.is_set():
                    raise RuntimeError("too late")
            offset_ns, error_ns = offset_of(exchanges)
            store.set(result, f"{offset_ns} {error_ns} {time.time_ns()}")
        self._waits_for = result
        offset_ns, error_ns, measured_ns = map(int, store.get(result).split())
        return Offset(offset_ns=offset_ns, error_ns=error_ns, measured_ns=measured_ns, method="store ping-pong")
