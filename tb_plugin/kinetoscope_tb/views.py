"""What a view is: a pure function of a trace that returns a table, and the words that the page needs to offer it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol, get_args, get_origin, get_type_hints

import polars as pl

from .docstrings import docstring
from .errors import BadParameter
from .tables import Table

Group = Literal["Overview", "Host", "Device", "Memory", "Run"]
Within = Literal["rows", "windows", "recording", "steps", "moments"]
Scope = Literal["recording", "span", "run"]


_BASE = ("base_run", "base_worker", "base_span")
# What else a question or a command holds.
_RESERVED = {*_BASE, "view", "run", "worker", "span", "path", "form", "format", "columns"}
_INTEGER = re.compile(r"-?[0-9]{1,18}")


class Recorded(Protocol):
    """What a view is a function of: a Trace, or the Ranks of a run."""

    def holds(self, part: str, /) -> bool:
        """Whether that part isn't empty."""


class Shared(Protocol):
    """What several views of a trace begin with."""

    @property
    def held_bytes(self) -> int:
        """How much memory it takes."""


@dataclass(frozen=True)
class Parameter:
    """One keyword-only argument of a view; it chooses rows, never columns.

    A `choice` takes one of `choices` (the default first). A `number` and a `text` have none, and choose nothing unless
    they are given.
    """

    name: str
    kind: Literal["choice", "number", "text"]
    choices: tuple[str, ...] = ()

    def parsed(self, value: str) -> str | int:
        """Return the argument that `value` stands for.

        Raises:
            BadParameter: It is no such choice, or no integer.
        """
        if self.kind == "choice" and value not in self.choices:
            raise BadParameter(f"{self.name}={value!r} is not possible; choose one of {', '.join(self.choices)}.")
        if self.kind == "number" and not _INTEGER.fullmatch(value):
            raise BadParameter(f"{self.name}={value!r} is not possible; it is an integer of at most 18 digits.")
        return int(value) if self.kind == "number" else value


def _parameter(view: str, argument: inspect.Parameter, hint: Any) -> Parameter:
    name, default = argument.name, argument.default
    if name in _RESERVED:
        raise TypeError(f"{view}({name}=): every question has a {name!r} already; call the parameter something else")
    if get_origin(hint) is Literal:
        return Parameter(name, "choice", (default, *(v for v in get_args(hint) if v != default)))
    if default is None and hint in (int | None, str | None):
        return Parameter(name, "number" if hint == int | None else "text")
    raise TypeError(f"{view}({name}=) must be a Literal, or int | None or str | None with the default None")


@dataclass(frozen=True)
class View:
    """One view. Its id is the name of its function, of its module, of its URL and of its golden files.

    Args:
        run: The function: `run(trace, *, parameter=...)` returns the frame; beyond one recording `run(ranks, …)`.
        table: The frame's schema and definitions.
        title: What the page calls it.
        group: The heading that it stands under.
        needs: The part of the trace that must not be empty; None if any trace will do.
        hint: What to say when there is nothing to show: usually the recording option that would have filled the part.
        variant_of: The id of the view that this one splits further; it is offered there under Group By.
        variant: What Group By calls it.
        part_of: The id of the view on whose page this one is drawn too, below it; it isn't in the list of views.
        detail_of: The id of the view whose opened row shows this one, called with the row's key columns that it has
            parameters for; a variant's rows show it too. It isn't in the list of views.
        within: What it looks at when it is asked about some steps alone, as comparing does: the `rows` that belong to
            them, or whatever is active in their `windows` (for what is measured along the time axis). A view of the
            whole `recording` can't be asked that, nor can one whose rows are `steps` or `moments`.
        shares: Makes what the function and those of other views begin with; whoever computes several views of a trace
            at the same time has it made first, once. It keeps what it made with the trace.
        scope: What it is a function of: one `recording` (a Trace), or Ranks: all workers' recordings of the same
            `span`, or every recording of the `run`.
    """

    run: Callable[..., pl.DataFrame]
    table: type[Table]
    title: str
    group: Group
    needs: str | None = None
    hint: str = ""
    variant_of: str | None = None
    variant: str = ""
    part_of: str | None = None
    detail_of: str | None = None
    within: Within = "rows"
    scope: Scope = "recording"
    shares: Callable[..., Shared] | None = None

    @property
    def id(self) -> str:
        """The view's name everywhere."""
        return self.run.__name__

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The keyword-only arguments of `run`."""
        hints = get_type_hints(self.run)
        keywords = [p for p in inspect.signature(self.run).parameters.values() if p.kind is p.KEYWORD_ONLY]
        return tuple(_parameter(self.id, p, hints[p.name]) for p in keywords)

    def arguments(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Return `query` as arguments of `run`.

        Raises:
            BadParameter: A name or a value that the view doesn't take.
        """
        known = {p.name: p for p in self.parameters}
        for name in query:
            if name not in known:
                takes = f"it takes {', '.join(known)}" if known else "it takes none"
                raise BadParameter(f"The view {self.id!r} has no parameter {name!r}; {takes}.")
        return {name: known[name].parsed(value) for name, value in query.items()}

    def is_missing(self, recorded: Recorded) -> bool:
        """Whether the trace, or the run, lacks what the view needs."""
        return self.needs is not None and not recorded.holds(self.needs)

    def describe(self) -> dict[str, Any]:
        """All that a client needs to offer and draw the view, as JSON values."""
        table = self.table
        return {
            "id": self.id,
            "title": self.title,
            "group": self.group,
            "doc": docstring(table),
            "variant_of": self.variant_of,
            "variant": self.variant,
            "part_of": self.part_of,
            "detail_of": self.detail_of,
            "within": self.within,
            "scope": self.scope,
            "hint": self.hint,
            "parameters": [{"name": p.name, "kind": p.kind, "choices": list(p.choices)} for p in self.parameters],
            "columns": column_descriptions(table),
            "key": list(table.key),
            "weight": table.weight,
            "charts": list(table.charts),
            "parent": table.parent,
            "flames": list(table.flames),
            "curves": list(table.curves),
            "series": list(table.series),
            "marks": table.marks,
            "matrix": None if table.matrix is None else list(table.matrix),
            "bins": None if table.bins is None else list(table.bins),
        }


def column_descriptions(table: type[Table]) -> list[dict[str, str]]:
    """Name, kind and definition of each column, as JSON values."""
    return [{"name": c.name, "kind": c.kind.name, "doc": c.doc} for c in table.columns]


def catalogue(views: Iterable[View]) -> list[dict[str, Any]]:
    """Every view's description, in the order of the page."""
    return [view.describe() for view in views]
