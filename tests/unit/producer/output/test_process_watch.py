"""How a process ended, seen from one that it started."""

import os
import signal
from subprocess import Popen

import pytest

from kinetoscope.output.process_watch import ProcessWatch, exit_status, oom_kills
from support.waiting import LIMIT_S

V1 = ["9:cpu:/", "4:memory:/job/7", "0::/"]


def ended_process(end):
    """A process that ended, and a watch of it that begins after that."""
    go_on = os.pipe()
    pid = os.fork()
    if not pid:
        os.read(go_on[0], 1)
        end()
        os._exit(0)
    watch = ProcessWatch(pid)
    os.write(go_on[1], b"\n")
    for descriptor in go_on:
        os.close(descriptor)
    return pid, watch


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (lambda: os._exit(3), {"exit_code": 3}),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), {"signal": signal.SIGKILL}),
    ],
)
def test_it_says_how_a_process_ended(end, expected):
    pid, watch = ended_process(end)
    watch.begin()
    facts = watch.facts()
    os.waitpid(pid, 0)
    assert {key: facts.get(key) for key in expected} == expected
    assert facts["ns"] > 0
    assert "signal" not in facts or "exit_code" not in facts


def test_of_a_process_that_lives_it_knows_nothing(monkeypatch):
    monkeypatch.setattr("kinetoscope.output.process_watch._PATIENCE_S", 0.01)
    with Popen(["sleep", str(LIMIT_S)]) as process:
        watch = ProcessWatch(process.pid)
        watch.begin()
        assert watch.facts() == {}
        process.kill()
    watch._thread.join(LIMIT_S)  # others wait for threads of the recorder


def test_where_the_system_does_not_say_nothing_is_guessed():
    assert exit_status(2**22 + 1, None) is None
    assert exit_status(os.getpid(), None) is None  # it lives


@pytest.mark.parametrize(
    ("lines", "file", "text"),
    [
        (V1, "memory/job/7/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"),
        (V1, "memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"),
        (["0::/job"], "job/memory.events", "low 0\noom 5\noom_kill 2\noom_group_kill 0\n"),
        (["0::/../outside"], "memory.events", "oom_kill 2\n"),
    ],
)
def test_the_count_is_that_of_the_own_control_group_or_of_the_container(tmp_path, lines, file, text):
    groups, own = tmp_path / "cgroup", tmp_path / "own"
    own.write_text("\n".join(lines) + "\n")
    (groups / file).parent.mkdir(parents=True)
    (groups / file).write_text(text)
    assert oom_kills(groups, own) == 2


def test_without_control_groups_there_is_no_count(tmp_path):
    (tmp_path / "own").write_text("no control group\n")
    assert oom_kills(tmp_path, tmp_path / "own") is None
    assert oom_kills(tmp_path, tmp_path / "none") is None
