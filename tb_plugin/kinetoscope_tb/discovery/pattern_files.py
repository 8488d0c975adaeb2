"""Files with users' communication patterns: at the top of a logdir, and in the user's configuration folder."""

from __future__ import annotations

from functools import lru_cache

from platformdirs import user_config_path

from ..errors import TraceError
from ..filesystem import Entry, entry_at, stored_bytes
from ..names.communication_patterns import FILE_NAME, NO_PATTERNS, BadPattern, CommunicationPatterns, parse_patterns
from .listing import Problem

_MOST_BYTES = 1 << 16


def user_patterns() -> tuple[CommunicationPatterns, list[Problem]]:
    """The patterns in the user's configuration folder, and what is wrong with them."""
    try:
        path = user_config_path("kinetoscope", appauthor=False) / FILE_NAME
    except RuntimeError:  # the user has no home folder
        return NO_PATTERNS, []
    entry = entry_at(str(path))
    return (NO_PATTERNS, []) if entry is None else patterns_in(entry, f"{FILE_NAME} of the user's configuration")


def patterns_in(entry: Entry, name: str) -> tuple[CommunicationPatterns, list[Problem]]:
    """The patterns in a file, and what is wrong with it; the other lines of the file still count."""
    try:
        patterns, bad = _parse(entry.path, str(entry.stamp))
    except TraceError as error:
        return NO_PATTERNS, [Problem(name, f"Its communication patterns can't be read: {error.problem}")]
    except ValueError as error:
        return NO_PATTERNS, [Problem(name, f"Its communication patterns can't be used: {error}")]
    return patterns, [Problem(name, f"Line {line.line}: {line.reason}") for line in bad]


@lru_cache(64)
def _parse(path: str, stamp: str) -> tuple[CommunicationPatterns, list[BadPattern]]:  # noqa: ARG001  # of the file
    """The patterns in a file; compiling some takes seconds, and logdirs are listed all the time.

    Raises:
        TraceError: It can't be read.
        ValueError: It isn't a text of at most 64 KiB.
    """
    content = stored_bytes(path, 0, _MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ValueError("the file is longer than 64 KiB. Shorten it.")
    try:
        return parse_patterns(content.decode("utf-8-sig").splitlines())
    except UnicodeDecodeError:
        raise ValueError("the file isn't UTF-8 text. Save it as UTF-8.") from None
