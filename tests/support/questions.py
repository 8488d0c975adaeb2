"""Everything that the page, the command line and the notebook ask of a recording, as calls without a server.

Whatever a file holds, an answer to each is valid JSON with finite numbers, or a `KinetoscopeError`.
"""

from __future__ import annotations

import io
import itertools
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from random import Random
from typing import Any, get_args

import polars as pl

from kinetoscope_tb.answer.first_screen import blocks_of, text_lines
from kinetoscope_tb.answer.model import Answer
from kinetoscope_tb.answer.recording import recording_answer
from kinetoscope_tb.answer.run import run_answer
from kinetoscope_tb.diagnostics.diagnose import diagnose
from kinetoscope_tb.diagnostics.verification import run_problems, verdict
from kinetoscope_tb.discovery import TraceFile
from kinetoscope_tb.discovery.header_probe import head_in
from kinetoscope_tb.distributed.path.path_segments import PathSegments
from kinetoscope_tb.distributed.run import Member, Ranks
from kinetoscope_tb.distributed.summary import summary
from kinetoscope_tb.distributed.validation import problem_of
from kinetoscope_tb.engine.answers import LoadingProgress, Missing, Partial, cached_frames, compute
from kinetoscope_tb.engine.cache import summary_entry, timeline_entry, trace_entry
from kinetoscope_tb.engine.cache.columns import Reader
from kinetoscope_tb.engine.comparisons import compute_comparison
from kinetoscope_tb.errors import KinetoscopeError, TraceError
from kinetoscope_tb.export.chrome_json.writer import EXTRAS, Source, Window, export_pieces
from kinetoscope_tb.export.merge import merge
from kinetoscope_tb.export.repair import repair
from kinetoscope_tb.reader import Progress, read_blocks
from kinetoscope_tb.reader.event import event_of
from kinetoscope_tb.reader.scan.strict_json import is_strict
from kinetoscope_tb.table import COUNT, DURATION, FRACTION
from kinetoscope_tb.text_table import aligned_lines, text_columns
from kinetoscope_tb.timeline.area.counter_values import counter_values
from kinetoscope_tb.timeline.area.flame import AreaFlames, area_flames
from kinetoscope_tb.timeline.area.groups import By, groups
from kinetoscope_tb.timeline.area.pivot import Area, area
from kinetoscope_tb.timeline.core.build import timeline
from kinetoscope_tb.timeline.core.pyramid import batch_bytes
from kinetoscope_tb.timeline.counters.counters import batch_bytes as counter_bytes
from kinetoscope_tb.timeline.counters.counters import counters
from kinetoscope_tb.timeline.critical_path.cross_rank_pieces import CrossRankPieces
from kinetoscope_tb.timeline.critical_path.path_pieces import PathPieces
from kinetoscope_tb.timeline.details.details import details
from kinetoscope_tb.timeline.search.search import parse_find, search
from kinetoscope_tb.trace import Trace
from kinetoscope_tb.trace.model import COLLECTED
from kinetoscope_tb.view import Detail
from kinetoscope_tb.views import EVERY_VIEW, RUN_VIEWS, VIEWS
from kinetoscope_tb.web import encode, encode_comparison, encode_state
from kinetoscope_tb.web.timeline import _meta

Question = tuple[str, Callable[[], object]]
FILE = TraceFile("run", "rank0", "1", "odd.json", "odd.json", 1, (1, 1))
_LEVELS = (0, 10, 20, 44)


def fail_if_unsound(answer: object) -> None:
    """See that an answer is JSON that any reader takes: with finite numbers, and texts that UTF-8 has."""
    json.dumps(answer, allow_nan=False, ensure_ascii=False).encode()


def reading(data: bytes, path: str = "odd.json") -> Trace:
    """Read a file, looking at what is told of it meanwhile.

    Raises:
        TraceError: The file can't be used.
    """

    def progress(so_far: Progress) -> None:
        if so_far.preview is not None:
            partial = Partial(0.5, so_far.preview())
            fail_if_unsound(encode_state.reading(LoadingProgress("reading", 0.5, None, None), partial))

    return read_blocks([data], path=path, threads=1, progress=progress)


