"""What a rank is compared with others by."""

from __future__ import annotations

from typing import Any

from ..trace import Trace
from .device_work import device_work
from .host_pace import operator_paces
from .step_work import step_work


def rank_work(trace: Trace) -> dict[str, Any]:
    """The fields of an answer by which a rank is compared with others."""
    return {
        "step_work": step_work(trace),
        "device_work": device_work(trace),
        "operators": operator_paces(trace),
    }
