"""Who is on the critical path: its segments, each cut where its culprit changes.

On a device the culprit is the kernel or copy, in an operator or a runtime call that one. Elsewhere on the host, and
while data loads, it is what the thread did: the innermost of its Python functions and ranges. Between two ranges of a
thread of autograd it is, as in idle time, the annotation that the main thread is in, if that spans both. The ranges of
steps say nothing about that, so they are never a culprit. Nor is anything while a device may run what isn't in the
recording.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import NONE, category_codes, gather, number_alike
from ..arrays.intervals import Ints, cut, union
from ..measures.recording.lost_launches import are_launches_known
from ..measures.time.host_stack import FRAMES, KINDS, HostStack, StackPieces
from ..measures.time.idle_causes import not_shown
from ..measures.time.threads import autograd_threads, main_thread
from ..trace import Trace
from ..trace.results import once_per_trace
from .classes import BETWEEN, CLASSES, LOADING, WAIT_CLASSES
from .edges import Kind
from .explanation import critical_paths, path_explanation
from .graph import Graph
from .names import EVENT_COLUMNS, NAMELESS, UNLINKED, EventRows, Names

Codes = NDArray[np.int8]
Rows = NDArray[np.int32]

CAUSES = (
    *("kernel", "communication", "copy", "launch", "between_kernels", "unexplained"),
    *("data", "communication", "host_operator", "launch", "host_sync", "host_unrecorded"),
)
"""The cause that each class of the path is; of code outside of operators and calls where nothing is recorded."""
NOT_SHOWN = "not_shown"
"""The cause while it isn't in the recording whether a device is busy."""
WAITING = (*(CAUSES[number] for number in WAIT_CLASSES), NOT_SHOWN)
"""The causes without work that is known."""
CAUSES_OF_CODE = ("host_python", "host_python", "host_operator", "host_annotation", "launch")
"""The cause of code that is outside of operators and calls by torch's account, for each kind of row of the stack."""
PARTS = tuple(dict.fromkeys((*CAUSES, *CAUSES_OF_CODE, NOT_SHOWN)))
"""All causes, each once."""
_PART = pl.Enum(PARTS)

_CODE = (LOADING, BETWEEN)
"""The classes whose culprit is what the thread did."""

WHO = ["cause", "name", "source"]
"""The columns that tell culprits apart."""

_DIGITS = 6  # of a percentage, which a sum of shares may miss

PIECES = {
    "segment": pl.Int32,  # a row of the path
    "step": pl.Int32,  # a row of `steps`
    "dur_ns": pl.Int64,
    "culprit": pl.Int32,  # a row of `who`
    "python_call": pl.Int32,  # the row of python_calls that runs, or NONE
    "host_event": pl.Int32,  # the row of host_events that runs, or NONE
}
"""One row is one piece of a segment with one culprit. Order: segment, time."""


NODE_PIECES = {
    "node": pl.Int32,
    "dur_ns": pl.Int64,
    "share": pl.Float64,  # of the node's own delay
    "culprit": pl.Int32,  # a row of `who`
}
"""One row is one piece of a node's own delay with one culprit; only host code has several."""


@dataclass(frozen=True)
class Culprits:
    """The pieces of the path (PIECES) or of the nodes' own delays (NODE_PIECES), and their culprits.

    Attributes:
        pieces: The pieces; those of a segment or of a node add up to it.
        who: WHO of each culprit. The source is file, line and name of the innermost Python function around it that
            belongs to the program, or null. On the path each is there once.
    """

    pieces: pl.DataFrame
    who: pl.DataFrame

    def with_numbers(self) -> pl.DataFrame:
        """The culprits with their numbers, `culprit`, to join with pieces."""
        return self.who.with_row_index("culprit").cast({"culprit": pl.Int32})


