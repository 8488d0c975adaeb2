"""`kinetoscope gate`: exit status, JSON and comment; `gate record`: by turns, complete or not at all."""

import json
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from contract.running import put
from kinetoscope_tb.compare.gate.conditions import FILE_NAME
from support.build import TraceBuilder
from support.waiting import LIMIT_S, wait_for

STEP_NS = 1_000_000


def training(length_ns):
    """Three steps of about this length."""
    trace, at = TraceBuilder(), 0
    for number in range(3):
        trace.step(number, at, length_ns).op("aten::mm", at + 10, length_ns // 2)
        at += length_ns
    return trace.window(0, 2 * at)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Six runs of a training, six of one that is 5 % slower, three windows of one process."""
    folder = tmp_path_factory.mktemp("gated")
    for nth in range(6):
        own = STEP_NS + 5_000 * nth
        put(folder, f"main-{nth}/rank0.5.pt.trace.json", text=training(own).text())
        put(folder, f"same-{nth}/rank0.5.pt.trace.json", text=training(own + 100).text())
        put(folder, f"slow-{nth}/rank0.5.pt.trace.json", text=training(own * 105 // 100).text())
        put(folder, f"windows/rank0.{nth}.pt.trace.json", text=training(own).text())
    return str(folder)


@pytest.fixture
def gate(kinetoscope, runs):
    def run(base, new, *arguments):
        return kinetoscope("gate", runs, "--base-run", base, "--new-run", new, *arguments)

    return run


def test_a_regression_is_exit_status_2_and_is_called_real(gate):
    status, out, _ = gate("main-*", "slow-*")
    assert status == 2
    assert "a real regression: as far apart by chance in 0.11 % of the cases." in out
    assert "real" in next(line.split() for line in out.splitlines() if line.startswith("operator"))


def test_no_regression_is_exit_status_0(gate):
    status, out, _ = gate("main-*", "same-*")
    assert (status, "no regression of 3 %: 3 % or more would be seen." in out) == (0, True)
    assert gate("slow-*", "main-*")[0] == 0  # an improvement


def test_what_cannot_be_told_is_exit_status_3(gate):
    status, out, _ = gate("main-[012]", "slow-[012]")
    assert status == 3
    assert "cannot tell: a false-alarm rate of 1 % takes 5 recordings a side; there are 3 and 3." in out


def test_windows_of_one_process_count_once_unless_asked_for(gate):
    status, out, _ = gate("main-*", "windows")
    assert status == 3
    assert "New: 6 windows of one process." in out
    assert gate("main-*", "windows", "--count-windows")[0] == 0


def test_json_has_all_of_it(gate):
    status, out, _ = gate("main-*", "slow-*", "--format", "json", "--number", "step", "--number", "overview[CPU Exec]")
    answer = json.loads(out)
    assert (status, answer["outcome"], answer["exit_status"]) == (2, "regression", 2)
    first, second = answer["numbers"]
    assert (first["number"], second["number"]) == ("step", "overview[CPU Exec]")
    assert first["p_worse"] == pytest.approx(2 / 924)
    assert first["growth_frac"] == pytest.approx(0.05, abs=1e-4)
    assert len(first["base"]) == len(answer["recordings"]) // 2 == 6
    assert {row["verdict"] for row in answer["rows"]} == {"real"}


def test_the_comment_comes_with_a_picture(gate, tmp_path):
    gate("main-*", "slow-*", "--comment", str(tmp_path / "gate.md"))
    text = (tmp_path / "gate.md").read_text()
    assert text.startswith("### 🔴 Regression\n")
    assert "![A dot per recording](gate.svg)" in text
    assert (tmp_path / "gate.svg").read_text().count("<circle") == 12


def test_folders_and_patterns_name_the_same_recordings(kinetoscope, runs):
    status, out, _ = kinetoscope("gate", f"{runs}/main-*", f"{runs}/slow-*/*.json", "--format", "json")
    assert (status, len(json.loads(out)["recordings"])) == (2, 12)


@pytest.mark.parametrize(
    ("base", "new", "arguments", "words"),
    [
        ("main-*", "main-*", [], "is on both sides"),
        ("main-*", "gone-*", [], "has no recording of run 'gone-\\*'"),
        ("main-*", "slow-*", ["--number", "operators"], "name one row"),
        ("main-*", "slow-*", ["--number", "overview[Communication]"], "above 0"),
    ],
)
def test_what_fails_is_exit_status_1(gate, base, new, arguments, words):
    status, _, err = gate(base, new, *arguments)
    assert status == 1
    assert words.replace("\\", "") in err


# ---- gate record

RECORD = """
import os, pathlib, shutil, sys, time
target = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else os.environ["KINETOSCOPE_GATE_OUT"])
with open(sys.argv[1] + ".calls", "a") as calls:
    calls.write(target.parent.name + "\\n")
