"""The recordings of a run with pseudonyms, for reports to strangers."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ..discovery import Listing
from ..distributed.summary import summary
from ..engine.cache.summary_entry import pack_summary
from ..engine.summary_loader import files_of, ranks_of
from ..errors import KinetoscopeError, TraceError
from ..export.anonymous import anonymous_file, anonymous_trace
from ..export.pseudonyms import Pseudonyms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

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
        recordings: Reads the recordings, one at a time.
    """

    def __init__(self, recordings: Callable[[], Recordings]) -> None:
        self._recordings = recordings
        self._names = Pseudonyms()

    def recordings(self) -> Iterator[tuple[TraceFile, Trace | KinetoscopeError]]:
        """Each file with its trace, or with the reason why it can't be used."""
        for file, trace in self._recordings():
            other = anonymous_file(file, self._names)
            if isinstance(trace, KinetoscopeError):
                problem = trace.problem if isinstance(trace, TraceError) else str(trace)
                yield other, TraceError(other.shown, self._names.in_sentence(problem.replace(file.path, other.shown)))
            else:
                yield other, anonymous_trace(trace, self._names)

    def ranks(self, file: TraceFile, scope: str) -> Ranks:
        """The recordings of a file's span or run side by side."""
        listing = Listing(tuple(self._summaries))
        files = files_of(listing, file, scope)
        return ranks_of(listing, file, files, ((other, self._summaries[other]) for other in files))

    @cached_property
    def _summaries(self) -> dict[TraceFile, PackedSummary | KinetoscopeError]:
        return {
            file: trace if isinstance(trace, KinetoscopeError) else pack_summary(summary(trace))
            for file, trace in self.recordings()
        }
