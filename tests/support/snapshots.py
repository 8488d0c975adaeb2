"""Memory snapshots from a simulation of torch's caching allocator, and failures planted in it.

The rules are those of c10/cuda/CUDACachingAllocator.cpp: requests are rounded to 512 bytes, small ones (up to 1 MiB) get
segments of 2 MiB, large ones of 20 MiB, or from 10 MiB on their own size rounded to 2 MiB; the best fit of the request's
pool and stream is split; before a failure, segments that are wholly unused are given back.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field, replace
from typing import Any

from kinetoscope_tb.reader import read_blocks
from kinetoscope_tb.trace import Trace

MIB, GIB = 1 << 20, 1 << 30
CONTEXT = GIB // 2
START_US = 1_790_000_000_000_000
DEFAULT = (0, 0)


def frames_of(*lines: str) -> list[dict[str, Any]]:
    """Frames of a stack, the innermost first, each as `file:line:function`."""
    parts = [line.rsplit(":", 2) for line in lines]
    return [{"filename": file, "line": int(number), "name": name} for file, number, name in parts]


BACKWARD = frames_of("/site-packages/torch/autograd/graph.py:829:_engine_run_backward", "/job/train.py:30:step")
OPTIMIZER = frames_of("/site-packages/torch/optim/adam.py:244:step", "/job/train.py:31:step")


@dataclass
class Block:
    """A block of a segment."""

    address: int
    size: int
    requested: int = 0
    state: str = "inactive"
    frames: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Segment:
    """A segment with its blocks, in order of addresses."""

    address: int
    size: int
    stream: int
    pool: tuple[int, int]
    blocks: list[Block]
    is_small: bool

    @property
    def is_unused(self) -> bool:
        """Whether it may be given back."""
        return all(block.state == "inactive" for block in self.blocks)


class OutOfMemory(Exception):
    """An allocation failed."""


class Allocator:
    """Torch's allocator on one device.

    Args:
        device_bytes: The memory of the device.
        outside: What others have of it, besides CUDA's context.
        limit: How much this process may reserve.
        most_events: Of the history.
    """

    def __init__(
        self, device_bytes: int = 80 * GIB, outside: int = 0, limit: int | None = None, most_events: int = 10**6
    ):
        self.device_bytes, self.outside, self.limit, self.most_events = device_bytes, outside, limit, most_events
        self.segments: list[Segment] = []
        self.events: list[dict[str, Any]] = []
        self.annotations: list[dict[str, Any]] = []
        self._next, self._now = 1 << 40, START_US

    @property
    def reserved(self) -> int:
        """Memory of all segments."""
        return sum(segment.size for segment in self.segments)

    @property
    def free_of_device(self) -> int:
        """What the driver says is free."""
        return max(0, self.device_bytes - CONTEXT - self.outside - self.reserved)

    def _event(self, action: str, address: int, size: int, stream: int, frames: list[dict[str, Any]]) -> None:
        self._now += 10
        place = {"device_free": address} if action == "oom" else {"addr": address}
        event = {"action": action, **place, "size": size, "stream": stream, "time_us": self._now, "frames": frames}
        self.events.append({**event, "compile_context": "N/A", "user_metadata": ""})

    def annotate(self, name: str) -> None:
        """Begin and end a range."""
        for stage in ("START", "END"):
            self._now += 10
            self.annotations.append({"stage": stage, "name": name, "device": 0, "time_us": self._now})

    def allocate(
        self, size: int, line: Any = "/job/train.py:10:forward", stream: int = 0, pool: tuple[int, int] = DEFAULT
    ) -> Block:
        """Allocate.

        Raises:
            OutOfMemory: There is no room.
        """
        frames = frames_of(line) if isinstance(line, str) else line
        rounded = -(-max(size, 1) // 512) * 512
        is_small = rounded <= MIB
        fits = [
            (block.size, block.address, segment, block)
            for segment in self.segments
            if (segment.stream, segment.pool, segment.is_small) == (stream, pool, is_small)
            for block in segment.blocks
            if block.state == "inactive" and block.size >= rounded
        ]
        if fits:
            _, _, segment, block = min(fits, key=lambda fit: fit[:2])
        else:
            segment = self._reserve(rounded, size, stream, pool, frames)
            block = segment.blocks[0]
        self._split(segment, block, rounded)
        block.requested, block.state, block.frames = size, "active_allocated", frames
        self._event("alloc", block.address, size, stream, frames)
        return block

    def _reserve(
        self, rounded: int, size: int, stream: int, pool: tuple[int, int], frames: list[dict[str, Any]]
    ) -> Segment:
        total = 2 * MIB if rounded <= MIB else 20 * MIB if rounded < 10 * MIB else -(-rounded // (2 * MIB)) * 2 * MIB
        if not self._has_room(total):
            self.empty_cache()
        if not self._has_room(total):
            self._event("oom", self.free_of_device, size, stream, frames)
            raise OutOfMemory(size)
        segment = Segment(self._next, total, stream, pool, [Block(self._next, total)], rounded <= MIB)
        self._next += total + 2 * MIB
        self.segments.append(segment)
        self._event("segment_alloc", segment.address, total, stream, frames)
        return segment

    def _has_room(self, size: int) -> bool:
        return self.free_of_device >= size and (self.limit is None or self.reserved + size <= self.limit)

    def _split(self, segment: Segment, block: Block, size: int) -> None:
        rest = block.size - size
        if rest >= (512 if segment.is_small else MIB):
            at = segment.blocks.index(block)
            segment.blocks.insert(at + 1, Block(block.address + size, rest))
            block.size = size

    def empty_cache(self) -> None:
        """Give back segments that are wholly unused; those of private pools stay."""
        for segment in [segment for segment in self.segments if segment.is_unused and segment.pool == DEFAULT]:
            self.segments.remove(segment)
            self._event("segment_free", segment.address, segment.size, segment.stream, [])

    def request_free(self, block: Block) -> None:
        """Free a block that another stream still uses."""
        block.state = "active_pending_free"
        self._event("free_requested", block.address, block.requested, self._segment(block).stream, [])

    def complete_free(self, block: Block) -> None:
        """The other stream has ended."""
        segment = self._segment(block)
        self._event("free_completed", block.address, block.requested, segment.stream, [])
        block.state, block.frames = "inactive", []
        merged: list[Block] = []
        for following in segment.blocks:
            if merged and merged[-1].state == following.state == "inactive":
                merged[-1].size += following.size
            else:
                merged.append(following)
        segment.blocks = merged

    def free(self, block: Block) -> None:
        """Free a block."""
        self.request_free(block)
        self.complete_free(block)

    def _segment(self, block: Block) -> Segment:
        return next(s for s in self.segments if s.address <= block.address < s.address + s.size)

    def snapshot(self) -> dict[str, Any]:
        """What torch.cuda.memory._snapshot returns."""
        return {
            "segments": [_segment_entry(segment) for segment in self.segments],
            "device_traces": [self.events[-self.most_events :]],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "expandable_segments": False, "max_split_size": -1},
            "external_annotations": self.annotations,
        }

    def dumped(self, protocol: int = 4) -> bytes:
        """The snapshot as a file."""
        return pickle.dumps(self.snapshot(), protocol)


def _segment_entry(segment: Segment) -> dict[str, Any]:
    active = [block for block in segment.blocks if block.state != "inactive"]
    return {
        "device": 0,
        "address": segment.address,
        "total_size": segment.size,
        "allocated_size": sum(block.size for block in active if block.state == "active_allocated"),
        "active_size": sum(block.size for block in active),
        "requested_size": sum(block.requested for block in active),
        "stream": segment.stream,
        "segment_type": "small" if segment.is_small else "large",
        "segment_pool_id": segment.pool,
        "is_expandable": False,
        "frames": [],
        "blocks": [
            {
                "address": block.address,
                "size": block.size,
                "requested_size": block.requested if block.state != "inactive" else 0,
                "state": block.state,
                "frames": block.frames,
            }
            for block in segment.blocks
        ],
    }


def trained(
    allocator: Allocator, steps: int, activation: int = 256 * MIB, layers: int = 4, leak_bytes: int = 0
) -> list[Block]:
    """Train: activations are freed in the backward pass, gradients after the optimizer; `leak_bytes` stay each step.

    Returns:
        The blocks that stay.
    """
    leaked = []
    for step in range(steps):
        allocator.annotate(f"ProfilerStep#{step}")
        activations = [allocator.allocate(activation, f"/job/model.py:{20 + n}:forward") for n in range(layers)]
        if leak_bytes:
            leaked.append(allocator.allocate(leak_bytes, "/job/train.py:44:log_outputs"))
        gradients = []
        for block in reversed(activations):
            gradients.append(allocator.allocate(activation // 4, BACKWARD))
            allocator.free(block)
        state = allocator.allocate(activation // 8, OPTIMIZER)
        for block in [*gradients, state]:
            allocator.free(block)
    return leaked


def failing(allocator: Allocator, size: int, line: str = "/job/train.py:77:request", stream: int = 0) -> Allocator:
    """Ask for what there is no room for."""
    try:
        allocator.allocate(size, line, stream)
    except OutOfMemory:
        return allocator
    raise AssertionError("there was room")


def planted_failures() -> dict[str, tuple[str, Allocator]]:
    """Failures by name, each with its cause."""
    found: dict[str, tuple[str, Allocator]] = {}
    for gib in (40, 80, 141, 192):
        usable = int({40: 39.5, 80: 79.2, 141: 139.8, 192: 191.98}[gib] * GIB)
        full = Allocator(usable)
        while full.free_of_device >= GIB:
            full.allocate(GIB, "/job/model.py:8:load_weights")
        found[f"full {gib}"] = "full", failing(full, 2 * GIB)
        deep = Allocator(usable)
        trained(deep, 3)
        while deep.free_of_device >= GIB:  # layers of a forward pass keep their activations
            deep.allocate(GIB - 64 * MIB, "/job/model.py:21:forward")
            deep.free(deep.allocate(40 * MIB, "/job/model.py:22:softmax"))
        found[f"a deep forward pass {gib}"] = "full", failing(deep, 3 * GIB)
        fragmented = Allocator(usable)
        blocks = [fragmented.allocate(32 * MIB, "/job/a.py:1:f") for _ in range(8)]
        for block in blocks[::2]:
            fragmented.free(block)
        pieces = []
        while fragmented.free_of_device >= 3 * GIB:
            large = fragmented.allocate(2 * GIB, "/job/a.py:2:f")
            fragmented.free(large)
            pieces.append([fragmented.allocate(512 * MIB, f"/job/a.py:{n}:f") for n in range(4)])
        for group in pieces:
            fragmented.free(group[0])
            fragmented.free(group[2])
        found[f"fragmented {gib}"] = "fragmented", failing(fragmented, 4 * GIB)
        streams = Allocator(usable)
        while streams.free_of_device >= 3 * GIB:
            streams.free(streams.allocate(2 * GIB, "/job/comm.py:3:prefetch", stream=7))
            streams.allocate(64 * MIB, "/job/comm.py:4:stay", stream=7)
            streams.allocate(2 * GIB - 64 * MIB - 8 * MIB, "/job/comm.py:5:rest", stream=7)
        for segment in streams.segments:
            for block in [b for b in segment.blocks if b.requested > GIB and b.state != "inactive"]:
                streams.free(block)
        found[f"another stream {gib}"] = "other_stream", failing(streams, 4 * GIB)
        pools = Allocator(usable)
        while pools.free_of_device >= 5 * GIB:
            pools.free(pools.allocate(3 * GIB, "/job/graph.py:9:capture", pool=(1, 0)))
            pools.allocate(3 * GIB, "/job/graph.py:10:capture", pool=(1, 0))
        for segment in pools.segments:
            for block in [b for b in segment.blocks if b.state != "inactive"]:
                pools.free(block)
        found[f"private pool {gib}"] = "private_pool", failing(pools, 6 * GIB)
        large = Allocator(usable)
        large.allocate(GIB)
        found[f"too large {gib}"] = "too_large", failing(large, 400 * GIB, "/job/attention.py:5:scores")
        leak = Allocator(usable)
        try:
            trained(leak, 10_000, leak_bytes=gib * 16 * MIB)
        except OutOfMemory:
            found[f"leak {gib}"] = "leak", leak
        limited = Allocator(usable, limit=usable // 4)
        while limited.reserved + GIB <= usable // 4:
            limited.allocate(GIB)
        found[f"limit {gib}"] = "limit", failing(limited, 2 * GIB)
        taken = Allocator(usable, outside=usable // 2)
        while taken.free_of_device >= GIB:
            taken.allocate(GIB)
        found[f"outside {gib}"] = "outside", failing(taken, 2 * GIB)
    return found


def small_snapshot() -> Allocator:
    """A short training whose memory grows, and then a failure: every view of a snapshot has rows."""
    allocator = Allocator(2 * GIB)
    trained(allocator, 5, activation=64 * MIB, leak_bytes=16 * MIB)
    return failing(allocator, 3 * GIB)


def with_snapshot(trace: Trace, allocator: Allocator) -> Trace:
    """The trace with the frames of a snapshot."""
    snapshot = read_blocks([allocator.dumped()], path="snapshot.pickle")
    frames = {name: getattr(snapshot, name) for name in vars(snapshot) if name.startswith("snapshot_")}
    return replace(trace, **frames)