if os.path.exists(sys.argv[1] + ".fail"):
    sys.exit("the training failed: no such dataset")
while os.path.exists(sys.argv[1] + ".wait"):
    time.sleep(0.01)
shutil.copy(sys.argv[1], target / "rank0.1.pt.trace.json")
"""


@pytest.fixture
def scripts(tmp_path):
    """A command for each side, which records a trace that is there."""
    (tmp_path / "record.py").write_text(RECORD)
    commands = []
    for name, length in (("base", STEP_NS), ("new", STEP_NS * 11 // 10)):
        (tmp_path / f"{name}.json").write_text(training(length).text())
        commands.append(shlex.join([sys.executable, str(tmp_path / "record.py"), str(tmp_path / f"{name}.json")]))
    return commands[0], f"{commands[1]} {{out}}"


def test_recordings_are_made_by_turns_and_judged(kinetoscope, scripts, tmp_path):
    out_folder = tmp_path / "out"
    status, out, err = kinetoscope("gate", "record", "-n", "5", "--interleave", *scripts, "--out", str(out_folder))
    assert status == 0, err
    turns = [line.partition(": ")[2].split(" of")[0] for line in err.splitlines()]
    assert turns == [f"{side} {nth}" for nth in range(1, 6) for side in ("base", "new")]
    judge = out.splitlines()[-1].removeprefix("To judge them: kinetoscope ")
    assert kinetoscope(*shlex.split(judge))[0] == 2
    noted = json.loads((out_folder / "new" / "03" / FILE_NAME).read_text())
    assert (noted["side"], noted["nth"], noted["command"]) == ("new", 3, scripts[1])
    assert noted["environment"]["host"]
    assert len((tmp_path / "base.json.calls").read_text().splitlines()) == 6  # one to warm up


def test_a_failing_command_says_what_it_printed_and_the_next_call_goes_on(kinetoscope, scripts, tmp_path):
    arguments = ("gate", "record", "-n", "2", "--warm-up", "0", *scripts, "--out", str(tmp_path / "out"))
    (tmp_path / "new.json.fail").touch()
    status, _, err = kinetoscope(*arguments)
    assert status == 1
    assert "new 1 of 2: exit status 1." in err
    assert "the training failed: no such dataset" in err
    (tmp_path / "new.json.fail").unlink()
    status, _, err = kinetoscope(*arguments)
    assert (status, [line.split(": ")[1].split(",")[0] for line in err.splitlines()]) == (
        0,
        ["new 1 of 2", "base 2 of 2", "new 2 of 2"],
    )
    status, _, err = kinetoscope(*arguments[:-4], "true", "true", *arguments[-2:])
    assert (status, "is a recording of another command" in err) == (1, True)


def test_a_command_that_cannot_start_is_named(kinetoscope, tmp_path):
    status, _, err = kinetoscope("gate", "record", "no-such-program {out}", "true", "--out", str(tmp_path / "out"))
    assert (status, "'no-such-program' can't be started" in err) == (1, True)


@pytest.mark.skipif(sys.platform == "win32", reason="signals as Linux and macOS have them")
def test_a_killed_call_leaves_complete_recordings_alone(scripts, tmp_path):
    (tmp_path / "new.json.wait").touch()
    out = tmp_path / "out"
    command = [sys.executable, "-m", "kinetoscope_tb", "gate", "record", *scripts, "-n", "2", "--warm-up", "0"]
    process = subprocess.Popen([*command, "--out", str(out)], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    calls = Path(f"{tmp_path / 'new.json'}.calls")
    wait_for(calls.exists)
    process.send_signal(signal.SIGTERM)
    assert process.wait(LIMIT_S) == 128 + signal.SIGTERM
    assert sorted(path.name for path in out.iterdir()) == [".unfinished", "base"]
    assert [path.name for path in (out / "base").iterdir()] == ["01"]
