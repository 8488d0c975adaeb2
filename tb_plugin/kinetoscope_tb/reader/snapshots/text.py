"""Where the pickle of a snapshot is: the file itself, or base64 in a page that `torch.cuda._memory_viz` wrote."""

from __future__ import annotations

import binascii
from collections.abc import Iterable, Iterator

from ...names.regex import regex

_BASE64 = regex(rb'"base64"\s*:\s*"')
_NO_BASE64 = regex(rb"[^A-Za-z0-9+/=]")


def pickle_blocks(blocks: Iterable[bytes], *, is_page: bool) -> Iterator[bytes]:
    """The pickle in blocks."""
    yield from _base64_text(blocks) if is_page else blocks


def _base64_text(blocks: Iterable[bytes]) -> Iterator[bytes]:
    text, has_begun = b"", False
    for block in blocks:
        text += block
        if not has_begun:
            match = _BASE64.search(text)
            if match is None:
                text = text[-64:]
                continue
            text, has_begun = text[match.end() :], True
        end = _NO_BASE64.search(text)
        whole = text[: end.start()] if end else text
        count = len(whole) - len(whole) % 4
        yield binascii.a2b_base64(whole[:count])
        if end:
            return
        text = whole[count:]