@once_per_trace
def path_culprits(trace: Trace) -> Culprits:
    """The culprits on the critical paths of all steps: computed at the first call and cached with the trace."""
    path, segment, start, end, is_hidden = _cut_path(trace)
    part, thread = path["class"].to_numpy()[segment], path["thread"].to_numpy()[segment]
    is_code = np.isin(part, _CODE) & (thread != NONE) & ~is_hidden
    events, code, gaps = (np.flatnonzero(mask) for mask in (~is_code & ~is_hidden, is_code, is_hidden))
    stack, activity = _pieces_of_code(trace, thread[code], start[code], end[code])
    own = code[activity.interval]
    ran = path.select("class", *EVENT_COLUMNS)[segment[events]]
    who, culprit = _culprits(trace, ran, stack, part[own], activity.row)
    if gaps.size:
        name = NAMELESS if are_launches_known(trace) else UNLINKED
        nobody = {"cause": NOT_SHOWN, "name": name, "source": None}
        culprit = np.append(culprit, np.full(gaps.size, who.height, np.int32))
        who = pl.concat([who, pl.DataFrame([nobody], schema=who.schema)])
    before, after = (np.full(rows.size, NONE, np.int32) for rows in (events, gaps))
    segment = segment[np.concatenate([events, own, gaps])].astype(np.int32)
    order = np.argsort(segment, kind="stable")
    columns = {
        "segment": segment,
        "step": path["step"].to_numpy()[segment],
        "dur_ns": np.concatenate([(end - start)[events], activity.end - activity.start, (end - start)[gaps]]),
        "culprit": culprit,
        "python_call": np.concatenate([before, _rows_of(stack, FRAMES[0], activity.row), after]),
        "host_event": np.concatenate([before, _rows_of(stack, FRAMES[1], activity.row), after]),
    }
    return Culprits(pl.DataFrame({name: columns.pop(name)[order] for name in PIECES}, schema=PIECES), who)


def _pieces_of_code(trace: Trace, thread: Rows, start: Ints, end: Ints) -> tuple[HostStack, StackPieces]:
    """What threads did in some intervals."""
    main = main_thread(trace)
    stack = HostStack.of(trace, np.union1d(thread, np.int32(main)), union(start, end))
    pieces = stack.pieces_or_of_main(thread, main, start, end)
    of_thread = thread[pieces.interval]
    is_other = (pieces.row != NONE) & (gather(stack.thread, pieces.row) != of_thread)
    spans = gather(stack.start, pieces.row), gather(stack.end, pieces.row)
    is_meant = gather(stack.annotations(trace), pieces.row, missing=False)
    is_meant &= _are_within(trace, of_thread, pieces.start, spans)
    return stack, pieces._replace(row=np.where(is_other & ~is_meant, np.int32(NONE), pieces.row))


def _are_within(trace: Trace, thread: Rows, at: Ints, spans: tuple[Ints, Ints]) -> NDArray[np.bool_]:
    """Whether the ranges of autograd's thread before and after each instant both reach into a span."""
    host = trace.host_events.filter(pl.col("parent") == NONE)
    of, begin, dur = (host[name].to_numpy() for name in ("thread", "start_ns", "dur_ns"))
    is_within = np.zeros(at.size, bool)
    for number in np.flatnonzero(autograd_threads(trace)).tolist():
        first, rows = begin[of == number], np.flatnonzero(thread == number)
        after = np.searchsorted(first, at[rows], "right")
        last_end = np.append(np.iinfo(np.int64).min, first + dur[of == number])[after]
        next_start = np.append(first, np.iinfo(np.int64).max)[after]
        is_within[rows] = (last_end >= spans[0][rows]) & (next_start <= spans[1][rows])
    return is_within


def _cut_path(trace: Trace) -> tuple[pl.DataFrame, NDArray[np.int64], Ints, Ints, NDArray[np.bool_]]:
    """The path, and its segments cut where what isn't in the recording begins and ends.

    Of each piece its segment, start and end, and whether it isn't in the recording: what the path was then is unknown.
    """
    path, gaps = critical_paths(trace), not_shown(trace)
    start, end = path["start_ns"].to_numpy(), path["end_ns"].to_numpy()
    if not gaps[0].size:
        return path, np.arange(path.height), start, end, np.zeros(path.height, bool)
    segment, start, end, span = cut(start, end, gaps)
    return path, segment, start, end, span >= 0


