"""Serving on any number of ranks: iterations, borders, joins and totals of each are exact by construction."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import polars as pl
from hypothesis import given, settings

from kinetoscope_tb.api import list_recordings, open_profile
from support.graphs import kernels_of, truth
from support.serving import Serving, servings

few = settings(max_examples=12, deadline=None)


@given(servings())
@few
def test_each_rank_has_its_iterations_and_the_operators_of_its_own_captures(serving: Serving) -> None:
    with tempfile.TemporaryDirectory() as folder:
        serving.write(Path(folder) / "run")
        rows = list_recordings(folder).filter(~pl.col("run").str.ends_with("capture_traces"))
        workers = rows["worker"].to_list()
        assert workers == [f"tp{rank}_rank{rank}" for rank in range(serving.ranks)]
        for rank, worker in enumerate(workers):
            profile = open_profile(f"{folder}/run", None, worker, None)
            each = profile.view("iterations")
            known = [(one.phase, one.batch, serving.tokens(one)) for one in serving.iterations]
            assert each.select("phase", "batch", "tokens").rows() == known
            _holds_borders(serving, rank, each)
            _holds_operators(serving, rank, profile.view("operators_by_shape"))
            _holds_modules(serving, rank, profile.view("modules"))
            phases = profile.view("phases", of="all")
            whole = sum(each["total_ns"])
            assert phases.filter(pl.col("phase") != "outside")["total_ns"].sum() == whole
            kernels = [len(kernels_of(serving.work(rank, one))) for one in serving.iterations]
            assert each["device_events"].to_list() == kernels


def _holds_borders(serving: Serving, rank: int, each: pl.DataFrame) -> None:
    """Each iteration begins with its annotation, or when the work of the one before has ended."""
    events = serving.recording(rank).builder.events
    origin = min(event["ts"].ns for event in events)
    marks = [event for event in events if event["cat"] == "user_annotation"]
    device = iter([event for event in events if event["cat"] == "kernel"])
    end = 0
    for mark, one, row in zip(marks, serving.iterations, each.rows(named=True), strict=True):
        ran = [next(device) for _ in kernels_of(serving.work(rank, one))]
        begin, stop = mark["ts"].ns - origin, mark["ts"].ns + mark["dur"].ns - origin
        assert (row["host_ns"], row["start_ns"]) == (stop - begin, max(begin, end))
        end = max(stop, *(event["ts"].ns + event["dur"].ns - origin for event in ran))
        assert row["start_ns"] + row["total_ns"] - row["gap_ns"] == end


def _holds_operators(serving: Serving, rank: int, found: pl.DataFrame) -> None:
    """Calls and device time by operator and shapes are those of the captures, as often as they were replayed."""
    calls, times = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for one in serving.iterations:
        for operator in serving.work(rank, one):
            key = operator.name, f"[{list(operator.sizes)}]"
            calls[key] += 1
            times[key] += 1000 * len(operator.kernels)
    rows = found.select("name", "input_shapes", "calls", "device_self_ns").rows()
    assert {(name, shapes): (n, ns) for name, shapes, n, ns in rows} == {k: (calls[k], times[k]) for k in calls}


def _holds_modules(serving: Serving, rank: int, found: pl.DataFrame) -> None:
    """So is the device time of each module, and how it is known."""
    times, known = Counter[str](), dict[str, set[str]]()
    for one in serving.iterations:
        for _, _, path in truth(serving.work(rank, one)):
            for module in (path, path.split(" / ")[0]):
                times[module] += 1000
                known.setdefault(module, set()).add("capture" if one.phase == "decode" else "recorded")
    rows = found.select("path", "device_total_ns", "provenance").rows()
    expected = {(path, times[path], ", ".join(sorted(known[path], reverse=True))) for path in times}
    assert {row for row in rows if row[1]} == expected
