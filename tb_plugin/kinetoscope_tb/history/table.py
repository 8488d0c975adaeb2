"""A history as a table: a row per run."""

from __future__ import annotations

import polars as pl

from ..names.text import signed_percent
from ..table import COUNT, DURATION, FRACTION, ID, TEXT, Column, Table
from .recorded_run import COLLECTING, COMPUTATION, COPIES, IDLE, LOADING, RecordedRun
from .series import Series
from .words import culprits, time_text


class HistoryRows(Table):
    """The runs of a logdir, in order of time."""

    key, weight = ("run",), "step_ns"

    nth = Column(ID, "Number of the run, from 1.")
    run = Column(TEXT, "Its name.")
    started = Column(TEXT, "When its first recording began, in UTC.")
    step_ns = Column(DURATION, "The average complete step, over the ranks: the sum of the parts below.", adds_up=False)
    change = Column(TEXT, "At the first run of a new level: by how much the step is longer than at the level before.")
    utilization_frac = Column(FRACTION, "Share of the step in which devices compute, communicate or copy.")
    computation_ns = Column(DURATION, "Computation.", adds_up=False)
    exposed_communication_ns = Column(DURATION, "Communication while nothing computes.", adds_up=False)
    exposed_copies_ns = Column(DURATION, "Copies while nothing computes or communicates.", adds_up=False)
    data_loading_ns = Column(DURATION, "Idle time while data is loaded.", adds_up=False)
    garbage_collection_ns = Column(DURATION, "Other idle time while Python collects garbage.", adds_up=False)
    other_idle_ns = Column(DURATION, "The rest of the idle time.", adds_up=False)
    culprits = Column(TEXT, "What a step waits for longest: kinds of communication, copies, data, garbage collection.")
    launches = Column(COUNT, "Kernels that compute in a step; without a device operators.")
    torch = Column(TEXT, "Version of torch.")
    cuda = Column(TEXT, "Version of CUDA or ROCm.")
    driver = Column(TEXT, "The version of CUDA or ROCm that the driver supports.")
    device = Column(TEXT, "Names of the devices that worked.")
    ranks = Column(COUNT, "Number of ranks of the job.")
    host = Column(TEXT, "Names of the machines.")
    not_compared = Column(TEXT, "Why the run isn't compared with the others.")


def history_rows(series: Series) -> pl.DataFrame:
    """`HistoryRows`: all runs, those that aren't compared too."""
    growth = {
        after.first: signed_percent(after.step_ns / before.step_ns - 1)
        for before, after in zip(series.levels, series.levels[1:], strict=False)
    }
    rows = [
        {
            "nth": index + 1,
            **_row(run),
            "change": growth.get(index),
            "not_compared": series.reasons[index] or None,
        }
        for index, run in enumerate(series.runs)
    ]
    return HistoryRows.of(pl.DataFrame(rows, schema=HistoryRows.schema()))


def _row(run: RecordedRun) -> dict[str, object]:
    environment = run.environment
    texts = {
        "torch": environment.torch,
        "cuda": environment.cuda,
        "driver": environment.driver,
        "device": environment.devices,
    }
    texts |= {"started": time_text(run.started_ns), "culprits": culprits(run), "host": environment.hosts}
    row = {name: text or None for name, text in texts.items()}
    return {"run": run.name, "ranks": int(environment.ranks) if environment.ranks else None, **row, **_times(run)}


def _times(run: RecordedRun) -> dict[str, object]:
    """The step and its parts; nothing of a run without a complete step."""
    if not run.step_ns:
        return {}
    idle = sum(run.parts[name] for name in (LOADING, COLLECTING, IDLE))
    return {
        "step_ns": run.step_ns,
        "utilization_frac": 1 - idle / run.step_ns if run.uses_device else None,
        "computation_ns": run.parts[COMPUTATION],
        "exposed_communication_ns": sum(run.communication.values()),
        "exposed_copies_ns": run.parts[COPIES],
        "data_loading_ns": run.parts[LOADING],
        "garbage_collection_ns": run.parts[COLLECTING],
        "other_idle_ns": run.parts[IDLE],
        "launches": run.launches,
    }
