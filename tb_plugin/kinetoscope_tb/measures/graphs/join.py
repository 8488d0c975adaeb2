"""Joins the kernels that graphs replay with the launches that made the graphs.

A graph's nodes are what its capture launched, in this order. So a replay is joined with the capture that launched the
same kernels in the same order; where no capture has the same, with the longest common subsequence of the nearest one.
CUPTI records no names during a capture: then the kinds (kernel, copy, fill) must agree in order, and the nodes of the
replay must be numbered or the captures of that form as many as the graphs. Without a capture, eager work that ran the
same kernels in the same order explains a graph as well: a warm-up, or another recording without graphs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np
import polars as pl

from ...arrays.gather import NONE, categories_of
from ...names.iterations import iteration_name
from ...trace.model import Trace
from ...trace.results import once_per_trace
from .alignment import align_sequences
from .launch_sequences import KERNEL, MEMCPY, LaunchSequences, captured_sequences, eager_sequences, ranges_around
from .replays import Ints, Replays, replays

CONFIDENCE = ("high", "medium", "low")
HIGH, MEDIUM, LOW = range(3)
_NAMELESS, _COPY, _FILL = -1, -2, -3
_LEAST_COMMON = 0.8  # of a graph's rows that a sequence must have to be aligned with it
_MOST_ALIGNED = 4  # sequences that a graph is aligned with; the one with most in common explains it
_LONG_RUN = 16  # rows in common one after the other that don't agree by chance
_MOST_WINDOWS = 8  # places in eager work that are compared
_LEAST_WINDOW = 4  # rows of a graph that eager work can explain: fewer occur by chance


@dataclass(frozen=True)
class Source:
    """Launch sequences of one origin.

    Args:
        origin: Index into the SOURCES of attribution.
        capture: The recording's place among the captures of the trace, or NONE: it is the trace itself.
        sequences: The launches.
        codes: Of each node, the number of its kernel's name, or _NAMELESS, _COPY, _FILL.
        first: Where each sequence begins in `codes`, and at last their number.
        signature: Of each node, a number for its operator with its inputs.
    """

    origin: int
    capture: int
    sequences: LaunchSequences
    codes: Ints
    first: Ints
    signature: Ints

    def span(self, sequence: int) -> Ints:
        """The codes of a sequence."""
        return self.codes[self.first[sequence] : self.first[sequence + 1]]


@dataclass(frozen=True)
class Match:
    """How the rows of a replay relate to nodes.

    Args:
        source: Index into Join.sources.
        node: Of each row in the order of the graph, a row of the source's nodes, or NONE.
        confidence: Of each row, an index into CONFIDENCE.
    """

    source: int
    node: Ints
    confidence: Ints


@dataclass(frozen=True)
class Join:
    """What explains each replay.

    Args:
        sources: The launches that were searched.
        matches: Distinct matches.
        match: Of each replay its match, or NONE.
    """

    sources: list[Source]
    matches: list[Match]
    match: Ints


@once_per_trace
def join(trace: Trace) -> Join:
    """Join a recording's replays; it has no matches where it has no graph."""
    if not replays(trace).launch.size:
        return Join([], [], np.empty(0, np.int64))
    others = [(1, capture, other) for capture, other in enumerate(trace.captures.traces)]
    captures, eager = [(0, NONE, trace), *others], [(2, NONE, trace), *others]
    return _join_sequences(
        trace,
        [(origin, capture, captured_sequences(recording)) for origin, capture, recording in captures]
        + [(origin, capture, eager_sequences(recording)) for origin, capture, recording in eager],
    )


def join_with(trace: Trace, other: Trace) -> Join:
    """What the launches of another recording alone explain."""
    return _join_sequences(trace, [(1, 0, captured_sequences(other)), (1, 0, eager_sequences(other))])


def _join_sequences(trace: Trace, launches: list[tuple[int, int, LaunchSequences]]) -> Join:
    """Join with launches, the best first: of each the origin, the number of the capture, and the sequences."""
    graph_replays, number = replays(trace), dict[str, int]()
    sources = [
        _source(origin, capture, sequences, number) for origin, capture, sequences in launches if sequences.nodes.height
    ]
    codes = _row_codes(trace, graph_replays.rows, number)
    matcher = _Matcher(sources)
    forms: dict[bytes, list[int]] = defaultdict(list)
    for variant, example in enumerate(graph_replays.example.tolist()):  # in order of the graphs' numbers
        forms[codes[graph_replays.first[example] : graph_replays.first[example + 1]].tobytes()].append(variant)
    tokens = _tokens(trace, graph_replays) if forms else np.empty(0, np.int64)
    match, matches = np.full(graph_replays.launch.size, NONE), list[Match]()
    for form, variants in forms.items():
        choices = matcher.choices(np.frombuffer(form, np.int64))
        assignment = _assign(graph_replays, variants, choices, tokens)
        match[assignment.replay] = np.where(assignment.choice >= 0, assignment.choice + len(matches), NONE)
        matches += [
            Match(candidate.source, candidate.node, np.maximum(candidate.confidence, assignment.confidence))
            for candidate in choices.matches
        ]
    return Join(sources, matches, match)