def identity(trace: Trace) -> int:
    """A number for what a trace says, wherever its events lie in the file: two of one number have the same answers."""
    content: list[object] = [trace.origin_ns, trace.window, trace.meta]
    content += [[(diagnostic.rule, diagnostic.count, diagnostic.level) for diagnostic in trace.diagnostics]]
    for field in fields(trace):
        value = getattr(trace, field.name)
        if isinstance(value, pl.DataFrame):
            content.append(value.select(pl.exclude("offset", "length")).to_dict(as_series=False))
    return hash(repr(content))


def questions(trace: Trace, data: bytes, other: Trace, numbers: Random) -> Iterator[Question]:
    """What is asked of one recording; of questions that there are many of, some.

    Args:
        trace: The recording.
        data: Its file.
        other: What it is compared with.
        numbers: Choose among the many.
    """
    yield from view_questions(trace, numbers)
    yield (
        "/state",
        lambda: fail_if_unsound(
            encode_state.state(trace, "odd.json", VIEWS, compute(VIEWS["health"], trace, {}), is_alone=False)
        ),
    )
    yield "/answer", lambda: _ask_summary(recording_answer(trace, EVERY_VIEW, cached_frames))
    yield "findings", lambda: [diagnostic.consequence.encode() for diagnostic in diagnose(trace)]
    yield "check", lambda: fail_if_unsound(run_problems([verdict(FILE, trace), verdict(FILE, other)]))
    yield "runs", lambda: head_in(data)
    yield "events", lambda: _ask_events(trace, data, numbers)
    yield "cache", lambda: _keep(trace)
    yield from _about_the_timeline(trace, numbers)
    comparable = [view for view in VIEWS.values() if view.comparable_columns]
    for base, new in ((trace, other), (other, trace)):
        chosen = numbers.choice(comparable)
        yield f"/compare {chosen.id}", lambda v=chosen, b=base, n=new: _compare(v, b, n)


def view_questions(trace: Trace, numbers: Random) -> Iterator[Question]:
    """Each view of one recording, which has no negative time, count or share unless the column says so."""
    for view in VIEWS.values():
        yield f"/view {view.id}", lambda view=view: _ask_view(view, trace, {})
    for view in numbers.sample([view for view in VIEWS.values() if view.parameters], 3):
        choices = [[(p.name, value) for value in p.choices] for p in view.parameters if p.kind == "choice"]
        chosen = numbers.choice(list(itertools.product(*choices)))
        yield f"/view {view.id} {dict(chosen)}", lambda view=view, chosen=chosen: _ask_view(view, trace, dict(chosen))
    for view in VIEWS.values():
        if isinstance(view.place, Detail):
            yield f"/view {view.id} of a row", lambda view=view: _ask_details(view, trace, numbers)


def _ask_summary(answer: Answer) -> None:
    """It has a verdict, and is what the page gets and what the command prints."""
    assert answer.verdict.title
    fail_if_unsound(answer.values())
    "\n".join(text_lines(blocks_of(answer, "--worker"))).encode()


def _ask_view(view: Any, trace: Any, given: dict[str, Any]) -> pl.DataFrame | None:
    frame = compute(view, trace, view.arguments(given))
    fail_if_unsound(encode.view_answer(view, frame))
    if isinstance(frame, Missing):
        return None
    encode.csv(frame).encode()
    aligned_lines(text_columns(view.table.columns, frame)).encode()
    _fail_if_senseless(view, frame)
    return frame


def _fail_if_senseless(view: Any, frame: pl.DataFrame) -> None:
    has_steps_twice = "step" in view.table.key and frame["step"].is_duplicated().any()  # the profiler began again
    is_twice = frame.select(view.table.key).is_duplicated()
    assert has_steps_twice or not is_twice.any(), f"{view.id}: two rows have one key"
    for column in view.table.columns:
        if column.kind not in (DURATION, COUNT, FRACTION) or frame[column.name].null_count() == frame.height:
            continue
        least, most = frame[column.name].min(), frame[column.name].max()
        if "negative" not in column.doc.lower():
            assert least >= 0, f"{column.name} is negative"  # type: ignore[operator]
        if column.kind is FRACTION and "above" not in column.doc.lower():
            assert most <= 1 + 1e-9, f"{column.name} exceeds 1"  # type: ignore[operator]


