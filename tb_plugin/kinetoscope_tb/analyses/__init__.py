"""The views, in the order of the page. To add one: write a module here, and name it below."""

from . import (
    call_stacks,
    environment,
    gpus,
    health,
    kernels,
    kernels_by_op,
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
        kernels.VIEW,
        kernels_by_op.VIEW,
    )
}
