"""Jobs of three ranks that stand still, or are only slow: what each rank writes, and what `why` says of it."""

import json

import pytest

from kinetoscope.journal.status import rank_statuses
from support.waiting import wait_for
from torture.hang_runs import (
    JOBS,
    LIMIT_S,
    NAMES,
    SILENT_RANKS,
    SLOW,
    STEP,
    hanging_jobs,
    is_silent,
    ranks_of,
    report,
    reports,
    step_of,
)
from torture.truth import run_command

LINES = {
    "sleeps": "load_batch",
    "spins": "spin",
    "locks": "take_lock",
    "absent_in_group": "load_batch",
    "recv": "load_batch",
    "file": "wait_for_file",
    "writes": "write_output",
    "worker": "wait_for_worker",
    "spawns": "spawn",
    "wrapped": "load_batch",
    "pipeline": "load_batch",
}
"""The function that rank 1 is in, by scenario."""
WAITS = {("recv", 0): "act", **dict.fromkeys([("pipeline", rank) for rank in (0, 2, 3)], "pass_through_pipeline")}
"""The function in which another rank waits, by scenario and rank, if it isn't `exchange`."""
RECEIVERS = {"recv": (0,), "pipeline": (0, 2)}
"""The ranks that receive from rank 1, by scenario without collectives; the first to wait is named."""
STATES = {"spawns": "D"}
"""The kernel's state of rank 1, by scenario."""
WORDS_OF_KERNEL = {"spawns": ", in the kernel's ", "writes": ", in a write to a full pipe; "}
"""What the sentence says of the kernel's function that rank 1 waits in, by scenario."""
RING_SIZES = {"wrapped": 4}
CALLS = {"worker": "torch.utils.data.dataloader._BaseDataLoaderIter.__next__"}
"""What that function calls, where it calls a library."""
GROUPS = {
    "split": (2, "Rank 2 never came to all_reduce 6 of half (ranks 2 and 3, 32 B)", "ranks 0, 1 and 3"),
    "mesh": (5, "Rank 5 never came to all_reduce 6 of mesh_tp (ranks 4–7, 32 B)", "ranks 0–4, 6 and 7"),
}
"""The culprit, how the sentence begins, and who waits, by scenario with several groups."""
MISMATCHES = {
    "broadcasts": ("operation", [1]),
    "orders": ("order", [0, 1]),
    "receives": ("order", [0, 1]),
    "unsent": ("order", [0, 1]),
}
"""How ranks call operations that don't match, and which, by scenario."""
SLOW_WORK = {"evaluates": ("evaluate", "evaluating"), "saves": ("write", "saving a checkpoint")}
"""The function that rank 1 is in, and what it does there, by scenario that a healthy job has, too."""
SILENT = {
    "holds": " ago: code in C holds Python's lock, or ",
    "stops": " ago, and is stopped: by SIGSTOP,",
    "leaves": "It closed its recording: end.",
    "node": " ago: ",
}
"""What is known of a rank that doesn't write, by scenario."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The folder of the runs, once all of them stand still and the slow one goes on."""
    folder = tmp_path_factory.mktemp("runs")
    with hanging_jobs(folder):
        yield folder


def test_every_scenario_has_an_answer_here():
    assert {*LINES, *GROUPS, *SLOW_WORK, *MISMATCHES, *SILENT, SLOW} == set(NAMES)


def test_the_first_check_after_the_threshold_writes_the_report(runs):
    """Looks for long steps come once a second, so a rank whose thread may run writes about then."""
    steps = [step_of(file) for file in reports(runs)]
    assert all(step["previous_check_s"] <= step["limit_s"] < step["seconds"] + 0.1 for step in steps)


@pytest.mark.parametrize("name", LINES)
def test_each_rank_writes_its_collectives_and_where_it_is(runs, name):
    for rank in ranks_of(name):
        dump = json.loads(report(runs, name, rank).read_text())
        facts = dump["kinetoscope_hang"]
        assert (facts["rank"], facts["world_size"], facts["step"]["number"]) == (rank, len(ranks_of(name)), STEP)
        assert len(dump["entries"]) >= min(STEP, RING_SIZES.get(name, STEP))
        expected = LINES[name] if rank == 1 else WAITS.get((name, rank), "exchange")
        line = next(line for line in facts["stack"] if line[0] == str(JOBS))
        assert line[2].rpartition(".")[2] == expected
        states = {thread["name"]: thread["state"] for thread in facts["threads"] if thread["stack"]}
        assert states["MainThread"] in (STATES.get(name, "RS") if rank == 1 else "S")


