"""Each command of README and docs runs from a wheel in an empty home at 80 columns, and prints what the page says.

What a view prints is held against its frame: the value of the row that weighs most, in the unit of the heading.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

import kinetoscope_tb
from kinetoscope_tb.text_table import text_column
from kinetoscope_tb.views import EVERY_VIEW
from newcomer.commands import Command, documented
from newcomer.installing import ROOT
from newcomer.places import COLUMNS, Home, furnish
from support.forks import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kinetoscope_tb.api import Profile

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="terminals as Linux and macOS have them")

KINDS = ("cpu", "gpu", "server")
EXCUSED = {  # beginnings of commands that aren't run here, each with the reason
    "make": "needs the clone; the tests run by it",
    "git": "gets the clone",
    "pip": "the wheel is installed by pip; what the extras name is installed for the tests",
    "py-spy": "another profiler, of a process that runs",
    "torchrun": "a user's training; tests/torture starts ours",
    "srun": "a cluster",
    "vllm": "a server of models",
    "curl": "a server of models",
    "export": "a variable of a server of models",
    "touch": "needs a job that runs: tests/contract/test_jobs.py",
    "kinetoscope gate": "needs several recordings a side: tests/contract/test_gate.py",
    "kinetoscope history": "needs a dozen runs and ends with 3 for fewer: tests/contract/test_history.py",
    "kinetoscope open": "serves until its page is closed: tests/contract/test_open.py, tests/contract/test_places.py",
    "cat trace.json.gz '|' kinetoscope open": "like it, with standard input: tests/contract/test_open.py",
    "kinetoscope why": "needs dumps of a job that hangs: tests/contract/test_why.py",
    "kinetoscope selftest": "kills trainings for half a minute: tests/torture/test_selftest.py",
    "kinetoscope run": "a user's training: tests/unit/producer/test_program.py",
    "kinetoscope trigger": "needs a job that runs: tests/contract/test_jobs.py",
    "kinetoscope demo": "trains for half a minute: tests/unit/producer/test_demo.py",
    "tensorboard --logdir s3://": "needs S3: tests/contract/test_places.py",
    "tensorboard --logdir runs": "test_oldest_dependencies.py starts it",
    "kinetoscope view steps https://": "needs a web server: tests/contract/test_places.py",
}
FIRST = ("summary", "view operators", "view kernels", "compare", "report")  # run on every kind of recording
PROMISED = {  # what a command prints beside the rows of a view
    "summary": {
        "cpu": r"Rank 1 \(on vm\) spends 89\.7 ms longer on the host in each step: 80\.7",
        "gpu": r"Rank 2 loads data 4\.96 ms longer in each step: 4\.96",
        "server": "mixed at least 26 624 tokens/s",
    },
    "prune": dict.fromkeys(KINDS, r"(Would remove|Removed) 0 windows, 0 B; .* stay\."),
    "compare": dict.fromkeys(KINDS, r"(The (average|typical) step.*: .* \+?0 %|er step: |nothing to compare)"),
    "views": {"gpu": "overview Overview"},
    "event": {"gpu": r'"name": "'},
    "check": {"gpu": r"rank0", "cpu": r"rank0"},
    "report": {"cpu": r"2 recordings, ", "gpu": r"4 recordings, ", "server": r"1 recording, "},
    "export": {"gpu": r"out\.json\.gz: [\d,]+ slices( of 4 workers)?, [\d.]+ kB\."},
    "stacks": {"server": r"out\.[a-z.]+: [\d,]+ stacks, [\d.]+ kB\."},
    "otlp": {"gpu": r"\d+ steps of \d recordings?, [\d.]+ kB\."},
    "tables": {"gpu": r"out: \d+ tables, [\d.]+ [kM]B\."},
    "merge": {"gpu": r"all\.json\.gz: [\d,]+ events of 4 workers\."},
    "repair": {"gpu": r"fixed\.json\.gz: [\d,]+ events, "},
    "publish": {"gpu": r"rank0"},
    "status": {"cpu": r"requests"},
    "recover": {"cpu": r"[Nn]othing|no "},
    "index": {"gpu": r"\d+ recordings, \d+ of them summarized"},
    "cache": {"gpu": r"\d+ traces?, [\d.]+ kB of at most "},
}

IMPORTED = [f"kinetoscope_tb.{name}" for name in ("api", "cli.summary", "cli.view", "cli.compare", "cli.report")]
"""What most commands import."""

RECORDINGS = {
    "cpu": "cases/20_slow_rank_two_gloo/slower/*.gz",
    "gpu": "causes/21_straggler_each_step/*.gz",
    "server": "inference/vllm_prefilldecode_piecewise/graph_execution.json.gz",
}


def excuse(command: Command) -> str:
    line = shlex.join(command.words)
    return next((reason for start, reason in EXCUSED.items() if line.startswith(start)), "")


def kinds_of(command: Command) -> tuple[str, ...]:
    """The kinds of recordings that a command is run on: at least the one that its page is about."""
    line = shlex.join(command.words)
    if command.page == "inference.md" or line.startswith("kinetoscope stacks"):
        return ("server",)  # the one with Python calls
    if command.page.startswith("recording"):
        return ("cpu",)
    is_first = any(line.startswith(f"kinetoscope {start}") for start in FIRST)
    if is_first and command.page in ("README.md", "command-line.md"):
        return KINDS
    return ("cpu",) if line.split()[1] in ("status", "recover") else ("gpu",)


RUN = {  # a command that several pages name runs once on each kind
    (kind, command.words): pytest.param(kind, command, id=f"{kind}-{command}")
    for command in documented()
    if not excuse(command)
    for kind in kinds_of(command)
}


@pytest.fixture(scope="module")
def homes(tmp_path_factory, traces) -> dict[str, Home]:
    return {
        kind: furnish(tmp_path_factory.mktemp(kind), kind, sorted(traces.parent.glob(pattern)))
        for kind, pattern in RECORDINGS.items()
    }


@pytest.fixture(scope="module")
def forks(tmp_path_factory, programs) -> Iterator[Server | None]:
    """Forks commands of the wheel from a process that has imported it; tests/contract/test_command_imports.py starts some."""
    if sys.platform != "linux":
        yield None
        return
    environ = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    server = Server(tmp_path_factory.mktemp("forks"), *IMPORTED, environ=environ, python=programs / "python")
    yield server
    server.end()


def arguments(command: Command, home: Home) -> tuple[list[str], dict[str, str]]:
    """The words for this home, and the variables before them: steps, phases and offsets are those of its recording."""
    words = ["runs/ddp" if word == "LOGDIR" else word.replace("~", str(home.folder)) for word in command.words]
    variables = dict(word.split("=", 1) for word in words if re.match(r"[A-Z_]+=", word))
    words = [word for word in words if not re.match(r"[A-Z_]+=", word)]
    profile = opened(home, words)
    values = {
        "--step": lambda: profile.complete_steps[0],
        "--phase": lambda: profile.view("phases")["phase"][0],
        "--offset": lambda: str(re.search(r'\{"ph": ?"X"', (home.folder / "trace.json").read_text()).start()),
        "--from": lambda: "0.001s",
    }
    for option, value in values.items():
        if option in words and "rank0.104.memory.pickle" not in words:  # its step is that of the document
            words[words.index(option) + 1] = value()
    return words, variables


def opened(home: Home, words: list[str]) -> Profile:
    path = next((word for word in words if (home.folder / word).exists()), "trace.json.gz")
    path = path if not path.startswith(("out", "broken", "trace.json")) else "trace.json.gz"
    return profile_of(home.folder / path)


@cache
def profile_of(path: Path) -> Profile:
    """A recording of a home, which no command changes."""
    return kinetoscope_tb.open(path)


def promised_of_view(home: Home, words: list[str]) -> str:
    """The value that weighs most in the frame of a view, as its column is printed; what is missing is said."""
    view = EVERY_VIEW[words[2]]
    parameters = {}
    options = words[4:]
    for parameter in (p.name for p in view.parameters):
        if (option := f"--{parameter.replace('_', '-')}") in options:
            parameters[parameter] = options[options.index(option) + 1]
    for name in ("phase", "step"):
        if f"--{name}" in options and view.takes_steps:
            parameters[name] = options[options.index(f"--{name}") + 1]
    frame = opened(home, words).view(view.id, **parameters)
    weight = view.table.weight or next(column.name for column in view.table.columns)
    kind = next(column.kind.name for column in view.table.columns if column.name == weight)
    if frame.is_empty() or frame[weight].is_null().all():
        return ""
    is_csv = options[-2:] == ["--format", "csv"]
    cells = (
        frame[weight].cast(pl.String).to_list() if is_csv else text_column(weight, kind, frame[weight].to_list()).cells
    )
    return cells[frame[weight].arg_max() or 0] if frame.height <= 20 and "--top" not in options else ""


def promises(home: Home, words: list[str]) -> str:
    if words[-2:] == ["--format", "json"]:
        return '"state":"ready"'
    if words[1:] == ["summary", "snapshot.pickle"]:
        return "Memory grows with each step, until the request of"
    if words[1:4] == ["compare", "before.pickle", "after.pickle"]:
        return r"Alive: 77\.6 GiB → 77\.6 GiB\."
    if words[1] != "view":
        return PROMISED[words[1]].get(home.kind, "")
    try:
        return re.escape(promised_of_view(home, words))
    except kinetoscope_tb.errors.MissingData as missing:
        return re.escape(str(missing).partition(". ")[2].split(". ")[0])


@pytest.mark.parametrize(("kind", "command"), RUN.values())
def test_it_prints_what_the_page_promises(kind, command, homes, programs, forks):
    home = homes[kind]
    words, variables = arguments(command, home)
    status, shown = home.run(programs, words, forks if words[0] == "kinetoscope" else None, **variables)
    assert status == 0, shown
    assert "Traceback" not in shown
    assert re.search(promises(home, words), " ".join(shown.split())), shown
    if words[1] in ("summary", "view") and "--format" not in words:
        tables = [line for line in shown.splitlines() if re.search(r"\S {2,}\S", line)]
        assert all(len(line) <= COLUMNS for line in tables), shown


def test_every_command_is_run_or_excused_with_a_reason_that_is_needed():
    commands = documented()
    assert len(commands) > 50
    assert {words for _, words in RUN} == {command.words for command in commands if not excuse(command)}
    lines = [shlex.join(command.words) for command in commands]
    assert [start for start in EXCUSED if not any(line.startswith(start) for line in lines)] == []


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_the_python_page_runs_in_a_fresh_environment(kind, homes, programs):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python-api.md").read_text(), re.DOTALL)
    script = homes[kind].folder / "blocks.py"
    script.write_text("\n".join(blocks))
    status, shown = homes[kind].run(programs, ["python", "blocks.py"])
    assert status == 0, shown
    top = kinetoscope_tb.open(homes[kind].folder / "runs").operators.sort("host_self_ns", descending=True)
    assert str(top["host_self_ns"][0]) in shown


def test_the_command_is_that_of_the_wheel(homes, programs):
    status, shown = homes["cpu"].run(
        programs, ["python", "-c", "import kinetoscope_tb; print(kinetoscope_tb.__file__)"]
    )
    assert status == 0
    assert Path(shown.strip()).is_relative_to(programs.parent)
