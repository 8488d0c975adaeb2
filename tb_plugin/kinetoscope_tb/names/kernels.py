"""What a name says of its work: communication, data loading, a step. What it says of tensor cores: tensor_cores.py.

Names are the only evidence that every trace has. Each table below is a list of patterns;
tests/unit/test_kernel_names.py holds a real name for each of them.
"""

from __future__ import annotations

import re

STEP = re.compile(r"ProfilerStep#([0-9]{1,18})")
_OVERLOAD = re.compile(r"(\w+::\w+)\.\w+$")
DATA_LOADING = ("enumerate(DataLoader)#", "enumerate(DataPipe)#")

_COMMUNICATION_KERNEL = re.compile(
    r"""
      \bnccl | \bmscclKernel | \brccl | \boneccl | \bxccl | \bhccl | \bhcom_  # the libraries' own kernels
    | cross_device_reduce | (?:two|one)_?shot_all_?reduce | quick_?reduce    # vLLM, SGLang, AITER
    | allreduce_fusion | lamport | \bmultimem_ | symm_mem                    # TensorRT-LLM, symmetric memory
    | nvshmem | \bdeep_ep::
    """,
    re.VERBOSE | re.IGNORECASE,
)
_COMMUNICATION_RANGE = re.compile(r"record_param_comms$|c10d::|(?:nccl|rccl|gloo|xccl|ccl|oneccl|hccl|ucc|mpi):")
_QUEUED = re.compile(r"\b(?:nccl|rccl|xccl|hccl)(?![a-z])")


def operator_of(name: str) -> str:
    """The operator's name without its overload: aten::sum of aten::sum.dim_IntList."""
    found = _OVERLOAD.match(name)
    return found[1] if found else name


def is_communication_kernel(name: str) -> bool:
    """Whether a device row of this name moves data between ranks."""
    return bool(_COMMUNICATION_KERNEL.search(name))


def is_communication_range(name: str) -> bool:
    """Whether a host operator or annotation of this name is a collective or a point-to-point transfer."""
    return bool(_COMMUNICATION_RANGE.match(name))


def is_queued_communication(text: str) -> bool:
    """Whether the name of a host range, or the name of a backend, is of one that puts its work into a device's queue.

    Then the host's range, such as nccl:all_reduce, is over before the data moves, and doesn't tell how long that takes.
    """
    return bool(_QUEUED.search(text))


def is_data_loading(name: str) -> bool:
    """Whether a host range of this name waits for the next batch of a DataLoader."""
    return name.startswith(DATA_LOADING)


def step_number(name: str) -> str | None:
    """N of `ProfilerStep#N`, or None."""
    match = STEP.fullmatch(name.strip())
    return match.group(1) if match else None
