"""The views, in the order of the page. To add one: write a module here, and name it below."""

from . import (
    call_stacks,
    environment,
    gpu_activity,
    gpus,
    health,
    kernels,
    kernels_by_op,
    memory_by_operator,
    memory_curve,
    memory_devices,
    memory_events,
    memory_peak,
    modules,
    modules_by_class,
    operators,
    operators_by_shape,
    overview,
    python_calls,
    steps,
)

VIEWS = {
    view.id: view
    for view in (
        overview.VIEW,
        steps.VIEW,
        environment.VIEW,
        health.VIEW,
        operators.VIEW,
        operators_by_shape.VIEW,
        modules.VIEW,
        modules_by_class.VIEW,
        python_calls.VIEW,
        call_stacks.VIEW,
        gpus.VIEW,
        gpu_activity.VIEW,
        kernels.VIEW,
        kernels_by_op.VIEW,
        memory_curve.VIEW,
        memory_devices.VIEW,
        memory_peak.VIEW,
        memory_by_operator.VIEW,
        memory_events.VIEW,
    )
}
