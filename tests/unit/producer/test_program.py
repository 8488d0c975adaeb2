"""`python -m kinetoscope run`: a program without a Tracer is recorded, and otherwise does what it did."""

import json
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


@pytest.fixture
def run(tmp_path):
    (tmp_path / "train.py").write_text(textwrap.dedent(TRAINING))

    def call(*words, options=("--wait", "3", "--warmup", "1", "--active", "2")):
        command = [sys.executable, "-m", "kinetoscope", "run", "--run", "job", *options, *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)

    return call


def facts(folder):
    """The steps of the only trace, and how the rank ended."""
    (trace,) = (folder / "runs/job").glob("*.pt.trace.json.gz")
    (rank,) = json.loads((folder / "runs/job/run.json").read_text())["ranks"]
    return trace.name, rank


def test_a_script_is_recorded_with_its_arguments(run, tmp_path):
    done = run("train.py", "--lr", "3", "-m")
    assert (done.returncode, done.stdout) == (0, "__main__ --lr 3 -m\n")
    name, rank = facts(tmp_path)
    assert name == "rank0.6.pt.trace.json.gz"
    assert (rank["steps_completed"], rank["reason"]) == (11, "end")  # the first begins the recording


@pytest.mark.parametrize(("flag", "status"), [("--fail", 1), ("--exit", 7)])
def test_the_program_ends_as_without_it(run, tmp_path, flag, status):
    done = run("-m", "train", flag)
    assert (done.returncode, done.stdout) == (status, f"__main__ {flag}\n")
    assert ("KeyError: 'label'" in done.stderr) == (flag == "--fail")
    _, rank = facts(tmp_path)
    assert rank["reason"] == ("exception: KeyError" if flag == "--fail" else "exception: SystemExit")


def test_a_program_without_a_training_leaves_no_run(run, tmp_path):
    (tmp_path / "none.py").write_text("print('done')")
    done = run("none.py")
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert "No optimizer made a step" in done.stderr
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
    done = run("own.py")
    assert done.returncode == 0
    assert "This training isn't recorded. Another Tracer is active" in done.stderr
    assert len([*(tmp_path / "own/mine").glob("*.gz")]) == 1
    assert not (tmp_path / "runs").exists()


def test_a_budget_takes_the_place_of_the_schedule(run, tmp_path, monkeypatch):
    monkeypatch.setenv("KINETOSCOPE_BUDGET", "0.5%")
    done = run("train.py", options=())
    assert "0 windows: a budget of 0.5% records from the first steady steps on, and there were none" in done.stderr
    assert json.loads((tmp_path / "runs/job/run.json").read_text())["schedule"] == "0.5%"
    done = run("train.py", options=("--budget", "little"))
    assert done.returncode == 2
    assert "budget='little': write a share of the training's time" in done.stderr


def test_what_is_missing_is_named(run):
    done = run()
    assert done.returncode == 2
    assert "Name the program" in done.stderr