def _source(origin: int, capture: int, sequences: LaunchSequences, number: dict[str, int]) -> Source:
    """The launches of one origin; `number` gets a number for each kernel's name."""
    nodes, calls = sequences.nodes, sequences.calls
    names = nodes["kernel"].unique(maintain_order=True).drop_nulls()
    numbers = pl.Series([number.setdefault(name, len(number)) for name in names], dtype=pl.Int64)
    kernel = (
        nodes["kernel"].replace_strict(names, numbers, default=None, return_dtype=pl.Int64) if names.len() else None
    )
    kind = nodes["kind"].to_numpy()
    other = np.where(kind == KERNEL, _NAMELESS, np.where(kind == MEMCPY, _COPY, _FILL))
    codes = other if kernel is None else np.where(kernel.is_null(), other, kernel.fill_null(0).to_numpy())
    first = np.searchsorted(nodes["sequence"].to_numpy(), np.arange(sequences.sequences.height + 1))
    hashes = calls.select(pl.struct("name", "input_shapes", "input_types").hash()).to_series()
    signature = hashes.gather(nodes["call"].cast(pl.Int64).replace(NONE, None)).fill_null(0).to_numpy()
    return Source(origin, capture, sequences, codes.astype(np.int64), first, signature)


def _row_codes(trace: Trace, rows: Ints, number: dict[str, int]) -> Ints:
    """The codes of device rows, as those of nodes."""
    device = trace.device_events
    categories = categories_of(device["name"]).to_list()
    of_name = np.array([number.setdefault(name, len(number)) for name in categories] if rows.size else [], np.int64)
    name, kind = (device[column].to_physical().to_numpy()[rows] for column in ("name", "kind"))
    kernel = of_name[name] if rows.size else name.astype(np.int64)
    return np.where(kind == KERNEL, kernel, np.where(kind == MEMCPY, _COPY, _FILL)).astype(np.int64)


@dataclass(frozen=True)
class _Choices:
    """What may explain a graph.

    Args:
        matches: All that explain it equally well, in the order of their launches.
        signatures: Of each, its operators with their inputs.
        sizes: Of each, the size of the batch that was captured; None: not known.
        is_named: Whether the names of the kernels agree, not only the kinds.
    """

    matches: list[Match]
    signatures: list[bytes]
    sizes: list[int | None]
    is_named: bool = True


class _Matcher:
    """Finds the launches that a graph may have been made of."""

    def __init__(self, sources: list[Source]) -> None:
        self._sources = sources
        self._whole: dict[bytes, list[tuple[int, int]]] = defaultdict(list)  # captures by their named kernels
        self._kinds: dict[bytes, list[tuple[int, int]]] = defaultdict(list)  # captures without names by their kinds
        for index, source in enumerate(sources):
            for sequence in np.flatnonzero(source.sequences.sequences["is_capture"].to_numpy()).tolist():
                span = source.span(sequence)
                is_named = not (span == _NAMELESS).any()
                by = self._whole if is_named else self._kinds
                by[(_kernels(span) if is_named else _kinds(span)).tobytes()].append((index, sequence))

    def choices(self, codes: Ints) -> _Choices:
        """What explains a graph that runs these."""
        whole = self._whole.get(_kernels(codes).tobytes()) if (codes >= 0).any() else None
        if whole:
            return self._of_captures(codes, [capture for capture in whole if capture[0] == whole[0][0]])
        nameless = self._kinds.get(_kinds(codes).tobytes())
        if nameless:
            return self._of_captures(
                codes, [capture for capture in nameless if capture[0] == nameless[0][0]], is_named=False
            )
        return self._windows(codes) or self._nearest(codes)

    def _of_captures(self, codes: Ints, captures: list[tuple[int, int]], *, is_named: bool = True) -> _Choices:
        matches, sizes = [], []
        for index, sequence in captures:
            source = self._sources[index]
            span, first = source.span(sequence), int(source.first[sequence])
            at = align_sequences(codes, span) if is_named else np.arange(codes.size)
            sure = np.full(codes.size, HIGH if is_named else MEDIUM)
            matches.append(Match(index, np.where(at >= 0, at + first, NONE), sure))
            sizes.append(_size(source, sequence))
        return _Choices(matches, [self._signature(match) for match in matches], sizes, is_named)

    def _signature(self, match: Match) -> bytes:
        signature = self._sources[match.source].signature
        return signature[match.node[match.node >= 0]].tobytes()

    def _windows(self, codes: Ints) -> _Choices | None:
        """Eager work that ran exactly the same."""
        text, width = codes.tobytes(), codes.itemsize
        for index, source in enumerate(self._sources if codes.size >= _LEAST_WINDOW else []):
            matches = list[Match]()
            for sequence in np.flatnonzero(~source.sequences.sequences["is_capture"].to_numpy()).tolist():
                span = source.span(sequence).tobytes()
                at = span.find(text)
                while at >= 0 and len(matches) < _MOST_WINDOWS:
                    if at % width == 0:
                        first = int(source.first[sequence]) + at // width
                        matches.append(Match(index, first + np.arange(codes.size), np.full(codes.size, HIGH)))
                    at = span.find(text, at + 1)
            if matches:
                signatures = [self._signature(match) for match in matches]
                sure = np.full(codes.size, HIGH if len(set(signatures)) == 1 else LOW)
                return _Choices([Match(index, matches[0].node, sure)], signatures[:1], [None])
        return None

    def _nearest(self, codes: Ints) -> _Choices:
        """The capture with most in common, aligned."""
        counts, near = Counter(codes.tolist()), list[tuple[int, int, int]]()
        for index, source in enumerate(self._sources):
            for sequence in np.flatnonzero(source.sequences.sequences["is_capture"].to_numpy()).tolist():
                span = source.span(sequence)
                common = (counts & Counter(span.tolist())).total()
                if common >= _LEAST_COMMON * codes.size and not (span == _NAMELESS).any():
                    near.append((common - abs(span.size - codes.size), index, sequence))
        near = sorted(near, key=lambda candidate: -candidate[0])[:_MOST_ALIGNED]
        choices = [self._of_captures(codes, [(index, sequence)]) for _, index, sequence in near]
        best = max(choices, key=lambda choice: int((choice.matches[0].node >= 0).sum()), default=None)
        if best is None or (best.matches[0].node >= 0).sum() < _LEAST_COMMON * codes.size:
            return _Choices([], [], [])
        match = best.matches[0]
        return _Choices([Match(match.source, match.node, _sureness(match.node))], best.signatures, best.sizes)


