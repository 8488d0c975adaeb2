"""Where a slice comes from: the call, operator, module, Python calls and recorded stack that led to it.

Autograd runs backward work, mostly on a thread on which the program has nothing open. So its module is that of its
forward operator, as in `measures/calls/module_calls.py`; so are its Python calls and its stack if it has none itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...arrays.gather import NONE
from ...measures.python.frames import frames_of_text
from ...trace import Trace
from ...trace.model import LIGHTNING
from .links import Links, open_at, outward

_GRADIENTS_OF_GRADIENTS = 3  # how many times backward work may itself be differentiated


@dataclass(frozen=True)
class Provenance:
    """What led to a slice; rows of the trace's frames, NONE where none is known.

    Args:
        call: The call that launched it: a row of launches.
        op: The innermost operator around it: a row of host_events.
        annotations: The annotations around it, the innermost first: rows of host_events.
        module: The frame and the row of the module's call: python_calls, or host_events if Lightning noted it.
        python: The Python calls around it, the innermost first.
        stack: The recorded frames, the innermost first; None if there are none.
        is_forward: Whether Python calls and stack belong to the forward operator.
    """

    call: int
    op: int
    annotations: list[int]
    module: tuple[str, int]
    python: list[int]
    stack: list[str] | None
    is_forward: bool


@dataclass(frozen=True)
class _Place:
    """What was open when something began: rows of python_calls and of host_events, the innermost first."""

    python: list[int]
    host: list[int]

    @classmethod
    def of_host_event(cls, trace: Trace, row: int) -> _Place:
        """The place of a range, which is itself the first; a Python call with the same times encloses it."""
        rows = trace.host_events
        python = outward(trace.python_calls, open_at(trace.python_calls, rows["thread"][row], rows["start_ns"][row]))
        return cls([i for i in python if not _is_inside(trace, i, row)], outward(rows, row))

    @classmethod
    def of_call(cls, trace: Trace, row: int) -> _Place:
        """The place of a runtime call; if nothing was open on its thread, that of its linked operator."""
        rows = trace.launches
        host, op = int(rows["host"][row]), int(rows["op"][row])
        if host < 0 <= op:
            return cls.of_host_event(trace, op)
        python = open_at(trace.python_calls, rows["thread"][row], rows["start_ns"][row])
        return cls(outward(trace.python_calls, python), outward(trace.host_events, host))

    @classmethod
    def of_python(cls, trace: Trace, row: int) -> _Place:
        """The place that a Python call was made from."""
        rows = trace.python_calls
        host = outward(trace.host_events, open_at(trace.host_events, rows["thread"][row], rows["start_ns"][row]))
        return cls(outward(rows, row)[1:], [i for i in host if _is_inside(trace, row, i)])


def provenance(trace: Trace, links: Links, frame: str, row: int) -> Provenance | None:
    """Where a row of a frame comes from; None if unknown."""
    call, stack_around = NONE, None
    if frame == "host_events":
        stack_around = _Place.of_host_event(trace, row)
    elif frame == "python_calls":
        stack_around = _Place.of_python(trace, row)
    elif frame == "launches":
        stack_around = _Place.of_call(trace, row)
    elif frame == "device_events" and trace.device_events["launch"][row] < 0 <= trace.recorded_op[row]:
        stack_around = _Place.of_host_event(trace, int(trace.recorded_op[row]))
    elif (call := _call_of(trace, frame, row)) >= 0:
        stack_around = _Place.of_call(trace, call)
    if stack_around is None:
        return None
    own = row if frame == "host_events" else NONE
    kinds, around = trace.host_events["kind"], [i for i in stack_around.host if i != own]
    op = next((i for i in around if kinds[i] == "operator"), NONE)
    annotations = [i for i in around if kinds[i] == "annotation"]
    module = _module(trace, links, stack_around, own)
    stack, forward = (
        _stack(trace, stack_around.host),
        next((i for i in stack_around.host if links.forward[i] >= 0), NONE),
    )
    is_forward = forward >= 0 and not stack_around.python and stack is None
    if is_forward:
        stack_around = _Place.of_host_event(trace, int(links.forward[forward]))
        stack = _stack(trace, stack_around.host)
    is_forward &= bool(stack_around.python or stack)
    return Provenance(call, op, annotations, module, stack_around.python, stack, is_forward)


def _call_of(trace: Trace, frame: str, row: int) -> int:
    """The call that launched a device row, or that requested a wait."""
    if frame == "device_events":
        return int(trace.device_events["launch"][row])
    return call_with(trace, int(trace.syncs["correlation"][row])) if frame == "syncs" else NONE


def call_with(trace: Trace, correlation: int) -> int:
    """The first call with this correlation, or NONE."""
    if correlation < 0:
        return NONE
    calls = np.flatnonzero(trace.launches["correlation"].to_numpy() == correlation)
    return int(calls[0]) if calls.size else NONE


def _stack(trace: Trace, host: list[int]) -> list[str] | None:
    """What torch wrote with the innermost range that has a stack."""
    texts = (trace.host_events["call_stack"][i] for i in host)
    return next((frames for text in texts if text and (frames := frames_of_text(text))), None)


def _module(trace: Trace, links: Links, stack_around: _Place, own: int) -> tuple[str, int]:
    """The call of the innermost enclosing module; backward work further inside has that of its forward operator."""
    names = trace.host_events["name"]
    for _ in range(1 + _GRADIENTS_OF_GRADIENTS):
        module = next((i for i in stack_around.python if trace.python_calls["module_id"][i] >= 0), NONE)
        decides = next(
            (
                i
                for i in stack_around.host
                if links.forward[i] >= 0 or (i != own and (names[i] or "").startswith(LIGHTNING))
            ),
            NONE,
        )
        if decides < 0 or (module >= 0 and _is_inside(trace, module, decides)):
            return "python_calls", module
        if links.forward[decides] < 0:
            return "host_events", decides
        stack_around = _Place.of_host_event(trace, int(links.forward[decides]))
    return "python_calls", NONE


def _is_inside(trace: Trace, python: int, host: int) -> bool:
    """Whether a Python call is inside a range that is open when it begins; with equal times the call is outside."""
    start, around = (rows["start_ns"][i] for rows, i in ((trace.python_calls, python), (trace.host_events, host)))
    lasts, longer = (rows["dur_ns"][i] for rows, i in ((trace.python_calls, python), (trace.host_events, host)))
    return bool(start > around or (start == around and lasts < longer))
