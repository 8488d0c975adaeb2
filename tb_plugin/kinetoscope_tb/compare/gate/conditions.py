"""What a machine was like while `kinetoscope gate record` made a recording: a small file in the recording's folder.

The file is as untrusted as a trace: what isn't as expected in it is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...errors import TraceError
from ...filesystem import stored_bytes

FILE_NAME = "gate-recording.json"
CONTENDED_FRAC, THROTTLED_FRAC = 0.1, 0.9
_MOST_BYTES, _LEVELS, _LARGEST = 1 << 16, 4, 1e15


@dataclass(frozen=True)
class Conditions:
    """The machine during one recording; None where it can't be read.

    Args:
        side: base or new.
        nth: Its number on its side, from 1.
        command: What was run.
        started_ns: When, in ns since 1970.
        wall_s: How long it ran.
        load: Runnable processes of the last minute when it began.
        others_frac: Share of all CPUs that other processes used meanwhile.
        cpu_mhz: Mean frequency of the CPUs meanwhile.
        gpu_mhz: Mean clock of the GPUs' multiprocessors meanwhile.
        gpu_limits: Why the GPUs ran below their clock, in NVML's words.
        cpu_limits: How often the CPUs lowered their clock for heat.
        environment: Host, CPU, Python and torch as far as they are values_by_name.
    """

    side: str
    nth: int
    command: str
    started_ns: int
    wall_s: float
    load: float | None = None
    others_frac: float | None = None
    cpu_mhz: float | None = None
    gpu_mhz: float | None = None
    gpu_limits: tuple[str, ...] = ()
    cpu_limits: int | None = None
    environment: Mapping[str, str] | None = None

    def text(self) -> str:
        """The content of the file."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False)


def parse_conditions(text: str | bytes) -> Conditions | None:
    """The conditions in a file's text; None if it holds none."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict):
        return None
    kinds = {"side": str, "nth": int, "command": str, "started_ns": int, "wall_s": float}
    if not all(_is(values.get(name), kind) for name, kind in kinds.items()):
        return None
    values_by_name: dict[str, Any] = {name: values[name] for name in kinds}
    for name in ("load", "others_frac", "cpu_mhz", "gpu_mhz", "cpu_limits"):
        values_by_name[name] = values.get(name) if _is(values.get(name), float) else None
    limits = values.get("gpu_limits")
    values_by_name["gpu_limits"] = (
        tuple(text for text in limits if isinstance(text, str)) if isinstance(limits, list) else ()
    )
    return Conditions(**values_by_name)


def _is(value: object, kind: type) -> bool:
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST
    return isinstance(value, kind) and not isinstance(value, bool)


def conditions_of(path: str) -> Conditions | None:
    """The conditions under which a trace was recorded; None if nobody noted them."""
    if "://" in path:
        return None
    folders = list(Path(path).parents)[:_LEVELS]
    return next((conditions for folder in folders if (conditions := conditions_in(folder)) is not None), None)


def conditions_in(folder: Path) -> Conditions | None:
    """The conditions that a folder's file notes; None if it has none that can be read."""
    try:
        return parse_conditions(stored_bytes(str(folder / FILE_NAME), 0, _MOST_BYTES))
    except TraceError:
        return None


def problems(recordings: Sequence[Conditions | None]) -> list[list[str]]:
    """What was wrong during each of the recordings, in words: other processes, lowered clocks."""
    typical = {
        name: _median([getattr(conditions, name) for conditions in recordings if conditions])
        for name in ("cpu_mhz", "gpu_mhz")
    }
    return [[] if conditions is None else _problems(conditions, typical) for conditions in recordings]


def _problems(conditions: Conditions, typical: Mapping[str, float | None]) -> list[str]:
    sentences = []
    if conditions.others_frac is not None and conditions.others_frac > CONTENDED_FRAC:
        sentences.append(f"contended, other processes used {100 * conditions.others_frac:.0f} % of the CPUs")
    if conditions.cpu_limits:
        sentences.append(f"throttled, the CPUs lowered their clock for heat {conditions.cpu_limits:.0f} times")
    if conditions.gpu_limits:
        sentences.append(f"throttled, the GPU ran below its clock: {', '.join(conditions.gpu_limits)[:200]}")
    for name, what in (("cpu_mhz", "CPUs"), ("gpu_mhz", "GPU")):
        clock, usual = getattr(conditions, name), typical[name]
        if clock and usual and clock < THROTTLED_FRAC * usual:
            sentences.append(f"throttled, the {what} ran at {clock:.0f} MHz instead of {usual:.0f}")
    return sentences


def _median(values: Sequence[float | None]) -> float | None:
    numbers = sorted(value for value in values if value is not None)
    return numbers[len(numbers) // 2] if numbers else None
