"""`python -m kinetoscope run`: a program without a Tracer is recorded, and otherwise does what it did."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

TRAINING = """
    import sys, torch
    from torch import nn

    class Averaged(torch.optim.SGD):  # calls another optimizer's step
        def step(self, closure=None):
            super().step(closure)

    model = nn.Linear(8, 8)
    torch.optim.SGD(model.parameters(), lr=0.1)
    first, second = Averaged(model.parameters(), lr=0.1), torch.optim.AdamW(model.parameters())
    for _ in range(12):
        model(torch.randn(4, 8)).sum().backward()
        first.step()
        second.step()
    print(__name__, *sys.argv[1:])
    if "--fail" in sys.argv:
        raise KeyError("label")
    sys.exit(7 if "--exit" in sys.argv else 0)
"""


COMMAND = ("-m", "kinetoscope", "run", "--run", "job")
OPTIONS = ("--wait", "3", "--warmup", "1", "--active", "2")


@pytest.fixture
def folder(tmp_path):
    """Where the program is."""
    (tmp_path / "train.py").write_text(textwrap.dedent(TRAINING))
    return tmp_path


@pytest.fixture
def run(folder, forks):
    """Runs a program in a process that has torch already; gives its exit status and both outputs."""

    def call(*words, options=OPTIONS):
        return forks.run(*COMMAND, *options, *words, folder=folder, environ={**os.environ})

    return call


@pytest.fixture
def start(folder):
    """The same in a process that Python starts."""

    def call(*words):
        command = [sys.executable, *COMMAND, *OPTIONS, *words]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
        return done.returncode, done.stdout, done.stderr

    return call


def facts(folder):
    """The steps of the only trace, and how the rank ended."""
    (trace,) = (folder / "runs/job").glob("*.pt.trace.json.gz")
    (rank,) = json.loads((folder / "runs/job/run.json").read_text())["ranks"]
    return trace.name, rank


def test_a_script_is_recorded_with_its_arguments(start, tmp_path):
    code, out, _ = start("train.py", "--lr", "3", "-m")
    assert (code, out) == (0, "__main__ --lr 3 -m\n")
    name, rank = facts(tmp_path)
    assert name == "rank0.6.pt.trace.json.gz"
    assert (rank["steps_completed"], rank["reason"]) == (11, "end")  # the first begins the recording


@pytest.mark.parametrize(("flag", "status"), [("--fail", 1), ("--exit", 7)])
def test_the_program_ends_as_without_it(run, tmp_path, flag, status):
    code, out, err = run("-m", "train", flag)
    assert (code, out) == (status, f"__main__ {flag}\n")
    assert ("KeyError: 'label'" in err) == (flag == "--fail")
    _, rank = facts(tmp_path)
    assert rank["reason"] == ("exception: KeyError" if flag == "--fail" else "exception: SystemExit")


def test_a_program_without_a_training_leaves_no_run(start, tmp_path):
    (tmp_path / "none.py").write_text("print('done')")
    code, out, err = start("none.py")
    assert (code, out) == (0, "done\n")
    assert "No optimizer made a step" in err
    assert not (tmp_path / "runs").exists()


def test_a_program_with_its_own_tracer_keeps_it(run, tmp_path):
    program = """
        import torch
        from kinetoscope import Tracer, cyclic
        model = torch.nn.Linear(8, 8)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with Tracer("own", run="mine", schedule=cyclic(wait=1, active=1)) as tracer:
            for _ in range(8):
                model(torch.randn(4, 8)).sum().backward()
                optimizer.step()
                tracer.step()
    """
    (tmp_path / "own.py").write_text(textwrap.dedent(program))
    code, _, err = run("own.py")
    assert code == 0
    assert "This training isn't recorded. Another Tracer is active" in err
    assert len([*(tmp_path / "own/mine").glob("*.gz")]) == 1
    assert not (tmp_path / "runs").exists()


def test_a_budget_takes_the_place_of_the_schedule(run, tmp_path, monkeypatch):
    monkeypatch.setenv("KINETOSCOPE_BUDGET", "0.5%")
    _, _, err = run("train.py", options=())
    assert "0 windows: a budget of 0.5% records from the first steady steps on, and there were none" in err
    assert json.loads((tmp_path / "runs/job/run.json").read_text())["schedule"] == "0.5%"
    code, _, err = run("train.py", options=("--budget", "little"))
    assert code == 2
    assert "budget='little': write a share of the training's time" in err


def test_what_is_missing_is_named(run):
    code, _, err = run()
    assert code == 2
    assert "Name the program" in err
