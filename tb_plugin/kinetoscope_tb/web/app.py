"""Routes to answers. Each handler returns JSON values, or bytes, or raises."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from werkzeug.wrappers import Request

from ..answer.pace_of_others import RANK_STEPS, WHAT_IF, what_if_in_run
from ..answer.recording import recording_answer
from ..answer.run import OF_RUN, claims_of_run, with_ranks, workers_behind
from ..answer.run_change import RunSide, with_runs
from ..compare.changes import ID as CHANGES
from ..compare.step_difference import ID as STEP_DIFFERENCE
from ..compare.step_difference import ROWS_ID, TERM
from ..discovery import Logdir, is_process_name, list_traces, parse_logdirs
from ..discovery.jobs import has_job
from ..discovery.listing import recording_of_worker
from ..engine.answers import Missing, NotReady, ask_all, cached_frames, wait_for_answer
from ..engine.cache import configured_cache
from ..engine.engine import Engine
from ..errors import BadParameter, KinetoscopeError, NotFound, TraceError
from ..history.words import sentences
from ..measures.calls.kernel_names import labels_of_kernels
from ..measures.recording.contents import has_communication, has_graphs
from ..measures.time.idle_causes import split_gaps_of_devices
from ..names.communication_patterns import NO_PATTERNS, CommunicationPatterns
from ..view import catalogue
from ..views import EVERY_VIEW
from . import encode, encode_comparison, encode_history, encode_state
from .access import WriteAccess
from .queries import NAMES, file_of, query_of, whole_number
from .responses import Handler, answer_response, file_response
from .routes import MODULE_OF

if TYPE_CHECKING:
    import polars as pl

    from ..answer.model import Answer
    from ..compare.changes import ChangeList
    from ..discovery import Listing, TraceFile
    from ..trace import Trace
    from ..view import View

    Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

BASE_NAMES = ("base_run", "base_worker", "base_span")
CAPTURE_NAMES = ("capture", "base_capture")  # of the graphs of both
_FILES = ("/static/*", "/timeline/perfetto/*")


class Applications(Mapping[str, "Application"]):
    """The WSGI applications by route. A route's module is imported when somebody asks for it.

    Args:
        engine: Answers the questions.
        access: Which requests may change something; by default those to this machine's own names.
    """

    def __init__(self, engine: Engine, access: WriteAccess | None = None) -> None:
        self._engine, self._access = engine, access or WriteAccess()

    def __getitem__(self, route: str) -> Application:
        module = import_module(f".{MODULE_OF[route]}", __package__)
        if route in _FILES:
            return Request.application(partial(file_response, module.page_file))
        if route == "/capture":
            get, post = (partial(handler, self._access) for handler in (module.list_jobs, module.request_recording))
            return Request.application(partial(answer_response, self._engine, get, post=post))
        return Request.application(partial(answer_response, self._engine, module.ROUTES[route]))

    def __iter__(self) -> Iterator[str]:
        return iter(MODULE_OF)

    def __len__(self) -> int:
        return len(MODULE_OF)


class Site:
    """What a server shows of its logdirs: the engine, and the applications by route.

    Args:
        logdirs: Where the traces are.
        host: The address that the server listens on; None without a server.
        patterns: Further names that count as communication.
    """

    def __init__(
        self, logdirs: Sequence[Logdir], host: str | None, patterns: CommunicationPatterns = NO_PATTERNS
    ) -> None:
        self._engine = Engine(logdirs, cache=configured_cache(), patterns=patterns)
        self.applications = Applications(self._engine, WriteAccess.from_settings(host))

    @classmethod
    def of_flags(cls, logdir: str, spec: str | None, host: str | None) -> Site:
        """The site of what TensorBoard's flags `--logdir`, `--logdir_spec` and `--host` say."""
        return cls(parse_logdirs(logdir, spec), host)

    def application(self, path: str) -> Application:
        """The application of a path, by its route, of which some end in a star."""
        stars = [route for route in MODULE_OF if route.endswith("/*") and path.startswith(route[:-1])]
        return self.applications[path if path in MODULE_OF else max(stars, key=len)]

    def show(self, path: str, run: str) -> TraceFile:
        """Show another file too, as a part of a run of this name; return what it is listed as."""
        logdir = Logdir(path, run)
        self._engine.add(logdir)
        return list_traces([logdir]).files[0]

    def adopt(self, file: TraceFile, trace: Trace) -> None:
        """Show the finished trace of a file that was read already."""
        self._engine.adopt(file, trace)

    def prepare(self, recording: Mapping[str, str]) -> None:
        """Compute what the page asks about a recording first, before it asks.

        Args:
            recording: The `run`, `worker` and `span`.
        """
        with suppress(KinetoscopeError):  # the page says so
            file = wait_for_answer(partial(file_of, self._engine, recording))
            wait_for_answer(partial(_own_answer, self._engine, file))

    def has_something_to_show(self) -> bool:
        """Whether there is a trace, a problem or a running job; True before the first listing is done."""
        return self._engine.has_something_to_show() or has_job(self._engine.logdirs)


