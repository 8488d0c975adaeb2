"""What `Tracer(memory_history=…)` records of torch's allocator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from ..errors import UsageError

When = Literal["windows", "always"]
Stacks = Literal["python", "all"]


@dataclass(frozen=True, kw_only=True)
class MemoryHistory:
    """What to record of the allocations of a device.

    torch keeps the newest entries in memory of the host. An entry is an allocation, a release, or a change of a
    segment.

    Args:
        when: `always`: from the start of the recording on; `windows`: only in windows and the warm-up before them.
        max_entries: How many entries torch keeps, per device.
        stacks: `python`: the Python calls that led to each entry; `all`: those of C++ too, which cost several times as
            much.

    Raises:
        UsageError: An invalid value.
    """

    when: When = "always"
    max_entries: int = 100_000
    stacks: Stacks = "python"

    def __post_init__(self) -> None:
        for name, value, choices in (("when", self.when, get_args(When)), ("stacks", self.stacks, get_args(Stacks))):
            if value not in choices:
                raise UsageError(f"{name}={value!r}: it is {' or '.join(map(repr, choices))}.")
        if not isinstance(self.max_entries, int) or isinstance(self.max_entries, bool) or self.max_entries < 1:
            raise UsageError(f"max_entries={self.max_entries!r}: it is how many entries torch keeps, at least 1.")


def parse_memory_history(value: MemoryHistory | str | None) -> MemoryHistory | None:
    """Return the history that an argument of Tracer describes.

    Raises:
        UsageError: It describes none.
    """
    if value is None or isinstance(value, MemoryHistory):
        return value
    choices: tuple[When, ...] = get_args(When)
    for when in choices:
        if value == when:
            return MemoryHistory(when=when)
    raise UsageError(f"memory_history={value!r}: it is 'always', 'windows', a MemoryHistory(…), or None.")
