"""A logdir that is a file: `status` and `check` say what waits, while the training runs and after, and `recover` helps."""

import pytest
from click.testing import CliRunner

from kinetoscope import Tracer, cyclic
from kinetoscope.output.scratch import VARIABLE
from kinetoscope_tb.cli.commands import commands
from support.processes import ENVIRON
from support.waiting import wait_for

TRAINING = """
import sys, torch
from kinetoscope import Tracer, cyclic
with Tracer(sys.argv[1], run="run", schedule=cyclic(wait=1, active=1)) as tracer:
    for _ in range(4):
        torch.ones(4).relu()
        tracer.step()
"""


@pytest.fixture
def command(scratch, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(scratch))
    return lambda *arguments: CliRunner().invoke(commands, [str(argument) for argument in arguments])


@pytest.fixture
def logdir(tmp_path):
    (tmp_path / "file").write_text("mine")
    return tmp_path / "file"


def test_a_folder_that_can_not_be_written_is_named_while_the_training_runs(logdir, command):
    with Tracer(logdir, run="run", schedule=cyclic(wait=1000)) as tracer:
        tracer.step()
        assert wait_for(lambda: tracer._trace_writer.rank_and_folder())
        words = command("status", logdir / "run").output
    assert f"rank 0: nothing can be written into {logdir / 'run'}: " in words


def test_its_recordings_are_named_afterward_and_recovered(logdir, tmp_path, command, forks, scratch):
    status, _, err = forks.run("-c", TRAINING, logdir, environ={**ENVIRON, VARIABLE: str(scratch)})
    assert status == 0, err
    waits = "rank 0: span 3 isn't written yet; wait, or kinetoscope recover "
    assert waits in command("status", logdir / "run").output
    for place in (logdir, logdir / "run"):
        checked = command("check", place)
        assert checked.exit_code == 1
        assert f"run run: {waits}" in checked.output + str(checked.exception)
    done = command("recover", logdir / "run", "--output", tmp_path / "elsewhere")
    assert (done.exit_code, done.output) == (0, "rank0.3.pt.trace.json.gz: saved\n")
    assert (tmp_path / "elsewhere" / "rank0.3.pt.trace.json.gz").is_file()


def test_a_folder_that_nobody_recorded_into_has_no_status(tmp_path, command):
    assert "No Tracer has recorded into" in str(command("status", tmp_path).exception)
