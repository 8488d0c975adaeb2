"""Regular expressions that are compiled at their first use: one command needs few of the viewer's 290."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, AnyStr, cast


class _Regex:
    """What stands for a pattern; after the first call of a method, that is the pattern's own."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self.pattern, self._flags = pattern, flags

    @cached_property
    def _expression(self) -> re.Pattern[Any]:
        return re.compile(self.pattern, self._flags)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._expression, name)
        setattr(self, name, value)
        return value


def regex(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """The regular expression, as `re.compile` makes it, for a constant of a module."""
    return cast("re.Pattern[AnyStr]", _Regex(pattern, flags))