def _runs(engine: Engine, request: Request) -> object:
    query_of(request, ())
    return encode.runs(engine.listing())


def _views(_engine: Engine, request: Request) -> object:
    query_of(request, ())
    return catalogue(EVERY_VIEW.values())


def _state(engine: Engine, request: Request) -> object:
    query, views = query_of(request, NAMES), EVERY_VIEW
    engine.listing()  # a trace is opened: its file may have changed
    file = file_of(engine, query)
    try:
        trace = engine.trace(file, reads_captures=False)
    except NotReady as waiting:
        return encode_state.reading(waiting.progress, engine.partial(file))
    health = engine.frame(views["health"], file, {}, waits_for_captures=False)
    current = file_of(engine, query)  # reading may have shown that the file holds several processes
    successor = current if (current.run, current.worker, current.span) != tuple(query[name] for name in NAMES) else None
    file = file if successor is None else successor
    captures = list(engine.capture_choices(file)) if has_graphs(trace) else []
    has_others = _has_other_workers(engine, file)
    is_alone = not (has_others and _is_rank(file, trace))
    state = encode_state.state(
        trace, file.shown, views, health, is_alone=is_alone, has_other_workers=has_others, captures=captures
    )
    other_files = {"moved": successor, "snapshot": engine.snapshot_of(file)}
    return state | {key: _names(other) for key, other in other_files.items() if other is not None}


def _names(file: TraceFile) -> dict[str, str]:
    """The run, worker and span of a file."""
    return {name: getattr(file, name) for name in NAMES}


def _has_other_workers(engine: Engine, file: TraceFile) -> bool:
    listing = engine.listing()
    return listing is not None and len(listing.ranks(file.run)) > 1


def _is_rank(file: TraceFile, trace: Trace) -> bool:
    """Whether other workers of the run are other ranks of the trace's job, not processes that have no ranks."""
    if trace.meta.world_size is not None:
        return trace.meta.world_size > 1
    return trace.meta.rank is not None or has_communication(trace) or not is_process_name(file.worker)


def _view(engine: Engine, request: Request) -> object:
    query = query_of(request, ("view", *NAMES), others=True)
    view = _find_view(query["view"])
    arguments = view.arguments({k: v for k, v in query.items() if k not in ("view", "capture", *NAMES)})
    file = file_of(engine, query)
    if view.scope != "recording":
        return encode.view_answer(view, engine.run_frame(view, file, arguments))
    frame = engine.frame(view, file, arguments)
    engine.prepare(file, _shared_results)
    if view.id == WHAT_IF and not isinstance(frame, Missing) and _has_other_workers(engine, file):
        frame = _what_if_in_run(engine, file, frame, arguments)
    return encode.view_answer(view, frame, engine.note(view, file, arguments))


def _what_if_in_run(engine: Engine, file: TraceFile, frame: pl.DataFrame, arguments: Mapping[str, Any]) -> pl.DataFrame:
    """What a rank would save while the others take as long as they do."""

    def frame_of(view: str, arguments: Mapping[str, object]) -> pl.DataFrame:
        return cast("pl.DataFrame", engine.frame(EVERY_VIEW[view], file, arguments))  # not Missing: `what_if` isn't

    rank_steps = engine.run_frame(EVERY_VIEW[RANK_STEPS], file, {})
    if isinstance(rank_steps, Missing):
        return frame
    return what_if_in_run(frame, arguments.get("less"), file.worker, rank_steps, frame_of)


def _answer(engine: Engine, request: Request) -> object:
    query = query_of(request, NAMES, optional=("of",))
    of = query.get("of", "recording")
    if of not in ("recording", "run"):
        raise BadParameter(f"of={of!r} is not possible; choose one of recording, run.")
    file, listing = file_of(engine, query), engine.listing()
    if of == "recording" or listing is None:
        return _own_answer(engine, file).of_file(file, file.shown).values()
    return _run_answer(engine, listing, file)


def _run_answer(engine: Engine, listing: Listing, file: TraceFile) -> dict[str, Any]:
    """The answer about a run; while its ranks are compared and late ones are read, with what is known so far.

    All that a page says of a run comes from this one answer, so that no sentence knows less than the next.
    """
    own, frames_of_run = partial(_own_answer, engine, file), partial(_frames_of_run, engine, file)
    try:
        recording, frames = ask_all(own, frames_of_run)
    except NotReady as not_ready:
        return _answer_so_far(not_ready, own().of_file(file, file.shown))
    answer, workers = recording.of_file(file, file.shown), len(listing.ranks(file.run))
    try:
        others = _answers_behind(engine, listing, file, frames)
    except NotReady as not_ready:
        return _answer_so_far(not_ready, with_ranks(answer, frames, EVERY_VIEW, workers))
    return with_ranks(answer, frames, EVERY_VIEW, workers, others).values()


def _answer_so_far(not_ready: NotReady, answer: Answer) -> dict[str, Any]:
    return {**encode.loading_state(not_ready.progress), "so_far": answer.values()}


