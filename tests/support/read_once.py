"""Files that are each read once in a process: real traces, against which many laws are held, and those of many commands."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from kinetoscope_tb import reader
from kinetoscope_tb.reader import read, read_each

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kinetoscope_tb.trace import Trace

read_once = cache(read)


@cache
def _traces(path: str, first: str | None) -> list[Trace]:
    return [*read_each(path, first)]


def _read_each_once(path: str, first: str | None = None, **_options: Any) -> Iterator[Trace]:
    yield from _traces(path, first)


@pytest.fixture
def shared_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets all commands of all tests that want it share what they read and compute of files that stay as they are."""
    monkeypatch.setattr(reader, "read_each", _read_each_once)
