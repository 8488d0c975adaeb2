"""What the profiler does during a batch."""

from __future__ import annotations

from enum import Enum

from torch.profiler import ProfilerAction as TorchAction


class ProfilerAction(str, Enum):
    """What the profiler does during a batch."""

    SKIP = "skip"
    WARMUP = "warmup"
    ACTIVE = "active"
    ACTIVE_AND_SAVE = "active_and_save"


RECORDING = (ProfilerAction.WARMUP, ProfilerAction.ACTIVE, ProfilerAction.ACTIVE_AND_SAVE)
"""The actions during which markers are recorded by default."""

ACTIVE = (ProfilerAction.ACTIVE, ProfilerAction.ACTIVE_AND_SAVE)

TORCH_ACTIONS = {
    ProfilerAction.SKIP: TorchAction.NONE,
    ProfilerAction.WARMUP: TorchAction.WARMUP,
    ProfilerAction.ACTIVE: TorchAction.RECORD,
    ProfilerAction.ACTIVE_AND_SAVE: TorchAction.RECORD_AND_SAVE,
}