def _frames_of_run(engine: Engine, file: TraceFile) -> dict[str, pl.DataFrame]:
    """The views behind the answer about a file's run, without those that lack data."""
    frames = ask_all(*(partial(engine.run_frame, EVERY_VIEW[view], file, {}) for view in OF_RUN))
    return {view: frame for view, frame in zip(OF_RUN, frames, strict=True) if not isinstance(frame, Missing)}


def _answers_behind(
    engine: Engine, listing: Listing, file: TraceFile, frames: Mapping[str, pl.DataFrame]
) -> list[Answer]:
    """The answers about the recordings of a file's run that say why its ranks wait."""
    answers = [_answer_of_worker(engine, listing, file, worker) for worker in workers_behind(frames, file.worker)]
    return [answer for answer in answers if answer is not None]


def _answer_of_worker(engine: Engine, listing: Listing, file: TraceFile, worker: str) -> Answer | None:
    """The answer about the recording of a worker of a file's run; None if it can't be used."""
    other = recording_of_worker(listing, file, worker)
    if other is None:
        return None
    try:
        return _own_answer(engine, other).of_file(other, other.shown)
    except TraceError:
        return None  # the page of that recording says why


def _own_answer(engine: Engine, file: TraceFile) -> Answer:
    return engine.about_trace(file, _recording_answer, split_gaps_of_devices)


def _recording_answer(trace: Trace) -> Answer:
    return recording_answer(trace, EVERY_VIEW, cached_frames)


def _shared_results() -> list[Callable[[Trace], object]]:
    """What views begin with, in the order of the page."""
    shares = [view.shares for view in EVERY_VIEW.values() if view.scope == "recording"]
    return list(dict.fromkeys(make for make in shares if make is not None))


def _compare(engine: Engine, request: Request) -> object:
    names = ("view", *NAMES, *BASE_NAMES)
    query = query_of(request, names, others=True)
    new = file_of(engine, query)
    base = file_of(engine, {k.removeprefix("base_"): v for k, v in query.items() if k.startswith("base_")})
    others = {k: v for k, v in query.items() if k not in (*names, *CAPTURE_NAMES)}
    answer: dict[str, Any]
    if query["view"] in (CHANGES, STEP_DIFFERENCE):
        query_of(request, names, optional=CAPTURE_NAMES)  # refuses other parameters
        if query["view"] == CHANGES:
            answer = encode_comparison.changes(_changes(engine, base, new))
        else:
            answer = encode_comparison.step_difference(engine.step_difference(base, new))
    elif query["view"] == ROWS_ID:
        query_of(request, names, optional=(*CAPTURE_NAMES, *TERM))
        answer = encode_comparison.step_difference_rows(engine.step_difference(base, new), others)
    else:
        view = _find_view(query["view"])
        columns = [name for name in others.pop("columns", "").split(",") if name]
        answer = encode_comparison.comparison(view, engine.comparison(view, base, new, view.arguments(others), columns))
    traces = (engine.trace(file, reads_captures=False) for file in (base, new))
    return {**answer, "labels": dict(labels_of_kernels(*traces))}


def _changes(engine: Engine, base: TraceFile, new: TraceFile) -> ChangeList:
    """What changed between two recordings, and between all ranks of their runs."""
    result, listing = engine.changes(EVERY_VIEW, base, new), engine.listing()
    if listing is None or base.run == new.run or any(len(listing.ranks(file.run)) < 2 for file in (base, new)):
        return result
    return with_runs(result, *ask_all(*(partial(_run_side, engine, listing, file) for file in (base, new))))


def _run_side(engine: Engine, listing: Listing, file: TraceFile) -> RunSide:
    frames = _frames_of_run(engine, file)
    answers = _answers_behind(engine, listing, file, frames)
    return RunSide(file.worker, frames, claims_of_run(frames, EVERY_VIEW, answers))


def _history(engine: Engine, request: Request) -> object:
    query = query_of(request, ("run",))
    series = engine.history(query["run"])
    return encode_history.history(series, sentences(series, "LOGDIR"))  # no answer says where files lie


def _event(engine: Engine, request: Request) -> object:
    query = query_of(request, (*NAMES, "offset"))
    offset = whole_number(query, "offset", "the byte at which an event begins")
    return encode.event(engine.event(file_of(engine, query), offset))


def _unknown_route(_engine: Engine, request: Request) -> object:
    routes_here = (
        "runs",
        "views",
        "state",
        "view",
        "answer",
        "why",
        "compare",
        "history",
        "event",
        "timeline",
        "capture",
        "static/…",
    )
    raise NotFound("route", request.path, routes_here)


def _find_view(name: str) -> View:
    views = EVERY_VIEW
    if name not in views:
        raise NotFound("view", name, views)
    return views[name]


ROUTES: dict[str, Handler] = {
    "/runs": _runs,
    "/views": _views,
    "/state": _state,
    "/view": _view,
    "/answer": _answer,
    "/compare": _compare,
    "/history": _history,
    "/event": _event,
    "/*": _unknown_route,
}
