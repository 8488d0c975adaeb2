"""The process that writes traces is killed or stopped, or all processes are."""

import os
import re
import signal

import pytest

from support.waiting import wait_for
from torture.truth import LIMIT_S, Rank, Truth, Window, processes_of, run_command, wait_until_gone

FIRST, SECOND = {(0, 5): Window((2, 3, 4))}, {(0, 10): Window((7, 8, 9))}
STEPS = {"warmup": 1, "window": 3, "export": 5, "between": 5}
"""How many steps are complete in a phase."""
WHOLE = Truth({**FIRST, **SECOND}, {0: Rank("ended", "end", 12)})


@pytest.mark.parametrize(
    ("phase", "event"),
    [
        *(
            (phase, event)
            for phase in ("warmup", "window", "merging", "second window")
            for event in ("SIGTERM", "SIGKILL")
        ),
        *(("merging", event) for event in ("SIGINT", "SIGHUP", "SIGSEGV")),  # which it ignores, or dies of, like these
    ],
)
def test_without_its_writer_a_training_loses_nothing(server, tmp_path, phase, event):
    job = server.start(tmp_path, at=phase, event=f"writer {event}")
    assert job.ended() == 0, job.words
    job.holds(WHOLE)


@pytest.mark.parametrize("signals", [{"default": ["SIGPIPE"]}, {"own": ["SIGPIPE"]}], ids=["default", "own"])
def test_a_pipe_to_a_writer_that_is_gone_is_no_signal_to_the_training(server, tmp_path, signals):
    job = server.start(tmp_path, at="second window", event="writer SIGKILL", **signals)
    assert job.ended() == 0, job.words
    job.holds(WHOLE)


@pytest.mark.parametrize("phase", ["merging", "second window"])
def test_what_all_processes_leave_when_they_are_killed_is_finished_later(server, tmp_path, phase):
    job = server.start(tmp_path, at=phase, event="both_killed", holds_writer=True)
    assert job.ended() == -signal.SIGKILL, job.words
    is_open, completed = phase == "second window", 5 if phase == "merging" else 8
    rank = Rank("dead", None, completed, recovered=completed - 5 or None)
    job.holds(Truth({}, {0: rank}, lost=1 + is_open, names=("rank 0",), finished=FIRST, lost_after=int(is_open)))


def test_the_end_says_what_it_waits_for_when_the_writer_is_stopped(server, tmp_path):
    job = server.start(tmp_path, at="second window", event="writer SIGSTOP", close_s=3)
    assert server.ask(wait=job.pid, limit_s=LIMIT_S) == 0, job.words
    (writer,) = processes_of(job.mark)
    try:
        assert re.search(r"(?i)wait", job.words), job.words
        assert "still being written" in job.words
        checked = run_command("check", job.run, scratch=job.scratch)
        assert checked.status == 1, checked.text
        waits = rf"rank 0: span .*10 isn't written yet: process {writer}, .* is stopped; `kill -CONT {writer}`"
        assert re.search(waits, checked.text), checked.text
        assert re.search(waits, run_command("status", job.run, scratch=job.scratch).out)
        recovering = run_command("recover", job.run, scratch=job.scratch)
        assert recovering.status == 1, recovering.text
        assert "still writing" in recovering.text
    finally:
        os.kill(writer, signal.SIGCONT)
    wait_until_gone(job.mark)
    job.holds(WHOLE)


@pytest.mark.parametrize("phase", ["warmup", "window", "export", "between"])
def test_a_training_that_is_stopped_goes_on_where_it_was(server, tmp_path, phase):
    job = server.start(tmp_path, at=phase, event="SIGSTOP")
    assert server.ask(stopped=job.pid, limit_s=LIMIT_S) is None
    output = run_command("status", job.run).out
    assert "rank 0: " in output
    assert "rank 0: dead" not in output
    assert "rank 0: ended" not in output
    slow = rf"rank 0: (running|silent), {STEPS[phase]} steps(, recording)?, step {STEPS[phase]} since [0-9]+ s, usually [0-9.e-]+ s, "
    wait_for(lambda: re.search(slow, run_command("status", job.run).out))
    os.kill(job.pid, signal.SIGCONT)
    assert job.ended() == 0, job.words
    job.holds(WHOLE)


@pytest.mark.parametrize("phase", ["window", "between"])
def test_a_training_that_is_killed_while_it_is_stopped_is_dead(server, tmp_path, phase):
    job = server.start(tmp_path, at=phase, event="SIGSTOP")
    assert server.ask(stopped=job.pid, limit_s=LIMIT_S) is None
    os.kill(job.pid, signal.SIGKILL)
    assert job.ended() == -signal.SIGKILL, job.words
    completed = STEPS[phase]
    windows, lost = ({}, 1) if phase == "window" else (FIRST, 0)
    names = ("rank 0", "since step 2") if lost else ()
    rank = Rank("dead", None, completed, recovered=completed if lost else None)
    job.holds(Truth(windows, {0: rank}, lost=lost, names=names))


@pytest.mark.parametrize("event", ["SIGTERM", "SIGHUP", "SIGINT", "SIGUSR1", "SIGUSR2"])
@pytest.mark.parametrize("phase", ["window", "export", "between"])
def test_a_handler_of_the_program_s_own_decides(server, tmp_path, phase, event):
    job = server.start(tmp_path, at=phase, event=event, own=[event])
    assert job.ended() == 0, job.words
    if event.startswith("SIGUSR"):
        return job.holds(WHOLE)
    windows = FIRST if phase != "window" else {(0, 4): Window((2, 3), event.lower(), is_complete=False)}
    return job.holds(Truth(windows, {0: Rank("ended", event.lower(), 12)}))
