"""Why allocations failed, according to a memory snapshot: one sentence each, its evidence, and what to do."""

from __future__ import annotations

import polars as pl

from ...measures.memory.allocation_failure import Failure, failures
from ...measures.memory.snapshots import DeviceSnapshot, OfSnapshot, device_snapshots, stack_places, with_places
from ...measures.recording.contents import has_snapshot_failure
from ...names.text import memory_size as size
from ...table import BYTES, ID, INSTANT, PROSE, STACK, TEXT, Column
from ...trace import Trace
from ...view import Part, RowTime, View

MOST = 20  # failures of a device
_HOLDERS = 3


class SnapshotFailure(OfSnapshot):
    """Why an allocation failed: the last failures of a snapshot's history.

    A snapshot doesn't say how much memory its device has. Without that, a full device and memory that something other
    than torch has taken can look alike; `device_bytes` gives it.
    """

    key = ("device", "event")

    time_ns = Column(INSTANT, "Time of the failure; the event's number if the snapshot has no times.")
    cause = Column(
        TEXT,
        "`full`: tensors fill the device; `leak`: and a line's memory grows with each step; `fragmented`: enough is "
        "unused, in too small pieces; `other_stream`: enough is cached for other streams; `private_pool`: enough is "
        "unused in private pools, as of CUDA graphs; `outside`: something other than torch has the memory; `limit`: "
        "the device had room, and a limit of the process or of the driver refused it; `too_large`: the request is "
        "larger than the device; `full_or_outside`: one of these two.",
    )
    sentence = Column(PROSE, "The cause as a sentence.")
    evidence = Column(PROSE, "The numbers behind it.")
    action = Column(PROSE, "What would have made room.")
    request_bytes = Column(BYTES, "How much was asked for.")
    device_free_bytes = Column(BYTES, "What the device itself had free.")
    reserved_bytes = Column(BYTES, "What torch's allocator had reserved.")
    active_bytes = Column(BYTES, "How much of that was in use, in requested bytes.")
    unused_bytes = Column(BYTES, "Unused memory of the same pool and stream.")
    largest_unused_bytes = Column(BYTES, "The largest block of it.")
    other_streams_bytes = Column(BYTES, "Unused memory that is cached for other streams.")
    private_pools_bytes = Column(BYTES, "Unused memory in private pools.")
    outside_bytes = Column(BYTES, "What neither torch had nor was free; missing without the device's memory.")
    frames = Column(STACK, "The stack of the request, the innermost frame first.")
    event = Column(ID, "Number of the event in the history of the device.")


def snapshot_failure(trace: Trace, *, device_bytes: int | None = None) -> pl.DataFrame:
    """The last failure first, device by device; `device_bytes` is the memory of the device."""
    capacity = device_bytes if device_bytes is not None and device_bytes > 0 else None
    rows = [
        _row(trace, snapshot, failure)
        for snapshot in device_snapshots(trace)
        for failure in reversed(failures(trace, snapshot, capacity, MOST))
    ]
    return SnapshotFailure.of(pl.DataFrame(rows, schema=SnapshotFailure.schema()))


def _row(trace: Trace, snapshot: DeviceSnapshot, failure: Failure) -> dict[str, object]:
    stack = stack_places(trace).filter(pl.col("stack") == snapshot.events["stack"][failure.event])
    line = stack["place"][0] if stack.height else ""
    sentence, evidence, action = _WORDS[failure.cause]
    facts = {
        "request": size(failure.request_bytes),
        "free": size(failure.device_free_bytes),
        "reserved": size(failure.reserved_bytes),
        "torch": size(failure.device_free_bytes + failure.reserved_bytes),
        "active": size(failure.active_bytes),
        "unused": size(failure.unused_bytes),
        "largest": size(failure.largest_unused_bytes),
        "streams": size(failure.other_stream_bytes),
        "private": size(failure.private_bytes),
        "outside": size(failure.outside_bytes or 0),
        "where": f" at `{line}`" if line else "",
        "grown": _growth(failure),
        "holders": _holders(trace, snapshot, failure.event),
    }
    return {
        "device": snapshot.device,
        "time_ns": int(snapshot.times[failure.event]),
        "cause": failure.cause,
        "sentence": sentence.format(**facts),
        "evidence": evidence.format(**facts),
        "action": action.format(**facts),
        "request_bytes": failure.request_bytes,
        "device_free_bytes": failure.device_free_bytes,
        "reserved_bytes": failure.reserved_bytes,
        "active_bytes": failure.active_bytes,
        "unused_bytes": failure.unused_bytes,
        "largest_unused_bytes": failure.largest_unused_bytes,
        "other_streams_bytes": failure.other_stream_bytes,
        "private_pools_bytes": failure.private_bytes,
        "outside_bytes": failure.outside_bytes,
        "frames": stack["text"][0] if stack.height else None,
        "event": failure.event,
    }


