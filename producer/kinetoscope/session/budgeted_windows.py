"""Requests windows within a budget: watches a training's steps, inputs and compilations, and what recording costs."""

from __future__ import annotations

import logging
import re
import sys
import time
from collections import UserDict
from itertools import islice
from typing import TYPE_CHECKING, Any

from torch import Tensor

from ..output.manifest import NAME
from ..output.spool import is_count
from ..path_below import PathBelow
from ..scheduling.budget import DAY_S
from ..scheduling.request import Request
from ..scheduling.window_chooser import WARMUP, WindowChooser
from ..untrusted_files import read_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from ..error_log import ErrorLog
    from ..output.trace_writer import TraceWriter
    from ..progress import ProgressCounter
    from ..scheduling.budget import Budget
    from .recording import Recording

_LOG = logging.getLogger("kinetoscope")

LOOK_EVERY, LONG_NS = 4, 100_000_000
_LEAST_IN_A_ROW = 3
_MOST_SIZES = 16
_MOST_ITEMS, _MOST_DEPTH = 16, 4
_MOST_ATTEMPTS = 1000


class BudgetedWindows:
    """Requests the windows of one process. The training's thread calls it, but for `read_earlier_attempts`.

    Args:
        budget: What recording may cost.
        recording: The recording.
        request: Requests a window.
    """

    def __init__(
        self,
        budget: Budget,
        recording: Recording,
        request: Callable[[Request], None],
    ) -> None:
        counter = recording.counter
        self._chooser = WindowChooser(budget, lambda: counter.batch)
        self._trace_writer: TraceWriter = recording.trace_writer
        self._counter: ProgressCounter = counter
        self._error_log: ErrorLog = recording.error_log
        self._request = request
        self._chooser.is_ready = budget.bytes_per_day is None
        self._sizes: _Sizes | None = _Sizes()
        self._compilations = compilations()
        self._durations: list[int] = []
        self.add_duration = self._durations.append
        """Adds the duration of a step without a profiler, for the next `look`."""
        self.no_window_reason = self._chooser.no_window_reason
        """Returns why there was no window."""

    def add_profiled_duration(self, dur_ns: int) -> None:
        """Add the duration of a step with a profiler."""
        self.look()
        self._chooser.add_profiled_step(dur_ns)

    def add_stop(self, dur_ns: int) -> None:
        """Add how long the training stood still while a window began, moved on, or ended."""
        self.look()
        self._chooser.add_stop(dur_ns)

    def look(self) -> None:
        """Let the chooser see the last steps, after `LOOK_EVERY` or a long one.

        It sees several at once, since the training drives its code from the caches.
        """
        choice, later = None, len(self._durations)
        for dur_ns in self._durations:
            later -= 1
            choice = self._chooser.add_step(dur_ns, later) or choice
        self._durations.clear()
        if choice is not None and self._trace_writer.selection.is_selected:
            _LOG.info("Recording %d steps: %s.", choice.steps, choice.why)
            self._request(Request(steps=choice.steps, warmup=WARMUP, reason=choice.reason, why=choice.why))

    def add_batch(self, batch: object) -> None:
        """Look at the sizes of a step's inputs."""
        if self._sizes is None:
            return
        try:
            sizes = self._sizes.new_sizes(batch)
        except Exception as error:  # noqa: BLE001  tensors of subclasses may have no shape, or raise anything
            self._sizes = None
            self._error_log.record("The sizes of inputs aren't watched", error)
            return
        if sizes:
            self._chooser.note_sizes(sizes, self._counter.batch - _LEAST_IN_A_ROW + 1)
        if self._sizes.is_varied:
            self._sizes = None

    def poll(self) -> None:
        """Look whether torch.compile has compiled again; to be called periodically between steps."""
        before, self._compilations = self._compilations, compilations()
        if self._compilations > before:
            self._chooser.note_compilation()

    def add_saved(self, window: Mapping[str, Any]) -> None:
        """Add the size of a saved trace."""
        self._chooser.ledger.add_bytes(int(window.get("bytes") or 0))

    def read_earlier_attempts(self) -> None:
        """Add the sizes of what earlier attempts of the job wrote in the last day; on the background thread."""
        rank_and_folder = self._trace_writer.known_rank_and_folder
        if self._chooser.is_ready or rank_and_folder is None:
            return
        rank_info, folder = rank_and_folder
        ledger, ranks = self._chooser.ledger, self._trace_writer.selection.selected_ranks(rank_info)
        ledger.ranks = max(1, rank_info.world_size if ranks is None else len(ranks))
        for age_s, size in sorted(_earlier_traces(folder, rank_info.global_rank)):
            ledger.add_bytes(size, age_s)
        self._chooser.is_ready = True


def _earlier_traces(folder: Path, rank: int) -> Iterator[tuple[float, int]]:
    """Yield seconds since it was saved and size of each trace that a rank's earlier attempts wrote in the last day."""
    base = re.sub(r"\.\d+$", "", folder.name)
    names = [base, *(f"{base}.{number}" for number in range(1, _MOST_ATTEMPTS))]
    for name in names:
        if name == folder.name:
            return
        manifest = read_json(PathBelow(folder.parent, name, NAME))
        windows = manifest.get("windows") if isinstance(manifest, dict) else None
        for window in windows if isinstance(windows, list) else ():
            outcome = window
            for key in ("ranks", str(rank)):
                outcome = outcome.get(key) if isinstance(outcome, dict) else None
            size, saved_ns = (outcome.get(key) if isinstance(outcome, dict) else None for key in ("bytes", "saved_ns"))
            if is_count(size, 1 << 63) and is_count(saved_ns, 1 << 63) and 0 <= time.time() - saved_ns / 1e9 < DAY_S:
                yield time.time() - saved_ns / 1e9, size


def compilations() -> int:
    """Return how many graphs torch.compile has compiled in this process."""
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None)
    return counters["stats"]["unique_graphs"] if isinstance(counters, dict) else 0


class _Sizes:
    """The sizes of inputs so far."""

    def __init__(self) -> None:
        self._known: set[object] = set()
        self._latest: object = None
        self._in_a_row = 0

    @property
    def is_varied(self) -> bool:
        """Whether the sizes differ so often that new ones aren't news."""
        return len(self._known) > _MOST_SIZES

    def new_sizes(self, batch: object) -> str | None:
        """Return the sizes of a batch as a text if they are new, and so were those of the two batches before it."""
        sizes = sizes_of(batch)
        if sizes in self._known:
            self._in_a_row = 0
            return None
        self._in_a_row = self._in_a_row + 1 if sizes == self._latest else 1
        self._latest = sizes
        if self._known and self._in_a_row < _LEAST_IN_A_ROW:
            return None
        is_first = not self._known
        self._known.add(sizes)
        return None if is_first else str(sizes)[:100]


def sizes_of(value: object, depth: int = 0) -> object:
    """Return the sizes of the tensors in a batch, nested as they are; None for anything else."""
    if isinstance(value, Tensor):
        return tuple(value.shape)
    if depth < _MOST_DEPTH and isinstance(value, (dict, UserDict)):
        value = tuple(value.values())
    if depth < _MOST_DEPTH and isinstance(value, (list, tuple)):
        return tuple(sizes_of(item, depth + 1) for item in islice(value, _MOST_ITEMS))
    return None
