"""After a training, rank 0 says how to look at its traces: one line, once."""

import logging

import pytest
import torch

from kinetoscope import Tracer, cyclic
from kinetoscope.output.next_command import say_next_command

SCHEDULE = cyclic(wait=0, active=1)


@pytest.fixture(autouse=True)
def quiet_logger():
    """The logger as in a program that configures no logging."""
    logger = logging.getLogger("kinetoscope")
    level = logger.level
    yield logger
    logger.setLevel(level)


def record(logdir, run="run", steps=3):
    with Tracer(logdir, run=run, schedule=SCHEDULE, scalars=False, system=()) as tracer:
        for _ in tracer.steps(range(steps)):
            torch.ones(4).relu()


def test_the_next_command_is_one_line_on_standard_error_once(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    record("my runs")
    record("my runs", run="again")
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith("kinetoscope: ")]
    command = "kinetoscope summary 'my runs/run' or tensorboard --logdir 'my runs'"
    assert lines == [f"kinetoscope: 1 trace in 'my runs/run'. Next: {command}"]


def test_a_log_of_level_info_has_it_instead(tmp_path, capfd, caplog):
    with caplog.at_level(logging.INFO, "kinetoscope"):
        record(tmp_path)
    assert [text for text in caplog.messages if "Next: kinetoscope summary" in text]
    assert "Next: " not in capfd.readouterr().err


def test_nothing_is_said_of_no_trace_by_other_ranks_or_to_a_silent_logger(tmp_path, capfd, quiet_logger, monkeypatch):
    record(tmp_path, run="short", steps=1)
    with monkeypatch.context() as patch:
        patch.setenv("RANK", "1")
        patch.setenv("WORLD_SIZE", "2")
        record(tmp_path, run="other")
    quiet_logger.setLevel(logging.ERROR)
    say_next_command(1, tmp_path, tmp_path / "run")
    assert "Next: " not in capfd.readouterr().err
