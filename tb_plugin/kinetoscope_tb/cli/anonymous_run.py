"""The recordings of a run with pseudonyms, for reports to strangers."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ..answer.recording import recording_answer
from ..discovery import Listing
from ..discovery.listing import recording_of_worker
from ..distributed.summary import summary
from ..engine.answers import cached_frames
from ..engine.cache.summary_entry import pack_summary
from ..engine.summary_loader import files_of, ranks_of
from ..errors import KinetoscopeError, TraceError
from ..export.anonymous import anonymous_file, anonymous_trace
from ..export.pseudonyms import Pseudonyms
from ..views import EVERY_VIEW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ..answer.model import Answer
    from ..discovery import TraceFile
    from ..distributed.run import Ranks
    from ..engine.cache.summary_entry import PackedSummary
    from ..trace import Trace

    Recordings = Iterable[tuple[TraceFile, Trace | KinetoscopeError]]

WHAT_STAYS = (
    "Replaced, the same name by the same one: names of files, functions, modules, ranges, threads, counters, runs, "
    "hosts and users. These stay: times, numbers, shapes, versions, keys of metadata, names of operators, kernels, "
    "devices and process groups, and those that public packages give. Read it before you send it."
)


class AnonymousRun:
    """Each recording of a run, read again each time it is asked for.

    Args:
        recordings: Reads some recordings, one at a time.
        files: The files of the run.
    """

    def __init__(self, recordings: Callable[[Sequence[TraceFile]], Recordings], files: Sequence[TraceFile]) -> None:
        self._recordings = recordings
        self._files = files
        self._names = Pseudonyms()
        self._answers: dict[TraceFile, Answer | None] = {}

    def recordings(self, files: Sequence[TraceFile]) -> Iterator[tuple[TraceFile, Trace | KinetoscopeError]]:
        """Each file with its trace, or with the reason why it can't be used."""
        for file, trace in self._recordings(files):
            other = anonymous_file(file, self._names)
            if isinstance(trace, KinetoscopeError):
                problem = trace.problem if isinstance(trace, TraceError) else str(trace)
                yield other, TraceError(other.shown, self._names.in_sentence(problem.replace(file.path, other.shown)))
            else:
                yield other, anonymous_trace(trace, self._names)

    def ranks(self, file: TraceFile, scope: str) -> Ranks:
        """The recordings of a file's span or run side by side."""
        files = files_of(self._listing, file, scope)
        return ranks_of(self._listing, file, files, ((other, self._summaries[other]) for other in files))

    def answer_of(self, file: TraceFile, worker: str) -> Answer | None:
        """The answer about the recording of another worker; None if it can't be used."""
        other = recording_of_worker(self._listing, file, worker)
        if other is not None and other not in self._answers:
            self._answers[other] = self._answer(other)
        return None if other is None else self._answers[other]

    def _answer(self, file: TraceFile) -> Answer | None:
        index = self._listing.files.index(file)
        ((_, trace),) = self.recordings(self._files[index : index + 1])
        if isinstance(trace, KinetoscopeError):
            return None
        return recording_answer(trace, EVERY_VIEW, cached_frames).of_file(file, file.shown)

    @cached_property
    def _listing(self) -> Listing:
        return Listing(tuple(self._summaries))

    @cached_property
    def _summaries(self) -> dict[TraceFile, PackedSummary | KinetoscopeError]:
        return {
            file: trace if isinstance(trace, KinetoscopeError) else pack_summary(summary(trace))
            for file, trace in self.recordings(self._files)
        }
