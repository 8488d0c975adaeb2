"""Checks of arguments that programs written for torch.profiler or Composer get wrong, with what to write instead."""

from __future__ import annotations

import difflib
import functools
from inspect import signature
from os import PathLike
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from .errors import UnknownArgumentError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C")


def explain_unknown(name: str, replacements: Mapping[str, str]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator: an unknown keyword argument raises an error that says what to write instead.

    Args:
        name: The function's name for users.
        replacements: What to write instead of other libraries' keywords.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        names = [parameter for parameter in signature(function).parameters if parameter != "self"]

        @functools.wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
            unknown_name = next((keyword for keyword in kwargs if keyword not in names), None)
            if unknown_name is not None:
                hint = replacements.get(unknown_name) or _nearest(unknown_name, names)
                raise UnknownArgumentError(f"{name}() has no argument {unknown_name!r}{hint and ': write '}{hint}.")
            return function(*args, **kwargs)

        return wrapper

    return decorate


def _nearest(keyword: str, names: list[str]) -> str:
    """Return the most similar argument, as it is written in a call; empty if there is none."""
    similar = difflib.get_close_matches(keyword, names, 1)
    return f"{similar[0]}=…" if similar else ""


def checked_callback(name: str, callback: C, factories: Mapping[object, str] | None = None) -> C:
    """Return a callback of the program, or None.

    Args:
        name: The argument's name.
        callback: Its value.
        factories: The functions that return callbacks, with how each is called: programs forget the call.

    Raises:
        UsageError: It isn't callable, or is one of `factories`.
    """
    if callback is not None and not callable(callback):
        hint = f" A folder goes into {_HANDLER}." if isinstance(callback, (str, PathLike)) else ""
        raise UsageError(f"{name}={callback!r} isn't callable.{hint}")
    call = next((call for factory, call in (factories or {}).items() if callback is factory), None)
    if call is not None:
        raise UsageError(f"{name}: that function returns the callback; call it: {name}={call}.")
    return callback


_HANDLER = "on_trace_ready=tensorboard_trace_handler('runs') of `profile`, or is Tracer's first argument"
