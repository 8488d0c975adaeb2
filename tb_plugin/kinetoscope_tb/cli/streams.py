"""Standard output and error streams that may be closed, full, or unable to encode some characters."""

from __future__ import annotations

import codecs
import io
import os
import sys
from contextlib import suppress


def prepare_streams() -> bool:
    """Make both streams accept any text; characters that can't be encoded are escaped as in JSON.

    Returns:
        Whether standard output is open. If it is closed, the next opened file would get its descriptor.
    """
    is_open = sys.stdout is not None
    if not is_open:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115  # until the process ends
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115  # as above
    codecs.register_error("json", _as_json)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="json")
    return is_open


def discard_output() -> None:
    """Drop unwritten output, and all that follows."""
    with suppress(OSError, ValueError):  # a stream that is no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _as_json(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{high:02x}{low:02x}" for high, low in zip(units[::2], units[1::2], strict=True)), error.end
