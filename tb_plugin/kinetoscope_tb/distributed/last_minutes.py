"""The last minutes of the ranks of a job on one clock: their steps, memory and processors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kinetoscope.output.ring import LastMinutes

_LAST_STEPS = 5
Sample = tuple[int, int, int]


@dataclass(frozen=True)
class MinutesRow:
    """The last minutes of a rank. Clocks of machines may differ by some milliseconds.

    Args:
        rank: The rank.
        last_step: The number of the last complete step.
        ended_ns: When that ended, in ns since 1970.
        usual_ns: The median duration of the steps.
        last_steps_ns: The durations of the last five steps, the newest at the end.
        memory_bytes: Of the process, in the last sample; None without one.
        grown_bytes: How much more that is than in the first sample.
        available_bytes: Of the machine's memory, in the last sample.
        cores: How many processors the process used on average between the last two samples; None without these.
        busy_share: Which share of the machine's processors was busy then.
        device_bytes: What torch's allocator had reserved on the device, in the last sample; None without one.
        power_w: What the device took then.
        temperature_c: How hot it was.
        clock_mhz: How fast its multiprocessors ran.
        is_throttled: Whether they were slowed down.
        disk_bytes_per_s: What the machine's disks read and wrote, between the last two samples.
        network_bytes_per_s: What its network interfaces received and sent.
        markers: The ranges of the program that were open in the last sample.
    """

    rank: int
    last_step: int
    ended_ns: int
    usual_ns: float
    last_steps_ns: tuple[int, ...]
    memory_bytes: int | None = None
    grown_bytes: int | None = None
    available_bytes: int | None = None
    cores: float | None = None
    busy_share: float | None = None
    device_bytes: int | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    clock_mhz: int | None = None
    is_throttled: bool | None = None
    disk_bytes_per_s: float | None = None
    network_bytes_per_s: float | None = None
    markers: tuple[str, ...] = ()


def minutes_rows(minutes: Mapping[int, LastMinutes]) -> list[MinutesRow]:
    """A row per rank that left its last minutes and completed a step."""
    return [_row(rank, last) for rank, last in sorted(minutes.items()) if last.steps]


def _row(rank: int, last: LastMinutes) -> MinutesRow:
    durations = [max(0, end_ns - start_ns) for _, start_ns, end_ns in last.steps[-_LAST_STEPS:]]
    number, _, ended_ns = last.steps[-1]
    memory = last.memory[-1] if last.memory else None
    return MinutesRow(
        rank,
        number,
        ended_ns,
        last.usual_ns or 0.0,
        tuple(durations),
        memory_bytes=memory[1] if memory else None,
        grown_bytes=memory[1] - last.memory[0][1] if memory else None,
        available_bytes=memory[2] if memory else None,
        cores=_cores(last.processor),
        busy_share=last.processor[-1][2] / 1e6 if len(last.processor) > 1 else None,
        device_bytes=last.allocator[-1][2] if last.allocator else None,
        power_w=last.power[-1][1] / 1e3 if last.power else None,
        temperature_c=last.power[-1][2] / 1e3 if last.power else None,
        clock_mhz=last.clock[-1][1] if last.clock else None,
        is_throttled=bool(last.clock[-1][2]) if last.clock else None,
        disk_bytes_per_s=_rate(last.disk),
        network_bytes_per_s=_rate(last.network),
        markers=open_markers(last),
    )


def _rate(samples: Sequence[Sample]) -> float | None:
    """Bytes per second in both directions, between the last two samples; None without these, or after a reset."""
    if len(samples) < 2 or samples[-1][0] <= samples[-2][0]:
        return None
    growth = sum(samples[-1][1:]) - sum(samples[-2][1:])
    return None if growth < 0 else growth * 1e9 / (samples[-1][0] - samples[-2][0])


def open_markers(last: LastMinutes) -> tuple[str, ...]:
    """The ranges of the program that were open in the last sample."""
    sampled_ns = last.memory[-1][0] if last.memory else 0
    return tuple(name for _, seen_ns, name in last.markers if seen_ns == sampled_ns)


def _cores(samples: Sequence[Sample]) -> float | None:
    """The processors that a process used on average between the last two samples."""
    if len(samples) < 2 or samples[-1][0] <= samples[-2][0]:
        return None
    return (samples[-1][1] - samples[-2][1]) / (samples[-1][0] - samples[-2][0])
