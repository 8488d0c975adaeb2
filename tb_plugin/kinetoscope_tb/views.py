"""What a view is: a pure function of a trace that returns a table, and the words that the page needs to offer it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args, get_type_hints

import polars as pl

from .errors import BadParameter
from .tables import Table
from .trace import Trace

Group = Literal["Overview", "Host", "Device", "Memory", "Run"]


@dataclass(frozen=True)
class Parameter:
    """One keyword-only argument of a view: the allowed values (the default first) and what it does."""

    name: str
    choices: tuple[str, ...]


@dataclass(frozen=True)
class View:
    """One view. Its id is the name of its function, of its module, of its URL and of its golden files.

    Args:
        run: The function: `run(trace, *, parameter=...)` returns the frame.
        table: The frame's schema and definitions.
        title: What the page calls it.
        group: The heading that it stands under.
        needs: The part of the trace that must not be empty; None if any trace will do.
        hint: What to say when there is nothing to show: usually the recording option that would have filled the part.
        variant_of: The id of the view that this one splits further; it is offered there under Group By.
        variant: What Group By calls it.
    """

    run: Callable[..., pl.DataFrame]
    table: type[Table]
    title: str
    group: Group
    needs: str | None = None
    hint: str = ""
    variant_of: str | None = None
    variant: str = ""

    @property
    def id(self) -> str:
        """The view's name everywhere."""
        return self.run.__name__

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The keyword-only arguments of `run`; each is annotated with a Literal."""
        hints = get_type_hints(self.run)
        keywords = [p for p in inspect.signature(self.run).parameters.values() if p.kind is p.KEYWORD_ONLY]
        return tuple(
            Parameter(p.name, (p.default, *(v for v in get_args(hints[p.name]) if v != p.default))) for p in keywords
        )

    def arguments(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Return `query` as arguments of `run`.

        Raises:
            BadParameter: A name or a value that the view doesn't take.
        """
        known = {p.name: p.choices for p in self.parameters}
        for name, value in query.items():
            if name not in known:
                takes = f"it takes {', '.join(known)}" if known else "it takes none"
                raise BadParameter(f"The view {self.id!r} has no parameter {name!r}; {takes}.")
            if value not in known[name]:
                raise BadParameter(f"{name}={value!r} is not possible; choose one of {', '.join(known[name])}.")
        return dict(query)

    def is_missing(self, trace: Trace) -> bool:
        """Whether the trace lacks what the view needs."""
        return self.needs is not None and not trace.holds(self.needs)

    def describe(self) -> dict[str, Any]:
        """All that a client needs to offer and draw the view, as JSON values."""
        table = self.table
        return {
            "id": self.id,
            "title": self.title,
            "group": self.group,
            "doc": inspect.cleandoc(table.__doc__ or ""),
            "variant_of": self.variant_of,
            "variant": self.variant,
            "hint": self.hint,
            "parameters": [{"name": p.name, "choices": list(p.choices)} for p in self.parameters],
            "columns": column_descriptions(table),
            "key": list(table.key),
            "weight": table.weight,
            "charts": list(table.charts),
        }


def column_descriptions(table: type[Table]) -> list[dict[str, str]]:
    """Name, kind and definition of each column, as JSON values."""
    return [{"name": c.name, "kind": c.kind.name, "doc": c.doc} for c in table.columns]


def catalogue(views: Iterable[View]) -> list[dict[str, Any]]:
    """Every view's description, in the order of the page."""
    return [view.describe() for view in views]
