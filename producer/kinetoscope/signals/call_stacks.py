"""Call stacks of this process's threads, read from another thread without stopping them, and how long a call lasts."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import process_id

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

MOST_FRAMES = 64
_LONGEST_TEXT = 300
_TORCH = "torch.distributed.distributed_c10d"
_IMPORT_SYSTEM = ("importlib._bootstrap", "importlib._bootstrap_external")
_PEER_ARGUMENTS = {"send": ("dst", "group_dst"), "recv": ("src", "group_src")}


class Call(NamedTuple):
    """A line that a thread is at: the innermost one, or one that calls the next.

    Args:
        file: The source file.
        line: The line.
        function: The module and name of the function that the line is in.
    """

    file: str
    line: int
    function: str


def call_stack(frame: FrameType | None) -> list[Call]:
    """Return the calls of a frame and of those that it was called from, the innermost first.

    Of the calls of Python's import system only the one by which an import begins is returned: modules that import
    others would fill the stack with them.
    """
    calls: list[Call] = []
    while frame is not None and len(calls) < MOST_FRAMES:
        caller = frame.f_back
        if not (_is_of_import_system(frame) and _is_of_import_system(caller)):
            calls.append(call_of(frame, frame.f_lineno))
        frame = caller
    return calls


def _is_of_import_system(frame: FrameType | None) -> bool:
    return frame is not None and frame.f_globals.get("__name__") in _IMPORT_SYSTEM


def call_of(frame: FrameType, line: int | None) -> Call:
    """Return the call of a frame that is at a line."""
    code = frame.f_code
    name = getattr(code, "co_qualname", code.co_name)  # Python 3.11
    function = f"{frame.f_globals.get('__name__')}.{name}"
    return Call(code.co_filename[-_LONGEST_TEXT:], line or 0, function[-_LONGEST_TEXT:])


def thread_frame(ident: int | None) -> FrameType | None:
    """Return the innermost frame of a thread; None if the interpreter doesn't know it."""
    return None if ident is None else sys._current_frames().get(ident)


def frames_by_tid() -> dict[int, tuple[str, FrameType]]:
    """Return the name and the innermost frame of each Python thread by its native id; this thread is left out."""
    frames, own = sys._current_frames(), threading.get_ident()
    threads = [thread for thread in threading.enumerate() if thread.ident in frames and thread.ident != own]
    return {_native_id(thread): (thread.name, frames[thread.ident or 0]) for thread in threads}


def _native_id(thread: threading.Thread) -> int:
    """Return a thread's native id; in a forked process, Python has that of its parent for the main thread."""
    is_main = thread is threading.main_thread() and sys.platform == "linux"
    return process_id.pid if is_main else thread.native_id or 0


def message(frame: FrameType | None) -> dict[str, Any] | None:
    """Return the send or receive of torch.distributed that a thread is in, and the other rank, which may be None.

    torch 2.13's flight recorder doesn't record those of gloo.
    """
    while frame is not None:
        operation = frame.f_code.co_name
        if operation in _PEER_ARGUMENTS and frame.f_globals.get("__name__") == _TORCH:
            values = frame.f_locals
            rank, group_rank = (values.get(name) for name in _PEER_ARGUMENTS[operation])
            return {"operation": operation, "peer": _global_rank(rank, values.get("group"), group_rank)}
        frame = frame.f_back
    return None


def _global_rank(rank: object, group: Any, group_rank: object) -> int | None:
    if isinstance(rank, int) or not isinstance(group_rank, int):
        return rank if isinstance(rank, int) else None
    dist = sys.modules["torch.distributed"]  # whose call this is
    try:
        return group_rank if group is None else dist.get_global_rank(group, group_rank)
    except (ValueError, RuntimeError, KeyError):  # a group that was destroyed
        return None


class CallTimes:
    """How long a thread has been in each of its calls, as far as it was looked at.

    Args:
        clock: Returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._calls: list[Call] = []  # the outermost first
        self._since: list[float] = []

    def update(self, calls: list[Call]) -> None:
        """Compare a stack, the innermost call first, with the last one: a call lasts while all outside of it do.

        A function that goes on to its next line is in the same call, but the line's call is another one.
        """
        outermost_first, now, count = calls[::-1], self._clock(), 0
        for before, after in zip(self._calls, outermost_first, strict=False):
            if before != after:
                break
            count += 1
        self._calls = outermost_first
        self._since = [*self._since[:count], *[now] * (len(calls) - count)]

    def lines(self) -> list[list[Any]]:
        """Return file, line, function and seconds of each call, the innermost first: it has lasted so long at least."""
        now = self._clock()
        pairs = zip(self._calls, self._since, strict=True)
        return [[*call, round(now - since, 1)] for call, since in pairs][::-1]
