"""A logdir that is a file: `status` and `check` say what waits, while the training runs and after, and `recover` helps."""

import pytest
import torch
from click.testing import CliRunner

from kinetoscope import Tracer, cyclic
from kinetoscope_tb.cli.commands import commands
from support.waiting import wait_for


@pytest.fixture
def command():
    return lambda *arguments: CliRunner().invoke(commands, [str(argument) for argument in arguments])


def test_recordings_for_a_folder_that_can_not_be_written_are_named_and_recovered(tmp_path, command):
    logdir = tmp_path / "file"
    logdir.write_text("mine")
    with Tracer(logdir, run="run", schedule=cyclic(wait=1, active=1)) as tracer:
        tracer.step()
        assert wait_for(lambda: tracer._trace_writer.rank_and_folder())
        early = command("status", logdir / "run").output
        for _ in range(3):
            torch.ones(4).relu()
            tracer.step()
    problem = f"rank 0: nothing can be written into {logdir / 'run'}: "
    waits = "rank 0: span 3 isn't written yet; wait, or kinetoscope recover "
    assert problem in early
    after = command("status", logdir / "run").output
    assert problem in after
    assert waits in after
    for place in (logdir, logdir / "run"):
        checked = command("check", place)
        assert checked.exit_code == 1
        assert f"run run: {waits}" in checked.output + str(checked.exception)
        assert f"run run: {problem}" in checked.output + str(checked.exception)
    done = command("recover", logdir / "run", "--output", tmp_path / "elsewhere")
    assert (done.exit_code, done.output) == (0, "rank0.3.pt.trace.json.gz: saved\n")
    assert (tmp_path / "elsewhere" / "rank0.3.pt.trace.json.gz").is_file()


def test_a_folder_that_nobody_recorded_into_has_no_status(tmp_path, command):
    assert "No Tracer has recorded into" in str(command("status", tmp_path).exception)
