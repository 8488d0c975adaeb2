"""How a memory snapshot of torch's allocators begins: a pickle with its first keys, or a page of memory_viz."""

from __future__ import annotations

from ..names.regex import regex

_PAGE = regex(rb"\s*<")
_VIEWER = b"MemoryViz.js"
_PROTOCOLS = (2, 3, 4, 5)
_SEARCHED = 1 << 12


def begins_snapshot(start: bytes) -> bool:
    """Whether a text that begins like this is a memory snapshot."""
    is_pickle = len(start) > 1 and start[0] == 0x80 and start[1] in _PROTOCOLS
    is_dict = any(key in start[:64] for key in (b"segments", b"device_traces"))
    return begins_page(start) or (is_pickle and (is_dict or b"total_size" in start[:_SEARCHED]))


def begins_page(start: bytes) -> bool:
    """Whether it is a page that `torch.cuda._memory_viz` wrote, with a snapshot in base64."""
    return _PAGE.match(start) is not None and _VIEWER in start[:_SEARCHED]
