"""Curves next to the traces: TensorBoard reads what the training did."""

import io
import json
import os
import shutil
from collections import deque
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from kinetoscope import Tracer, UsageError
from kinetoscope.job.rank_info import RankInfo
from kinetoscope.path_below import PathBelow
from kinetoscope.sampling import scalar_writer, scalars
from kinetoscope.sampling.scalar_writer import step_values, window_values, write
from kinetoscope.sampling.scalars import CurveSender, folder_problem
from support.waiting import wait_for

S = 10**9
SAMPLE = Path(__file__).parents[4] / "samples/single_process/transformer/rank0.6.pt.trace.json.gz"


def curves(folder):
    """Step and value of each point, by tag."""
    read = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    read.Reload()
    return {
        tag: [(e.step, round(float(e.tensor_proto.float_val[0]), 6)) for e in read.Tensors(tag)]
        if tag in read.Tags()["tensors"]
        else [(e.step, round(e.value, 6)) for e in read.Scalars(tag)]
        for tag in [*read.Tags()["tensors"], *read.Tags()["scalars"]]
    }


def notes(*lines):
    return io.BytesIO(b"".join(line.encode() + b"\n" for line in lines))


def test_a_step_has_a_throughput_only_where_the_program_counts():
    assert step_values(0.5, None, None) == {"steps/duration_s": 0.5}
    assert step_values(0.5, 32, 0) == {"steps/duration_s": 0.5, "steps/samples_per_s": 64.0}
    assert step_values(0.0, 32, 100) == {"steps/duration_s": 0.0}


def test_a_window_s_parts_are_those_of_the_overview():
    data = {"category": ["Kernel", "CPU Exec", "Step"], "mean_ns": [1_500_000, None, 2_000_000]}
    assert window_values({"data": data}) == {"windows/kernel_s": 0.0015, "windows/step_s": 0.002}
    assert window_values({"state": "missing"}) == {}


def test_steps_and_windows_become_points_of_a_run(tmp_path):
    trace = tmp_path / "run" / SAMPLE.name
    trace.parent.mkdir()
    shutil.copy(SAMPLE, trace)
    write(
        PathBelow(tmp_path / "run"),
        notes(
            json.dumps([["s", 0, 0, S, S // 2, 32, None], ["window", 2 * S, 6, str(trace)]]),
            "no notes",
            json.dumps([["s", 1, 2 * S, 3 * S, S // 4, 32, 64]]),
        ),
    )
    points_by_tag = curves(tmp_path / "run")
    assert points_by_tag["steps/duration_s"] == [(1, 0.5), (2, 0.25)]
    assert points_by_tag["steps/samples_per_s"] == [(1, 64.0), (2, 128.0)]
    assert points_by_tag["steps/tokens_per_s"] == [(2, 256.0)]
    parts = {tag: points for tag, points in points_by_tag.items() if tag.startswith("windows/")}
    ((step, length),) = parts.pop("windows/step_s")
    assert step == 6
    assert length > 0
    assert sum(value for ((_, value),) in parts.values()) == pytest.approx(length, abs=1e-5)


def test_the_training_only_notes_and_another_process_writes(tmp_path, monkeypatch):
    monkeypatch.setattr(scalars, "EVERY_S", 0.01)
    sender = CurveSender(
        PathBelow(tmp_path / "run"), deque(("s", number, 0, S + number, 2 * S, 8, None) for number in range(3))
    )
    sender.close()
    wait_for(lambda: (tmp_path / "run").exists() and len(curves(tmp_path / "run").get("steps/duration_s", ())) == 3)
    points_by_tag = curves(tmp_path / "run")
    assert points_by_tag["steps/duration_s"] == [(1, 2.0), (2, 2.0), (3, 2.0)]
    assert points_by_tag["steps/samples_per_s"] == [(1, 4.0), (2, 4.0), (3, 4.0)]
    assert folder_problem(PathBelow(tmp_path / "run")) == ""


def test_only_that_process_runs_at_low_priority(tmp_path):
    before = os.nice(0)
    write(PathBelow(tmp_path), notes(json.dumps([["s", 0, 0, S, S, None, None]])))
    assert os.nice(0) == before


def test_a_training_that_goes_on_in_the_folder_goes_on_with_the_curve_where_its_checkpoint_was(tmp_path, monkeypatch):
    for process, steps in ((1, range(6)), (2, range(4, 8))):
        monkeypatch.setattr(scalar_writer.os, "getpid", lambda process=process: process)
        write(PathBelow(tmp_path), notes(json.dumps([["s", step, 0, S, process * S, None, None] for step in steps])))
    assert curves(tmp_path)["steps/duration_s"] == [*((n, 1.0) for n in range(1, 5)), *((n, 2.0) for n in range(5, 9))]


@pytest.mark.parametrize(
    ("rank", "enabled", "folder"),
    [(0, True, "run"), (0, "all", "run"), (3, "all", "run/rank3"), (3, True, None), (0, False, None)],
)
def test_rank_0_writes_and_others_if_requested(tmp_path, monkeypatch, rank, enabled, folder):
    monkeypatch.setenv(scalars.SWITCH, "on")
    begun = []
    monkeypatch.setattr(scalars, "CurveSender", lambda folder, notes: begun.append((folder, notes)))
    each = scalars.Curves(scalars=enabled)
    each.attach(lambda is_late: (RankInfo(rank, 4), tmp_path / "run"), [])
    each.poll()
    assert [path.path.relative_to(tmp_path).as_posix() for path, _ in begun] == ([] if folder is None else [folder])


def test_only_rank_0_writes_breakdowns_of_windows(tmp_path, monkeypatch):
    monkeypatch.setenv(scalars.SWITCH, "on")
    windows = []

    class FakeSender:
        is_closed = False

        def __init__(self, *_):
            pass

        def window(self, path, steps):
            windows.append((path, steps))

    monkeypatch.setattr(scalars, "CurveSender", FakeSender)
    for rank in range(2):
        each = scalars.Curves(scalars="all")
        each.attach(lambda is_late, rank=rank: (RankInfo(rank, 2), tmp_path), [])
        each.poll()
        each.window(tmp_path / f"rank{rank}", 5)
    assert windows == [(tmp_path / "rank0", 5)]


def test_curves_of_unknown_ranks_are_refused(tmp_path):
    with pytest.raises(UsageError, match="scalars='each'"):
        Tracer(tmp_path, scalars="each")


def test_nothing_is_written_where_another_program_writes(tmp_path):
    (tmp_path / "events.out.tfevents.1.host.1.0").touch()
    assert "another program" in folder_problem(PathBelow(tmp_path))
    sender = CurveSender(PathBelow(tmp_path), deque([("s", 0, 0, S, S, None, None)]))
    sender.close()
    assert [path.name for path in tmp_path.iterdir()] == ["events.out.tfevents.1.host.1.0"]


def test_a_folder_that_can_t_be_created_costs_only_the_curves(tmp_path, caplog):
    (tmp_path / "file").touch()
    sender = CurveSender(PathBelow(tmp_path / "file" / "run"), deque([("s", 0, 0, S, S, None, None)]))
    sender.close()
    assert "can't be written" not in caplog.text