def _sureness(node: Ints) -> Ints:
    """How sure each row of an aligned graph is: in a long run of rows that follow each other on both sides, or not."""
    starts = np.flatnonzero((np.diff(node, prepend=NONE - 2) != 1) | (node == 0))  # node 0 follows no NONE
    lengths = np.diff(np.append(starts, node.size))
    return np.where(np.repeat(lengths, lengths) >= _LONG_RUN, HIGH, MEDIUM)


def _kernels(codes: Ints) -> Ints:
    """The codes without copies and fills: profilers record these differently in a capture and in a replay."""
    return codes[codes >= _NAMELESS]


def _kinds(codes: Ints) -> Ints:
    return np.minimum(codes, _NAMELESS)


def _size(source: Source, sequence: int) -> int | None:
    """The size of the batch that a capture was made for, by the annotation around it."""
    name = source.sequences.sequences["range"][sequence]
    iteration = iteration_name(name) if name else None
    return iteration.batch if iteration is not None and iteration.phase == "capture" else None


def _tokens(trace: Trace, graph_replays: Replays) -> Ints:
    """The tokens of each replay's iteration, or its requests; NONE: not known."""
    names = ranges_around(trace, graph_replays.launch)
    tokens: dict[str | None, int] = {None: NONE}
    for name in names.unique().drop_nulls():
        iteration = iteration_name(name)
        count = None if iteration is None else iteration.tokens or iteration.batch
        tokens[name] = NONE if count is None else count
    return np.array([tokens[name] for name in names], np.int64)


@dataclass(frozen=True)
class _Assignment:
    """The choice (or NONE) of each replay, and how sure it is at best."""

    replay: Ints
    choice: Ints
    confidence: int


def _assign(graph_replays: Replays, variants: list[int], choices: _Choices, tokens: Ints) -> _Assignment:
    """Which capture each replay comes from.

    Captures of the same kernels, as of equal layers, were replayed in the order of the captures. Graphs with numbers
    were captured in the order of the numbers; without, each iteration replays all in turn.
    """
    replay = np.flatnonzero(np.isin(graph_replays.variant, variants))
    count = len(choices.matches)
    none = np.full(replay.size, NONE)
    if not count:
        return _Assignment(replay, none, LOW)
    if len(variants) == count > 1:
        number = {variant: nth for nth, variant in enumerate(variants)}
        choice = np.array([number[variant] for variant in graph_replays.variant[replay].tolist()])
        return _Assignment(replay, choice, HIGH if len(set(choices.signatures)) == 1 else MEDIUM)
    choice, is_clear = none.copy(), True
    for batch in np.unique(tokens[replay]).tolist():
        fitting_sizes = [size for size in choices.sizes if size is not None and size >= batch >= 0]
        turns = [i for i in range(count) if not fitting_sizes or choices.sizes[i] == min(fitting_sizes)]
        mine = np.flatnonzero(tokens[replay] == batch)
        choice[mine] = np.array(turns)[np.arange(mine.size) % len(turns)]
        is_clear &= len({choices.signatures[i] for i in turns}) == 1
    if not is_clear and not choices.is_named:
        return _Assignment(replay, none, LOW)
    return _Assignment(replay, choice, HIGH if is_clear else LOW)
