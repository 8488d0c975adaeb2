"""Fingerprint of the writer: keys, categories and number formats that occur in samples of a file's text.

No trace records which torch wrote it. Details that the frames leave out show it, such as keys that nothing here reads
and line breaks; measures/recording/torch_version.py lists which release introduced which. Samples are enough: the
text's start, its end, and a little after every doubling of its length.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..names.regex import regex
from ..trace.meta import WriterFingerprint

_AT_ENDS, _BETWEEN = 1 << 18, 1 << 14
_STARTS_BETWEEN = tuple(1 << power for power in range(20, 44))
_FEWEST_TIMES = 30  # with fewer, that no fraction begins with 0 may be chance

_CUT = b"\0"  # no expression goes over it

_KEY = regex(rb'"([A-Za-z_.][^"\\\n:]{0,40})"\s*:')
_CATEGORY = regex(rb'"cat"\s*:\s*"([^"\n]{1,40})"')
_FRACTION = regex(rb'"(?:ts|dur)"\s*:\s*"?-?\d+(?:\.(\d+))?')
_BASE = b'"baseTimeNanoseconds"'
_FORMS = {
    "text_tid": regex(rb'"tid"\s*:\s*"\d'),
    "one_line": regex(rb'\n  \{\n    "ph": "X", "cat": '),
    "many_lines": regex(rb'\n  \{\n    "ph": "X",\n    "cat": '),
    "compact": regex(rb'\{"ph":"X","cat":'),
    "memory_range": regex(rb'"ph"\s*:\s*"X"\s*,\s*"cat"\s*:\s*"cpu_instant_event"'),
}


class Samples:
    """Samples of a text that passes through; independent of block sizes."""

    def __init__(self) -> None:
        self._length = 0
        self._head = b""
        self._tail = b""
        self._between: dict[int, bytes] = {}

    def pass_on(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """The blocks, each sampled before it is passed on."""
        for block in blocks:
            self._keep(block)
            yield block

    def _keep(self, block: bytes) -> None:
        self._head += block[: _AT_ENDS - len(self._head)]
        self._tail = (self._tail + block if len(block) < _AT_ENDS else block)[-_AT_ENDS:]
        for start in _STARTS_BETWEEN:
            begin, end = start - self._length, start + _BETWEEN - self._length
            if begin < len(block) and end > 0:
                self._between[start] = self._between.get(start, b"") + block[max(begin, 0) : end]
        self._length += len(block)

    def fingerprint(self) -> WriterFingerprint:
        """What occurs in the samples."""
        before, _, events = self._head.partition(b'"traceEvents"')
        behind = max(self._length - len(self._head), 0)
        tail = self._tail[max(len(self._tail) - behind, 0) :]
        text = _CUT.join([events or before, *self._between.values(), tail])
        forms = {name for name, form in _FORMS.items() if form.search(text)}
        if _BASE in before or _BASE in self._tail:
            forms.add("base_first" if _BASE in before else "base_last")
        if form := _form_of_times(_FRACTION.findall(text)):
            forms.add(form)
        return WriterFingerprint(_texts(_KEY.findall(text)), _texts(_CATEGORY.findall(text)), frozenset(forms))


def _form_of_times(fractions: list[bytes]) -> str | None:
    """The format of times: whole microseconds, or decimals without their leading zeros.

    From 2024-03-18 to 2024-04-03 kineto wrote 1 005 ns as 1.5 (from dfd563dd to c4357a90). Such decimals never begin
    with 0 and may end with it, while those of a float written by another tool may begin with 0 and never end with it.
    """
    if not fractions:
        return None
    if not any(fractions):
        return "whole_times"
    longer = [f for f in fractions if len(f) > 1]
    is_bare = len({len(f) for f in fractions}) > 1 and not any(f.startswith(b"0") for f in longer)
    if len(longer) >= _FEWEST_TIMES and is_bare and any(f.endswith(b"0") for f in longer):
        return "bare_fractions"
    return None


def _texts(tokens: Iterable[bytes]) -> frozenset[str]:
    return frozenset(token.decode("utf-8", "replace") for token in set(tokens))
