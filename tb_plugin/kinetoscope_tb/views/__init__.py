"""The views, in the order of the page. To add one: write a module in a folder below, and add its name to the list here.

overview, server, host, device, memory   functions of one trace
distributed                              functions of all traces of a span or a run

Then `make docs` and `make golden` regenerate what depends on it. Everything else reads its `VIEW`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..view import View


class Views(Mapping[str, "View"]):
    """Views by id, in the order of the page. A view's module is imported when somebody asks for the view.

    Modules are listed by name, not imported by statements: import statements are sorted, so the order of the page would
    need a second list, and a new view a second line.

    Args:
        modules: The modules, each named like the id of its view.
    """

    def __init__(self, *modules: str) -> None:
        self.modules = {module.rpartition(".")[2]: module for module in modules}

    def __getitem__(self, name: str) -> View:
        view: View = import_module(f".{self.modules[name]}", __name__).VIEW
        return view

    def __iter__(self) -> Iterator[str]:
        return iter(self.modules)

    def __len__(self) -> int:
        return len(self.modules)

    def __contains__(self, name: object) -> bool:
        return name in self.modules


EVERY_VIEW = Views(
    "overview.overview",
    "overview.activity_strip",
    "overview.top",
    "overview.what_if",
    "server.iterations",
    "server.phases",
    "server.limits",
    "server.limits_summary",
    "overview.advice",
    "overview.steps",
    "overview.lanes",
    "device.idle",
    "device.idle_culprits",
    "device.culprit_gaps",
    "device.gaps",
    "device.gap_culprits",
    "device.queue_length",
    "device.queue_length_summary",
    "host.launches",
    "host.launches_summary",
    "host.launch_durations",
    "device.exposed_time",
    "overview.critical_path_culprits",
    "overview.critical_path_summary",
    "overview.critical_path",
    "overview.critical_path_names",
    "overview.critical_path_segments",
    "distributed.path_across_ranks",
    "distributed.path_across_ranks_summary",
    "distributed.path_by_rank",
    "distributed.path_across_ranks_segments",
    "host.operators",
    "host.operators_by_shape",
    "device.operator_efficiency",
    "host.call_stacks",
    "host.op_kernels",
    "host.modules",
    "host.modules_by_class",
    "host.python_calls",
    "host.python_functions",
    "host.annotations_by_name",
    "host.annotations_summary",
    "host.annotations",
    "device.kernel_marks",
    "device.kernels",
    "device.kernels_by_op",
    "device.kernel_durations",
    "device.kernel_efficiency",
    "device.mfu",
    "device.gpu_activity",
    "device.graphs",
    "device.graph_kernels",
    "device.graph_captures",
    "device.copies",
    "device.copies_summary",
    "device.gpu_counters",
    "device.gpus",
    "memory.memory_curve",
    "memory.memory_summary",
    "memory.memory_categories",
    "memory.memory_peak_categories",
    "memory.memory_devices",
    "memory.memory_peak",
    "memory.memory_by_operator",
    "memory.memory_events",
    "memory.snapshot_summary",
    "memory.snapshot_failure",
    "memory.snapshot_levels",
    "memory.snapshot_blocks",
    "memory.snapshot_block",
    "memory.snapshot_ranges",
    "memory.snapshot_alive",
    "memory.snapshot_segments",
    "memory.snapshot_layout",
    "memory.snapshot_growth",
    "memory.snapshot_operators",
    "distributed.rank_steps",
    "distributed.rank_waits",
    "distributed.pipeline",
    "distributed.stragglers",
    "distributed.run_advice",
    "distributed.pace",
    "distributed.communication",
    "distributed.links",
    "distributed.collectives",
    "distributed.traffic",
    "distributed.topology",
    "distributed.clocks",
    "overview.health",
    "overview.health_summary",
    "distributed.run_health",
    "overview.environment",
)
"""All views, in the order of the page."""

_ACROSS_RANKS = "distributed."

VIEWS = Views(*(module for module in EVERY_VIEW.modules.values() if not module.startswith(_ACROSS_RANKS)))
"""Views of one trace."""

RUN_VIEWS = Views(*(module for module in EVERY_VIEW.modules.values() if module.startswith(_ACROSS_RANKS)))
"""Views of all traces of a span or a run."""
