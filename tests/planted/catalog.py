"""All recordings of a seed: what is planted where, and what a fair expert would answer."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from planted import healthy as bases
from planted.bases import base
from planted.faults import FAULTS, FaultKind
from planted.gpu import CAUSES, WAITS, Cause, delay_in_python, efficient, hide_communication
from planted.healthy import healthy
from planted.labelled import labelled
from planted.recording import Recording
from planted.replay import DEVICE, ROWS, Program, repeat, simulate, write
from planted.runs import recordings
from planted.sketch import Sketch, calibrate, duration_ns, faster_host, insert, spots, squeeze, without_waits

CAUSES_BY_ID = {cause.id: cause for cause in CAUSES}
PAIRS = ("data_loading", "pageable_copies", "exposed_communication", "float_matmuls", "eager_attention", "allocation")
"""Causes that don't hide one another."""
NOTHING = frozenset({"nothing_to_fix"})
IDLE = frozenset({"host_bound", "launch_bound", "synchronizing", "repeated_gap"})


def catalog(seed: int) -> list[Recording]:
    """All recordings; making them is what takes time."""
    return [*_causes(), *_others(), *_healthy(), *_faults(), *_cut(), *labelled(), *recordings(seed)]


def _causes(per_cause: int = 5) -> Iterator[Recording]:
    for cause in CAUSES:
        for number in range(per_cause):
            yield Recording(
                f"{cause.id}.{number}",
                cause.id,
                partial(_planted, cause, None),
                cause.accepted,
                also=partial(_planted_also, cause) if cause.accepted & IDLE else None,
                evidence=cause.evidence,
            )
        if cause.is_scaled:
            yield Recording(
                f"{cause.id}.negligible", cause.id, partial(_planted, cause, 0.005), NOTHING, may_abstain=True
            )


def _others(count: int = 6) -> Iterator[Recording]:
    """Causes that aren't one plant in each step."""
    for number in range(count):
        first, second = (CAUSES_BY_ID[PAIRS[(number + turn) % len(PAIRS)]] for turn in (0, 1 + number % 3))
        make = partial(_two, first, second)
        yield Recording(f"larger_of_two.{number}", "larger_of_two", make, second.accepted)
        yield Recording(f"cold_first_step.{number}", "cold_first_step", _cold, frozenset({"warm_up", "slow_launch"}))
    for number in range(3):
        yield Recording(f"owlv2.{number}", "eager_attention_owlv2", _owlv2, frozenset({"unfused_attention"}))


def _two(smaller: Cause, larger: Cause, rng: np.random.Generator, path: Path) -> Path:
    """Two causes, one of which costs more than twice as much."""
    program = healthy(_base(rng, is_nvidia=True), rng, 0.96, reads=True)
    for cause, share in ((smaller, float(rng.uniform(0.1, 0.15))), (larger, float(rng.uniform(0.4, 0.55)))):
        seed = int(rng.integers(2**32))
        program = calibrate(program, partial(_plant, cause, program, seed), share)
    return _write(program, rng, path)


def _plant(cause: Cause, program: Program, seed: int, amount: int) -> Program:
    return cause.plant(program, amount, np.random.default_rng(seed))


def _cold(rng: np.random.Generator, path: Path) -> Path:
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
    return path


def _owlv2(rng: np.random.Generator, path: Path) -> Path:
    """A model whose attention really is eager, on a warm host."""
    program = squeeze(base("owlv2_h100"), bases.PAUSE_NS)
    return _write(faster_host(program, float(rng.uniform(0.6, 0.9))), rng, path)


def _base(rng: np.random.Generator, *, is_nvidia: bool = False) -> str:
    """Mostly a small base: large ones take seconds to make."""
    names = bases.SMALL if rng.random() < 0.9 else bases.BASES
    names = tuple(name for name in names if not is_nvidia or "mi300" not in name)
    return names[int(rng.integers(len(names)))]


def _planted(cause: Cause, share: float | None, rng: np.random.Generator, path: Path) -> Path:
    return _write(_planted_program(cause, share, rng), rng, path)


def _planted_program(cause: Cause, share: float | None, rng: np.random.Generator) -> Program:
    # Beside a cause that is negligible all other idle time must be negligible, too: under 3 % of the step.
    busy = (0.94, 0.98) if share is None else (0.975, 0.99)
    while True:
        program = healthy(_base(rng, is_nvidia=cause.is_nvidia), rng, float(rng.uniform(*busy)), reads=cause.reads)
        size = float(rng.uniform(*cause.shares)) if share is None else share
        if not cause.is_scaled:
            return cause.plant(program, round(1000 * size), rng)
        seed = int(rng.integers(2**32))
        planted = calibrate(program, partial(_plant, cause, program, seed), size)
        # A host without a lead restarts so slowly behind a read that even an empty one isn't negligible.
        if share is None or duration_ns(planted) <= (1 + share + 0.02) * duration_ns(program):
            return planted