def _growth(failure: Failure) -> str:
    leak = failure.leak
    if leak is None:
        return ""
    return f"`{leak.place}` holds {size(leak.alive_bytes)} in {leak.blocks} blocks, from {leak.steps} steps"


def _holders(trace: Trace, snapshot: DeviceSnapshot, event: int) -> str:
    """The lines with the most memory, as a list."""
    alive = with_places(trace, snapshot.alive(event))
    rows = alive.group_by("place").agg(pl.col("size").sum()).sort("size", "place", descending=[True, False])
    holders = [f"`{line}` {size(alive_bytes)}" for line, alive_bytes in rows.head(_HOLDERS).rows()]
    return f"The largest holders: {', '.join(holders)}." if holders else ""


_IN_USE = "torch had {reserved} reserved, {active} of it in use, and the device had {free} free."
_LESS = "Make its largest holders smaller (activations: checkpointing; optimizer state: sharding). {holders}"
_WORDS = {
    "full": (
        "Tensors fill the device: the request of {request}{where} had no room.",
        "Almost nothing that torch reserved is unused ({unused}): " + _IN_USE + " That is {torch} in all, the "
        "memory of the device less what its driver needs.",
        _LESS,
    ),
    "leak": (
        "Memory grows with each step until the device is full: {grown}.",
        _IN_USE[0].upper() + _IN_USE[1:] + " Blocks of that line stay while other memory of a step is freed.",
        "Don't keep tensors from one step to the next, above all none with a graph behind it: `loss.item()` or "
        "`loss.detach()`. {holders}",
    ),
    "fragmented": (
        "Memory is fragmented: {unused} is unused, but its largest piece has {largest}, and {request} was asked for"
        "{where}.",
        _IN_USE[0].upper() + _IN_USE[1:],
        "Set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`, or free what lies between the pieces first. {holders}",
    ),
    "other_stream": (
        "{streams} is cached for other streams: the request of {request}{where} can't use it.",
        _IN_USE[0].upper() + _IN_USE[1:] + " Segments with a block in use aren't given back to the device.",
        "Allocate on one stream and use `record_stream`, or call `torch.cuda.empty_cache()` when the other stream's "
        "tensors are gone.",
    ),
    "private_pool": (
        "{private} is unused in private pools, as of CUDA graphs: the request of {request}{where} can't use it.",
        _IN_USE[0].upper() + _IN_USE[1:],
        "Let captures share a pool (`graph.pool()`), capture fewer sizes, or delete graphs that aren't replayed.",
    ),
    "outside": (
        "Something other than torch's allocator has {outside} of the device: the request of {request}{where} had no "
        "room.",
        _IN_USE[0].upper() + _IN_USE[1:],
        "Look for other processes (`nvidia-smi`), and in this one for NCCL's buffers, CUDA's context, and libraries "
        "that allocate by themselves.",
    ),
    "limit": (
        "The device had {free} free, more than the {request} that was asked for{where}: a limit refused it.",
        _IN_USE[0].upper() + _IN_USE[1:],
        "Look for `set_per_process_memory_fraction`, a limit of the container or of MIG, or other processes that took "
        "and freed memory at that moment.",
    ),
    "too_large": (
        "One request of {request}{where} is larger than the device.",
        _IN_USE[0].upper() + _IN_USE[1:],
        "Compute it in parts: a chunked loss for logits, `scaled_dot_product_attention` for attention scores.",
    ),
    "full_or_outside": (
        "The device is full: the request of {request}{where} had no room. Either tensors fill it, or something other "
        "than torch takes part of it.",
        _IN_USE[0].upper() + _IN_USE[1:] + " That is {torch} in all: if the device has much more, the rest is taken "
        "outside of torch.",
        "Give the memory of the device as `device_bytes` to tell. {holders}",
    ),
}


VIEW = View(
    snapshot_failure,
    table=SnapshotFailure,
    title="Why an allocation failed",
    entry="Memory",
    place=Part("snapshot_levels"),
    needs=has_snapshot_failure,
    hint="No allocation failed in the history of a memory snapshot.",
    within="moments",
    time=RowTime("time_ns"),
)
