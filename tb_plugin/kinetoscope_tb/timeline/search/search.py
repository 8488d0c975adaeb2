"""Search: slices by text, by exact values, or by the row of another view.

Text is matched once per label, not once per slice, so that searching a large recording is fast.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import BadParameter
from ...measures.time.step_subset import events_of_phase
from ...text_query import texts_with
from ...trace import Trace
from ...trace.row_filters import Events
from ...view import View
from ..core.model import CATEGORIES, Timeline
from ..core.pyramid import Pyramid, Rows
from .predicates import SIDES, VALUES, slices_with

BINS = 512
MOST_NAMES = 100
MOST_SHOWN = 80  # characters of a value in a message
_OF_LABELS = {"text": str, "name": (str, type(None)), "category": str}


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The matching slices.

    Args:
        timeline: The timeline that was searched.
        numbers: Of the slices, ascending.
    """

    timeline: Timeline
    numbers: NDArray[np.int32]

    @property
    def start_ns(self) -> NDArray[np.int64]:
        """When each begins."""
        return self.timeline.start_ns[self.numbers]

    @cached_property
    def by_start(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """(their starts, their numbers) in order of time; of two that begin together, the higher one is first."""
        start = self.start_ns
        order = np.argsort(start, kind="stable")
        return start[order], self.numbers[order]

    def pyramid(self) -> Pyramid:
        """The matching slices alone, in the rows of the timeline, at any zoom."""
        timeline, numbers = self.timeline, self.numbers
        dur, label = timeline.dur_ns[numbers], timeline.label[numbers]
        first = np.searchsorted(numbers, timeline.pyramid.rows.first).astype(np.int64)
        return Pyramid(Rows(self.start_ns, dur, label, first, numbers.astype(np.uint32)))

    def names(self) -> list[tuple[str, int, int]]:
        """The names of the matches with their counts and summed durations (ns), most frequent first, at most 100."""
        texts, of = self.timeline.labels.texts, self.timeline.label[self.numbers]
        counts = np.bincount(of, minlength=len(texts))
        # As floats, which are exact for sums below 104 days.
        times = np.bincount(of, weights=self.timeline.dur_ns[self.numbers], minlength=len(texts))
        calls, total_ns = Counter[str](), Counter[str]()
        for label in np.flatnonzero(counts).tolist():
            calls[texts[label]] += int(counts[label])
            total_ns[texts[label]] += int(times[label])
        most = sorted(calls.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_NAMES]
        return [(name, count, total_ns[name]) for name, count in most]

    def histogram(self) -> list[int]:
        """How many begin in each of 512 equal parts of the window."""
        first, last = self.timeline.window
        bins = np.minimum((self.start_ns - first) * BINS // max(1, last - first), BINS - 1)
        counts: list[int] = np.bincount(bins, minlength=BINS).tolist()
        return counts

    def place_after(self, at: int | None) -> int:
        """The index, in order of time, of the first that begins after a time; of the first of all, without one."""
        return 0 if at is None else int(np.searchsorted(self.by_start[0], at, "right"))

    def place_before(self, at: int | None) -> int:
        """The index of the last that begins before a time, or of the last of all; -1 if there is none."""
        starts = self.by_start[0]
        return (starts.size if at is None else int(np.searchsorted(starts, at))) - 1


def parse_find(text: str, views: Mapping[str, View]) -> str:
    """The canonical JSON of a `find` parameter.

    Args:
        text: The parameter.
        views: The views by id; rows of those with slices can be searched for.

    Raises:
        BadParameter: It isn't valid; docs/http_api.md defines it.
    """
    try:
        find = json.loads(text)
        json.dumps(find, ensure_ascii=False).encode()  # not half a surrogate pair: no name of a slice has one
    except (ValueError, RecursionError):
        raise BadParameter(f"find={text[:80]!r} isn't possible; it is a JSON object.") from None
    if not isinstance(find, dict) or not find:
        raise BadParameter(f"find={text[:80]!r} isn't possible; it is a JSON object with at least one key.")
    types_of_keys = _allowed_keys(find, views)
    for name, value in find.items():
        if name not in types_of_keys:
            raise BadParameter(f"find can't have {name[:MOST_SHOWN]!r} here; it has {', '.join(types_of_keys)}.")
        types = types_of_keys[name] if isinstance(types_of_keys[name], tuple) else (types_of_keys[name],)
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise BadParameter(f"find can't have {name[:MOST_SHOWN]!r} = {str(value)[:MOST_SHOWN]!r}.")
        if isinstance(value, int) and abs(value) >= 1 << 63:
            raise BadParameter(f"find can't have {name!r} = {str(value)[:MOST_SHOWN]}; numbers have at most 63 bits.")
    if find.get("category", CATEGORIES[0]) not in CATEGORIES:
        category = find["category"][:MOST_SHOWN]
        raise BadParameter(f"There is no category {category!r}; there are {', '.join(CATEGORIES)}.")
    if find.get("side", "host") not in SIDES:
        raise BadParameter(f"There is no side {find['side'][:MOST_SHOWN]!r}; there are {', '.join(SIDES)}.")
    return json.dumps(find, sort_keys=True)


def _allowed_keys(find: dict[str, Any], views: Mapping[str, View]) -> dict[str, Any]:
    """The keys that a find may have, with the types of their values."""
    if "view" not in find:
        return {**_OF_LABELS, **VALUES}
    view = views.get(find["view"]) if isinstance(find["view"], str) else None
    if view is None or view.slices is None:
        ids = ", ".join(view.id for view in views.values() if view.slices)
        raise BadParameter(f"Rows of {str(find['view'])[:MOST_SHOWN]!r} have no slices; those of {ids} have.")
    types = {column.name: (column.kind.dtype.to_python(), type(None)) for column in view.table.columns}
    of_steps = {"phase": (str, type(None))} if view.takes_steps else {}
    return {"view": str, "text": str, **of_steps, **{name: types[name] for name in view.table.key}}


def search(trace: Trace, timeline: Timeline, find: str, views: Mapping[str, View]) -> SearchResult:
    """The slices that satisfy all keys of a parsed find.

    Projected annotations are found by what is drawn of them: name, category, track, times. What is known of recorded
    events, and rows of views, find recorded slices.

    Raises:
        BadParameter: Its text has an invalid pattern.
    """
    query = json.loads(find)
    labels = _labels(timeline, query)
    mask = labels[timeline.label] if labels is not None else np.ones(timeline.size, bool)
    if view := query.get("view"):
        mask &= _mask_of_events(timeline, events_of_row(trace, views[view], query))
    else:
        for numbers in slices_with(trace, timeline, query):
            mask &= _mask(timeline, numbers)
    return SearchResult(timeline, np.flatnonzero(mask).astype(np.int32))


def events_of_row(trace: Trace, view: View, query: Mapping[str, Any]) -> Events:
    """The events behind a row of a view; with a phase, of the view restricted to it."""
    events, phase = view.events_of_row(trace, query), query.get("phase")
    return events if phase is None or "phase" in view.table.key else events_of_phase(trace, events, view.within, phase)


def _mask_of_events(timeline: Timeline, events: Events) -> NDArray[np.bool_]:
    mask = np.zeros(timeline.size, bool)
    for frame, rows in events.items():
        mask |= _mask(timeline, timeline.slices_of(frame, rows))
    return mask


def _mask(timeline: Timeline, numbers: NDArray[np.integer] | NDArray[np.bool_]) -> NDArray[np.bool_]:
    if numbers.dtype == np.bool_:
        return numbers.astype(np.bool_, copy=False)
    mask = np.zeros(timeline.size, bool)
    mask[numbers[numbers >= 0]] = True
    return mask


def _labels(timeline: Timeline, query: dict[str, Any]) -> NDArray[np.bool_] | None:
    """Mask of the labels that the find selects; None if it has no such key."""
    labels, mask = timeline.labels, None
    if text := query.get("text"):
        mask = texts_with(text, labels.texts) | texts_with(text, labels.shown_texts)
    if "view" in query:
        return mask
    if "category" in query:
        is_of = labels.categories == CATEGORIES.index(query["category"])
        mask = is_of if mask is None else mask & is_of
    if "name" in query:
        is_so = np.array([text == (query["name"] or "") for text in labels.texts], bool)
        mask = is_so if mask is None else mask & is_so
    return mask