def _planted_also(cause: Cause, rng: np.random.Generator) -> frozenset[str]:
    return _right_too(_planted_program(cause, None, rng))


def _right_too(program: Program) -> frozenset[str]:
    """Synchronizing, if without the program's waits for the device most of its idle time would be gone.

    A pause behind a call that waits costs time for two reasons: the host pauses, and it has no work queued for that
    time. Without either the device would stay busy.
    """
    whole = duration_ns(program)
    saved = whole - duration_ns(without_waits(program))
    return frozenset({"synchronizing"}) if saved > (1 - bases.busy_share(program)) * whole / 2 else frozenset()


def _write(
    program: Program, rng: np.random.Generator, path: Path, fault: FaultKind | None = None, size: float = 0
) -> Path:
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
    return path


def _healthy(per_base: int = 4) -> Iterator[Recording]:
    for name in bases.BASES:
        for number in range(per_base):
            yield Recording(f"healthy.{name}.{number}", "healthy", partial(_plain, name), NOTHING, may_abstain=True)
    for number in range(8):
        yield Recording(f"hidden_communication.{number}", "hidden_communication", _hidden, NOTHING)
        yield Recording(f"efficient.{number}", "efficient", _efficient, NOTHING, may_abstain=True)


def _plain(name: str, rng: np.random.Generator, path: Path) -> Path:
    return _write(healthy(name, rng, float(rng.uniform(0.95, 0.99))), rng, path)


def _efficient(rng: np.random.Generator, path: Path) -> Path:
    program = healthy(_base(rng, is_nvidia=True), rng, 0.96)
    chance = int(rng.integers(2**32))
    share = float(rng.uniform(0.4, 0.7))
    return _write(
        calibrate(program, lambda amount: efficient(program, amount, np.random.default_rng(chance)), share), rng, path
    )


def _hidden(rng: np.random.Generator, path: Path) -> Path:
    program = healthy(_base(rng, is_nvidia=True), rng, 0.96)
    return _write(hide_communication(program, int(0.8 * program.busy_ns()), rng), rng, path)


def _faults(decisive: int = 6, negligible: int = 2) -> Iterator[Recording]:
    for kind in FAULTS:
        truth = NOTHING if kind.of == "healthy" else frozenset({*WAITS, "repeated_gap"})
        also = partial(_faulty_also, kind) if kind.of == "waits" else None
        for number in range(decisive):
            yield Recording(
                f"{kind.id}.{number}",
                kind.id,
                partial(_faulty, kind.decisive, kind),
                frozenset() if kind.must_abstain else truth,
                must_abstain=kind.must_abstain,
                may_abstain=True,
                clean=partial(_faulty, None, kind),
                also=None if kind.must_abstain else also,
            )
        for number in range(negligible if kind.negligible else 0):
            make = partial(_faulty, kind.negligible, kind)
            yield Recording(f"{kind.id}.negligible.{number}", kind.id, make, truth, also=also)


def _faulty(sizes: tuple[float, float] | None, kind: FaultKind, rng: np.random.Generator, path: Path) -> Path:
    program = _without_fault(kind, rng)
    size = float(rng.uniform(*sizes)) if sizes else 0.0
    return _write(program, rng, path, kind if sizes else None, size)


def _without_fault(kind: FaultKind, rng: np.random.Generator) -> Program:
    program = healthy(_base(rng), rng, 0.96, reads=True)
    if kind.of != "waits":
        return program
    chance = int(rng.integers(2**32))
    return calibrate(program, lambda amount: delay_in_python(program, amount, np.random.default_rng(chance)), 0.5)


def _faulty_also(kind: FaultKind, rng: np.random.Generator) -> frozenset[str]:
    return _right_too(_without_fault(kind, rng))


def _cut(count: int = 6) -> Iterator[Recording]:
    """Recordings of work that isn't all there, though every row that is there is right."""
    for number in range(count):
        yield Recording(f"cut_window.{number}", "cut_window", _cut_window, NOTHING, may_abstain=True)
        yield Recording(
            f"unrecorded_work.{number}",
            "unrecorded_work",
            _unrecorded,
            frozenset(),
            must_abstain=True,
            may_abstain=True,
        )


def _cut_window(rng: np.random.Generator, path: Path) -> Path:
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
    return path


def _unrecorded(rng: np.random.Generator, path: Path) -> Path:
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
    return _write(insert(program, [sketch]), rng, path)
