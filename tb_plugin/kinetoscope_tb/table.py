"""Tables: named columns, each with a kind and a definition.

The kind of a column determines its dtype, its unit and the suffix of its name; a wrong suffix fails at import.
Definitions are written only here: tooltips, the command line and docs/metrics.md print them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import polars as pl

from .docstrings import ARE_LEFT_OUT, docstring
from .names.text import digits
from .pictures import (
    Bands,
    Bars,
    Heatmap,
    Histogram,
    Lines,
    PartBars,
    Picture,
    RangeBars,
    Roofline,
    Sentence,
    StackedBars,
    Tree,
    Treemap,
)


@dataclass(frozen=True)
class Kind:
    """Storage and meaning of a column's values."""

    name: str
    dtype: pl.DataType
    suffix: str = ""


TEXT = Kind("text", pl.String())
STACK = Kind("stack", pl.String())  # frames, the innermost first, one per line
PROSE = Kind("prose", pl.String())  # sentences, shown in full; text in `backticks` is code
BOOL = Kind("bool", pl.Boolean())
ID = Kind("id", pl.Int64())  # a number that names something: a device, a stream
COUNT = Kind("count", pl.Int64())
NUMBER = Kind("number", pl.Float64())  # a ratio that may exceed 1, such as blocks per SM
INSTANT = Kind("instant", pl.Int64(), "_ns")  # since the trace's origin
DURATION = Kind("duration", pl.Int64(), "_ns")
BYTES = Kind("bytes", pl.Int64(), "_bytes")
FRACTION = Kind("fraction", pl.Float64(), "_frac")  # 0 to 1, not percent
BYTE_RATE = Kind("byte_rate", pl.Float64(), "_bytes_per_s")
FLOP = Kind("flop", pl.Int64(), "_flop")  # operations on floating-point (or integer) numbers; a multiply-add is two
FLOP_RATE = Kind("flop_rate", pl.Float64(), "_flop_per_s")

NUMERIC = (COUNT, NUMBER, INSTANT, DURATION, BYTES, FRACTION, BYTE_RATE, FLOP, FLOP_RATE)
KINDS = (TEXT, STACK, PROSE, BOOL, ID, *NUMERIC)
_AMOUNTS = (COUNT, DURATION, BYTES)
_NO_SUMS = ("mean_", "median_", "max_", "min_", "stdev_", "largest_", "smallest_", "longest_", "shortest_", "peak_")
_PREFIXES = {BOOL: ("is_", "has_", "uses_", "tc_")}


ShownAs = Literal["shapes", "place", "name", "hash", "id", "offset", "bound", "detail", "own unit", "time part"]
"""What the page draws some texts and numbers as, where their kind alone doesn't say it.

shapes    the shapes of inputs, without the empty ones at the end, which are of arguments that are no tensors
place     a place in the program, which keeps its file and its function where it is cut
name      names the row, though it isn't in the key
hash      tells rows of several traces apart, and names nothing
id        of a rule or a view: written in words where it is a table's first column, hidden at first where it isn't
offset    the byte of the file at which the row's event begins
bound     how small or large a value of its row may be: hidden at first
detail    in most rows the same as another column: hidden at first
time part a part of the time of a step, in the words and with the color of the bars that show it
own unit  much smaller than the other times of the row, such as a time per token: it has a unit of its own
"""


class Column:
    """One column of a `Table`; its name is the attribute it is assigned to.

    Args:
        kind: What its values are.
        doc: Its definition.
        adds_up: Whether it is an amount, where its kind and its name don't say so.
        shown_as: What the page draws it as, where its kind doesn't say so.
        title: What people call it, if not by its name in words.
        words: What people call its values, if these are ids. Filters, links, JSON and CSV have the ids.
    """

    name: str

    def __init__(
        self,
        kind: Kind,
        doc: str,
        *,
        adds_up: bool | None = None,
        shown_as: ShownAs | None = None,
        title: str = "",
        words: Mapping[str, str] | None = None,
    ) -> None:
        self.kind, self.doc, self.shown_as, self._adds_up = kind, doc, shown_as, adds_up
        self.title, self.words = title, words or {}

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @property
    def adds_up(self) -> bool:
        """Whether it is an amount: the value of two steps together is the sum of both, so it has a value per step.

        Counts, durations and bytes add up, unless their name says that they are a mean, an extreme or similar.
        """
        if self._adds_up is not None:
            return self._adds_up
        return self.kind in _AMOUNTS and not self.name.startswith(_NO_SUMS)


