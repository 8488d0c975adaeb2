"""The commands that are about a run's files together."""

import gzip
import json

import pytest

from contract.running import put
from support.build import TraceBuilder


@pytest.fixture
def logdir(tmp_path):
    for rank in (0, 1):
        base, clock = 1_700_000_000_000_000_000 + rank * 1000, {"offset_ns": 1000 * rank, "error_ns": 5}
        top = {"kinetoscope": {"global_rank": rank, "world_size": 2, "clock": clock}}
        trace = TraceBuilder(base, **top).op("aten::mm", 0, 10).window(0, 100)
        put(tmp_path, f"runs/job/rank{rank}.5.pt.trace.json", text=trace.text())
    return tmp_path / "runs"


def test_a_whole_run_passes_and_one_without_a_rank_doesn_t(kinetoscope, logdir):
    status, out, err = kinetoscope("check", str(logdir))
    assert (status, err) == (0, "")
    assert out.splitlines()[-1] == "2 of 2 traces in 1 run have no loss and no warning."
    (logdir / "job/rank1.5.pt.trace.json").unlink()
    status, out, _ = kinetoscope("check", str(logdir), "--format", "json")
    answer = json.loads(out)
    assert (status, answer["whole"]) == (1, False)
    assert answer["runs"] == {"job": ["Span 5: of 2 ranks 1 left no trace: rank 1."]}
    assert [(t["worker"], t["state"]) for t in answer["traces"]] == [("rank0", "ok")]


def test_a_run_of_chosen_ranks_is_whole(kinetoscope, tmp_path):
    for rank in (0, 2):
        top = {"kinetoscope": {"global_rank": rank, "world_size": 4, "ranks": [0, 2]}}
        text = TraceBuilder(**top).op("aten::mm", 0, 10).window(0, 100).text()
        put(tmp_path, f"runs/job/rank{rank}.5.pt.trace.json", text=text)
    assert kinetoscope("check", str(tmp_path / "runs"))[0] == 0
    (tmp_path / "runs/job/rank2.5.pt.trace.json").unlink()
    status, out, _ = kinetoscope("check", str(tmp_path / "runs"))
    assert (status, "Span 5: of 2 ranks 1 left no trace: rank 2." in out) == (1, True)


def test_a_file_that_can_t_be_read_fails_and_the_others_are_told_of(kinetoscope, logdir):
    put(logdir, "job/rank2.5.pt.trace.json", text="")
    put(logdir, "other/rank0.5.pt.trace.json", text="no trace")
    status, out, _ = kinetoscope("check", str(logdir))
    assert status == 1
    assert "This file is empty" in out
    assert kinetoscope("check", str(logdir), "--run", "job")[0] == 0
    assert kinetoscope("check", str(logdir), "--run", "none")[0] == 1


def test_what_the_recorder_says_is_lost_fails_too(kinetoscope, logdir):
    outcome = {"state": "lost", "problem": "the disk is full"}
    window = {"span": 9, "step_first": 5, "step_last": 8, "ranks": {"1": outcome}}
    (logdir / "job/run.json").write_text(json.dumps({"schema": 1, "run": "job", "ranks": [], "windows": [window]}))
    status, out, _ = kinetoscope("check", str(logdir))
    assert status == 1
    assert "the disk is full" in out


def test_ranks_are_merged_into_a_file_that_opens(kinetoscope, logdir, tmp_path):
    out = tmp_path / "all.json.gz"
    status, output, err = kinetoscope("merge", str(logdir), str(out))
    assert (status, err) == (0, "job/rank0.5.pt.trace.json\njob/rank1.5.pt.trace.json\n")
    events = json.loads(gzip.decompress(out.read_bytes()))["traceEvents"]
    assert output == f"{out}: {len(events)} events of 2 workers.\n"
    # Rank 1's file begins 1 µs later by a clock that is 1 µs ahead.
    assert [(e["ts"], e["pid"]) for e in events if e["name"] == "aten::mm"] == [(0, 1), (0, 1001)]
    assert kinetoscope("check", str(out))[0] == 0


def test_a_merged_file_says_whose_clock_nobody_measured(kinetoscope, tmp_path):
    put(tmp_path, "job/rank0.5.pt.trace.json", "job/rank1.5.pt.trace.json", "zoo/rank0.5.pt.trace.json")
    assert "run zoo; choose another with --run: job" in kinetoscope("merge", str(tmp_path), str(tmp_path / "z.json"))[2]
    status, _, err = kinetoscope("merge", str(tmp_path), str(tmp_path / "all.json"), "--run", "job")
    assert status == 0
    assert "These clocks weren't measured, so they aren't corrected: rank0, rank1." in err


def test_publishing_says_what_became_of_each_file(kinetoscope, tmp_path):
    put(tmp_path, "out/iteration_20/rank0_trace.json")
    logdir = tmp_path / "runs"
    status, out, _ = kinetoscope("publish", str(tmp_path / "out"), str(logdir))
    assert (status, out.splitlines()[-1]) == (0, "1 linked.")
    target = next(logdir.rglob("rank3.20.pt.trace.json"))
    target.unlink()  # not the file that it is another name of
    target.write_text("something else")
    status, _, err = kinetoscope("publish", str(tmp_path / "out"), str(logdir))
    assert status == 1
    assert "another file has this name" in err