def _ask_details(view: Any, trace: Trace, numbers: Random) -> None:
    around = compute(VIEWS[view.place.of], trace, {})
    if isinstance(around, Missing) or not around.height:
        return
    row = around.row(numbers.randrange(around.height), named=True)
    names = {p.name for p in view.parameters} & set(VIEWS[view.place.of].table.key)
    _ask_view(view, trace, {name: str(row[name]) for name in names if row[name] is not None})


def _ask_events(trace: Trace, data: bytes, numbers: Random) -> None:
    for name in COLLECTED:
        frame: pl.DataFrame = getattr(trace, name)
        for row in numbers.sample(range(frame.height), min(2, frame.height)):
            offset, length = frame["offset"][row], frame["length"][row]
            fail_if_unsound(encode.event(event_of(data[offset : offset + length], offset)))


def _keep(trace: Trace) -> None:
    """What the cache gives back is what it was given."""
    file = io.BytesIO()
    trace_entry.write(file, trace, {"path": "odd.json"})
    again = trace_entry.read(Reader.of(file.getvalue(), trace_entry.MAGIC))
    assert again.meta == trace.meta
    assert again.diagnostics == trace.diagnostics
    assert all(getattr(again, name).equals(getattr(trace, name)) for name in (*COLLECTED, "steps", "threads"))


def _about_the_timeline(trace: Trace, numbers: Random) -> Iterator[Question]:
    drawn: list[Any] = []

    def arrange() -> None:
        drawn.append(timeline(trace))
        fail_if_unsound(_meta(trace, drawn[0]))
        fail_if_unsound([drawn[0].labels.texts, drawn[0].labels.categories.tolist()])
        file = io.BytesIO()
        timeline_entry.write(file, drawn[0], {"path": "odd.json"})
        timeline_entry.read(Reader.of(file.getvalue(), timeline_entry.MAGIC), trace)

    yield "/timeline", arrange
    if not drawn:
        return
    made = drawn[0]
    yield "/timeline/tiles", lambda: _ask_tiles(made)
    yield "/timeline/counters", lambda: _ask_counters(trace, made)
    if made.size:
        for number in numbers.sample(range(made.size), min(4, made.size)):
            yield "/timeline/slice", lambda n=number: fail_if_unsound(details(trace, made, n))
    yield "/timeline/find", lambda: _find(trace, made, {"text": "aten -kernel"})
    for view in numbers.sample(sorted(name for name, view in VIEWS.items() if view.slices), 2):
        yield f"/timeline/find {view}", lambda view=view: _find_row(trace, made, view, numbers)
    window = made.window
    for begin, end in (window, (window[0] + 10_000, window[0] + 60_000)):
        yield "/timeline/area", lambda b=begin, e=end: _ask_area(trace, made, b, max(b, e))
    yield "/timeline/path", lambda: fail_if_unsound(PathPieces.of(trace, made).within(made, *window, 100))
    if numbers.randrange(3) == 0:
        yield "/timeline/export", lambda: _export(trace, made)


def _ask_area(trace: Trace, made: Any, begin: int, end: int) -> None:
    every = range(len(made.tracks))
    for by in get_args(By):
        table = area(made, groups(trace, made, by), begin, end, every)
        fail_if_unsound(encode.table(Area.columns, table))
    for is_device in (False, True):
        boxes = area_flames(made, begin, end, every, is_device=is_device)
        fail_if_unsound(encode.table(AreaFlames.columns, boxes))
    fail_if_unsound([counter_values(one, begin, end) for one in counters(trace)])


def _ask_tiles(made: Any) -> None:
    for track in made.tracks:
        for level in _LEVELS:
            for at in (made.window[0], made.window[1]):
                index = max(0, at) >> (level + 9)
                batch_bytes([made.pyramid.tile(track.first_row, track.first_row + track.lanes, level, index)])


def _ask_counters(trace: Trace, made: Any) -> None:
    for number, counter in enumerate(counters(trace)):
        fail_if_unsound(counter.describe(number))
        for level in _LEVELS:
            counter_bytes([counter.tile(level, max(0, made.window[1]) >> (level + 9))])