class ColumnGroup:
    """Columns that several tables have; in a table's body they stand where the group does.

    Args:
        columns: The columns by their names, in order.
    """

    def __init__(self, columns: Mapping[str, Column]) -> None:
        self.columns = tuple(columns.values())
        for name, column in columns.items():
            column.name = name

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(column.name for column in self.columns)


def _columns_in(value: object) -> tuple[Column, ...]:
    if isinstance(value, ColumnGroup):
        return value.columns
    return (value,) if isinstance(value, Column) else ()


class Table:
    """Base of every table that a view returns. A subclass's docstring says what the table shows.

    `key`: the columns that identify a row in another trace; `weight`: the column that ranks rows by importance;
    `picture`: how the rows are drawn; `whole`: what all rows of the weight add up to, where other tables of the page
    add up to another time.
    """

    columns: ClassVar[tuple[Column, ...]]
    key: ClassVar[tuple[str, ...]] = ()
    weight: ClassVar[str | None] = None
    picture: ClassVar[Picture | None] = None
    whole: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        if not docstring(cls) and not ARE_LEFT_OUT:
            raise TypeError(f"{cls.__name__} needs a docstring that says what the table shows")
        values = (value for base in reversed(cls.__mro__) for value in vars(base).values())
        cls.columns = tuple(column for value in values for column in _columns_in(value))
        for column in cls.columns:
            _check_name(cls.__name__, column)
        _check_picture(cls)

    @classmethod
    def schema(cls) -> pl.Schema:
        """Column names and dtypes, in order."""
        return pl.Schema({c.name: c.kind.dtype for c in cls.columns})

    @classmethod
    def of(cls, frame: pl.DataFrame) -> pl.DataFrame:
        """Return `frame` if it is exactly this table.

        Raises:
            AssertionError: A column is missing, extra, out of order or of another dtype; that is a bug of the view.
        """
        if frame.schema != cls.schema():
            raise AssertionError(f"{cls.__name__}: expected {cls.schema()}, got {frame.schema}")
        return frame


def _check_picture(table: type[Table]) -> None:
    name, picture, kinds = table.__name__, table.picture, {c.name: c.kind for c in table.columns}
    amounts, others = _drawn_columns(picture)
    columns = {*table.key, *([table.weight] if table.weight else ()), *amounts, *others}
    if absent := columns - set(kinds):
        raise TypeError(f"{name} has no column {', '.join(sorted(absent))}")
    if wordy := [n for n in amounts if kinds[n] not in NUMERIC]:
        raise TypeError(f"{name}.{wordy[0]} isn't a number, so it can't be drawn")
    match picture:
        case Tree() if kinds[picture.parent] is not ID:
            raise TypeError(f"{name}.{picture.parent} must be an ID: the row number of the parent row")
        case Tree() if picture.folded and kinds[picture.folded] is not BOOL:
            raise TypeError(f"{name}.{picture.folded} must be a BOOL: whether a root is left out at first")
        case Lines() if INSTANT not in kinds.values():
            raise TypeError(f"{name} has lines, but no INSTANT to draw them over")
        case Lines() if picture.marks and kinds[picture.marks] is not TEXT:
            raise TypeError(f"{name}.{picture.marks} must be a TEXT: the labels of marked rows")
        case Heatmap() if not ({picture.down, picture.across} <= set(table.key) and table.weight):
            raise TypeError(f"{name}'s heat map must be of columns of the key, and needs a weight")
        case Histogram() if kinds[picture.lower] is not kinds[picture.upper]:
            raise TypeError(f"{name}'s histogram needs a lower and an upper edge of one kind")


