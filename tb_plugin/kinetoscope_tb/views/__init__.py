"""The views, in the order of the page. To add one: write a module in a folder below, and name it in a list.

overview, host, device, memory   functions of one trace
distributed                      functions of all recordings of a span or a run

Then `make docs` and `make golden` write what is made from it. All else reads what its `VIEW` says.
"""

from importlib import import_module

from ..view import View


def _views(*modules: str) -> dict[str, View]:
    """The view that each module defines, by its id."""
    views: list[View] = [import_module(f".{module}", __name__).VIEW for module in modules]
    return {view.id: view for view in views}


VIEWS = _views(
    "overview.overview",
    "overview.advice",
    "overview.steps",
    "overview.critical_path",
    "overview.critical_path_names",
    "overview.critical_path_stretches",
    "overview.environment",
    "overview.health",
    "host.operators",
    "host.operators_by_shape",
    "host.modules",
    "host.modules_by_class",
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
    "device.exposed_time",
    "device.queue_length",
    "device.gaps",
)

RUN_VIEWS = _views(
    "distributed.rank_steps",
    "distributed.run_advice",
    "distributed.stragglers",
    "distributed.path_across_ranks",
    "distributed.path_by_rank",
    "distributed.path_across_ranks_stretches",
    "distributed.communication",
    "distributed.links",
    "distributed.collectives",
    "distributed.pace",
    "distributed.traffic",
    "distributed.topology",
    "distributed.clocks",
    "distributed.run_health",
)
"""What is a function of all recordings of a span or a run, instead of one."""

EVERY_VIEW = {**VIEWS, **RUN_VIEWS}
