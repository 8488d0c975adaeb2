"""Kinds of cases for `blind.judge`: what is planted in real recordings, and what an answer must name."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from random import Random

import numpy as np

from blind.cases import HEALTHY, KINDS, UNKNOWN
from blind.recording import without
from planted import healthy as bases
from planted.bases import base
from planted.faults import FAULTS, FaultKind
from planted.gpu import CAUSES, Cause, delay_in_python, efficient, hide_communication
from planted.healthy import healthy
from planted.replay import DEVICE, ROWS, Program, repeat, simulate, write
from planted.sketch import (
    PAUSE_NS,
    Sketch,
    calibrate,
    duration_ns,
    faster_host,
    insert,
    lost_share,
    spots,
    squeeze,
    without_waits,
)

CAUSES_BY_ID = {cause.id: cause for cause in CAUSES}
PAIRS = ("data_loading", "pageable_copies", "exposed_communication", "float_matmuls", "eager_attention", "allocation")
"""Causes that don't hide one another."""
NEGLIGIBLE = 0.005  # of the step

Make = Callable[[np.random.Generator, Path], None]


@dataclass
class Planted:
    """A recording whose cause is known, as `blind.cases.Case` has them.

    `make` writes it; `saving` works out which share of its step it would save without the cause. Both draw the same from
    the same chance.
    """

    cause: str
    chance: int
    make: Make
    truth: str
    saving: Callable[[np.random.Generator], float] | None = None
    rest: tuple[str, ...] = ()
    title: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    wrong_remedies: tuple[str, ...] = ()
    kind: str = ""

    @cached_property
    def saving_frac(self) -> float:
        """Which share of its step it would save without the cause; 0 if that isn't known."""
        return self.saving(np.random.default_rng(self.chance)) if self.saving else 0.0

    def record(self, folder: Path, lacks: Sequence[str] = ()) -> Path:
        """Write its recording. `lacks`: `steps`, `shapes`."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "rank0.1.pt.trace.json"
        self.make(np.random.default_rng(self.chance), path)
        for part in lacks:
            path.write_text(json.dumps(without(json.loads(path.read_text("utf-8")), part)), "utf-8")
        return path


Draw = Callable[[Random], Planted]
NAMES: set[str] = set()
"""Of these kinds, among all."""


def _named(name: str) -> Callable[[Draw], Draw]:
    """Register a kind among those of simulated jobs."""

    def register(draw: Draw) -> Draw:
        NAMES.add(f"planted_{name}")
        KINDS[f"planted_{name}"] = draw
        return draw

    return register


def _of_cause(cause: Cause, chance: Random) -> Planted:
    saving = partial(_saving, cause) if cause.is_scaled else None
    truth = f"planted: {cause.id.replace('_', ' ')}"
    make = partial(_planted, cause, None)
    return Planted(cause.cause, chance.getrandbits(32), make, truth, saving, cause.rest)


for _cause in CAUSES:
    _named(_cause.id)(partial(_of_cause, _cause))


@_named("negligible_cause")
def _negligible(chance: Random) -> Planted:
    cause = chance.choice([cause for cause in CAUSES if cause.is_scaled])
    truth = f"healthy: {cause.id} takes next to nothing"
    return Planted(HEALTHY, chance.getrandbits(32), partial(_planted, cause, NEGLIGIBLE), truth)


@_named("larger_of_two")
def _larger_of_two(chance: Random) -> Planted:
    """Two causes, one of which costs more than twice as much."""
    first, second = (CAUSES_BY_ID[name] for name in chance.sample(PAIRS, 2))
    truth = f"{second.id} costs more than twice as much as {first.id}"
    return Planted(second.cause, chance.getrandbits(32), partial(_two, first, second), truth, rest=second.rest)


@_named("cold_first_step")
def _cold_first_step(chance: Random) -> Planted:
    return Planted("set_up", chance.getrandbits(32), _cold, "the first step loads modules before its launches")


@_named("owlv2")
def _eager_model(chance: Random) -> Planted:
    return Planted("attention", chance.getrandbits(32), _owlv2, "a model whose attention is eager, on a warm host")


@_named("healthy")
def _healthy(chance: Random) -> Planted:
    name = chance.choice(bases.BASES)
    return Planted(HEALTHY, chance.getrandbits(32), partial(_plain, name), f"healthy: {name}")


@_named("hidden_communication")
def _hidden_communication(chance: Random) -> Planted:
    return Planted(HEALTHY, chance.getrandbits(32), _hidden, "healthy: computation hides communication")


@_named("efficient")
def _efficient_work(chance: Random) -> Planted:
    return Planted(HEALTHY, chance.getrandbits(32), _efficient, "healthy: operators near the roof")


@_named("cut_window")
def _cut(chance: Random) -> Planted:
    truth = "healthy: the device is still busy with what was launched before"
    return Planted(HEALTHY, chance.getrandbits(32), _cut_window, truth)


@_named("unrecorded_work")
def _work_that_is_not_shown(chance: Random) -> Planted:
    truth = "the host waits while the device does what isn't recorded"
    return Planted(UNKNOWN, chance.getrandbits(32), _unrecorded, truth)


def _of_fault(kind: FaultKind, chance: Random) -> Planted:
    truth = f"{kind.apply.__doc__}".partition("\n")[0]
    cause = UNKNOWN if kind.must_abstain else kind.cause
    return Planted(cause, chance.getrandbits(32), partial(_faulty, kind.decisive, kind), truth)


for _fault in FAULTS:
    _named(_fault.id)(partial(_of_fault, _fault))


@_named("negligible_fault")
def _negligible_fault(chance: Random) -> Planted:
    kind, sizes = chance.choice([(kind, kind.negligible) for kind in FAULTS if kind.negligible])
    truth = f"{kind.id} of next to nothing: {kind.cause} all the same"
    return Planted(kind.cause, chance.getrandbits(32), partial(_faulty, sizes, kind), truth)


def _base(rng: np.random.Generator, *, is_nvidia: bool = False) -> str:
    """Mostly a small base: large ones take seconds to make."""
    names = bases.SMALL if rng.random() < 0.9 else bases.BASES
    names = tuple(name for name in names if not is_nvidia or "mi300" not in name)
    return names[int(rng.integers(len(names)))]


def _plant(cause: Cause, program: Program, seed: int, amount: int) -> Program:
    return cause.plant(program, amount, np.random.default_rng(seed))


def _planted(cause: Cause, share: float | None, rng: np.random.Generator, path: Path) -> None:
    _write(_programs(cause, share, rng)[1], rng, path)


def _programs(cause: Cause, share: float | None, rng: np.random.Generator) -> tuple[Program, Program]:
    """A program, and the same with the cause."""
    # Where the cause is negligible, all other idle time must be negligible, too: under 3 % of the step.
    busy = (0.94, 0.98) if share is None else (0.975, 0.99)
    while True:
        program = healthy(_base(rng, is_nvidia=cause.is_nvidia), rng, float(rng.uniform(*busy)), reads=cause.reads)
        size = float(rng.uniform(*cause.shares)) if share is None else share
        if not cause.is_scaled:
            return program, cause.plant(program, round(1000 * size), rng)
        seed = int(rng.integers(2**32))
        planted = calibrate(program, partial(_plant, cause, program, seed), size)
        # A host without a lead restarts so slowly behind a read that even an empty one isn't negligible.
        if share is None or duration_ns(planted) <= (1 + share + 0.02) * duration_ns(program):
            return program, planted


def _saving(cause: Cause, rng: np.random.Generator) -> float:
    program, planted = _programs(cause, None, rng)
    return lost_share(without_waits(planted) if cause.stretches else program, planted)


def _two(smaller: Cause, larger: Cause, rng: np.random.Generator, path: Path) -> None:
    """Two causes, one of which costs more than twice as much."""
    program = healthy(_base(rng, is_nvidia=True), rng, 0.96, reads=True)
    for cause, share in ((smaller, float(rng.uniform(0.1, 0.15))), (larger, float(rng.uniform(0.4, 0.55)))):
        seed = int(rng.integers(2**32))
        program = calibrate(program, partial(_plant, cause, program, seed), share)
    _write(program, rng, path)


def _cold(rng: np.random.Generator, path: Path) -> None:
    """The first step of the window loads modules before its launches; it takes as long as all others together."""
    program = healthy(_base(rng), rng, 0.96, reads=True)
    while len(spots(program)) < 6:  # a single place is before the step
        program = healthy(_base(rng), rng, 0.96, reads=True)
    repeated = repeat(program, 5, rng)
    places = [place for place in spots(repeated) if 0 < place[0] < program.length // 2]
    chosen = dict.fromkeys(places[int(at)] for at in np.linspace(0, len(places) - 1, 6))
    length = int(duration_ns(program, 5) * float(rng.uniform(0.8, 1.5)) / len(chosen))
    sketches = [Sketch(*place) for place in chosen]
    for sketch in sketches:
        sketch.call("cuModuleLoadData", length)
    last = Sketch(repeated.length, program.main)
    last.call("cudaDeviceSynchronize", 20_000, (DEVICE, 0))
    write(path, simulate(insert(repeated, [*sketches, last])).events(), program.head)


def _owlv2(rng: np.random.Generator, path: Path) -> None:
    """A model whose attention really is eager, on a warm host."""
    program = squeeze(base("owlv2_h100"), PAUSE_NS)
    _write(faster_host(program, float(rng.uniform(0.6, 0.9))), rng, path)


def _write(
    program: Program, rng: np.random.Generator, path: Path, fault: FaultKind | None = None, size: float = 0
) -> None:
    """A recording of a few steps, at whose end the profiler waits for the device."""
    steps = int(rng.integers(3, 7)) if len(program.host) < 5000 else 3
    repeated = repeat(program, steps, rng, float(rng.uniform(0.005, 0.03)))
    last = Sketch(repeated.length, program.main)
    last.call("cudaDeviceSynchronize", 20_000, (DEVICE, 0))
    replay = simulate(insert(repeated, [last]))
    events = replay.events()
    if fault:
        events = fault.apply(events, size, rng)
    write(path, events, program.head)


def _plain(name: str, rng: np.random.Generator, path: Path) -> None:
    _write(healthy(name, rng, float(rng.uniform(0.95, 0.99))), rng, path)


def _efficient(rng: np.random.Generator, path: Path) -> None:
    program = healthy(_base(rng, is_nvidia=True), rng, 0.96)
    chance = int(rng.integers(2**32))
    share = float(rng.uniform(0.4, 0.7))
    _write(
        calibrate(program, lambda amount: efficient(program, amount, np.random.default_rng(chance)), share), rng, path
    )


def _hidden(rng: np.random.Generator, path: Path) -> None:
    program = healthy(_base(rng, is_nvidia=True), rng, 0.96)
    _write(hide_communication(program, int(0.8 * program.busy_ns()), rng), rng, path)


def _faulty(sizes: tuple[float, float] | None, kind: FaultKind, rng: np.random.Generator, path: Path) -> None:
    program = _without_fault(kind, rng)
    size = float(rng.uniform(*sizes)) if sizes else 0.0
    _write(program, rng, path, kind if sizes else None, size)


def _without_fault(kind: FaultKind, rng: np.random.Generator) -> Program:
    program = healthy(_base(rng), rng, 0.96, reads=True)
    if kind.of != "waits":
        return program
    chance = int(rng.integers(2**32))
    return calibrate(program, lambda amount: delay_in_python(program, amount, np.random.default_rng(chance)), 0.5)


def _cut_window(rng: np.random.Generator, path: Path) -> None:
    """The recording begins while the device is still busy with what was launched before.

    The host runs far ahead, so the rows of all that is launched in the window begin late in it.
    """
    name = ("bert_mi300", "dlrm_v100", "vit_h100", "triton_mi300")[int(rng.integers(4))]
    program = healthy(name, rng, 0.96, reads=False)
    program = without_waits(program)
    factor = float(rng.uniform(4.0, 8.0)) * program.length / program.busy_ns()
    program.dur = (program.dur * max(1.0, factor)).astype(np.int64)
    replay = simulate(repeat(program, 4, rng))
    marks = [at for at, info in enumerate(replay.program.host) if info.name.startswith("ProfilerStep")]
    low = int(replay.begin[marks[1]])
    last = Sketch(replay.program.length, program.main)
    last.call("cudaDeviceSynchronize", 20_000, (DEVICE, 0))
    events = simulate(insert(replay.program, [last])).events()
    first = min(e["ts"] for e in events if e["name"] == replay.program.host[marks[0]].name)
    launched = {e["args"]["correlation"] for e in events if e["cat"] not in ROWS and e["ts"] >= first + low / 1000 and "correlation" in e["args"]}  # fmt: skip
    events = [e for e in events if (e["args"].get("correlation") in launched if e["cat"] in ROWS else e["ts"] >= first + low / 1000)]  # fmt: skip
    write(path, events, program.head)


def _unrecorded(rng: np.random.Generator, path: Path) -> None:
    """The host sits in a synchronizing call while the device does what this recording doesn't show."""
    program = healthy(_base(rng), rng, 0.96, reads=False)
    length = int(program.busy_ns() * float(rng.uniform(0.6, 2.0)))
    sketch = Sketch(program.length, program.main)
    sketch.call("cudaStreamSynchronize", 8_000, (DEVICE, 0))
    sketch.call("cudaGraphLaunch", 8_000)
    number = sketch.call(
        ("cudaStreamSynchronize", "cudaMemcpyAsync", "cudaDeviceSynchronize")[int(rng.integers(3))], length
    )
    sketch.waits.pop(number, None)
    _write(insert(program, [sketch]), rng, path)