def _find(trace: Trace, made: Any, find: dict[str, Any]) -> None:
    hits = search(trace, made, parse_find(json.dumps(find), VIEWS), VIEWS)
    fail_if_unsound([hits.names(), hits.histogram(), hits.place_after(None), hits.place_before(10)])
    hits.pyramid()


def _find_row(trace: Trace, made: Any, name: str, numbers: Random) -> None:
    frame = compute(VIEWS[name], trace, {})
    if isinstance(frame, Missing) or not frame.height:
        return
    row = frame.row(numbers.randrange(frame.height), named=True)
    _find(trace, made, {"view": name, **{key: row[key] for key in VIEWS[name].table.key}})


def _export(trace: Trace, made: Any) -> None:
    """What other viewers get is a trace that we read, with as many slices."""
    source = Source(trace, made, 0, "rank0")
    written = zlib.decompress(b"".join(export_pieces([source], Window(), EXTRAS)), 31)
    fail_if_unsound(json.loads(written))
    again = read_blocks([written], path="exported.json", threads=1)
    far = {"zero_time"}  # what begins when the recording does, far before all else
    assert not [f for f in again.diagnostics if f.level == "loss" and f.rule not in far], again.diagnostics


def _compare(view: Any, base: Trace, new: Trace) -> None:
    result = compute_comparison(view, base, new, {})
    fail_if_unsound(encode_comparison.comparison(view, result))


def file_questions(data: bytes, folder: Path) -> Iterator[Question]:
    """What is written anew of a file."""
    path = folder / "rank0.1.pt.trace.json"
    path.write_bytes(data)
    file = TraceFile("run", "rank0", "1", str(path), path.name, len(data), (1, 1))

    def mend() -> None:
        out = folder / "mended.json"
        out.unlink(missing_ok=True)
        repair(str(path), str(out))
        assert is_strict(out.read_bytes())

    def side_by_side() -> None:
        out = io.BytesIO()
        merge([file, file], out)
        assert is_strict(out.getvalue())

    yield "repair", mend
    yield "merge", side_by_side


def run_questions(trace: Trace, others: list[Any], numbers: Random) -> Iterator[Question]:
    """What is asked of a run of which the recording is the first or the last; `others` are summaries of other ranks."""
    made: list[Any] = []

    def sum_up() -> None:
        result = summary(trace)
        if problem := problem_of(result):
            raise TraceError(trace.path, problem)
        made.append(summary_entry.PackedSummary(summary_entry.pack_summary(result).data).summary)

    yield "summary", sum_up
    if not made:
        return
    summaries = [made[0], *others] if numbers.randrange(2) else [*others, made[0]]
    ranks = Ranks("run", tuple(Member(f"rank{i}", "1", 0, one) for i, one in enumerate(summaries)))
    for view in RUN_VIEWS.values():
        yield f"/view {view.id}", lambda view=view: _ask_view(view, ranks, {})
    own = recording_answer(trace, EVERY_VIEW, cached_frames)
    yield "/answer of=run", lambda: _ask_summary(run_answer(own, ranks, EVERY_VIEW, len(summaries), lambda _: None))
    yield "/timeline/path_across_ranks", lambda: _across(trace, ranks, 0 if summaries[0] is made[0] else len(others))


def _across(trace: Trace, ranks: Ranks, member: int) -> None:
    if RUN_VIEWS["path_across_ranks"].is_missing(ranks):
        return
    path_segments = PathSegments.of(ranks)
    drawn = timeline(trace)
    fail_if_unsound([path_segments.shares(member, *drawn.window), path_segments.notes])
    path = CrossRankPieces.of(trace, drawn, path_segments, member)
    fail_if_unsound(path.within(drawn, *drawn.window, 100))


def ask(questions: Iterator[Question]) -> dict[str, BaseException]:
    """The questions that failed, each with its error; a `KinetoscopeError` is an answer."""
    failed: dict[str, BaseException] = {}
    for name, question in questions:
        try:
            question()
        except KinetoscopeError:
            continue
        except (Exception, pl.exceptions.PanicException) as error:  # noqa: BLE001  # any is a failure to report
            failed[name] = error
    return failed