def _drawn_columns(picture: Picture | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(the columns whose amounts are drawn, the other columns of the picture)."""
    match picture:
        case Tree(parent, widths, folded):
            return widths, (parent, *([folded] if folded else ()))
        case Lines(values, series, marks, means=means):
            return (*values, *means), (*series, *([marks] if marks else ()))
        case Heatmap(down, across, parts, mark):
            return parts, (down, across, *([mark] if mark else ()))
        case Histogram(lower, upper, heights):
            return (lower, upper, *heights), ()
        case Bars(lengths):
            return lengths, ()
        case Roofline(intensity, rate, time, peak_rate, peak_bandwidth, number_format, byte_rate, reason, gap):
            return (intensity, rate, time, peak_rate, peak_bandwidth, byte_rate, gap), (number_format, reason)
        case Treemap(area, name, group):
            return (area,), (name, group)
        case Bands(begin, end, height, name, series):
            return (begin, end, height), (name, series)
        case Sentence(_, amounts, action, texts):
            return amounts or (), (*texts, *([action] if action else ()))
        case PartBars(bar, part, length, name, count, source):
            return (length, *filter(None, (count,))), (bar, part, *filter(None, (name, source)))
        case RangeBars(name, host, busy, idle, span):
            return (host, busy, idle, span), (name,)
        case StackedBars(whole, parts, only):
            return (whole, *parts), only[:1] if only else ()
    return (), ()


def _check_name(table: str, column: Column) -> None:
    suffixes = {kind.suffix for kind in KINDS} - {"", column.kind.suffix}
    if not column.name.endswith(column.kind.suffix):
        raise TypeError(f"{table}.{column.name} is a {column.kind.name}: its name must end in {column.kind.suffix!r}")
    if column.name.endswith(tuple(suffixes)):
        raise TypeError(f"{table}.{column.name} is a {column.kind.name}, and its name has another kind's suffix")
    if not column.name.startswith(_PREFIXES.get(column.kind, "")):
        raise TypeError(f"{table}.{column.name} is a bool: its name must begin with is_, has_ or uses_")
    if not column.doc.endswith("."):
        raise TypeError(f"{table}.{column.name} needs a definition that is a sentence")
    if column.words and column.kind is not TEXT:
        raise TypeError(f"{table}.{column.name} is a {column.kind.name}: only a text has words for its values")


class Summary(Table):
    """Base of the tables that answer in a sentence, above a view with its numbers: in one row, or none.

    A subclass defines its columns as arguments of its class, and the color of each rule, as `Sentence` has them.
    """

    def __init_subclass__(
        cls,
        *,
        colors: Mapping[str, str],
        rule: str,
        title: str,
        evidence: str,
        action: str = "",
        confidence: str,
        view: str,
    ) -> None:
        docs = {"title": title, "evidence": evidence, **({"action": action} if action else {})}
        columns = {"rule": Column(TEXT, rule), **{name: Column(PROSE, doc) for name, doc in docs.items()}}
        columns |= {"confidence": Column(TEXT, confidence), "view": Column(TEXT, view)}
        for name, column in columns.items():
            column.name = name
            setattr(cls, name, column)
        cls.key, cls.picture = ("rule",), Sentence(colors, action="action" if action else None)
        super().__init_subclass__()

    @classmethod
    def of_row(cls, row: tuple[object, ...] | None) -> pl.DataFrame:
        """The table with this row; None: nothing can be said."""
        return cls.of(pl.DataFrame([] if row is None else [row], schema=cls.schema(), orient="row"))


def with_rest(table: pl.DataFrame, whole: pl.DataFrame, amount: str, name: str, which: str) -> pl.DataFrame:
    """The table, and below it a row for what it leaves out, so that the amounts still add up to the whole.

    Args:
        table: The rows to show.
        whole: All rows, with at least the amount.
        amount: The column of whole numbers that adds up.
        name: The text column that says how many rows are left out.
        which: What they are, such as `smaller`.
    """
    count = whole.height - table.height
    if not count:
        return table
    rest = {name: f"[{digits(count)} {which} ones]", amount: int(whole[amount].sum()) - int(table[amount].sum())}
    return pl.concat([table, pl.DataFrame([rest])], how="diagonal")