def pieces_by_name(trace: Trace, *, is_by_operator: bool = False) -> pl.DataFrame:
    """The pieces of the path, PIECES with the `cause` (an Enum of PARTS) and the `name` (an Enum) of their culprits.

    By operator, the name is that of the innermost operator around it, or of the one that launched the row, if there is
    any.
    """
    culprits = path_culprits(trace)
    who, culprit = culprits.who, culprits.pieces["culprit"].to_numpy()
    if is_by_operator:
        segment = culprits.pieces["segment"].to_numpy()
        operator = Names.of(trace).operators(EventRows.of_path(critical_paths(trace)))[segment]
        is_shown = (who["cause"] != NOT_SHOWN).to_numpy()[culprit]
        who, culprit = by_operator(trace, culprits, np.where(is_shown, operator, np.int32(NONE)))
    columns = pl.DataFrame([who["cause"].cast(_PART), who["name"].cast(pl.Enum(who["name"].unique()))])
    return culprits.pieces.hstack(columns.select(pl.all().gather(pl.Series(culprit))))


def by_operator(trace: Trace, culprits: Culprits, operator: Rows) -> tuple[pl.DataFrame, Rows]:
    """Culprits with the name of the operator around a piece, where there is any: cause and name, and the row of each.

    Args:
        trace: The trace.
        culprits: Those of some pieces.
        operator: The number of the operator's name for each piece, or NONE.
    """
    culprit = culprits.pieces["culprit"].to_numpy()
    first, number = number_alike((operator + np.int64(1)) * culprits.who.height + culprit)
    who = culprits.who.select(pl.col("cause", "name").gather(pl.Series(culprit[first])))
    name = pl.coalesce(Names.of(trace).text(operator[first]), "name")
    return who.with_columns(name=name), number


@once_per_trace
def node_culprits(trace: Trace) -> Culprits:
    """The nodes' own delays, on the path or not: NODE_PIECES."""
    explanation, names = path_explanation(trace), Names.of(trace)
    part = explanation.what_if.part
    code, thread, begin, end = _code_of_nodes(explanation.graph, part)
    events = np.setdiff1d(np.arange(part.size), code, assume_unique=True)
    stack, activity = _pieces_of_code(trace, thread, begin, end)
    node, dur = code[activity.interval], activity.end - activity.start
    event_names = names.merged_names(EventRows.of_nodes(trace, explanation.graph))[events]
    who, culprit = _in_one_list(
        _culprits_of_events(names, event_names, part[events]),
        _culprits_of_code(trace, stack, part[node], activity.row),
    )
    columns = {
        "node": np.concatenate([events, node]),
        "dur_ns": np.concatenate([explanation.what_if.delays()[events], dur]),
        "share": np.concatenate([np.ones(events.size), dur / (end - begin)[activity.interval]]),
        "culprit": culprit,
    }
    return Culprits(pl.DataFrame(columns, schema=NODE_PIECES), who)


def _code_of_nodes(graph: Graph, part: Codes) -> tuple[Ints, Rows, Ints, Ints]:
    """The nodes whose own delays are code, and what runs then: a thread from one time to another.

    That is the node's own thread since its last boundary, or since another thread's work was over for which it waited.
    Where another thread's work let it begin, it is that thread since then: all as on a path.
    """
    thread, time = graph.nodes.boundaries.threads(), graph.nodes.boundaries.time
    edge = graph.driving_edges(slice(0, time.size))
    kind, before = gather(graph.kind, edge), np.arange(NONE, time.size - 1, dtype=np.int32)
    is_forked, is_after = kind == Kind.FORK, np.isin(kind, (Kind.FORK, Kind.JOIN))
    before[is_after] = graph.predecessor[edge[is_after]]
    is_code = np.isin(part[: time.size], _CODE) & (is_after | (thread == gather(thread, before)))
    code = np.flatnonzero(is_code & (time > time[before]))
    return code, np.where(is_forked, thread[before], thread)[code], time[before[code]], time[code]


@once_per_trace
def saved_by_part(trace: Trace, percent: int) -> NDArray[np.int64]:
    """How much shorter each step would be if all of a part, on the path or not, took `percent` less: [part, step]."""
    culprits = node_culprits(trace)
    part = category_codes(culprits.who["cause"].cast(_PART))
    return saved_by_group(trace, part[culprits.pieces["culprit"].to_numpy()], len(PARTS), percent)


