"""Who may touch a recording: torch.profiler belongs to the thread that started it, and crashes on any other."""

from __future__ import annotations

import os
import threading

from ..errors import UsageError


class Owner:
    """The process and the thread that entered a Tracer; nobody before that."""

    def __init__(self) -> None:
        self.ids: tuple[int, int] | None = None
        """The numbers of the process and the thread."""

    def take(self) -> tuple[int, int]:
        """Make this process and this thread the owner; return their numbers."""
        self.ids = _here()
        return self.ids

    @property
    def is_here(self) -> bool:
        """Whether this thread is the owner."""
        return self.ids == _here()

    @property
    def is_alive(self) -> bool:
        """Whether this process is the owner's."""
        return self.ids is not None and self.ids[0] == os.getpid()

    @property
    def is_forked(self) -> bool:
        """Whether the owner's process forked this one, which leaves its blocks too: nothing here is its own."""
        return self.ids is not None and self.ids[0] != os.getpid()

    def check(self, what: str) -> None:
        """Check that this thread is the owner.

        Args:
            what: What it is about to do, in words.

        Raises:
            UsageError: Another one is, or nobody.
        """
        if self.ids == (os.getpid(), threading.get_ident()):
            return
        if self.ids is None:
            raise UsageError(f"A Tracer can't {what} outside its `with`.")
        raise UsageError(f"Only the thread that entered a Tracer can {what}: torch.profiler belongs to it.")


def _here() -> tuple[int, int]:
    return os.getpid(), threading.get_ident()
