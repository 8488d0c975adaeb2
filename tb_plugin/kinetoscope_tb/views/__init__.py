"""The views, in the order of the page. To add one: write a module in a folder below, and add its name to a list here.

overview, server, host, device, memory   functions of one trace
distributed                              functions of all traces of a span or a run

Then `make docs` and `make golden` regenerate what depends on it. Everything else reads its `VIEW`.
"""

from importlib import import_module

from ..view import View


def _views(*modules: str) -> dict[str, View]:
    """The view of each module, by its id.

    Modules are listed by name, not imported by statements: import statements are sorted, so the order of the page would
    need a second list, and a new view a second line. Loading isn't lazy: all views are imported with this package.
    """
    views: list[View] = [import_module(f".{module}", __name__).VIEW for module in modules]
    return {view.id: view for view in views}


VIEWS = _views(
    "overview.overview",
    "overview.advice",
    "overview.steps",
    "server.iterations",
    "server.phases",
    "overview.critical_path",
    "overview.critical_path_names",
    "overview.critical_path_segments",
    "overview.environment",
    "overview.health",
    "host.operators",
    "host.operators_by_shape",
    "host.modules",
    "host.modules_by_class",
    "host.annotations",
    "host.annotations_by_name",
    "host.python_calls",
    "host.call_stacks",
    "host.op_kernels",
    "device.gpus",
    "device.gpu_activity",
    "device.kernels",
    "device.kernels_by_op",
    "memory.memory_curve",
    "memory.memory_devices",
    "memory.memory_peak",
    "memory.memory_by_operator",
    "memory.memory_events",
    "device.kernel_durations",
    "device.operator_efficiency",
    "device.copies",
    "host.launches",
    "host.launch_durations",
    "device.graphs",
    "device.idle",
    "device.idle_culprits",
    "device.culprit_gaps",
    "device.gaps",
    "device.exposed_time",
    "device.queue_length",
    "device.gpu_counters",
)

RUN_VIEWS = _views(
    "distributed.rank_steps",
    "distributed.run_advice",
    "distributed.stragglers",
    "distributed.path_across_ranks",
    "distributed.path_by_rank",
    "distributed.path_across_ranks_segments",
    "distributed.communication",
    "distributed.links",
    "distributed.collectives",
    "distributed.pace",
    "distributed.traffic",
    "distributed.topology",
    "distributed.clocks",
    "distributed.run_health",
)
"""Views of all traces of a span or a run, not of one trace."""

EVERY_VIEW = {**VIEWS, **RUN_VIEWS}
