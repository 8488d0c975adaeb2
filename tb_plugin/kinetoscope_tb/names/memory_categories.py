"""What memory is used for: our categories, and those of torch's memory timeline."""

from __future__ import annotations

CATEGORIES = ("parameters", "gradients", "optimizer state", "activations", "workspace", "unknown")
PARAMETERS, GRADIENTS, OPTIMIZER_STATE, ACTIVATIONS, WORKSPACE, UNKNOWN = range(len(CATEGORIES))

TORCH_CATEGORIES = (
    "PARAMETER",
    "OPTIMIZER_STATE",
    "INPUT",
    "TEMPORARY",
    "ACTIVATION",
    "GRADIENT",
    "AUTOGRAD_DETAIL",
    "Unknown",
)
"""By their numbers in the file: _CATEGORY_TO_INDEX in torch/profiler/_memory_profiler.py."""

CATEGORY_OF_TORCH = dict(
    zip(
        TORCH_CATEGORIES,
        (PARAMETERS, OPTIMIZER_STATE, UNKNOWN, WORKSPACE, ACTIVATIONS, GRADIENTS, WORKSPACE, UNKNOWN),
        strict=True,
    )
)
