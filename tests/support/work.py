"""How much work a call does, counted and never timed: the same number on every machine.

Counted are the calls of Python functions and what they are given to look at: the rows of arrays that numpy gets, those
of frames that Polars gets, the bytes of texts that our own functions get, and the items of what Python copies, sorts or
adds up. What compiled code does with them is taken for one look at all of it.
"""

from __future__ import annotations

import builtins
import gc
import itertools
import sys
import threading
from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import CodeType, FrameType

OURS = "kinetoscope_tb"
_LOOKED_UP = frozenset({"searchsorted", "take"})  # what these get first is looked up in, not looked at
_OF_FRAMES = frozenset(  # what looks at all rows of a frame or a column
    {"filter", "sort", "group_by", "join", "with_columns", "select", "unique", "cast", "is_in", "sum", "min", "max"}
    | {"concat", "explode", "arg_sort", "to_list", "n_unique", "rank", "replace", "replace_strict", "fill_null"}
    | {"drop_nulls", "partition_by", "is_duplicated", "with_row_index", "value_counts"}
)
_IS_GENERATOR = 0x20  # in the flags of a function's code
_TEXTS = (bytes, bytearray, memoryview)
_COPIED = ("list", "tuple", "set", "dict", "frozenset")
_WALKED = ("sum", "min", "max", "any", "all", "sorted")


class Work:
    """What was counted, by thread, since two threads can't count in one number."""

    def __init__(self) -> None:
        self._by_thread: dict[int, int] = defaultdict(int)
        self._looked_at: dict[CodeType, tuple[tuple[str, ...], Any]] = {}

    @property
    def total(self) -> int:
        return sum(self._by_thread.values())

    def add(self, count: int) -> None:
        self._by_thread[threading.get_ident()] += count

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        """What sys.setprofile calls."""
        if event != "call":
            return
        known = self._looked_at.get(frame.f_code)
        if known is None:
            known = self._looked_at[frame.f_code] = _arguments_looked_at(frame)
        names, kinds = known
        count = 1
        if names:
            values = frame.f_locals
            for name in names:
                if isinstance(value := values.get(name), kinds):
                    count += _size(value)
        self._by_thread[threading.get_ident()] += count


def _arguments_looked_at(frame: FrameType) -> tuple[tuple[str, ...], Any]:
    """The names of the arguments whose size is work for a function, and of which types they then are."""
    code, module = frame.f_code, frame.f_globals.get("__name__", "").split(".")[0]
    kinds = {OURS: _TEXTS, "numpy": np.ndarray, "polars": (pl.DataFrame, pl.Series)}.get(module)
    is_of_part = module == "polars" and code.co_name not in _OF_FRAMES
    if kinds is None or is_of_part or code.co_flags & _IS_GENERATOR:  # a generator is called for each of its items
        return (), ()
    names = code.co_varnames[: code.co_argcount]
    return names[1:] if code.co_name in _LOOKED_UP else names, kinds


def _size(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return int(value.size)
    return len(value)


def _copying(kind: type, work: Work) -> type:
    """A class that stands for a built-in one in a module, and counts what it copies."""

    class Meta(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, kind)

        def __call__(cls, *arguments: Any, **named: Any) -> Any:
            made = kind(*arguments, **named)
            work.add(len(made))
            return made

        def __getattr__(cls, name: str) -> Any:
            return getattr(kind, name)

        def __getitem__(cls, items: Any) -> Any:
            return kind[items]  # type: ignore[index]

    return Meta(kind.__name__, (), {})


def _walking(function: Callable[..., Any], work: Work) -> Callable[..., Any]:
    def walked(first: Any, *others: Any, **named: Any) -> Any:
        return function(first if others else _counted(first, work), *others, **named)

    return walked


def _counted(items: Iterable[Any], work: Work) -> Iterator[Any]:
    for item in items:
        work.add(1)
        yield item


@contextmanager
def _standing_in(work: Work) -> Iterator[None]:
    stand_ins = {name: _copying(getattr(builtins, name), work) for name in _COPIED}
    stand_ins |= {name: _walking(getattr(builtins, name), work) for name in _WALKED}
    changed = []
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == OURS:
            for builtin, stand_in in stand_ins.items():
                if builtin not in vars(module):
                    setattr(module, builtin, stand_in)
                    changed.append((module, builtin))
    try:
        yield
    finally:
        for module, builtin in changed:
            delattr(module, builtin)


def work_of(function: Callable[[], object]) -> int:
    """The work that a call does."""
    (work,) = work_of_each([function])
    return work


def work_of_each(functions: Iterable[Callable[[], object]]) -> list[int]:
    """The work that each of some calls does, one after the other: all that they need is imported."""
    work, totals = Work(), [0]
    gc.disable()  # what a collection would finalize isn't this call's work
    with _standing_in(work):
        threading.setprofile(work.note)
        try:
            for function in functions:
                sys.setprofile(work.note)
                function()
                sys.setprofile(None)
                totals.append(work.total)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]
            gc.enable()
    return [after - before for before, after in itertools.pairwise(totals)]
