"""The pictures that a table can be drawn as, and the columns for each part of a picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar


@dataclass(frozen=True)
class Tree:
    """Nested rows, as a flame graph above the collapsible rows.

    Args:
        parent: The ID column with the row number (0-based, in the answer) of the parent row; null at a root.
        widths: The columns that the boxes' widths can show, besides the table's weight.
        folded: The BOOL column that marks roots which the flame graph leaves out until the user unfolds them.
        is_in_order: Whether rows come in the order of their calls, so that the flame graph can keep that order.
        color: The kind of call whose color all boxes have, unless a column `kind` says it.
    """

    kind: ClassVar = "tree"
    parent: str
    widths: tuple[str, ...] = ()
    folded: str | None = None
    is_in_order: bool = False
    color: str = "module"


@dataclass(frozen=True)
class Sentence:
    """The first row as a sentence with its evidence, above the tabs of an entry.

    Args:
        colors: The color of each rule, by its name in the page's theme; without one, the rule is the name.
        amounts: The columns with what could be saved, as a time and as a share of a step, if there are any.
        action: The column with what to do, if the sentence says that.
        texts: The columns with the rule, the sentence, the evidence, the confidence (high, medium, low or cannot_tell),
            and the id of the view that shows more.
    """

    kind: ClassVar = "sentence"
    colors: Mapping[str, str]
    amounts: tuple[str, str] | None = None
    action: str | None = "action"
    texts: tuple[str, str, str, str, str] = ("rule", "title", "evidence", "confidence", "view")


@dataclass(frozen=True)
class Lines:
    """Values over the table's first INSTANT column; a value holds until the next row.

    Args:
        values: The numeric columns.
        series: The columns that split the rows into lines.
        marks: The text column with the labels of marked rows.
        is_stacked: Whether the values add up, and are drawn on top of each other.
        means: For each value the column with its mean until the next row: where there are more rows than pixels, the
            line is one of means.
    """

    kind: ClassVar = "lines"
    values: tuple[str, ...]
    series: tuple[str, ...] = ()
    marks: str | None = None
    is_stacked: bool = False
    means: tuple[str, ...] = ()


@dataclass(frozen=True)
class Heatmap:
    """A cell for each row; its darkness shows the table's weight, or another selected number.

    Args:
        down: The column whose values are the lines of cells.
        across: The column whose values are the columns of cells.
        parts: Columns that add up; each line has a bar of their means over its cells.
        mark: The BOOL column that marks cells, named by a word such as `is_last`.
    """

    kind: ClassVar = "heatmap"
    down: str
    across: str
    parts: tuple[str, ...] = ()
    mark: str | None = None


@dataclass(frozen=True)
class Histogram:
    """A bar for each row.

    Args:
        lower: The column of the bins' lower edges.
        upper: The column of their upper edges.
        heights: The columns to draw, one histogram each.
    """

    kind: ClassVar = "histogram"
    lower: str
    upper: str
    heights: tuple[str, ...]


@dataclass(frozen=True)
class Bars:
    """The largest rows, one chart per column.

    Args:
        lengths: The columns.
    """

    kind: ClassVar = "bars"
    lengths: tuple[str, ...]


@dataclass(frozen=True)
class Roofline:
    """A point for each row over its work per byte, below the roofs of the device; both scales are logarithmic.

    Args:
        intensity: The column of FLOPs per byte.
        rate: The column of FLOPs per second.
        time: The column that gives the points their areas.
        peak_rate: The column of the compute roofs, in FLOPs per second.
        peak_bandwidth: The column of the memory roofs, in bytes per second.
        number_format: The text column that names the compute roofs.
        byte_rate: The column of bytes per second: by it rows without FLOPs have a place of their own, below the memory
            roof.
        reason: The text column that says why a row has no place.
        gap: The column of the time above the roof, by which rows are ranked.
    """

    kind: ClassVar = "roofline"
    intensity: str
    rate: str
    time: str
    peak_rate: str
    peak_bandwidth: str
    number_format: str
    byte_rate: str
    reason: str
    gap: str


@dataclass(frozen=True)
class Treemap:
    """A rectangle for each row, those of one group side by side.

    Args:
        area: The column that gives the rectangles their areas.
        name: The text column that names them.
        group: The text column that groups rows.
        groups: Its values, in the order of their colors.
    """

    kind: ClassVar = "treemap"
    area: str
    name: str
    group: str
    groups: tuple[str, ...]


@dataclass(frozen=True)
class Bands:
    """A band for each row from its begin to its end, on top of those that began before it and haven't ended.

    Behind them are levels of another view, of the same series and range of time: what the rows leave out shows.

    Args:
        begin: The INSTANT column at which a band begins.
        end: The INSTANT column at which it ends.
        height: The column of its height.
        name: The text column that colors bands: those of one name are alike.
        series: The column that splits the rows into pictures.
        levels_view: The view of the levels behind the bands.
        levels: Its columns, the highest first.
        ranges_view: The view of the ranges of time above them.
        ranges: Its columns: begin, end, name, and the number of the line on which a range is drawn.
    """

    kind: ClassVar = "bands"
    begin: str
    end: str
    height: str
    name: str
    series: str
    levels_view: str
    levels: tuple[str, ...]
    ranges_view: str
    ranges: tuple[str, str, str, str]


@dataclass(frozen=True)
class StackedBars:
    """A bar for each row whose parts add up to a whole, under a sentence about them.

    Args:
        whole: The column of the whole.
        parts: The columns of the parts; the first one is the busy time.
        only: A column and the value of the rows that are drawn; None: all rows are.
    """

    kind: ClassVar = "stacked"
    whole: str
    parts: tuple[str, ...]
    only: tuple[str, str] | None = None


@dataclass(frozen=True)
class PartBars:
    """A bar for each value of a column; its parts are the rows that have it.

    Args:
        bar: The text column whose values are the bars.
        part: The text column that colors the parts.
        length: The column of their lengths.
        name: The text column that names rows of one part; missing in a row that sums up the others. None: the part
            names them.
        count: The column with how many others such a row sums up.
        source: The text column with the line of code that a row is.
        is_of_steps: Whether bars are steps, drawn on one scale below the first one, which is all of them.
        what_if: Id of a view of the same parts, with what a step would save if one took `percent` less time.
    """

    kind: ClassVar = "part_bars"
    bar: str
    part: str
    length: str
    name: str | None = None
    count: str | None = None
    source: str | None = None
    is_of_steps: bool = False
    what_if: str | None = None


@dataclass(frozen=True)
class RangeBars:
    """Two bars for each of the first rows, on one scale: its time on the host, and that of the device.

    Args:
        name: The text column that names the rows.
        host: The column of host time.
        busy: The column of the time in which the device ran its work.
        idle: The column of the time in between, in which the device was idle.
        span: The column of the time from its first to its last work; what is left of it is other work.
    """

    kind: ClassVar = "range_bars"
    name: str
    host: str
    busy: str
    idle: str
    span: str


@dataclass(frozen=True)
class StepColumns:
    """A column for each step in order of time, of the eight parts of its time, and a line at the usual step."""

    kind: ClassVar = "step_columns"


Picture = (
    Tree
    | Lines
    | Heatmap
    | Histogram
    | Bars
    | Roofline
    | Treemap
    | Bands
    | StackedBars
    | PartBars
    | RangeBars
    | StepColumns
    | Sentence
)


def parent_column(picture: Picture | None) -> str | None:
    """The column with the row number of the parent row, if the rows are a tree."""
    return picture.parent if isinstance(picture, Tree) else None


def charted_columns(picture: Picture | None) -> tuple[str, ...]:
    """The columns whose largest rows, or all bins, are drawn."""
    return picture.lengths if isinstance(picture, Bars) else picture.heights if isinstance(picture, Histogram) else ()


def describe(picture: Picture) -> dict[str, Any]:
    """The picture as JSON values, with its kind."""
    return {"kind": picture.kind, **asdict(picture)}
