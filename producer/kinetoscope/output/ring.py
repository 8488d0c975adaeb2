"""The last minutes of a process: its last steps, and what the machine did, readable after a kill at any instant.

A ring of records of fixed size, in memory without a file (memfd_create(2)). The writer process holds it too, so it
outlives the training. When a rank ends badly or a step hangs, its content becomes `{run}/.work/rank{r}.ring`.

A record is five signed integers of 64 bits, little-endian: the bitwise exclusive or of the rest and of `_SALT`; its
number * 16 + its kind; and three values:

    1 step       its number, start and end in Unix ns
    2 memory     Unix ns, bytes of this process, bytes of the machine that are available
    3 processor  Unix ns, ns that this process has used, and how many of a million parts of the machine's were busy
    4 allocator  Unix ns, bytes of the CUDA device that torch's allocator has given away, and that it has reserved
    5 power      Unix ns, milliwatts of the device, and its temperature in thousandths of a degree Celsius
    6 clock      Unix ns, MHz of the device's multiprocessors, and whether they are throttled
    7 disk       Unix ns, bytes that the machine's disks have read, and written
    8 network    Unix ns, bytes that the machine's network interfaces have received, and sent
    9 marker     when a range began that was open at the last sample, in Unix ns; of the two others, all 16 bytes are
                 UTF-8 of its name
    10 name      the same of the next 16 bytes of the last marker's name

Record n is in slot n modulo their number. One whose first integer is wrong, as that which a kill interrupts, is
skipped. Anyone who can write to the run's folder can write the file: each value is checked. This module imports
nothing but the standard library.
"""

from __future__ import annotations

import itertools
import mmap
import os
import statistics
import struct
import sys
import weakref
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..path_below import PathBelow
from ..untrusted_files import read_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from ..progress import Step

STEP, MEMORY, PROCESSOR, ALLOCATOR, POWER, CLOCK, DISK, NETWORK = "s", "m", "p", "a", "w", "f", "d", "n"
_SAMPLES = (MEMORY, PROCESSOR, ALLOCATOR, POWER, CLOCK, DISK, NETWORK)
_MARKER, _NAME = "marker", "name"
_KINDS = (STEP, *_SAMPLES, _MARKER, _NAME)
_NUMBER_OF_KIND = {kind: number for number, kind in enumerate(_KINDS, start=1)}
_TEXT, _LONGEST_NAME = struct.Struct("<qq"), 48
SLOTS = 1 << 14
_RECORD = struct.Struct("<qqqqq")
_RECORD_BYTES = _RECORD.size
BYTES = _RECORD_BYTES * SLOTS
_SALT = 0x6B696E65746F7363
"""Of a record of zeros, the first integer isn't zero."""


class Ring:
    """The records of this process. Any thread may add one."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._integers: memoryview | None = None
        self.descriptor: int | None = None
        """What the writer process reads it by; None if this system has no memory without a file."""
        with suppress(OSError, AttributeError):
            self.descriptor = os.memfd_create("kinetoscope-ring")
            self._finalizer = weakref.finalize(self, os.close, self.descriptor)
            os.ftruncate(self.descriptor, BYTES)
            if sys.byteorder == "little":
                self._integers = memoryview(mmap.mmap(self.descriptor, BYTES)).cast("q")
        self._adders = {kind: _adder(self._integers, self._numbers, number) for kind, number in _NUMBER_OF_KIND.items()}

    @property
    def add_step(self) -> Callable[[Step], None]:
        """Adds a step. It looks nothing up: when it is called, the training has driven everything from the caches."""
        return self._adders[STEP]

    def add(self, kind: str, *values: int) -> None:
        """Add a record.

        Args:
            kind: Its kind.
            values: Three integers of 64 bits.
        """
        if self._integers is not None:
            self._adders[kind]((kind, *values))

    def add_marker(self, start_ns: int, name: str) -> None:
        """Add a range of the program that is open, with the beginning of its name."""
        text = name.encode("utf-8", "replace")[:_LONGEST_NAME]
        for start in range(0, len(text) or 1, _TEXT.size):
            part = text[start : start + _TEXT.size].ljust(_TEXT.size, b"\0")
            self.add(_NAME if start else _MARKER, start_ns, *_TEXT.unpack(part))

    def content(self) -> bytes:
        """Return all records; empty if this system has none."""
        return b"" if self._integers is None else _without_empty_slots(self._integers.tobytes())

    def close(self) -> None:
        """Give the memory back, once the code that adds steps has dropped `add_step`; later records are ignored."""
        self._integers = None
        self._adders.clear()
        if self.descriptor is not None:
            self.descriptor = None
            self._finalizer()


def _adder(integers: memoryview | None, numbers: Iterator[int], kind: int) -> Callable[[Sequence[Any]], None]:
    """Return a function that adds the second to fourth item of what it gets as a record, or without memory, nothing."""
    if integers is None:
        return lambda _: None
    next_number, salt = numbers.__next__, _SALT

    def add(record: Sequence[Any]) -> None:
        number = next_number()
        at = number % SLOTS * 5
        number_and_kind = number << 4 | kind
        first, second, third = record[1], record[2], record[3]
        integers[at + 1] = number_and_kind
        integers[at + 2] = first
        integers[at + 3] = second
        integers[at + 4] = third
        integers[at] = salt ^ number_and_kind ^ first ^ second ^ third

    return add


def content_of(descriptor: int) -> bytes:
    """Return all records of another process's ring.

    Raises:
        OSError: It isn't one.
    """
    return _without_empty_slots(os.pread(descriptor, BYTES, 0))


def _without_empty_slots(content: bytes) -> bytes:
    """Return the content up to the last slot that was used, if not all were."""
    return content[: -(-len(content.rstrip(b"\0")) // _RECORD_BYTES) * _RECORD_BYTES]


def ring_file(run: Path, rank: int) -> PathBelow:
    """The file of a rank's last minutes."""
    return PathBelow(run, ".work", f"rank{rank}.ring")


