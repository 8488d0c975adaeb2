"""Jobs that hang: a rank in a collective, where no signal reaches its training's thread, and one without others."""

import json
from pathlib import Path

from kinetoscope.journal.recover import recover_journals
from kinetoscope.journal.status import rank_statuses
from support.processes import Started, ended, steps_of, traces_in
from support.waiting import wait_for
from torture.truth import run_command

JOB, ALONE = (Path(__file__).with_name(name) for name in ("blocked.py", "alone.py"))


def test_a_rank_that_hangs_in_a_collective_reports_the_signal(tmp_path):
    processes = [Started(str(JOB), str(tmp_path), str(rank)) for rank in range(2)]
    run = tmp_path / "logdir" / "job"

    def rank(number):
        ranks = json.loads((run / "run.json").read_text())["ranks"] if (run / "run.json").exists() else []
        return next((rank for rank in ranks if rank["rank"] == number and rank["state"] != "silent"), {})

    try:
        wait_for((tmp_path / "blocked").exists)
        wait_for(lambda: rank(0) and rank(1))
        processes[0].terminate()
        hanging = wait_for(lambda: next((s.hang for s in rank_statuses(run) if s.rank == 0), None))
        wait_for(lambda: rank(0).get("reason") == "sigterm")
        assert (processes[0].poll(), rank(0)["state"]) == (None, "recording")  # it is still there
    finally:
        for process in processes:
            process.kill()
            ended(process)
    assert hanging["step"] == 5
    assert any("all_reduce" in frame for frame in hanging["stack"])
    wait_for(lambda: rank(0)["state"] == rank(1)["state"] == "killed")
    assert (rank(0)["reason"], rank(1)["reason"]) == ("sigterm", None)
    assert rank(0)["problem"].startswith("the process ended without a good-bye while it recorded, since step 2")
    results = recover_journals(run)
    assert [(result.steps, result.problem) for result in results] == [(5, ""), (5, "")]
    trace = traces_in(run)["rank0", 5]
    assert steps_of(trace) == [0, 1, 2, 3, 4]
    assert sum(event["name"] == "exchange" for event in trace["traceEvents"]) == 5
    assert trace["kinetoscope"]["open_markers"] == ["exchange"]
    assert trace["kinetoscope"]["hanging"]["stack"] == hanging["stack"]


def why(run):
    """The answer of `why` about a run; an error without an outcome before there is a folder."""
    return json.loads(run_command("why", run, "--format", "json").out or "{}")


def answer_until_killed(folder, kind):
    """What `why` says of a job of one rank that stands still, which is killed then."""
    process = Started(str(ALONE), str(folder), kind)
    try:
        return wait_for(lambda: why(folder / kind), is_right=lambda answer: answer.get("outcome") == "culprit")
    finally:
        process.kill()
        ended(process)


def test_a_job_of_one_rank_that_hangs_is_named_with_its_line_and_still_is_when_it_was_killed(tmp_path):
    answer = answer_until_killed(tmp_path, "stands")
    assert (answer["kind"], answer["culprits"]) == ("own code", [0])
    assert answer["sentence"].startswith("Rank 0 has been in read_shard (alone.py:")
    assert "; step 30 has taken " in answer["sentence"]
    wait_for(lambda: rank_statuses(tmp_path / "stands")[0].ending)
    after = why(tmp_path / "stands")
    assert (after["outcome"], after["kind"], after["culprits"]) == ("culprit", "own code", [0])
    assert "Then the job ended; rank 0 was killed by SIGKILL." in after["evidence"]


def test_a_job_of_one_rank_that_is_stopped_is_said_to_be(tmp_path):
    answer = answer_until_killed(tmp_path, "stops")
    assert (answer["kind"], answer["culprits"]) == ("suspended", [0])
    assert "being stopped: by SIGSTOP" in answer["sentence"]
