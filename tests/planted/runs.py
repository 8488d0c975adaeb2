"""Recordings that real processes or simulated ranks made: on the CPU, over gloo, and runs of many ranks."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from planted import cpu, gloo
from planted.generator import generator
from planted.recording import Recording
from support.simulated import Truth, simulated, write

RECORDED = "recorded"  # folder beside the recordings, into which `cpu` and `gloo` record
NO_STRAGGLER = frozenset({"no_straggler"})


def _recorded(name: str, rng: np.random.Generator, path: Path) -> Path:
    target = path.with_name(path.name + ".gz")
    shutil.copyfile(path.parent / RECORDED / name, target)
    return target


def _run_folder(name: str, rng: np.random.Generator, path: Path) -> Path:
    return path.parent / RECORDED / name


def _rank_of(name: str, rng: np.random.Generator, path: Path) -> Path:
    return next((path.parent / RECORDED / name).glob("rank0*.json*"))


def recordings(seed: int) -> Iterator[Recording]:
    """All of them; those of the CPU and of gloo are recorded before by `python -m planted.cpu` and `planted.gloo`."""
    for make, count in cpu.WORKLOADS:
        for number in range(count):
            name = f"{make.__name__}.{number}"
            cause, accepted, may_abstain = cpu.TRUTHS[make.__name__]
            yield Recording(
                f"{cause}.{number}", cause, partial(_recorded, f"{name}.json.gz"), accepted, may_abstain=may_abstain
            )
    for name in gloo.names():
        kind = name.split(".")[0]
        if kind == "communicating":
            rules = frozenset({"communication", "gloo"})
            yield Recording(f"gloo_{name}", "gloo_communicating", partial(_rank_of, name), rules)
            continue
        job = {make.__name__: make for make, _ in gloo.JOBS}[kind](generator(seed, name))
        rules = frozenset({"straggler"}) if kind == "late_rank" else NO_STRAGGLER
        evidence = (f"ank {job.late_rank}",) if kind == "late_rank" else ()
        yield Recording(
            f"gloo_{name}", f"gloo_{kind}", partial(_run_folder, name), rules, evidence=evidence, is_run=True
        )
    yield from _of_many_ranks(seed)


def _of_many_ranks(seed: int, late: int = 6, even: int = 6) -> Iterator[Recording]:
    """Runs of four to twelve simulated ranks with clocks of their own."""
    for number in range(late):
        name = f"many_ranks_late.{number}"
        rank = int(generator(seed, name).integers(4))
        make = partial(_simulated, rank, (0.1, 0.6))
        yield Recording(name, "many_ranks_late", make, frozenset({"straggler"}), evidence=(f"ank {rank}",), is_run=True)
    for number in range(even):
        make = partial(_simulated, 1, (0.0, 0.0005))
        yield Recording(f"many_ranks_even.{number}", "many_ranks_even", make, NO_STRAGGLER, is_run=True)


def _simulated(rank: int, share: tuple[float, float], rng: np.random.Generator, path: Path) -> Path:
    folder = path.with_name(path.name.split(".pt.")[0])
    compute_ns = int(rng.integers(5_000_000, 40_000_000))
    truth = Truth(
        ranks=int(rng.integers(4, 13)),
        steps=int(rng.integers(8, 16)),
        compute_ns=compute_ns,
        noise=float(rng.uniform(0.002, 0.02)),
        late={(rank, None): int(compute_ns * float(rng.uniform(*share)))},
        seed=int(rng.integers(2**31)),
    )
    write(simulated(truth), folder)
    return folder


def run_advice_rows(folder: Path) -> list[dict[str, object]]:
    """What is said of a run."""
    from kinetoscope_tb.api import open_profile

    return open_profile(str(folder), None, None, None).view("run_advice").to_dicts()
