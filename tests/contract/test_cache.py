"""Two TensorBoards on one logdir share what they have read; one that is killed leaves nothing broken."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import time

import pytest

from contract.running import a_trace, serving
from kinetoscope_tb.cli import main
from kinetoscope_tb.engine.cache import Cache
from kinetoscope_tb.filesystem import entry_at
from support.waiting import LIMIT_S, wait_for

NAMES = {"run": "job", "worker": "rank0", "span": "1"}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KINETOSCOPE_CACHE", str(tmp_path / "cache"))
    return Cache(tmp_path / "cache")


@pytest.fixture
def trace(tmp_path):
    """A trace that is large enough to be kept."""
    many = a_trace()
    for nth in range(20_000):
        many.op(f"op{nth % 100}", at=900_000 + nth, dur=1, thread=2)
    path = tmp_path / "logdir" / "job" / "rank0.1.pt.trace.json"
    path.parent.mkdir(parents=True)
    path.write_text(many.text())
    return path


def answers(server):
    return [server.settled(route, **query, **NAMES).json for route, query in (("state", {}), *VIEWS)]


VIEWS = [("view", {"view": view}) for view in ("steps", "operators", "kernels", "overview")]


def stamp_of(path):
    return entry_at(str(path)).stamp


def blank(path, cache):
    """Blanks instead of the trace, which the cache alone still knows."""
    known = cache.open(str(path), stamp_of(path))
    cache.clear()
    path.write_bytes(b" " * path.stat().st_size)
    cache.write(known, str(path), stamp_of(path))


def test_two_tensorboards_share_what_one_has_read(cache, trace, tmp_path):
    with serving(f"--logdir={tmp_path}/logdir") as one:
        read = answers(one)
        wait_for(cache.entries)
        blank(trace, cache)
        with serving(f"--logdir={tmp_path}/logdir") as other:  # after that, or it may have listed the trace before
            assert answers(other) == read
    assert [answer["state"] for answer in read] == ["ready"] * 5


def test_a_tensorboard_killed_at_any_moment_leaves_no_broken_entry(cache, trace, tmp_path, caplog):
    caplog.set_level("INFO")
    stamp = stamp_of(trace)
    for moment in ("at once", "while it reads", "while it writes", "after it has written"):
        with serving(f"--logdir={tmp_path}/logdir") as server:
            server.plugin("state", **NAMES)
            if moment == "while it reads":
                time.sleep(0.1)  # any moment will do: nothing outside tells that it reads
            elif moment == "while it writes":
                wait_for(lambda: list(cache.folder.glob("*")))
            elif moment == "after it has written":
                wait_for(cache.entries)
            server.kill()
        cached = cache.open(str(trace), stamp)
        assert cached is None or cached.meta.events > 20_000
        assert caplog.text == ""  # a broken one would be told
    with serving(f"--logdir={tmp_path}/logdir") as server:
        assert [answer["state"] for answer in answers(server)] == ["ready"] * 5


COMMAND = (sys.executable, "-c", "import sys; from kinetoscope_tb.cli import main; main(sys.argv[1:])")


def test_servers_and_commands_fill_one_cache_at_once(cache, trace, tmp_path):
    traces = [trace, *(trace.with_name(f"rank{rank}.1.pt.trace.json") for rank in (1, 2))]
    for other in traces[1:]:
        shutil.copyfile(trace, other)
    operators = ("view", "operators", "--format", "json")
    commands = [
        subprocess.Popen([*COMMAND, *operators, str(path)], stdout=subprocess.PIPE, text=True)
        for path in (*traces, *traces)
    ]
    with serving(f"--logdir={tmp_path}/logdir") as one, serving(f"--logdir={tmp_path}/logdir") as other:
        assert answers(one) == answers(other)
    printed = [command.communicate(timeout=LIMIT_S)[0] for command in commands]
    assert [command.returncode for command in commands] == [0] * 6
    assert len(set(printed)) == 1
    assert {entry.path for entry in cache.entries()} == set(map(str, traces))
    assert cache.unfinished_bytes() == 0
    for path in traces:
        assert cache.open(str(path), stamp_of(path)) is not None


def test_a_full_disk_under_the_cache_costs_no_answer(cache, trace, tmp_path, monkeypatch):
    small = tmp_path / "small"
    small.mkdir()
    mount = f"mount -t tmpfs -o size=64k tmpfs {shlex.quote(str(small))}"
    inside = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"]), "sh", "-c"]
    if shutil.which("unshare") is None or subprocess.run([*inside, mount], capture_output=True, check=False).returncode:
        pytest.skip("this system doesn't allow a process to mount its own disk")
    view = shlex.join([*COMMAND, "view", "operators", str(trace), "--format", "json"])
    monkeypatch.setenv("KINETOSCOPE_CACHE", "off")
    expected = subprocess.run(view, shell=True, capture_output=True, text=True, check=True).stdout
    monkeypatch.setenv("KINETOSCOPE_CACHE", str(small / "cache"))
    monkeypatch.setenv("KINETOSCOPE_CACHE_SIZE", "1G")
    listing = f"ls -A {shlex.quote(str(small / 'cache'))} >&2"
    done = subprocess.run([*inside, f"{mount} && {view} && {listing}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == expected
    assert "can't be written (No space left on device). Traces are read again." in done.stderr
    assert done.stderr.splitlines()[-1].endswith("Traces are read again.")  # no part of an entry is left


def kinetoscope(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_the_command_line_uses_the_cache_too(cache, trace, capsys):
    view = ("view", "operators", str(trace), "--format", "json")
    read = kinetoscope(capsys, *view)
    blank(trace, cache)
    assert kinetoscope(capsys, *view) == read
    listed = json.loads(kinetoscope(capsys, "cache", "--format", "json"))
    assert (listed["folder"], [kept["path"] for kept in listed["traces"]]) == (str(cache.folder), [str(trace)])
    assert f"1 trace, {listed['traces'][0]['bytes'] / 1e3:.0f} kB of at most" in kinetoscope(capsys, "cache")
    assert "freed" in kinetoscope(capsys, "cache", "--clear")
    assert json.loads(kinetoscope(capsys, "cache", "--format", "json"))["traces"] == []


def test_the_cache_can_be_off(cache, trace, capsys, monkeypatch):
    monkeypatch.setenv("KINETOSCOPE_CACHE", "off")
    kinetoscope(capsys, "view", "steps", str(trace))
    assert not cache.folder.exists()
    assert kinetoscope(capsys, "cache") == "The cache is off.\n"
    assert json.loads(kinetoscope(capsys, "cache", "--format", "json")) == {"folder": None}
