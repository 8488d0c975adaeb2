"""Healthy jobs that are slow for a while: `why` never calls one a hang, at no moment."""

import json
import sys
from pathlib import Path

import pytest

from support.processes import Started, ended
from support.waiting import wait_for
from torture.truth import run_command

JOBS = Path(__file__).with_name("healthy.py")
LONG_WORK = {
    "compiles": "compiling",
    "saves": "saving a checkpoint",
    "evaluates": "evaluating",
    "imports": "importing modules",
}
"""What rank 1 does for longer than the limit, by scenario."""
SHORT_WORK = ("loads", "first_step", "accumulates", "writes", "grows", "pauses", "warms_caches")
"""Scenarios that are slow, but not for so long."""
LIMIT_S = 300  # 22 processes may have two cores, next to other tests
NAMES = (*LONG_WORK, *SHORT_WORK)


def why(run):
    """The exit status of `why` and its answer; None before the run begins."""
    if not (run / ".work").exists():
        return None
    result = run_command("why", run, "--format", "json")
    answer = json.loads(result.out) if result.out else {}
    return (result.status, answer) if "outcome" in answer else None


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """The folder of the runs, and all that `why` said of each until it ended."""
    folder = tmp_path_factory.mktemp("runs")
    torchrun = ("-m", "torch.distributed.run", "--nproc_per_node=2", "--master_port=0")
    process = Started(*torchrun, str(JOBS), str(folder), *NAMES)
    said = {name: [] for name in NAMES}

    def ask():
        for name in NAMES:
            if (answer := why(folder / name)) is not None:
                said[name].append(answer)
                if answer[1]["outcome"] == "slow work":
                    (folder / f"{name}.asked").touch()
        return [name for name in NAMES if not said[name] or said[name][-1][1]["kind"] != "ended"]

    try:
        wait_for(ask, LIMIT_S, is_right=lambda names: not names, unless=lambda: process.poll() is not None, pause_s=0.5)
        yield folder, said
    finally:
        (folder / "stop").touch()
        _, _, words = ended(process)
        sys.stderr.write(words)


@pytest.mark.parametrize("name", NAMES)
def test_a_healthy_job_is_never_called_a_hang(answers, name):
    _, said = answers
    assert {status for status, answer in said[name] if answer["kind"] != "not yet"} == {0}
    assert not any(answer["culprits"] for _, answer in said[name])
    assert said[name][-1][1]["sentence"] == "The job ended well: all ranks closed their recordings."


@pytest.mark.parametrize("name", LONG_WORK)
def test_slow_work_is_called_so(answers, name):
    _, said = answers
    sentences = [answer["sentence"] for _, answer in said[name] if answer["outcome"] == "slow work"]
    assert sentences
    assert sentences[0].startswith(f"Rank 1 has been {LONG_WORK[name]} (healthy.py:")


@pytest.mark.parametrize("name", SHORT_WORK)
def test_what_ends_before_the_limit_leaves_no_report(answers, name):
    folder, _ = answers
    assert not (folder / name / "hang").exists()
