"""Composer's TorchProfiler, recorded by a `Tracer`: the same names, but no trace gets lost."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch.profiler import ProfilerAction as TorchAction

from ..errors import SaveError
from ..job.rank_info import current_rank_info, local_world_size
from ..output.name_template import escape_unknown, format_name, gz_name, trace_file
from ..output.upload import upload
from ..profiling.memory_picture import write_memory_picture
from ..tracer import Tracer
from .actions import TORCH_ACTIONS, ProfilerAction
from .folders import claim_folder, name_values, remote_name, warn_of_unknown_variables
from .state import Callback

if TYPE_CHECKING:
    from torch.profiler import profile

    from .state import State
    from .timestamp import Timestamp

_LOG = logging.getLogger("kinetoscope")

MEMORY_NEEDS = ("record_shapes", "profile_memory", "with_stack")
"""The options that the memory timeline needs."""

_MOST_STAMPS = 10_000
_TABLE_ROWS = 20
_TABLE_ORDERS = ("cpu_time_total", "self_cpu_memory_usage", "self_device_time_total")


class TorchProfiler(Callback):
    """Records with torch.profiler, according to the schedule of the state's `Profiler`.

    Each rank saves `{folder}/{filename}` when a batch whose action is ACTIVE_AND_SAVE is complete. The names are format
    strings with these variables: run_name, rank, local_rank, world_size, local_world_size, node_rank; in the names of
    files also epoch, batch, batch_in_epoch, sample, sample_in_epoch, token, token_in_epoch, which count what is
    complete, and total_wct, epoch_wct, batch_wct in seconds. Any other variable stays unchanged, with a warning in the
    log.

    Args:
        folder: The folder of the traces.
        filename: The name of a trace; may contain folders.
        remote_file_name: The name of its remote copy: a URL, or a name below the state's `remote`. None for no copy.
        memory_filename: The name of the memory timeline, which ends in `.html`; None for none.
        memory_remote_file_name: The name of the memory timeline's remote copy.
        overwrite: Whether older files may be in the folder.
        use_gzip: Whether traces are compressed; `.gz` is added to names that don't end in it.
        record_shapes: Sizes of the operators' inputs.
        profile_memory: Allocations and releases.
        with_stack: Call stacks.
        with_flops: Estimates of operations.
        num_traces_to_keep: How many local traces to keep once they are saved and copied; -1 for all. Remote copies are
            never deleted.

    Raises:
        ValueError: The memory timeline isn't possible.
    """

    def __init__(
        self,
        folder: str = "{run_name}/torch_traces",
        filename: str = "rank{rank}.{batch}.pt.trace.json",
        remote_file_name: str | None = "{run_name}/torch_traces/rank{rank}.{batch}.pt.trace.json",
        *,
        memory_filename: str | None = None,
        memory_remote_file_name: str | None = "{run_name}/torch_memory_traces/rank{rank}.{batch}.pt.trace.memory.html",
        overwrite: bool = False,
        use_gzip: bool = False,
        record_shapes: bool = False,
        profile_memory: bool = True,
        with_stack: bool = False,
        with_flops: bool = True,
        num_traces_to_keep: int = -1,
    ) -> None:
        warn_of_unknown_variables(
            folder, filename, remote_file_name, memory_filename, memory_filename and memory_remote_file_name
        )
        self.folder, self.overwrite, self.num_traces_to_keep = folder, overwrite, num_traces_to_keep
        self.filename = gz_name(filename) if use_gzip else trace_file(filename, ".pt.trace.json")
        self.remote_file_name = gz_name(remote_file_name) if use_gzip and remote_file_name else remote_file_name
        self.memory_filename, self.memory_remote_file_name = memory_filename, memory_remote_file_name
        self._options: dict[str, Any] = {
            "record_shapes": record_shapes,
            "profile_memory": profile_memory,
            "with_stack": with_stack,
            "with_flops": with_flops,
        }
        if memory_filename is not None:
            if not memory_filename.endswith(".html"):
                raise ValueError(f"memory_filename={memory_filename!r}: the memory timeline's name must end in .html.")
            missing = [f"{name}=True" for name in MEMORY_NEEDS if not self._options[name]]
            if missing:
                raise ValueError(f"memory_filename needs {', '.join(missing)}.")
        self.saved_traces: list[tuple[Timestamp, list[Path]]] = []
        """When each trace was saved, and the files of all ranks; each file exists only on its rank's machine."""
        self.tracer: Tracer | None = None
        self._state: State | None = None
        self._stamps: dict[int, Timestamp] = {}
        self._averages: Any = None

    def init(self, state: State, logger: Any = None) -> None:
        """Claim the folder, and start recording.

        Raises:
            FileExistsError: The folder has files, and `overwrite` is False.
        """
        self._state = state
        folder = claim_folder(self.folder, state, overwrite=self.overwrite)
        logdir, run = split(folder)
        remote = remote_name(self.remote_file_name, state)
        self.tracer = Tracer(
            logdir,
            run=run,
            schedule=_ByState(state),
            file=escape_unknown(format_name(self.filename, {"run_name": state.run_name})),
            remote_file=None if remote is None else escape_unknown(remote),
            keep=self.num_traces_to_keep,
            overwrite=True,  # the folder is ours: `claim_folder` has checked it
            on_saved=self._on_saved,
            on_window=self._on_window,
            scalars=False,
            system=(),  # SystemProfiler does it, if it is on
            progress=state.start.progress,
            **self._options,
        )
        self.tracer.__enter__()
        self.tracer.preset_metadata_json("global_rank", str(current_rank_info().global_rank))

    def batch_end(self, state: State, logger: Any = None) -> None:
        """Move on to the next batch; a complete window is saved."""
        if self.tracer is not None:
            self._stamps[int(state.timestamp.batch)] = state.timestamp
            samples, tokens = state.last_counts
            self.tracer.step(samples=samples, tokens=tokens)
            self._forget_stamps()

    def batch_start(self, state: State, logger: Any = None) -> None:
        """Begin a batch."""
        if self.tracer is not None:
            self.tracer.begin_step()

    def epoch_end(self, state: State, logger: Any = None) -> None:
        """End the window with the epoch. Whether another epoch follows is known only when its first batch begins."""
        if self.tracer is not None:
            self.tracer.epoch(goes_on=False)

    def close(self, state: State, logger: Any = None) -> None:
        """Save the open window, and log where the time of the last one went."""
        tracer, self.tracer = self.tracer, None
        if tracer is not None:
            self._stamps[int(state.timestamp.batch)] = state.timestamp
            tracer.__exit__(None, None, None)
            self._log_tables()

    # Markers

    def begin_marker(self, name: str, categories: Sequence[str]) -> Any:
        """Open a marker in the trace."""
        if self.tracer is None:
            return None
        marker = self.tracer.marker(name, categories=categories)
        marker.start()
        return marker

    def end_marker(self, marker: Any) -> None:
        """Close what `begin_marker` opened."""
        marker.finish()

    # Windows

    def _on_saved(self, path: Path, window: Mapping[str, Any]) -> None:
        state = self._state
        if state is None:
            return
        stamp = self._stamps.get(int(window.get("span") or 0), state.timestamp)
        self.saved_traces.append((stamp, _of_all_ranks(path, self.filename, state, stamp)))
        if self.num_traces_to_keep >= 0:
            del self.saved_traces[: max(0, len(self.saved_traces) - self.num_traces_to_keep)]
        if state.profiler is not None:
            state.profiler.record_chrome_json_trace_file(path)

    def _forget_stamps(self) -> None:
        """Keep the timestamps of the last saves, whose traces may still be unwritten."""
        while len(self._stamps) > _MOST_STAMPS:
            del self._stamps[next(iter(self._stamps))]

    def _on_window(self, profiler: profile) -> None:
        """Get the results that only torch's profiler has, while it still has the window."""
        if _LOG.isEnabledFor(logging.INFO):
            self._averages = profiler.key_averages()
        self._draw_memory(profiler)

    def _log_tables(self) -> None:
        """Log the last window's operators by time and memory, if the log level shows them."""
        averages, self._averages = self._averages, None
        for order in _TABLE_ORDERS if averages is not None else ():
            _LOG.info("By %s:\n%s", order, averages.table(sort_by=order, row_limit=_TABLE_ROWS))

    def _draw_memory(self, profiler: profile) -> None:
        """Write the memory timeline."""
        state = self._state
        if self.memory_filename is None or state is None:
            return
        values = name_values(state, state.timestamp)
        path = Path(format_name(self.folder, values)) / format_name(self.memory_filename, values).lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_memory_picture(profiler, path)
        url = remote_name(self.memory_remote_file_name, state)
        if url is not None:
            threading.Thread(target=_copy, args=(path, format_name(url, values)), daemon=True).start()


