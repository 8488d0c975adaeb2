"""Jobs of three ranks that die, and what `why` says: who was first, how, and what the others did."""

import json
import os
import sys
from pathlib import Path

import pytest

from support.processes import Started, ended
from support.waiting import wait_for
from torture.control_groups import create_group, remove_group
from torture.truth import run_command

JOBS = Path(__file__).with_name("dying.py")
FAILURES = {
    "killed": ("killed", "was killed by SIGKILL in step 5"),
    "raises": ("exception", "raised KeyError: 'batch 5' in step 5, in load_batch (dying.py:"),
    "exits": ("exit", "ended with exit code 7 in step 5"),
    "calls_exit": ("exit", "called sys.exit with code 4 in step 5"),
    "segfault": ("crash", "crashed with SIGSEGV in step 5"),
    "aborts": ("abort", "crashed with SIGABRT in step 5"),
    "stopped": ("stopped", "was stopped by SIGTERM in step 5, in stop_itself (dying.py:"),
    "full_disk": ("disk full", "raised OSError: [Errno 28] No space left on device in step 5, in write_log (dying.py:"),
    "full_disk_of_checkpoint": ("write failed", "in step 5, in torch.serialization.save (dying.py:"),
    "host_memory": ("host memory", "DefaultCPUAllocator: can't allocate memory"),
    "device_memory": ("device memory", "raised torch.OutOfMemoryError: CUDA out of memory."),
    "address_space": ("host memory", "raised MemoryError in step 5, in allocate_beyond_limit (dying.py:"),
    "object_store": ("exception", "raised ConnectionResetError: [Errno 104] Connection reset by peer in step 5"),
    "worker_killed": ("loader worker", "raised RuntimeError: DataLoader worker (pid"),
    "worker_raises": (
        "exception",
        "raised KeyError: Caught KeyError in DataLoader worker process 0: KeyError: 'batch 5'",
    ),
}
"""The kind of rank 1's end and a part of the sentence, by scenario; the others lose their connection to it."""
ABSENCES = ("gives_up", "gives_up_late", "barrier", "remote_call", "remote_call_late")
"""Scenarios in which the others wait for rank 1 until a timeout."""
MISMATCHES = {
    "size": ("Rank 1 called all_reduce with 65536 elements as collective ", "; ranks 2–4 called all_reduce with 8 "),
    "dtype": ("Rank 1 called all_reduce with Double as collective ", "; ranks 2–4 called all_reduce with Float."),
}
"""Two parts of the sentence, by scenario of five ranks, in which gloo aborts rank 0."""
OTHERS = ("leaves", "preempted", "all_killed", "all_raise", "node", "size_of_three")
OUT_OF_MEMORY = "out_of_memory"
MEMORY_BYTES = 256 << 20
LIMIT_S = 600  # a hundred processes may have two cores, next to other tests
NOT_FINAL = ("is running", "ended without a word")
"""How a rank ends in a table before its writer process has written how."""
ENDS = "; then ranks 0 and 2 lost the connection to another rank."


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The folder of the runs."""
    folder = tmp_path_factory.mktemp("runs")
    torchrun = ("-m", "torch.distributed.run", "--nproc_per_node=5", "--master_port=0")
    names = [*FAILURES, *ABSENCES, *MISMATCHES, *OTHERS]
    if (group := create_group(f"kinetoscope-test-{os.getpid()}", MEMORY_BYTES)) is not None:
        (folder / "group").write_text(str(group))
        names.append(OUT_OF_MEMORY)
    process = Started(*torchrun, str(JOBS), str(folder), *names)
    try:
        yield folder, process
    finally:
        (folder / "stop").touch()
        _, _, words = ended(process)
        sys.stderr.write(words)
        if group is not None:
            remove_group(group)


def why(runs, name, kind, evidence="", minutes=0, dumps=0):
    """The exit status of `why` and its answer, once all is known: processes that write it outlive the ranks.

    Args:
        runs: The folder of the runs, and their process.
        name: The scenario.
        kind: The kind of the answer.
        evidence: What the evidence has, too.
        minutes: Of how many ranks the last minutes are there.
        dumps: Of how many ranks what they called is there.
    """
    folder, process = runs

    def ask():
        run = folder / name
        result = run_command("why", run, "--format", "json") if (run / ".work").exists() else None
        return (result.status, json.loads(result.out)) if result and result.out else (1, {})

    def is_over(answer):
        rows = answer[1].get("ranks", [])
        is_known = answer[1].get("kind") == kind and evidence in " ".join(answer[1].get("evidence", []))
        is_final = len(rows) >= 3 and not any(row.get("end") in NOT_FINAL for row in rows)
        has_dumps = sum("open" in row and row["open"] != "no dump" for row in rows) >= dumps
        return is_known and is_final and has_dumps and len(answer[1]["last_minutes"]) >= minutes

    def has_ended():
        return process.poll() is not None

    return wait_for(ask, LIMIT_S, is_right=is_over, unless=has_ended, context=lambda: stacks(runs, name), pause_s=0.2)


def stacks(runs, name):
    """Where the processes of a scenario were that got stuck."""
    folder, _ = runs
    return "\n".join(f"{file.name}: {file.read_text()}" for file in sorted(folder.glob(f"{name}.*.stacks")))


@pytest.mark.parametrize("name", FAILURES)
def test_why_names_the_rank_that_died_first_and_how(runs, name):
    kind, words = FAILURES[name]
    status, answer = why(runs, name, kind, minutes=3)
    assert (status, answer["outcome"], answer["culprits"]) == (2, "culprit", [1])
    assert answer["sentence"].startswith("Rank 1 ")
    assert words in answer["sentence"]
    assert answer["sentence"].endswith(ENDS), stacks(runs, name)
    assert [row["steps"] for row in answer["ranks"]] == [5, 5, 5]
    assert [(row["rank"], row["last_step"]) for row in answer["last_minutes"]] == [(0, 4), (1, 4), (2, 4)]


@pytest.mark.parametrize("name", ABSENCES)
def test_why_names_the_rank_for_which_others_waited_until_a_timeout(runs, name):
    waited = "ranks 0 and 2 waited for another rank until a timeout" if name == "gives_up_late" else ""
    status, answer = why(runs, name, "absent", waited)
    assert (status, answer["culprits"]) == (2, [1])
    assert " in sleep (dying.py:" in answer["sentence"]
    if name == "gives_up_late":  # the ranks wrote where they were before
        assert answer["sentence"].startswith("Rank 1 never came to all_reduce ")
        assert waited in answer["evidence"][-1]


def test_why_names_the_rank_that_left_the_loop_early(runs):
    status, answer = why(runs, "leaves", "left")
    assert (status, answer["culprits"]) == (2, [1])
    assert answer["sentence"].startswith("Rank 1 closed the recording and left the loop, while others went on; ranks 0")


def test_a_signal_to_all_ranks_came_from_outside(runs):
    status, answer = why(runs, "preempted", "stopped")
    assert (status, answer["outcome"], answer["culprits"]) == (0, "stopped from outside", [])
    assert answer["sentence"].startswith("The job was stopped from outside: ranks 0–2 were stopped by SIGTERM at ")


@pytest.mark.parametrize(("name", "kind"), [("all_killed", "killed"), ("all_raise", "exception")])
def test_ranks_that_end_alike_at_the_same_time_are_named_together(runs, name, kind):
    status, answer = why(runs, name, kind)
    assert (status, answer["culprits"]) == (2, [0, 1, 2])


def test_a_machine_of_which_nothing_is_left_is_named(runs):
    status, answer = why(runs, "node", "gone")
    assert (status, answer["culprits"]) == (2, [1, 2])
    assert answer["sentence"].startswith("Ranks 1 and 2 (all of node1) have been silent since ")
    assert answer["sentence"].endswith("; then rank 0 lost the connection to another rank.")


def test_why_names_the_victim_of_the_out_of_memory_killer(runs):
    if not (runs[0] / "group").exists():
        pytest.skip("this user or system can't have control groups of its own")
    status, answer = why(runs, OUT_OF_MEMORY, "out of memory")
    assert (status, answer["culprits"]) == (2, [1])
    assert answer["sentence"].startswith("Rank 1 was killed by the kernel's out-of-memory killer in step 5 at ")


@pytest.mark.parametrize("name", MISMATCHES)
def test_why_names_the_rank_that_called_another_size_than_the_rank_that_crashed(runs, name):
    status, answer = why(runs, name, name, "rank 0 crashed with SIGABRT", dumps=4)
    assert (status, answer["culprits"]) == (2, [1])
    assert all(words in answer["sentence"] for words in MISMATCHES[name])
    assert answer["ranks"][1]["line"].rpartition("/")[2].startswith("dying.py:")


def test_where_as_many_ranks_called_one_size_as_another_nobody_is_named(runs):
    status, answer = why(runs, "size_of_three", "size")
    assert (status, answer["outcome"], answer["culprits"], answer["suspects"]) == (3, "cannot tell", [], [1, 2])
