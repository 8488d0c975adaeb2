"""Views: pure functions of a trace that return a table, with the descriptions that the page needs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args, get_origin, get_type_hints

import polars as pl

from . import pictures
from .docstrings import docstring
from .entries import ENTRIES, EntryTitle
from .errors import BadParameter
from .measures.recording.options import was_on
from .measures.time.step_subset import restrict_to_steps
from .names.regex import regex
from .table import DURATION, ID, INSTANT, TEXT, Column, Kind, Table
from .trace.model import NumberKind, Trace
from .trace.row_filters import Events, Key

Within = Literal["rows", "windows", "recording", "steps", "moments"]
Scope = Literal["recording", "span", "run"]


_BASE = ("base_run", "base_worker", "base_span", "base_capture")
# Other parameters of queries and commands.
_OF_STEPS = ("phase", "step")
_RESERVED = {*_BASE, "view", "run", "worker", "span", "path", "form", "format", "columns", "communication", "capture"}
_INTEGER = regex(r"-?[0-9]{1,18}")
_NOTHING: frozenset[NumberKind] = frozenset()
_HOST_AND_DEVICE: frozenset[NumberKind] = frozenset({"host_times", "kernel_times", "launches", "totals"})
_TIME_AXIS: frozenset[NumberKind] = _HOST_AND_DEVICE | {"idle", "clock", "steps"}
_RESTS_ON: dict[EntryTitle, frozenset[NumberKind]] = {
    **dict.fromkeys(("Overview", "Idle", "Critical path"), _TIME_AXIS),
    **dict.fromkeys(("Operators", "Modules", "Python", "Annotations"), _HOST_AND_DEVICE),
    "Kernels": frozenset({"kernel_times", "totals"}),
    "Memory": frozenset({"memory"}),
}
"""The numbers that views of an entry rest on."""


Subject = Any
"""The input of a view: a Trace, or the Ranks of a run."""


def chooses_steps(arguments: Iterable[str]) -> bool:
    """Whether these restrict a view to a server's phase or to one step."""
    return not set(_OF_STEPS).isdisjoint(arguments)


@dataclass(frozen=True)
class Parameter:
    """One keyword-only argument of a view; it selects rows, never columns.

    A `choice` takes one of `choices` (the default first). A `number` and a `text` have no choices and no effect unless
    given.
    """

    name: str
    kind: Literal["choice", "number", "text"]
    choices: tuple[str, ...] = ()

    def parse(self, value: str) -> str | int:
        """Return the argument that `value` stands for.

        Raises:
            BadParameter: It isn't one of the choices, or not an integer.
        """
        if self.kind == "choice" and value not in self.choices:
            raise BadParameter(f"{self.name}={value!r} is not possible; choose one of {', '.join(self.choices)}.")
        if self.kind == "number" and not _INTEGER.fullmatch(value):
            raise BadParameter(f"{self.name}={value!r} is not possible; it is an integer of at most 18 digits.")
        return int(value) if self.kind == "number" else value


def _parameter(view: str, argument: inspect.Parameter, hint: Any) -> Parameter:
    name, default = argument.name, argument.default
    if name in _RESERVED:
        raise TypeError(f"{view}({name}=): every query has a parameter {name!r}; choose another name")
    if get_origin(hint) is Literal:
        return Parameter(name, "choice", (default, *(v for v in get_args(hint) if v != default)))
    if default is None and hint in (int | None, str | None):
        return Parameter(name, "number" if hint == int | None else "text")
    raise TypeError(f"{view}({name}=) must be a Literal, or int | None or str | None with the default None")


@dataclass(frozen=True)
class Tab:
    """A tab of its entry; the first one opens with the entry.

    Args:
        label: What the tab is called; by default like the view.
    """

    kind: ClassVar = "tab"
    label: str = ""


@dataclass(frozen=True)
class Head:
    """Above the tabs of its entry."""

    kind: ClassVar = "head"


@dataclass(frozen=True)
class Lead:
    """The sentence above a tab's view, by the view's id: the first row of a table whose picture is a Sentence."""

    kind: ClassVar = "lead"
    of: str


@dataclass(frozen=True)
class Part:
    """On the tab of another view of the entry, below it."""

    kind: ClassVar = "part"
    of: str


@dataclass(frozen=True)
class Detail:
    """In an opened row of other views of the entry; key columns of the row fill parameters of the same names."""

    kind: ClassVar = "detail"
    of: str
    also: tuple[str, ...] = ()


