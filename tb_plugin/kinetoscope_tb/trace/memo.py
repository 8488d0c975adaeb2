"""Results about a trace that several callers need, each computed once and cached as long as the trace exists."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from functools import update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar
from weakref import ref

from .model import Trace

Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")


class OncePerTrace(Generic[Arguments, Value]):
    """A function of a trace and of hashable arguments that is computed once for each."""

    def __init__(self, compute: Callable[Concatenate[Trace, Arguments], Value], *, of_recording: bool = False) -> None:
        self._compute, self._of_recording, self._memo = compute, of_recording, _Memo()
        _memos.append(self._memo)
        update_wrapper(self, compute)

    def __call__(self, trace: Trace, /, *arguments: Arguments.args, **named: Arguments.kwargs) -> Value:
        """The result, computed at the first call."""
        trace = trace.recording if self._of_recording else trace
        key = (arguments, tuple(sorted(named.items())))
        value: Value = self._memo.result(trace, key, lambda: self._compute(trace, *arguments, **named))
        return value

    def remember(self, trace: Trace, value: Value) -> None:
        """Take a value that is known already, of another trace that differs in nothing that the function looks at."""
        self._memo.result(trace.recording if self._of_recording else trace, ((), ()), lambda: value)


def once_per_trace(compute: Callable[Concatenate[Trace, Arguments], Value]) -> OncePerTrace[Arguments, Value]:
    """Decorate a function of a trace and of hashable arguments; results must not refer to the trace."""
    return OncePerTrace(compute)


def once_per_recording(
    compute: Callable[Concatenate[Trace, Arguments], Value],
) -> OncePerTrace[Arguments, Value]:
    """The same for a function of what was recorded alone: it is computed before captures are known, and not again."""
    return OncePerTrace(compute, of_recording=True)


def results_about(trace: Trace) -> list[Any]:
    """All results that are cached with a trace."""
    return [value for memo in _memos for value in memo.values(trace)]


class _Results:
    """The results about one trace; the lock is held while one is computed, so others wait for it."""

    def __init__(self, trace: Trace, forget: Callable[[ref[Trace]], None]) -> None:
        self.of = ref(trace, forget)
        self.lock = threading.RLock()
        self.values: dict[Hashable, Any] = {}


class _Memo:
    """Results by trace: a dictionary with weak keys that are compared by identity.

    `WeakKeyDictionary` compares keys by equality, which frames don't support.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a trace may be garbage-collected while this thread holds it
        self._results: dict[int, _Results] = {}

    def result(self, trace: Trace, key: Hashable, compute: Callable[[], Any]) -> Any:
        """The result with this key, computed at the first call."""
        results = self._of(trace)
        with results.lock:
            if key not in results.values:
                results.values[key] = compute()
            return results.values[key]

    def values(self, trace: Trace) -> list[Any]:
        """The results that are there."""
        with self._lock:
            results = self._results.get(id(trace))
        return [] if results is None or results.of() is not trace else list(results.values.values())

    def _of(self, trace: Trace) -> _Results:
        key = id(trace)

        def forget(of: ref[Trace]) -> None:
            with self._lock:
                results = self._results.get(key)
                if results is not None and results.of is of:
                    del self._results[key]

        with self._lock:
            results = self._results.get(key)
            if results is None or results.of() is not trace:
                results = self._results[key] = _Results(trace, forget)
            return results


_memos: list[_Memo] = []  # one for each decorated function
