"""Ranks, as far as one file knows them."""

from __future__ import annotations

from collections.abc import Iterator

from ..arrays.gather import map_categories
from ..names.kernels import is_communication_range
from ..trace import Diagnostic, Trace


def diagnose(trace: Trace) -> Iterator[Diagnostic]:
    """Contradictions about the worker's place in its job."""
    rank, world = trace.meta.rank, trace.meta.world_size
    communication = int(trace.device_events["is_communication"].sum())
    communication += int(map_categories(trace.host_events["name"], is_communication_range).sum())
    if rank is None and (communication or (world or 1) > 1):
        yield Diagnostic(
            "rank_unknown",
            1,
            "This worker talks to others, but the file doesn't say which rank it is, so only its name tells. Start the "
            "profiler after torch.distributed.init_process_group, which makes it write the rank.",
            level="note",
        )
    if rank is not None and world is not None and not 0 <= rank < world:
        yield Diagnostic(
            "rank_impossible",
            1,
            f"The file says rank {rank} of {world}, which can't be: what is shown per rank may be mixed up.",
        )
