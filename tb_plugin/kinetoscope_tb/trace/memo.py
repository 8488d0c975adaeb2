"""Functions of a trace whose results are cached with it (`Trace.results`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Concatenate, ParamSpec, TypeVar

from .model import Trace

Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")
OfTrace = Callable[Concatenate[Trace, Arguments], Value]


def once_per_trace(compute: OfTrace[Arguments, Value]) -> OfTrace[Arguments, Value]:
    """Decorate a function of a trace and of hashable arguments; results must not refer to the trace."""

    @wraps(compute)
    def result(trace: Trace, /, *arguments: Arguments.args, **keywords: Arguments.kwargs) -> Value:
        call = partial(compute, trace, *arguments, **keywords) if keywords else None
        value: Value = trace.results.get(compute, *arguments, *keywords.items(), compute=call).result()
        return value

    return result


def once_per_recording(compute: OfTrace[Arguments, Value]) -> OfTrace[Arguments, Value]:
    """The same for a function of what was recorded alone: it is computed before captures are known, and not again."""
    of_trace = once_per_trace(compute)

    @wraps(compute)
    def result(trace: Trace, /, *arguments: Arguments.args, **keywords: Arguments.kwargs) -> Value:
        return of_trace(trace.recording, *arguments, **keywords)

    return result