def saved_by_group(trace: Trace, group: Rows, groups: int, percent: int) -> NDArray[np.int64]:
    """How much shorter each step would be if all of a group took `percent` less: [group, step].

    Delays are simulated in whole percent; what is a part of some is rounded up, and saves its share of
    that.

    Args:
        trace: The trace.
        group: The number of the group that each of the pieces of nodes belongs to, or NONE.
        groups: How many there are.
        percent: 0 to 100.
    """
    pieces, what_if = node_culprits(trace).pieces, path_explanation(trace).what_if
    node, share = pieces["node"].to_numpy(), pieces["share"].to_numpy()
    delays, is_whole = what_if.delays(), share == 1
    variant = np.full(what_if.part.size, NONE, np.int8)
    variant[node[is_whole]] = group[is_whole]
    savings = what_if.saved_by_variant(variant, groups, percent)
    for number in np.setdiff1d(group[~is_whole], [NONE]).tolist():
        is_of_group = group == number
        exact = percent * np.bincount(node[is_of_group], share[is_of_group], variant.size)
        whole_percents = np.ceil(np.round(exact, _DIGITS))
        part = float(exact @ delays) / max(1.0, float(whole_percents @ delays))
        savings[number] = np.floor(min(1.0, part) * what_if.saved_together(whole_percents.astype(np.uint8)))
    return savings


def _culprits(
    trace: Trace, events: pl.DataFrame, stack: HostStack, part: Codes, row: Rows
) -> tuple[pl.DataFrame, Rows]:
    """The culprits of segments with an event, then of pieces of host code: WHO, and the row of each there."""
    names, own = Names.of(trace), events["class"].to_numpy()
    of_events = _culprits_of_events(names, names.merged_names(EventRows.of_path(events)), own)
    who, culprit = _in_one_list(of_events, _culprits_of_code(trace, stack, part, row))
    distinct = who.unique(maintain_order=True).with_row_index("culprit")
    number = who.join(distinct, WHO, nulls_equal=True, maintain_order="left")["culprit"].cast(pl.Int32).to_numpy()
    return distinct.select(WHO), number[culprit]


def _in_one_list(*parts: tuple[pl.DataFrame, Rows]) -> tuple[pl.DataFrame, Rows]:
    """Several lists of culprits, and the rows of pieces there, one after the other."""
    first = np.cumsum([0, *(who.height for who, _ in parts)])
    rows = [culprit + np.int32(before) for (_, culprit), before in zip(parts, first, strict=False)]
    return pl.concat([who for who, _ in parts]), np.concatenate(rows)


def _culprits_of_events(names: Names, name: Rows, part: Codes) -> tuple[pl.DataFrame, Rows]:
    """The culprits of what has an event, by the numbers of names and the classes: WHO, and the row of each there."""
    first, event = number_alike((name + np.int64(1)) * len(CLASSES) + part)
    who = {
        "cause": pl.Series(CAUSES).gather(part[first]),
        "name": names.text(name[first]).fill_null(NAMELESS),
        "source": pl.Series([None] * first.size, dtype=pl.String),
    }
    return pl.DataFrame(who), event


def _culprits_of_code(trace: Trace, stack: HostStack, part: Codes, row: Rows) -> tuple[pl.DataFrame, Rows]:
    """The culprits of pieces of host code, by their classes and rows of the stack: WHO, and the row of each there."""
    number, descriptions = stack.descriptions(trace)
    first, code = number_alike((gather(number, row) + 1) * np.int64(len(CLASSES)) + part)
    stack_row = pl.Series(gather(number, row[first]).astype(np.int64)).replace(NONE, None)
    rows = descriptions.select(pl.all().gather(stack_row))
    return _code(rows, part[first]), code


def _code(descriptions: pl.DataFrame, part: Codes) -> pl.DataFrame:
    """WHO of pieces of host code, by what the thread did."""
    of_kind = pl.col("kind").replace_strict(KINDS, CAUSES_OF_CODE, default="host_unrecorded", return_dtype=pl.String)
    return descriptions.with_columns(is_loading=pl.Series(part == LOADING)).select(
        cause=pl.when("is_loading").then(pl.lit("data")).otherwise(of_kind),
        name=pl.col("host").fill_null(NAMELESS),
        source="source",
    )


def _rows_of(stack: HostStack, frame: str, row: Rows) -> Rows:
    """The rows of one of the stack's frames, or NONE."""
    is_of_frame = gather(stack.frame == FRAMES.index(frame), row, missing=False)
    return np.where(is_of_frame, gather(stack.row, row), NONE).astype(np.int32)
