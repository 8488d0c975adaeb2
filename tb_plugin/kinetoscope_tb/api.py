"""A recording for programs and notebooks: what the page shows, as data frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

import polars as pl

from .answer.first_screen import WIDTH, blocks_of, text_lines
from .answer.model import Answer
from .answer.pace_of_others import RANK_STEPS, WHAT_IF, what_if_in_run
from .answer.recording import recording_answer
from .answer.run import BY_CLAIMS, rows_in_run, run_answer
from .diagnostics.diagnose import diagnose
from .discovery import Listing, TraceFile, list_path, parse_logdirs
from .discovery.listing import recording_of_worker, recording_title
from .engine.answers import Missing, cached_frames, compute, merge_run_notes
from .engine.cache import configured_cache
from .engine.captures import with_captures, with_chosen_captures
from .engine.comparisons import compute_comparison
from .engine.executors import local_executors
from .engine.file_processes import FileProcesses
from .engine.files import open_or_read, write_to_cache
from .engine.notes import note_of_view
from .engine.summary_loader import files_of, load_summaries, ranks_of
from .errors import BadParameter, KinetoscopeError, MissingData, NotFound, TraceError
from .measures.calls.kernel_names import labels_of_kernels
from .measures.time.step_subset import counted_steps
from .names.communication_patterns import CommunicationPatterns, parse_patterns
from .notebook.first_screen import first_screen
from .notebook.report import Report
from .notebook.view_frame import Display, ViewFrame
from .trace import Trace
from .views import EVERY_VIEW, VIEWS
from .web.app import Site
from .web.frame import FramePage
from .web.report import WholeRun, report

if TYPE_CHECKING:
    from .distributed.run import Ranks
    from .notebook.widget import PageWidget
    from .trace import Diagnostic
    from .trace.meta import Meta
    from .view import Subject, View


class Profile:
    """One recording of one worker. A view is a method call, an attribute, or a name: `profile.view("operators")`.

    Frames are Polars frames: they implement the Arrow PyCapsule protocol, so pandas, PyArrow and DuckDB take them too.
    A notebook shows the recording as its first screen, and each view with headings, units and definitions.
    Columns are in nanoseconds, bytes and fractions; docs/metrics.md says what each means.

    Args:
        file: Its file.
        trace: The trace in it.
        listing: The other recordings under the same path.
        path: That path.
        patterns: Further names that count as communication.
    """

    def __init__(
        self, file: TraceFile, trace: Trace, listing: Listing, path: str, patterns: CommunicationPatterns
    ) -> None:
        self._file, self._trace, self._listing = file, trace, listing
        self._path, self._patterns = path, patterns
        self._ranks_of_scope: dict[str, Ranks] = {}

    @property
    def run(self) -> str:
        """The run's name."""
        return self._file.run

    @property
    def worker(self) -> str:
        """The worker's name."""
        return self._file.worker

    @property
    def span(self) -> str:
        """The recording's name among those of the worker."""
        return self._file.span

    @property
    def path(self) -> str:
        """The file."""
        return self._file.path

    @property
    def meta(self) -> Meta:
        """The file's metadata: `meta.top`, `meta.rank`, `meta.devices` and others."""
        return self._trace.meta

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """Problems of the recording that affect its numbers; the view `health` has the same as a frame."""
        return list(diagnose(self._trace))

    @property
    def complete_steps(self) -> list[str]:
        """The names of the steps that averages are made of."""
        names = self._trace.steps["name"].to_list()
        return [names[step] for step in counted_steps(self._trace)]

    def views(self) -> pl.DataFrame:
        """Return the views: whether this recording has the data for each, and what to do if not."""
        rows = [
            (view.id, view.title, view.entry, not missing, view.hint if missing else None)
            for view in VIEWS.values()
            for missing in [view.is_missing(self._trace)]
        ]
        return pl.DataFrame(rows, schema=["view", "title", "entry", "has_data", "hint"], orient="row")

    def view(self, name: str, /, **parameters: str | int) -> pl.DataFrame:
        """Return a view of the recording, or of all recordings of its span or run, which are read for that.

        Raises:
            NotFound: There is no such view.
            BadParameter: The view doesn't take the parameter, or the value.
            MissingData: The recording has no data for the view; the message says how to record it.
        """
        if name not in EVERY_VIEW:
            raise NotFound("view", name, EVERY_VIEW)
        view = EVERY_VIEW[name]
        arguments = view.arguments({key: str(value) for key, value in parameters.items()})
        subject = self._subject(view)
        frame = _frame(name, merge_run_notes(view, compute(view, subject, arguments), self._file))
        if len(self._listing.runs[self.run]) > 1:
            frame = self._in_run(view, frame, arguments)
        display = Display(view.title, view.table.columns, view.table.weight, hint=view.hint)
        if isinstance(subject, Trace):
            display = replace(display, note=note_of_view(subject, view, *arguments), labels=labels_of_kernels(subject))
        return ViewFrame(frame, display)

    def _in_run(self, view: View, frame: pl.DataFrame, arguments: Mapping[str, Any]) -> pl.DataFrame:
        """A view's rows, with what other recordings of the run say of them."""
        if view.id in BY_CLAIMS:
            return rows_in_run(view, self.answer)
        if view.id != WHAT_IF:
            return frame
        rank_steps = EVERY_VIEW[RANK_STEPS].frame(self._ranks("span"), {})
        return what_if_in_run(frame, arguments.get("less"), self.worker, rank_steps, self._own_frame)

    def _own_frame(self, view: str, arguments: Mapping[str, object]) -> pl.DataFrame:
        return EVERY_VIEW[view].frame(self._trace, arguments)

    def _subject(self, view: View) -> Subject:
        """What a view is about: the recording, or all recordings of its span or run."""
        return self._trace if view.scope == "recording" else self._ranks(view.scope)

    def _ranks(self, scope: str) -> Ranks:
        """All recordings of its span or run, read at the first call, as the recording itself is read once."""
        if scope not in self._ranks_of_scope:
            self._ranks_of_scope[scope] = self._read_ranks(scope)
        return self._ranks_of_scope[scope]

    def _read_ranks(self, scope: str) -> Ranks:
        files = files_of(self._listing, self._file, scope)
        notes: list[str] = []
        outcomes = load_summaries(files, configured_cache(), local_executors(len(files)), on_problem=notes.append)
        return ranks_of(self._listing, self._file, files, outcomes, notes)

    @cached_property
    def answer(self) -> Answer:
        """What costs most, how sure that is, what can't be said, and the rows behind it; of a run if it has ranks."""
        own = recording_answer(self._trace, EVERY_VIEW, cached_frames).of_file(self._file, self.path)
        workers = len(self._listing.runs[self.run])
        return own if workers < 2 else run_answer(own, self._ranks("run"), EVERY_VIEW, workers, self._answer_of)

    def _answer_of(self, worker: str) -> Answer | None:
        """The answer about another worker's recording of the run; None if there is none that can be used."""
        file = recording_of_worker(self._listing, self._file, worker)
        if file is None:
            return None
        try:
            trace = with_captures(_read(file, FileProcesses(configured_cache())), file, configured_cache())
        except TraceError:
            return None  # its own view says why
        return recording_answer(trace, EVERY_VIEW, cached_frames).of_file(file, file.path)

    def summary(self, width: int = WIDTH) -> str:
        """Return the answer as text, the first screen: whether a rank of the run is slow, then what this one shows."""
        return self._text(self.answer, width)

    def _text(self, answer: Answer, width: int = WIDTH) -> str:
        return "\n".join([self._title, answer.environment, "", *text_lines(blocks_of(answer, "worker="), width)])

    def page(self, view: str | None = None, height: int = 720) -> PageWidget:
        """Return the page of the recording and its run for a notebook: what the page asks, the kernel answers.

        Args:
            view: What it opens, by default the overview; any view, or "timeline".
            height: Pixels.

        Raises:
            NotFound: There is no such view.
            KinetoscopeError: anywidget isn't installed.
        """
        if view not in (None, "timeline", *EVERY_VIEW):
            raise NotFound("view", str(view), [*EVERY_VIEW, "timeline"])
        return self._widget({"view": view} if view else {}, height)

    def timeline(self, step: int | str | None = None, height: int = 720) -> PageWidget:
        """Return the page with the timeline for a notebook, as `page` does.

        Args:
            step: The step that it shows, by its name; by default what the page begins with.
            height: Pixels.

        Raises:
            NotFound: There is no such step.
            KinetoscopeError: anywidget isn't installed.
        """
        address = {"view": "timeline", "side": "folded"}
        if step is not None:
            steps = self._trace.steps.filter(pl.col("name") == str(step))
            if steps.is_empty():
                raise NotFound("step", str(step), self._trace.steps["name"])
            address |= {"from": str(steps["start_ns"][0]), "to": str(steps["end_ns"][0])}
        return self._widget(address, height)

    def _widget(self, address: Mapping[str, str], height: int) -> PageWidget:
        try:
            widget = import_module(".notebook.widget", __package__)  # with a package that an extra installs
        except ImportError as error:
            raise KinetoscopeError(
                "The page in a notebook needs anywidget: pip install 'kinetoscope[notebook]', then restart the kernel. "
                "`report()` works without: the page with its answers, but no timeline."
            ) from error
        recording = {"run": self.run, "worker": self.worker, "span": self.span}
        page = FramePage(self._site, self._title, {**recording, **address})
        page_widget: PageWidget = widget.PageWidget(page.answer, self._title, height, self._repr_mimebundle_())
        return page_widget

    @cached_property
    def _site(self) -> Site:
        """What answers the pages of this recording, with the trace that is here and what is computed of it."""
        site = Site(parse_logdirs(self._path), None, self._patterns)
        site.adopt(replace(self._file, captures=None), self._trace)
        return site

    def report(self) -> Report:
        """Return the page with the answers about this recording and its run, for a notebook: it needs no kernel.

        It is what `kinetoscope report` writes: without the timeline, comparisons and single events.
        """
        is_of_run = len(self._listing.runs[self.run]) > 1
        run = WholeRun(lambda _, scope: self._ranks(scope), lambda _, worker: self._answer_of(worker))
        views, whole = (EVERY_VIEW, run) if is_of_run else (VIEWS, None)
        return Report(self._title, report([(self._file, self._trace)], 1, views, run=whole, is_framed=True))

    @property
    def _title(self) -> str:
        return recording_title(self.run, self.worker, self.span)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:  # noqa: ARG002
        """The first screen as text and HTML, as IPython asks for them."""
        answer = self.answer
        screen = first_screen(self._title, answer.environment, blocks_of(answer, "worker="))
        return {"text/plain": self._text(answer), "text/html": screen}

    def compare(
        self, base: Profile, view: str = "operators", /, columns: Sequence[str] = (), **parameters: str | int
    ) -> pl.DataFrame:
        """Return a view of this recording compared with that of `base`: base, new, delta, ratio, noise and verdict.

        Args:
            base: What to compare with; this recording is the new one.
            view: What to compare.
            columns: Which of its columns; by default its weight and its first count.
            parameters: Of the view.

        Raises:
            NotFound: There is no such view.
            BadParameter: The view or a column can't be compared, or doesn't take the parameter.
            MissingData: Neither recording has data for the view.
        """
        if view not in EVERY_VIEW:
            raise NotFound("view", view, EVERY_VIEW)
        compared_view = EVERY_VIEW[view]
        arguments = compared_view.arguments({key: str(value) for key, value in parameters.items()})
        result = compute_comparison(
            compared_view, base._subject(compared_view), self._subject(compared_view), arguments, columns
        )
        return _frame(view, result if isinstance(result, Missing) else result.frame)

    def __getattr__(self, name: str) -> pl.DataFrame:
        if name not in EVERY_VIEW:
            raise AttributeError(f"{type(self).__name__!r} has no attribute and no view {name!r}")
        return self.view(name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *EVERY_VIEW})

    def __repr__(self) -> str:
        names = f"run={self.run!r}, worker={self.worker!r}, span={self.span!r}"
        return f"Profile({names}, events={self._trace.meta.events})"