Placement = Tab | Head | Lead | Part | Detail


RowOf = Callable[[Any, str, int], Key | None]
"""`row_of(trace, frame, row)`: the values of the key columns of the view's row that an event is behind, or None."""


@dataclass(frozen=True)
class Slices:
    """The events of the trace behind a row of a view, which the timeline shows as slices, and the row of an event.

    Args:
        events: The resolver, a pure function of the trace and the values of the table's key columns. The timeline maps
            the events to slices.
        row_of: Its reverse: one of the rows that an event is behind. The timeline's drawer links to that row if a text
            of its key names it. Or a sentence that says why an event doesn't lead to a single row.
        are_highlighted: Whether the page highlights them when it opens a row in the timeline; else it only goes to the
            row's time.
        except_kind: Rows with this value in the column `kind` have none, since they sum up the rest of a table.
        category: The category of all of them, if they have one name and the view's filter matches it.
        panel: The panel of the timeline that lists the rows too.
    """

    events: Callable[[Any, Key], Events]
    row_of: RowOf | str
    are_highlighted: bool = True
    except_kind: str | None = None
    category: str | None = None
    panel: Literal["gaps"] | None = None

    def describe(self) -> dict[str, Any]:
        """What a client needs to request the slices of a row, as JSON values."""
        return {
            "are_highlighted": self.are_highlighted,
            "except_kind": self.except_kind,
            "category": self.category,
            "panel": self.panel,
        }


@dataclass(frozen=True)
class RowTime:
    """The columns with the time of a row: an instant, or an interval with a length or an end.

    Args:
        begin: The start of the row.
        length: The duration; a row without a value has no time.
        end: The end; without a value the row is an instant.
        worker: The worker whose trace has these times, if not the open one.
    """

    begin: str
    length: str | None = None
    end: str | None = None
    worker: str | None = None

    def kinds(self) -> list[tuple[str, Kind]]:
        """The columns, each with its required kind."""
        columns = ((self.begin, INSTANT), (self.length, DURATION), (self.end, INSTANT), (self.worker, TEXT))
        return [(name, kind) for name, kind in columns if name is not None]