Values = tuple[int, int, int]


@dataclass(frozen=True)
class LastMinutes:
    """The last steps and samples of a rank, in order.

    Args:
        steps: Number, start and end in Unix ns of each.
        memory: Unix ns, bytes of the process and available bytes of the machine, of each sample.
        processor: Unix ns, ns that the process has used, and millionths of the machine that were busy, of each sample.
        allocator: Unix ns, and bytes of the device that torch's allocator has given away, and reserved.
        power: Unix ns, milliwatts and thousandths of a degree Celsius of the device.
        clock: Unix ns, MHz of the device, and 1 if it is throttled.
        disk: Unix ns, and bytes that the machine's disks have read and written.
        network: Unix ns, and bytes that the machine's interfaces have received and sent.
        markers: Of each open range at each sample: when it began and when it was seen, in Unix ns, and its name.
        usual_ns: The median duration of the steps; None without one.
    """

    steps: tuple[Values, ...] = ()
    memory: tuple[Values, ...] = ()
    processor: tuple[Values, ...] = ()
    allocator: tuple[Values, ...] = ()
    power: tuple[Values, ...] = ()
    clock: tuple[Values, ...] = ()
    disk: tuple[Values, ...] = ()
    network: tuple[Values, ...] = ()
    markers: tuple[tuple[int, int, str], ...] = ()
    usual_ns: float | None = None


def minutes_of_steps(steps: tuple[Values, ...]) -> LastMinutes:
    """Return minutes with these steps and without samples."""
    return LastMinutes(steps, usual_ns=_usual_ns(steps))


def _usual_ns(steps: tuple[Values, ...]) -> float | None:
    return statistics.median(max(0, end_ns - start_ns) for _, start_ns, end_ns in steps) if steps else None


def last_minutes(run: Path, rank: int) -> LastMinutes | None:
    """Return the last minutes of a rank of a run; None if there is no file of them."""
    try:
        content = read_plain(ring_file(run, rank), BYTES)
    except OSError:
        return None
    in_order = sorted(records(content))
    by_kind: dict[int, list[Values]] = {_NUMBER_OF_KIND[kind]: [] for kind in (STEP, *_SAMPLES)}
    for _, kind, values in in_order:
        if kind in by_kind and min(values) >= 0:
            by_kind[kind].append(values)
    steps, memory, processor, allocator, power, clock, disk, network = map(tuple, by_kind.values())
    markers, usual_ns = tuple(_markers(in_order)), _usual_ns(steps)
    return LastMinutes(steps, memory, processor, allocator, power, clock, disk, network, markers, usual_ns)


def _markers(in_order: Iterable[tuple[int, int, Values]]) -> Iterator[tuple[int, int, str]]:
    """Yield begin, sample's time and name of each marker; names of several records are put together."""
    sampled_ns, marker = 0, None
    for _, kind, (ns, *rest) in in_order:
        if kind == _NUMBER_OF_KIND[_NAME] and marker is not None:
            marker = (*marker[:2], marker[2] + _TEXT.pack(*rest))
            continue
        if marker is not None:
            yield _marker(*marker)
        marker = (ns, sampled_ns, _TEXT.pack(*rest)) if kind == _NUMBER_OF_KIND[_MARKER] and ns >= 0 else None
        sampled_ns = ns if kind == _NUMBER_OF_KIND[MEMORY] else sampled_ns
    if marker is not None:
        yield _marker(*marker)


def _marker(start_ns: int, sampled_ns: int, name: bytes) -> tuple[int, int, str]:
    return start_ns, sampled_ns, name.rstrip(b"\0").decode("utf-8", "replace")


def records(content: bytes) -> Iterator[tuple[int, int, tuple[int, int, int]]]:
    """Yield number, kind and values of each whole record, in any order."""
    whole = content[: len(content) // _RECORD_BYTES * _RECORD_BYTES]
    for slot, (check, number_and_kind, first, second, third) in enumerate(_RECORD.iter_unpack(whole)):
        if check == _SALT ^ number_and_kind ^ first ^ second ^ third:
            number, kind = number_and_kind >> 4, number_and_kind & 15
            if number % SLOTS == slot:
                yield number, kind, (first, second, third)
