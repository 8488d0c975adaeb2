"""Cases: a job with a cause, the same job without it, and what an answer must name. Kinds draw them by seed."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from . import devices as dv
from .machine import Pace, Process
from .recording import document, without, write
from .training import Training, simulate, step_ns

HEALTHY, UNKNOWN = "healthy", "unknown"  # besides the causes of `words.CAUSES`


class Known(Protocol):
    """What is known of a recording, simulated or planted.

    `cause`: of `words.CAUSES`, or one of the above. `title` and `rest`: patterns that a right answer has in its sentence,
    and anywhere; `never`: what its sentence must not have; `wrong_remedies`: what it must not advise, as it is there
    already. `truth`: in a sentence. `saving_frac`: the share of its step that it would save without the cause, or 0.
    """

    cause: str
    title: tuple[str, ...]
    rest: tuple[str, ...]
    never: tuple[str, ...]
    wrong_remedies: tuple[str, ...]
    truth: str
    kind: str

    @property
    def saving_frac(self) -> float: ...

    def record(self, folder: Path, lacks: Sequence[str] = ()) -> Path:
        """Write its recording: a file, or a folder with a file per rank. `lacks`: `steps`, `shapes`."""


Damage = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass
class Case:
    """A job whose cause is known.

    `mended`: the job without the cause; its step says what the cause costs. `damage` changes the recording.
    """

    cause: str
    job: Training
    mended: Training | None = None
    title: tuple[str, ...] = ()
    rest: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    wrong_remedies: tuple[str, ...] = ()
    damage: Damage | None = None
    truth: str = ""
    kind: str = ""

    @cached_property
    def processes(self) -> list[Process]:
        """What the job did."""
        return simulate(self.job)

    @cached_property
    def step_ns(self) -> float:
        """Its mean step."""
        return step_ns(self.processes, self.job.steps)

    @cached_property
    def saving_frac(self) -> float:
        """Which share of its step the job would save without the cause: both are simulated."""
        if self.mended is None:
            return 0.0
        return 1 - step_ns(simulate(self.mended), self.mended.steps) / self.step_ns

    def record(self, folder: Path, lacks: Sequence[str] = ()) -> Path:
        """Write its recording: a file, or a folder with a file per rank. `lacks`: `steps`, `shapes`."""
        for process in self.processes:
            contents = document(
                process, self.job.device, self.job.devices, self.job.ranks, has_stacks=self.job.has_stacks
            )
            for part in lacks:
                contents = without(contents, part)
            path = write(self.damage(contents) if self.damage else contents, folder, process.rank)
        return folder if self.job.ranks > 1 else path


Kind = Callable[[random.Random], Known]
KINDS: dict[str, Kind] = {}


def kind(function: Kind) -> Kind:
    """Register a kind under the name of its function."""
    assert function.__name__ not in KINDS
    KINDS[function.__name__] = function
    return function


def drawn(name: str, seed: int) -> Known:
    """The case of a kind that a seed draws."""
    case = KINDS[name](random.Random(f"{name} {seed}"))
    case.kind = name
    return case


def large(chance: random.Random, **fields: Any) -> Training:
    """A training whose device is always busy: kernels are long, and the host is ahead."""
    defaults = {
        "device": chance.choice([dv.H100, dv.A100, dv.L40S]),
        "steps": chance.randint(10, 18),
        "first_step": chance.randint(2, 900),
        "layers": chance.randint(2, 4),
        "tokens": chance.choice([4096, 8192]),
        "hidden": chance.choice([2048, 3072, 4096]),
        "roof_frac": chance.uniform(0.82, 0.92),
        "pace": pace(chance),
        "noise": chance.uniform(0.001, 0.012),
        "seed": chance.randrange(1 << 30),
    }
    return Training(**{**defaults, **fields})


def small(chance: random.Random, **fields: Any) -> Training:
    """A training whose kernels are just longer than their launches."""
    sizes = {"device": chance.choice([dv.H100, dv.A100]), "tokens": 2048, "hidden": chance.choice([1536, 2048])}
    return large(chance, **{**sizes, **fields})


def pace(chance: random.Random) -> Pace:
    """A host: some are half as fast as others."""
    factor = chance.uniform(0.8, 1.6)
    return Pace(int(1_400 * factor), int(3_000 * factor), int(1_000 * factor))


def healthy_ns(job: Training) -> float:
    """The step of a job as it is, to choose the size of a cause by."""
    return step_ns(simulate(replace(job, steps=4)), 4)


def some_steps(chance: random.Random, job: Training, share: float) -> list[int]:
    """Some steps of a job, neither the first nor the last."""
    count = max(2, round(job.steps * share))
    return sorted(chance.sample(range(1, job.steps - 1), count))


def one_step(chance: random.Random, job: Training) -> int:
    """A step of a job, neither one of the first two nor the last."""
    return chance.randrange(2, job.steps - 1)


def step_name(job: Training, step: int) -> str:
    """A pattern for the number of a step."""
    return rf"(?<!\d){job.first_step + step}(?!\d)"


def place_name(frame: str) -> str:
    """A pattern for a Python function: its name, or its file and line."""
    file, line, function = re.fullmatch(r"(?:.*/)?([^/(]+)\((\d+)\): (.*)", frame).groups()  # type: ignore[union-attr]
    return rf"\b{function}\b|{re.escape(file)}\W{{1,2}}{line}\b"