class _ByState:
    """A schedule for a Tracer that returns the action of the state's profiler."""

    per = "epoch"
    """A window ends at the latest with its epoch."""

    def __init__(self, state: State) -> None:
        self._state = state

    def __call__(self, _: int) -> TorchAction:
        profiler = self._state.profiler
        return TORCH_ACTIONS[profiler.action if profiler is not None else ProfilerAction.SKIP]


def split(folder: Path) -> tuple[Path, str]:
    """Split a folder into a logdir and a run name: the run as TensorBoard names it if it reads that logdir."""
    parts = folder.parts
    depth = 2 if len(parts) > 1 and parts[-1] == "torch_traces" and not parts[-2].startswith((".", os.sep)) else 1
    return Path(*parts[:-depth]), "/".join(parts[-depth:])


def _of_all_ranks(path: Path, template: str, state: State, stamp: Timestamp) -> list[Path]:
    """Return the files of all ranks, by rank."""
    rank_info, on_node = current_rank_info(), local_world_size()
    own = Path(format_name(template, name_values(state, stamp)).lstrip("/"))
    folder = path.parents[len(own.parts) - 1]
    paths = []
    for rank in range(rank_info.world_size):
        values = {**name_values(state, stamp), "rank": rank}
        if on_node:
            values |= {"local_rank": rank % on_node, "node_rank": rank // on_node}
        paths.append(folder / format_name(template, values).lstrip("/"))
    paths[rank_info.global_rank] = path
    return paths


def _copy(path: Path, url: str) -> None:
    try:
        upload(path, url, overwrite=True)
    except SaveError as error:
        _LOG.warning("%s", error)