def _frame(view: str, result: pl.DataFrame | Missing) -> pl.DataFrame:
    if isinstance(result, Missing):
        raise MissingData(view, result.hint)
    return result


def open_profile(
    path: str,
    run: str | None,
    worker: str | None,
    span: str | None,
    communication_patterns: Sequence[str] = (),
    captures: Sequence[str] = (),
) -> Profile:
    """Read the newest recording that matches the names, or open it from the cache.

    Raises:
        BadParameter: A pattern can't be used.
        LogdirError: There is no such path, no trace in it, or no such capture.
        NotFound: No recording has these names.
        TraceError: The file or a chosen capture can't be used.
    """
    patterns, bad = parse_patterns(communication_patterns)
    if bad:
        raise BadParameter(f"communication_patterns[{bad[0].line - 1}]: {bad[0].reason}")
    listing, processes = list_path(path, patterns), FileProcesses(configured_cache())
    files = processes.expand(listing).files
    read = None if len(files) > 1 or files[0].process is not None else _read(files[0], processes)
    file = with_chosen_captures(processes.expand(listing).newest(run=run, worker=worker, span=span)[0], captures)
    if read is None or read.meta.process is None:
        trace = read or _read(file, processes)
    else:
        trace = read if read.meta.process.id == file.process else _read(file, processes)
    return Profile(file, with_captures(trace, file, configured_cache()), processes.expand(listing), path, patterns)


def _read(file: TraceFile, processes: FileProcesses) -> Trace:
    """The trace in a file, or of its first process; what it holds is remembered."""
    cache = configured_cache()
    trace, is_new = open_or_read(file, cache)
    processes.note(file, trace.meta.processes)
    if is_new and cache is not None:
        own = file if trace.meta.process is None else replace(file, process=trace.meta.process.id)
        write_to_cache(trace, own, cache)
    return trace


def list_recordings(path: str) -> pl.DataFrame:
    """Return run, worker, span, path and size of each trace under a path.

    Raises:
        LogdirError: There is no such path, or no trace in it.
    """
    files = FileProcesses(configured_cache()).expand(list_path(path)).files
    rows = [(file.run, file.worker, file.span, file.path, file.bytes) for file in files]
    return pl.DataFrame(rows, schema=["run", "worker", "span", "path", "bytes"], orient="row")
