"""Memory snapshots of any size, as dense as real ones: a training step of the simulated allocator, repeated.

As in torch's own files, frames are shared by all stacks, each allocation has a list of them, the two events of a
release share theirs, and all dicts, lists and texts have numbers in the memo (MEMOIZE, or LONG_BINPUT up to protocol 3).
"""

from __future__ import annotations

import pickle
import pickletools
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from .snapshots import GIB, Allocator

if TYPE_CHECKING:
    from pathlib import Path
    from typing import IO

    from numpy.typing import NDArray

LAYERS, OPERATORS = 32, 12
_SHALLOW, _DEEP = 20, 48
_WARM_UP = 3  # steps until the allocator has all the segments that a step needs
_BATCH = 1000  # items that a pickler appends at a time
_OF_MEMO = {"BINGET", "LONG_BINGET", "BINPUT", "LONG_BINPUT"}


class _Memo(dict[int, Any]):
    """A pickler's memo that has that many more entries, which were written by others."""

    written = 0

    def __len__(self) -> int:
        return super().__len__() + self.written


class _File:
    """Pickles values into a file piece by piece, as one pickle."""

    def __init__(self, file: IO[bytes], protocol: int) -> None:
        self.file, self.memo = file, _Memo()
        self._pickler = pickle._Pickler(file, protocol)  # the one in Python, which saves parts of a value
        self._pickler.memo = self.memo
        file.write(b"\x80" + bytes([protocol]))

    def begin(self, container: list[Any] | dict[str, Any]) -> None:
        """A list or dict, empty at first."""
        self.file.write(b"}" if isinstance(container, dict) else b"]")
        self._pickler.memoize(container)

    def save(self, value: Any) -> None:
        """A value on the stack."""
        self._pickler.save(value)

    def append(self, values: list[Any]) -> None:
        """Values into the list on the stack."""
        for first in range(0, len(values), _BATCH):
            self.file.write(b"(")
            for value in values[first : first + _BATCH]:
                self.save(value)
            self.file.write(b"e")


@cache
def _frame(file: str, line: int, name: str) -> dict[str, Any]:
    return {"filename": file, "line": line, "name": name}


def _stacks() -> list[list[dict[str, Any]]]:
    """Stacks that share most of their frames, each with C++ below Python."""
    plumbing = [_frame("??", 0, f"torch::CapturedTraceback::part{n}") for n in range(6)]
    calls = [_frame("/site-packages/torch/nn/modules/module.py", 1700 + n, "_call_impl") for n in range(400)]
    stacks = []
    for layer in range(LAYERS):
        for operator in range(OPERATORS):
            kernel = _frame(
                f"Register{operator}.cpp", 0, f"at::(anonymous namespace)::wrapper_CUDA_{operator}(at::Tensor)"
            )
            lines = _frame("/job/model.py", 100 + operator, "forward"), _frame("/job/blocks.py", layer, f"layer{layer}")
            depth = _SHALLOW + (7 * layer + 5 * operator) % (_DEEP - _SHALLOW)
            top = _frame("/job/train.py", 9, "main")
            stacks.append([*plumbing, kernel, *lines, *calls[11 * layer :][: depth - 10], top])
    return stacks


def _train(allocator: Allocator, stacks: list[list[dict[str, Any]]], step: int) -> None:
    """A forward pass whose activations are freed in the backward pass; each operator has a temporary."""
    allocator.annotate(f"ProfilerStep#{step}")
    blocks = []
    for number, stack in enumerate(stacks):
        temporary = allocator.allocate(512 * (1 + number % 37), list(stack))
        blocks.append(allocator.allocate((1 << 16) * (1 + number % 61), list(stack)))
        allocator.free(temporary)
    for block, stack in zip(reversed(blocks), stacks, strict=True):
        gradient = allocator.allocate(block.requested // 2 + 24, list(stack))
        allocator.free(gradient)
        allocator.free(block)


def _as_torch_writes(events: list[dict[str, Any]], stacks: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The events of a release share a list of frames of their own; each event has a tuple for its pool (torch 2.12)."""
    number, frames, zero_pool = count(), list[dict[str, Any]](), [0, 0]
    for event in events:
        if event["action"] == "free_requested":
            frames = list(stacks[next(number) * 31 % len(stacks)][-_SHALLOW:])
        if event["action"] in ("free_requested", "free_completed"):
            event["frames"] = frames
        event["pool_id"] = tuple(zero_pool)  # a tuple of its own
    return events


class _Step:
    """A step's events as bytes, to be repeated with later times and other numbers in the memo."""

    def __init__(self, data: bytes, first_memo: int, memos: int, first_us: int, step_us: int) -> None:
        self._data, self._memos, self._step_us = np.frombuffer(data, np.uint8), memos, step_us
        numbers, times = [], []
        for opcode, argument, at in pickletools.genops(data + b"."):
            if opcode.name in _OF_MEMO and argument >= first_memo:
                assert opcode.name.startswith("LONG"), "a step's numbers have four bytes"
                numbers.append(at + 1)
            elif opcode.name == "LONG1" and argument >= first_us:
                times.append(at + 2)
        self._numbers, self._times = (np.array(places, np.int64)[:, None] for places in (numbers, times))

    def repeated(self, times: int) -> bytes:
        """The step that many steps later."""
        data = self._data.copy()
        _add(data, self._numbers + np.arange(4), "<u4", times * self._memos)
        _add(data, self._times + np.arange(8), "<u8", times * self._step_us)  # LONG1 of eight bytes
        return data.tobytes()


def _add(data: NDArray[np.uint8], places: NDArray[np.int64], kind: str, more: int) -> None:
    if places.size:
        values = np.ascontiguousarray(data[places]).view(kind) + np.array(more, kind)
        data[places] = values.view(np.uint8).reshape(places.shape)


def write_large_snapshot(path: Path, least_bytes: int, protocol: int = 4) -> int:
    """Write a snapshot of at least so many bytes.

    Returns:
        Its number of events.
    """
    allocator, stacks = Allocator(80 * GIB), _stacks()
    weights = [allocator.allocate(48 << 20, stacks[layer * OPERATORS]) for layer in range(LAYERS)]
    for step in range(_WARM_UP):
        _train(allocator, stacks, step)
    before, began_us = list(allocator.events), allocator.events[-1]["time_us"]
    allocator.events.clear()
    _train(allocator, stacks, _WARM_UP)
    events = _as_torch_writes(list(allocator.events), stacks)
    assert not any(event["action"].startswith("segment") for event in events), "a step needs new segments"
    step_us = events[-1]["time_us"] - began_us
    snapshot = allocator.snapshot()
    assert sum(block["state"] != "inactive" for s in snapshot["segments"] for block in s["blocks"]) == len(weights)
    with path.open("w+b") as file:
        out = _File(file, protocol)
        out.begin(snapshot)
        file.write(b"(")
        out.save("segments")
        out.save(snapshot["segments"])
        out.save("device_traces")
        out.begin(snapshot["device_traces"])
        out.begin(before)
        out.append(_as_torch_writes(before, stacks))
        at, first_memo = file.tell(), len(out.memo)
        out.append(events)
        memos = len(out.memo) - first_memo
        file.seek(at)
        repeats, step = 1, _Step(file.read(), first_memo, memos, began_us, step_us)
        while file.tell() < least_bytes:
            file.write(step.repeated(repeats))
            repeats += 1
        out.memo.written = (repeats - 1) * memos
        file.write(b"a")
        for name in ("allocator_settings", "external_annotations"):
            out.save(name)
            out.save(snapshot[name])
        file.write(b"u.")
    return len(before) + repeats * len(events)
