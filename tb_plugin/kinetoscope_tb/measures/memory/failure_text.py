"""Why an allocation failed, in words: a sentence, its evidence, and what would have made room."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from ...names.python_frames import function_name
from ...names.text import capitalize
from ...names.text import memory_size as size
from ...trace.model import Trace
from .allocation_failure import Failure
from .snapshots import DeviceSnapshot, holders, stack_places

_HOLDERS = 3


@dataclass(frozen=True)
class Explanation:
    """A failure in words.

    Args:
        sentence: The cause.
        evidence: The numbers behind it.
        action: What would have made room.
        frames: The stack of the request, the innermost frame first; None if it has none.
    """

    sentence: str
    evidence: str
    action: str
    frames: str | None


def explanation(trace: Trace, snapshot: DeviceSnapshot, failure: Failure) -> Explanation:
    """The failure in words."""
    stack = stack_places(trace).filter(pl.col("stack") == snapshot.events["stack"][failure.event])
    line = stack["place"][0] if stack.height else ""
    facts = {
        "request": size(failure.request_bytes),
        "free": size(failure.device_free_bytes),
        "reserved": size(failure.reserved_bytes),
        "torch": size(failure.device_free_bytes + failure.reserved_bytes),
        "rest": ""
        if failure.device_bytes is not None
        else _REST.format(size(failure.device_free_bytes + failure.reserved_bytes)),
        "active": size(failure.active_bytes),
        "unused": size(failure.unused_bytes),
        "largest": size(failure.largest_unused_bytes),
        "streams": size(failure.other_stream_bytes),
        "private": size(failure.private_bytes),
        "outside": size(failure.outside_bytes or 0),
        "where": f" at `{function_name(line)}`" if line else "",
        "grown": _growth(failure),
        "holders": _largest_holders(trace, snapshot, failure.event),
    }
    sentence, evidence, action = (text.format(**facts) for text in _WORDS[failure.cause])
    return Explanation(sentence, evidence, action, stack["text"][0] if stack.height else None)


def _growth(failure: Failure) -> str:
    leak = failure.leak
    if leak is None:
        return ""
    return (
        f"`{function_name(leak.place)}` holds {size(leak.alive_bytes)} in {leak.blocks} blocks, from {leak.steps} steps"
    )


def _largest_holders(trace: Trace, snapshot: DeviceSnapshot, event: int) -> str:
    texts = [
        f"`{function_name(line)}` {size(alive_bytes)}"
        for line, alive_bytes in holders(trace, snapshot, event)[:_HOLDERS]
    ]
    return f"The largest holders: {', '.join(texts)}." if texts else ""


_IN_USE = "torch had {reserved} reserved, {active} of it in use, and the device had {free} free."
_IN_USE_FIRST = capitalize(_IN_USE)
_REST = " That is {} in all: if the device has much more, the rest is taken outside of torch."
_LESS = "Make its largest holders smaller (activations: checkpointing; optimizer state: sharding). {holders}"
_WORDS = {
    "full": (
        "Tensors fill the device: the request of {request}{where} had no room.",
        "Almost nothing that torch reserved is unused ({unused}): " + _IN_USE + " That is {torch} in all, the "
        "memory of the device less what its driver needs.",
        _LESS,
    ),
    "leak": (
        "Memory grows with each step, until the request of {request}{where} had no room: {grown}.",
        _IN_USE_FIRST + "{rest} Blocks of that line stay while other memory of a "
        "step is freed; a step is what has a backward pass or an optimizer between two of them.",
        "Don't keep tensors from one step to the next, above all none with a graph behind it: `loss.item()` or "
        "`loss.detach()`. {holders}",
    ),
    "fragmented": (
        "Memory is fragmented: {unused} is unused, but its largest piece has {largest}, and {request} was asked for"
        "{where}.",
        _IN_USE_FIRST,
        "Set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`, or free what lies between the pieces first. {holders}",
    ),
    "other_stream": (
        "{streams} is cached for other streams: the request of {request}{where} can't use it.",
        _IN_USE_FIRST + " Segments with a block in use aren't given back to the device.",
        "Allocate on one stream and use `record_stream`, or call `torch.cuda.empty_cache()` when the other stream's "
        "tensors are gone.",
    ),
    "private_pool": (
        "{private} is unused in private pools, as of CUDA graphs: the request of {request}{where} can't use it.",
        _IN_USE_FIRST,
        "Let captures share a pool (`graph.pool()`), capture fewer sizes, or delete graphs that aren't replayed.",
    ),
    "outside": (
        "Something other than torch's allocator has {outside} of the device: the request of {request}{where} had no "
        "room.",
        _IN_USE_FIRST,
        "Look for other processes (`nvidia-smi`), and in this one for NCCL's buffers, CUDA's context, and libraries "
        "that allocate by themselves.",
    ),
    "limit": (
        "The device had {free} free, more than the {request} that was asked for{where}: a limit refused it.",
        _IN_USE_FIRST,
        "Look for `set_per_process_memory_fraction`, a limit of the container or of MIG, or other processes that took "
        "and freed memory at that moment.",
    ),
    "too_large": (
        "One request of {request}{where} is larger than the device.",
        _IN_USE_FIRST,
        "Compute it in parts: a chunked loss for logits, `scaled_dot_product_attention` for attention scores.",
    ),
    "full_or_outside": (
        "The device had {free} free, too little for the request of {request}{where}. Either tensors fill the rest, or "
        "something other than torch has a part of it.",
        _IN_USE_FIRST + "{rest}",
        "Give the memory of the device as `device_memory_bytes` to tell. {holders}",
    ),
}
