"""The owner of a recording: torch.profiler belongs to the thread that started it, and crashes on any other."""

from __future__ import annotations

from threading import get_ident

from .. import process_id
from ..errors import UsageError


class Owner:
    """The process and the thread that entered a Tracer; none before that."""

    def __init__(self) -> None:
        self.ids: tuple[int, int] | None = None
        """The ids of the process and the thread."""

    def take(self) -> tuple[int, int]:
        """Make this process and this thread the owner; return their ids."""
        self.ids = _here()
        return self.ids

    @property
    def is_here(self) -> bool:
        """Whether this thread is the owner."""
        return self.ids == _here()

    @property
    def is_alive(self) -> bool:
        """Whether this process is the owner's."""
        return self.ids is not None and self.ids[0] == process_id.pid

    @property
    def is_forked(self) -> bool:
        """Whether this process was forked from the owner's: it may leave the Tracer's `with` too, but owns nothing."""
        return self.ids is not None and self.ids[0] != process_id.pid

    def check(self, what: str) -> None:
        """Check that this thread is the owner.

        Args:
            what: The action, for the message.

        Raises:
            UsageError: It isn't.
        """
        if self.ids == (process_id.pid, get_ident()):
            return
        if self.ids is None:
            raise UsageError(f"A Tracer can't {what} outside its `with`.")
        raise UsageError(f"Only the thread that entered a Tracer can {what}: torch.profiler belongs to it.")


def _here() -> tuple[int, int]:
    return process_id.pid, get_ident()
