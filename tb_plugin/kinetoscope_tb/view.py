"""What a view is: a pure function of a trace that returns a table, and the words that the page needs to offer it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol, get_args, get_origin, get_type_hints

import polars as pl

from . import pictures
from .docstrings import docstring
from .errors import BadParameter
from .table import DURATION, ID, INSTANT, TEXT, Kind, Table
from .trace.row_filters import Events, Key

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
class Listed:
    """In the list of views.

    Args:
        label: What Group By calls it, if it has variants.
    """

    kind: ClassVar = "listed"
    label: str = ""


@dataclass(frozen=True)
class Variant:
    """Under Group By of a view that it splits further, and under the label there."""

    kind: ClassVar = "variant"
    of: str
    label: str


@dataclass(frozen=True)
class Part:
    """On the page of another view, below it."""

    kind: ClassVar = "part"
    of: str


@dataclass(frozen=True)
class Detail:
    """In an opened row of a view or of its variants: called with the row's key columns that it has parameters for."""

    kind: ClassVar = "detail"
    of: str


Place = Listed | Variant | Part | Detail


@dataclass(frozen=True)
class Slices:
    """Which events of the trace a row of a view stands for: the timeline shows them.

    Args:
        events: The resolver, a pure function of the trace and the values of the table's key columns. It knows no
            timeline; the timeline knows which slice each event is.
        are_highlighted: Whether the page highlights them when it opens a row in the timeline; else it only goes to the
            row's time.
        except_kind: Rows with this value in the column `kind` have none, since they sum up the rest of a table.
        category: The category of all of them, if they have one name and that is what the view's filter finds.
        panel: The panel of the timeline that lists the rows too.
    """

    events: Callable[[Any, Key], Events]
    are_highlighted: bool = True
    except_kind: str | None = None
    category: str | None = None
    panel: Literal["gaps"] | None = None

    def describe(self) -> dict[str, Any]:
        """What a client needs to ask for the slices of a row, as JSON values."""
        return {
            "are_highlighted": self.are_highlighted,
            "except_kind": self.except_kind,
            "category": self.category,
            "panel": self.panel,
        }


@dataclass(frozen=True)
class RowTime:
    """The columns that say when a row was: a moment, or a time with a length or an end.

    Args:
        begin: The instant at which it begins.
        length: How long it lasts; a row without a value has no time.
        end: The instant at which it ends; without a value the row is a moment.
        worker: In whose recording the times are, if not in that which is open.
    """

    begin: str
    length: str | None = None
    end: str | None = None
    worker: str | None = None

    def kinds(self) -> list[tuple[str, Kind]]:
        """The columns, each with the kind that it must be of."""
        named = ((self.begin, INSTANT), (self.length, DURATION), (self.end, INSTANT), (self.worker, TEXT))
        return [(name, kind) for name, kind in named if name is not None]


@dataclass(frozen=True)
class Reference:
    """Rows that point to the rows of another view; the timeline shows these.

    Args:
        view: The column with the id of that view.
        filter: The column with what to filter it by; missing where all of it is meant.
        rule: The column with the rule that found them.
        categories: For rules that are about one category of slices as a whole, that category.
    """

    view: str
    filter: str
    rule: str
    categories: Mapping[str, str]


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
        place: Where the page draws it.
        within: What it looks at when it is asked about some steps alone, as comparing does: the `rows` that belong to
            them, or whatever is active in their `windows` (for what is measured along the time axis). A view of the
            whole `recording` can't be asked that, nor can one whose rows are `steps` or `moments`.
        slices: Which events of the trace a row stands for; None where rows stand for none, such as facts of the whole
            recording, moments and amounts of memory.
        time: When a row was, in the time of the timeline; None where that isn't known.
        reference: The columns that point to rows of another view; None where none do.
        shows_path: Whether the timeline draws the critical path when a row is opened in it.
        shortcut: The letter that opens the view on the page after `g`; by default the page takes a free one.
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
    place: Place = Listed()
    within: Within = "rows"
    scope: Scope = "recording"
    shares: Callable[..., Shared] | None = None
    slices: Slices | None = None
    time: RowTime | None = None
    reference: Reference | None = None
    shows_path: bool = False
    shortcut: str = ""

    def __post_init__(self) -> None:
        kinds = {c.name: c.kind for c in self.table.columns}
        if self.slices and not self.table.key:
            raise TypeError(f"{self.id} has slices, but no key that says which row's")
        if self.slices and self.slices.except_kind and kinds.get("kind") is not TEXT:
            raise TypeError(f"{self.id} has no column 'kind', which except_kind={self.slices.except_kind!r} needs")
        wrong = self.time and [(name, kind) for name, kind in self.time.kinds() if kinds.get(name) is not kind]
        if wrong:
            raise TypeError(
                f"{self.id} has no column {wrong[0][0]!r} of the kind {wrong[0][1].name}, which time= names"
            )

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

    @property
    def comparable_columns(self) -> list[str]:
        """The columns that can be compared with another recording: neither a part of the key nor a point in time.

        There are none where rows aren't the same things in another recording.
        """
        if self.scope != "recording" or self.within == "moments" or isinstance(self.place, Detail):
            return []
        left_out = {*self.table.key, pictures.parent_column(self.table.picture)}
        return [c.name for c in self.table.columns if c.name not in left_out and c.kind not in (INSTANT, ID)]

    def events_of_row(self, trace: Any, values: Mapping[str, Any]) -> Events:
        """The events that a row stands for, by the values of its key columns; a missing one is None."""
        if self.slices is None:
            raise TypeError(f"The view {self.id!r} doesn't say which events its rows stand for")
        return self.slices.events(trace, {name: values.get(name) for name in self.table.key})

    def describe(self) -> dict[str, Any]:
        """All that a client needs to offer and draw the view, as JSON values."""
        table = self.table
        return {
            "id": self.id,
            "title": self.title,
            "group": self.group,
            "doc": docstring(table),
            "place": {"kind": self.place.kind, **asdict(self.place)},
            "within": self.within,
            "scope": self.scope,
            "hint": self.hint,
            "parameters": [{"name": p.name, "kind": p.kind, "choices": list(p.choices)} for p in self.parameters],
            "columns": column_descriptions(table),
            "key": list(table.key),
            "slices": self.slices and self.slices.describe(),
            "time": self.time and asdict(self.time),
            "reference": self.reference and asdict(self.reference),
            "shows_path": self.shows_path,
            "shortcut": self.shortcut,
            "weight": table.weight,
            "picture": table.picture and pictures.describe(table.picture),
            "comparable_columns": self.comparable_columns,
        }


def column_descriptions(table: type[Table]) -> list[dict[str, str]]:
    """Name, kind and definition of each column, as JSON values."""
    return [{"name": c.name, "kind": c.kind.name, "doc": c.doc} for c in table.columns]


def catalogue(views: Iterable[View]) -> list[dict[str, Any]]:
    """Every view's description, in the order of the page."""
    return [view.describe() for view in views]
