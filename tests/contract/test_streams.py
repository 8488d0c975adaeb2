"""The command line where output can't be written, Python leaves docstrings out, or a path is none: a line, no traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from contract.running import put
from kinetoscope_tb import open as open_recording
from kinetoscope_tb.cli import main
from kinetoscope_tb.errors import LogdirError

ROOT = Path(__file__).parents[2]
RUN = ("-c", "from kinetoscope_tb.cli import main; main()")
FULL = Path("/dev/full")


@pytest.fixture(scope="module")
def logdir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streams")
    put(folder, "job/rank0.5.pt.trace.json", "job/rank1.5.pt.trace.json")
    (folder / "job/.work").mkdir()
    return folder


def run(*arguments, flags=(), env=None, shell=None, **streams):
    """Exit status, standard output and standard error of a command in a process of its own."""
    command = [sys.executable, *flags, *RUN, *map(os.fspath, arguments)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    if shell is not None:
        command = ["sh", "-c", f'"$@" {shell}', "sh", *command]
    done = subprocess.run(command, env={**os.environ, **(env or {})}, check=False, timeout=300, **streams)
    return done.returncode, (done.stdout or b"").decode(), (done.stderr or b"").decode()


COMMANDS = {
    "help": ("--help",),
    "views": ("views",),
    "json": ("view", "operators", "{}", "--format", "json"),
    "csv": ("view", "operators", "{}", "--format", "csv"),
    "text": ("view", "run_health", "{}"),
    "check": ("check", "{}"),
    "compare": ("compare", "{}", "--base-worker", "rank0", "--new-worker", "rank1"),
    "event": ("event", "{}", "--offset", "175"),
    "status": ("status", "{}/job"),
    "cache": ("cache",),
}


@pytest.mark.skipif(not FULL.exists(), reason="a device that is always full")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_is_said_in_one_line(name, logdir):
    with FULL.open("w") as full:
        status, _, err = run(*(part.format(logdir) for part in COMMANDS[name]), stdout=full)
    assert status == 1
    assert err.splitlines()[-1] == "Error: The answer can't be written: No space left on device."
    assert "Traceback" not in err


@pytest.mark.skipif(sys.platform == "win32", reason="a shell's closed output")
@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-", ">&- 2>&- <&-"])
def test_a_closed_output_is_refused_before_a_file_gets_its_number(closed, logdir):
    out = logdir / "out.html"
    status, _, err = run("report", logdir, out, shell=closed)
    assert status == 1
    assert err == (
        "" if "2>" in closed else "Error: Standard output is closed. Redirect it to a file, or to /dev/null.\n"
    )
    assert not out.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="a shell's closed output")
def test_a_closed_error_output_leaves_the_answer_whole(logdir):
    status, out, _ = run("view", "operators", logdir, "--format", "json", shell="2>&-")
    assert (status, json.loads(out)["state"]) == (0, "ready")


@pytest.mark.skipif(sys.platform == "win32", reason="a shell's pipe")
def test_a_reader_that_has_seen_enough_is_no_failure(logdir):
    status, out, err = run("views", "--format", "markdown", shell="| head -n 1")
    assert (status, out, err) == (0, "# Views and columns\n", "")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-16"])
@pytest.mark.parametrize("form", ["json", "text"])
def test_what_an_encoding_has_no_letters_for_is_spelled_as_json_does(encoding, form, tmp_path):
    put(tmp_path, "naïve µ 計 😀/rank0.5.pt.trace.json")
    env = {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0", "LC_ALL": "C"}
    done = subprocess.run(
        [sys.executable, *RUN, "view", "environment", str(tmp_path), "--format", form, "--run", "nowhere 計"],
        env={**os.environ, **env, "PYTHONUTF8": "1"},
        capture_output=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr
    if form == "json":
        output = json.loads(done.stdout.decode("utf-8" if encoding == "ascii" else encoding))
        assert "naïve µ 計 😀" in output["message"]


def test_without_docstrings_all_is_explained_as_with_them(logdir):
    assert run("views", "--format", "markdown", flags=("-OO",))[1] == (ROOT / "docs/metrics.md").read_text(
        encoding="utf-8"
    )
    assert run("--help", flags=("-OO",)) == run("--help")
    assert run("merge", "--help", flags=("-OO",)) == run("merge", "--help")
    shown = ("view", "kernels", logdir, "--format", "json")
    assert run(*shown, flags=("-OO",)) == run(*shown)


PATHS = ["a\0b", "\ud800", "\udcff\udcfe", "x" * 10_000, "a\nb\x1b[31m"]


@pytest.mark.parametrize("path", PATHS, ids=ascii)
@pytest.mark.parametrize(
    "command",
    [
        ("view", "operators", "{}"),
        ("check", "{}"),
        ("compare", "{}", "{}"),
        ("event", "{}", "--offset", "1"),
        ("export", "{}", "out.json.gz"),
        ("index", "{}"),
        ("merge", "{}", "out.json"),
        ("publish", "{}", "published"),
        ("repair", "{}", "out.json"),
        ("report", "{}", "out.html"),
        ("stacks", "{}", "out.folded"),
        ("tables", "{}", "out"),
        ("status", "{}"),
        ("trigger", "{}"),
        ("recover", "{}"),
    ],
    ids=lambda command: command[0],
)
def test_a_path_that_is_none_is_named_in_a_message(command, path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main([path if part == "{}" else part for part in command])
    _, err = capsys.readouterr()
    assert ended.value.code == 1
    assert "Error: " in err
    assert "\x1b" not in err


@pytest.mark.parametrize("path", ["a\0b", "\ud800"], ids=ascii)
def test_a_path_that_is_none_is_named_to_a_program_too(path):
    with pytest.raises(LogdirError, match="no folder can have this name"):
        open_recording(path)


@pytest.mark.parametrize("path", PATHS, ids=ascii)
@pytest.mark.parametrize(
    "command", [("export", "out.json.gz"), ("merge", ".json"), ("report", ".html"), ("repair", ".json")]
)
def test_a_file_that_can_not_be_written_is_named_in_a_message(command, path, logdir, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    trace = logdir / "job/rank0.5.pt.trace.json"
    with pytest.raises(SystemExit) as ended:
        main([command[0], str(trace), f"nowhere/{path}{command[1]}"])
    assert ended.value.code == 1
    assert "Error: " in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes")
@pytest.mark.parametrize("command", ["export", "merge", "report", "repair"])
def test_a_pipe_is_never_replaced_by_a_file(command, logdir, tmp_path, capsys):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(SystemExit) as ended:
        main([command, str(logdir / "job/rank0.5.pt.trace.json"), str(pipe)])
    assert ended.value.code == 1
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]
    assert str(pipe) in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes")
@pytest.mark.parametrize("command", [("view", "operators"), ("check",), ("repair",)])
def test_a_pipe_in_place_of_a_trace_is_said_and_never_waited_for(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pipe = tmp_path / "rank0.5.pt.trace.json"
    os.mkfifo(pipe)
    with pytest.raises(SystemExit) as ended:
        main([*command, str(pipe), *(["out.json"] if command == ("repair",) else [])])
    out, err = capsys.readouterr()
    assert ended.value.code == 1
    assert "named pipe" in out + err or "empty" in out + err
