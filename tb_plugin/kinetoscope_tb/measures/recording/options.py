"""Whether options of torch.profiler were on, why what they record is missing though they were; how to record less."""

from __future__ import annotations

from ...trace import Trace
from ..calls.matrix_work import NO_SHAPES
from .contents import has_input_shapes, has_memory, has_stacks

_RECORDED_BY = {"record_shapes": has_input_shapes, "with_stack": has_stacks, "profile_memory": has_memory}
"""What only recordings with the option have."""

NO_SHAPES_OF_ITS_OWN = "The recording has no shapes of its inputs, though record_shapes was on."


def was_on(trace: Trace, option: str) -> bool:
    """Whether an option was on: by the file, or by what it has, since torch before 2.0 writes no options."""
    return trace.meta.has_option(option) or (option in _RECORDED_BY and _RECORDED_BY[option](trace))


def how_to_record_less(trace: Trace) -> str:
    """How to record less at a time, as a clause: fewer steps, or fewer options where only one step was recorded."""
    is_single = trace.steps.height == 1 and trace.steps["name"][0] != "all"
    return "record with fewer options" if is_single else "record fewer steps at a time"


def reason_in_trace(trace: Trace, reason: str) -> str:
    """Why the work of an operator is unknown, which is no missing option where the option was on."""
    return NO_SHAPES_OF_ITS_OWN if reason == NO_SHAPES and was_on(trace, "record_shapes") else reason
