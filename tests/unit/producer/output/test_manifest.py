import json
import threading

import pytest

from kinetoscope.output.manifest import compile_run, manifest, write_status

WINDOW = {"step_first": 2, "step_last": 3, "started_ns": 10, "ended_ns": 20}


def status(rank, *windows, state="ended", size=2, attempt="a", started_ns=1, **more):
    facts = {"global_rank": rank, "world_size": size, "state": state, "attempt": attempt, "started_ns": started_ns}
    return {**facts, "run": "run", "host": f"host{rank}", "windows": [{**WINDOW, **w} for w in windows], **more}


def window(span, state="saved", **more):
    return {"span": span, "state": state, **more}


def test_windows_of_all_ranks_meet_by_their_span():
    result = manifest(
        [
            status(0, window(4, file="rank0.4.pt.trace.json.gz", bytes=9), window(8)),
            status(1, window(8, "lost", problem="No space left on device"), window(4, "partial")),
        ]
    )
    assert (result["schema"], result["run"], result["world_size"]) == (1, "run", 2)
    assert [(w["span"], w["step_first"], w["ended_ns"]) for w in result["windows"]] == [(4, 2, 20), (8, 2, 20)]
    assert result["windows"][0]["ranks"] == {
        "0": {"state": "saved", "file": "rank0.4.pt.trace.json.gz", "bytes": 9},
        "1": {"state": "partial"},
    }
    assert result["windows"][1]["ranks"]["1"] == {"state": "lost", "problem": "No space left on device"}


@pytest.mark.parametrize(
    ("other", "state", "problem"),
    [
        (None, "missing", "nothing was reported"),
        (status(1, state="recording"), "saving", None),
        (status(1, state="killed", problem="killed while it recorded"), "missing", "killed while it recorded"),
        (status(1), "missing", "it had ended before"),
        (status(1, state="recording", left_out=[{"step": 1, "problem": "busy"}]), "missing", "busy"),
        (status(1, state="recording", left_out=[{"step": 0, "problem": "busy"}, {"step": 4}]), "saving", None),
        (status(1, left_out=[{"step": 0, "problem": "busy"}], schedule={"warmup": 2}), "missing", "busy"),
    ],
    ids=["silent", "at work", "killed", "ended", "left out", "left others out", "left out in the warm-up"],
)
def test_a_rank_without_a_window_says_why(other, state, problem):
    result = manifest([status(0, window(4)), *([other] if other else [])])
    absent = result["windows"][0]["ranks"]["1"]
    assert absent["state"] == state
    assert absent.get("problem", "").startswith(problem or "")
    assert result["ranks"][1]["state"] == (other["state"] if other else "silent")


def test_ranks_that_shall_not_record_are_not_missed():
    result = manifest([status(2, window(4), size=4, ranks=[0, 2]), status(0, window(4), size=4, ranks=[0, 2])])
    assert result["ranks_expected"] == [0, 2]
    assert list(result["windows"][0]["ranks"]) == ["0", "2"]


def test_if_the_recording_ranks_are_unknown_each_reports_itself():
    result = manifest([status(1, window(4), size=4, ranks=[1]), status(3, window(4), size=4, ranks=[3])])
    assert result["ranks_expected"] == [1, 3]
    assert [rank["rank"] for rank in result["ranks"]] == [1, 3]


def test_a_window_requested_of_some_ranks_misses_no_others():
    requested_window = window(4, ranks=[0, 2])
    result = manifest(
        [status(0, requested_window, window(9), size=3), status(1, window(9), size=3), status(2, window(9), size=3)]
    )
    assert [list(w["ranks"]) for w in result["windows"]] == [["0", "2"], ["0", "1", "2"]]
    assert result["windows"][0]["ranks"]["2"]["state"] == "missing"
    assert result["windows"][0]["ranks"]["0"] == {"state": "saved"}


def test_only_the_newest_attempt_counts():
    result = manifest([status(0, window(4)), status(1, window(2), attempt="b", started_ns=5)])
    assert [w["span"] for w in result["windows"]] == [2]
    assert result["windows"][0]["ranks"]["0"]["state"] == "missing"


def test_the_last_process_to_finish_has_compiled_all(tmp_path):
    ranks = range(12)
    barrier = threading.Barrier(len(ranks))

    def process(rank):
        barrier.wait()
        for span in (1, 2, 3):
            write_status(tmp_path, rank, status(rank, *(window(n) for n in range(span)), size=len(ranks)))

    threads = [threading.Thread(target=process, args=(rank,)) for rank in ranks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    result = json.loads((tmp_path / "run.json").read_text())
    assert [rank["state"] for rank in result["ranks"]] == ["ended"] * 12
    assert [len(w["ranks"]) for w in result["windows"]] == [12] * 3
    assert all(rank["state"] == "saved" for w in result["windows"] for rank in w["ranks"].values())
    assert sorted(path.name for path in tmp_path.iterdir()) == [".work", "run.json"]


def test_a_run_without_a_status_has_no_manifest(tmp_path):
    compile_run(tmp_path)
    (tmp_path / ".work" / "status").mkdir(parents=True)
    (tmp_path / ".work" / "status" / "rank0.json").write_text("{broken")
    compile_run(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".work"]