@dataclass(frozen=True)
class Reference:
    """Columns that point to rows of another view, which the timeline shows.

    Args:
        view: The column with the id of that view.
        filter: The column with the filter of that view; missing if it is the whole view.
        rule: The column with the rule.
        categories: The category of slices for each rule that is about one category as a whole.
    """

    view: str
    filter: str
    rule: str
    categories: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class View:
    """One view. Its id is the name of its function, of its module, of its URL and of its golden files.

    Args:
        run: The function: `run(trace, *, parameter=...)` returns the frame; beyond one recording `run(ranks, …)`.
        table: The frame's schema and definitions.
        title: Its title on the page.
        entry: The entry of the page's panel that it belongs to.
        needs: Whether a trace, or the Ranks of a run, has what the view shows; None if any will do.
        hint: The message for an empty view: usually the recording option that would have filled it.
        option: That option of torch.profiler, if it is one: where it was on, the message is another one.
        place: Where the page shows it in that entry.
        within: How it is restricted to some steps, for comparisons: to the `rows` that belong to them, or to
            everything that is active in their `windows` (for measures along the time axis). A view of the whole
            `recording` can't be restricted, nor can one whose rows are `steps` or `moments`.
        slices: The events of the trace behind a row; None if rows have no events, such as facts of the whole trace,
            instants and amounts of memory.
        time: The time of a row on the timeline; None if rows have none.
        reference: The columns that point to rows of another view; None if there are none.
        shows_path: Whether the timeline draws the critical path when it shows a row.
        level: The column that says how serious a finding is: loss, warning or note. The page counts them.
        states_doubts: Whether the view itself says what faults of the recording make doubtful.
        reads_captures: Whether captures of graphs change it: the operators, modules, shapes, stacks and marks of what
            graphs replay; or the trace of a memory snapshot. It isn't ready while they are searched.
        in_rows_of_trace: Views of a trace in whose opened rows the page shows this one, of the memory snapshot next to
            the trace; key columns of the row fill parameters of the same names.
        is_of_snapshot: Whether every memory snapshot has it: a trace leads to that of the snapshot next to it.
        shares: What the view shares with others: the function of the recording alone that it calls first, whose result
            is cached with the trace. A server computes it before the views, so that none of its threads waits.
        is_of_advice: Whether it holds advice. Of a large trace, another thread computes meanwhile what that needs late.
        scope: Its input: one `recording` (a Trace), or Ranks: all workers' recordings of the same `span`, or every
            recording of the `run`.
    """

    run: Callable[..., pl.DataFrame]
    table: type[Table]
    title: str
    entry: EntryTitle
    needs: Callable[[Any], bool] | None = None
    hint: str = ""
    option: str = ""
    place: Placement = Tab()
    within: Within = "rows"
    scope: Scope = "recording"
    reads_captures: bool = False
    in_rows_of_trace: tuple[str, ...] = ()
    is_of_snapshot: bool = False
    shares: Callable[[Trace], object] | None = None
    is_of_advice: bool = False
    slices: Slices | None = None
    time: RowTime | None = None
    reference: Reference | None = None
    shows_path: bool = False
    level: str | None = None
    states_doubts: bool = False

    def __post_init__(self) -> None:
        kinds = {c.name: c.kind for c in self.table.columns}
        if self.slices and not self.table.key:
            raise TypeError(f"{self.id} has slices, but no key that identifies a row")
        if self.slices and self.slices.except_kind and kinds.get("kind") is not TEXT:
            raise TypeError(f"{self.id} has no column 'kind', which except_kind={self.slices.except_kind!r} requires")
        wrong = self.time and [(name, kind) for name, kind in self.time.kinds() if kinds.get(name) is not kind]
        if self.level and kinds.get(self.level) is not TEXT:
            raise TypeError(f"{self.id} has no column {self.level!r} with text, as level= requires")
        if wrong:
            raise TypeError(
                f"{self.id} has no column {wrong[0][0]!r} of the kind {wrong[0][1].name}, as time= requires"
            )

    @property
    def id(self) -> str:
        """The view's name everywhere."""
        return self.run.__name__

    @property
    def rests_on(self) -> frozenset[NumberKind]:
        """The numbers of a recording that a fault can make wrong, and the view with them."""
        return _NOTHING if self.states_doubts or self.scope != "recording" else _RESTS_ON.get(self.entry, _NOTHING)

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The keyword-only arguments of `run`."""
        hints = get_type_hints(self.run)
        keywords = [p for p in inspect.signature(self.run).parameters.values() if p.kind is p.KEYWORD_ONLY]
        return tuple(_parameter(self.id, p, hints[p.name]) for p in keywords)

    @property
    def takes_steps(self) -> bool:
        """Whether it can be restricted to a server's `phase` or to one `step`, by queries with these names."""
        is_free = not any(p.name in _OF_STEPS for p in self.parameters)
        return self.scope == "recording" and self.within in ("rows", "windows") and is_free

    def arguments(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Return `query` as arguments of `run`, and `phase` and `step` as they are if it can be restricted to steps.

        Raises:
            BadParameter: A name or a value that the view doesn't take.
        """
        parameters = {p.name: p for p in self.parameters}
        if self.takes_steps:
            parameters |= {name: Parameter(name, "text") for name in _OF_STEPS}
        for name in query:
            if name not in parameters:
                takes = f"it takes {', '.join(parameters)}" if parameters else "it takes none"
                raise BadParameter(f"The view {self.id!r} has no parameter {name!r}; {takes}.")
        return {name: parameters[name].parse(value) for name, value in query.items()}

    def is_missing(self, subject: Subject) -> bool:
        """Whether the trace, or the run, lacks the data that the view needs."""
        return self.needs is not None and not self.needs(subject)

    def part_of(self, subject: Any, arguments: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """What the view is computed from, and its own arguments: without `phase` and `step`, which choose the part.

        Raises:
            BadParameter: The trace has no such phase or step.
        """
        own = dict(arguments)
        if not self.takes_steps or not chooses_steps(own):
            return subject, own
        phase, step = (own.pop(name, None) for name in _OF_STEPS)
        return restrict_to_steps(subject, self.within, phase, step), own

    def frame(self, subject: Any, arguments: Mapping[str, Any]) -> pl.DataFrame:
        """The rows for a trace, or for one phase or step of it, or for a run; none if that lacks what the view needs.

        Raises:
            BadParameter: The trace has no such phase or step.
        """
        part, own = self.part_of(subject, arguments)
        if self.is_missing(part):
            return pl.DataFrame(schema=self.table.schema())
        return self.table.of(self.run(part, **own))

    @property
    def comparable_columns(self) -> list[str]:
        """The columns that can be compared with another trace: neither part of the key nor an instant.

        Empty if rows have no counterpart in another trace.
        """
        if self.scope != "recording" or self.within == "moments" or isinstance(self.place, Detail):
            return []
        left_out = {*self.table.key, pictures.parent_column(self.table.picture)}
        return [c.name for c in self.table.columns if c.name not in left_out and c.kind not in (INSTANT, ID)]

    def hint_for(self, subject: Subject) -> str:
        """The message if the recording lacks the data: no option of torch.profiler is at fault in other files.

        Nor is one that was on.
        """
        if isinstance(subject, Trace) and subject.meta.foreign_writer is not None:
            return f"This file was written by {subject.meta.foreign_writer}, which doesn't record it."
        if self.option and isinstance(subject, Trace) and was_on(subject, self.option):
            return f"{self.hint.partition('. ')[0]}, though {self.option} was on."
        return self.hint

    def events_of_row(self, trace: Any, values: Mapping[str, Any]) -> Events:
        """The events behind a row, by the values of its key columns; a missing one is None."""
        if self.slices is None:
            raise TypeError(f"The view {self.id!r} has no slices")
        return self.slices.events(trace, {name: values.get(name) for name in self.table.key})

    def row_of_event(self, trace: Any, frame: str, row: int) -> Key | None:
        """The key of a row that an event is behind, by the event's row in a frame of the trace; None: of none."""
        if self.slices is None or isinstance(self.slices.row_of, str):
            return None
        values = self.slices.row_of(trace, frame, row)
        return None if values is None else {name: values.get(name) for name in self.table.key}

    def _describe_place(self) -> dict[str, Any]:
        label = {"label": self.place.label or self.title} if isinstance(self.place, Tab) else {}
        return {"kind": self.place.kind, **asdict(self.place), **label}

    def describe(self) -> dict[str, Any]:
        """Everything that a client needs to offer and draw the view, as JSON values."""
        table = self.table
        return {
            "id": self.id,
            "title": self.title,
            "entry": asdict(ENTRIES[self.entry]),
            "doc": docstring(table),
            "place": self._describe_place(),
            "within": self.within,
            "takes_steps": self.takes_steps,
            "scope": self.scope,
            "hint": self.hint,
            "parameters": [{"name": p.name, "kind": p.kind, "choices": list(p.choices)} for p in self.parameters],
            "columns": column_descriptions(table.columns),
            "key": list(table.key),
            "slices": self.slices and self.slices.describe(),
            "time": self.time and asdict(self.time),
            "reference": self.reference and asdict(self.reference),
            "shows_path": self.shows_path,
            **({"level": self.level} if self.level else {}),
            **({"is_of_snapshot": True} if self.is_of_snapshot else {}),
            **({"in_rows_of_trace": list(self.in_rows_of_trace)} if self.in_rows_of_trace else {}),
            "weight": table.weight,
            **({"whole": table.whole} if table.whole else {}),
            "picture": table.picture and pictures.describe(table.picture),
            "comparable_columns": self.comparable_columns,
        }


def column_descriptions(columns: Iterable[Column]) -> list[dict[str, Any]]:
    """What clients need to know of each column, as JSON values; what is said of few columns only where it is."""
    return [
        {"name": c.name, "kind": c.kind.name, "doc": c.doc, "adds_up": c.adds_up}
        | ({"shown_as": c.shown_as} if c.shown_as else {})
        | ({"title": c.title} if c.title else {})
        | ({"words": dict(c.words)} if c.words else {})
        for c in columns
    ]


def catalogue(views: Iterable[View]) -> list[dict[str, Any]]:
    """Every view's description, in the order of the page, and what links to it say."""
    in_order = list(views)
    first = {view.entry: view for view in reversed(in_order) if isinstance(view.place, Tab)}
    return [{**view.describe(), "page_title": _page_title(view, first.get(view.entry))} for view in in_order]


def _page_title(view: View, first: View | None) -> str:
    """The title of the view's entry, and its own if it isn't the first tab."""
    label = (isinstance(view.place, Tab) and view.place.label) or view.title
    return view.entry if view is first or label == view.entry else f"{view.entry}: {label}"