def test_a_receive_names_its_sender(runs):
    facts = json.loads(report(runs, "recv", 0).read_text())["kinetoscope_hang"]
    assert facts["message"] == {"operation": "recv", "peer": 1}


def test_an_open_marker_is_written(runs):
    markers = json.loads(report(runs, "sleeps", 1).read_text())["kinetoscope_hang"]["markers"]
    assert [marker["name"] for marker in markers] == ["sleeps"]


@pytest.mark.parametrize("name", SILENT)
def test_a_rank_that_can_not_write_prevents_its_own_file_alone(runs, name):
    assert [report(runs, name, rank).exists() for rank in ranks_of(name)] == [
        not is_silent(name, rank) for rank in ranks_of(name)
    ]


def why(run):
    """The exit status of `why`, and its answer, once no rank is silent only because the machine is busy."""

    def states():
        return [status.state for status in rank_statuses(run) if not is_silent(run.name, status.rank)]

    def ask():
        before, result = states(), run_command("why", run, "--format", "json")
        return before, states(), (result.status, json.loads(result.out))

    def is_final(asked):
        return asked[0] == asked[1] and "silent" not in asked[0] and asked[2][1]["kind"] != "not yet"

    return wait_for(ask, LIMIT_S, is_right=is_final, pause_s=1)[2]


@pytest.mark.parametrize("name", LINES)
def test_why_names_the_culprit_and_its_line(runs, name):
    status, answer = why(runs / name)
    assert (status, answer["kind"], answer["culprits"]) == (2, "absent", [1])
    assert f"; it has been in {CALLS.get(name, LINES[name])} (hanging.py:" in answer["sentence"]
    if name in WORDS_OF_KERNEL:
        assert WORDS_OF_KERNEL[name] in answer["sentence"]
    if name in RECEIVERS:
        ends = [f"recv {rank}<-1" for rank in RECEIVERS[name]]
        sentences = tuple(f"Rank 1 never came to the other end of {end} of default_pg;" for end in ends)
        assert answer["sentence"].startswith(sentences)


@pytest.mark.parametrize("name", GROUPS)
def test_why_names_the_culprit_of_one_of_several_groups(runs, name):
    status, answer = why(runs / name)
    rank, words, waiters = GROUPS[name]
    assert (status, answer["kind"], answer["culprits"]) == (2, "absent", [rank])
    assert answer["sentence"].startswith(f"{words}; it has been in load_batch (hanging.py:")
    assert f"; {waiters} wait for it since " in answer["sentence"]


@pytest.mark.parametrize("name", SLOW_WORK)
def test_slow_work_of_a_healthy_job_has_no_culprit(runs, name):
    status, answer = why(runs / name)
    function, gerund = SLOW_WORK[name]
    assert (status, answer["kind"], answer["culprits"]) == (0, "slow work", [])
    assert answer["sentence"].startswith(f"Rank 1 has been {gerund} (hanging.py:")
    assert "; ranks 0 and 2 wait for it since " in answer["sentence"]
    assert answer["ranks"][1]["open"] == gerund
    assert answer["ranks"][1]["function"].rpartition(".")[2] == function


@pytest.mark.parametrize("name", MISMATCHES)
def test_why_names_ranks_whose_operations_do_not_match(runs, name):
    status, answer = why(runs / name)
    kind, culprits = MISMATCHES[name]
    assert (status, answer["kind"], sorted(answer["culprits"])) == (2, kind, culprits)


@pytest.mark.parametrize("name", SILENT)
def test_why_says_that_a_rank_wrote_nothing(runs, name):
    status, answer = why(runs / name)
    ranks = SILENT_RANKS[name]
    assert (status, answer["kind"], answer["culprits"]) == (2, "no dump", ranks)
    start = f"Rank {ranks[0]} (process "
    assert any(line.startswith(start) and SILENT[name] in line for line in answer["evidence"])


def test_a_slow_step_that_ended_has_no_culprit(runs):
    status, answer = why(runs / SLOW)
    assert (status, answer["outcome"], answer["kind"], answer["culprits"]) == (0, "nothing open", "went on", [])
