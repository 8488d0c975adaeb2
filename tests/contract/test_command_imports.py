"""What a command imports: what it answers with. Counts stand for time, which depends on the machine."""

import json
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

import kinetoscope_tb
from kinetoscope_tb.cli.commands import SENTENCES, commands
from support.build import TraceBuilder

CODE = """
import json, sys
before = set(sys.modules)
from kinetoscope_tb.cli import main
try:
    main(sys.argv[1:])
finally:
    print(json.dumps(sorted(set(sys.modules) - before)), file=sys.stderr)
"""


def modules_of(*arguments):
    """The modules that a command leaves loaded."""
    run = subprocess.run([sys.executable, "-c", CODE, *arguments], capture_output=True, text=True, check=False)
    return json.loads(run.stderr.splitlines()[-1])


def packages(modules):
    """Whose modules these are, without Python's own, whose number each version of Python changes."""
    return {module.partition(".")[0] for module in modules} - sys.stdlib_module_names


def ours(modules):
    """Our own modules."""
    return [module for module in modules if module.partition(".")[0] in ("kinetoscope", "kinetoscope_tb")]


@pytest.mark.parametrize("name", SENTENCES)
def test_the_help_of_all_commands_says_of_each_what_its_own_help_says_first(name):
    command = commands.get_command(click.Context(commands), name)
    assert command.name == name
    assert " ".join(command.help.split()).startswith(SENTENCES[name])
    assert SENTENCES[name].endswith(".")


@pytest.mark.parametrize("argument", ["--help", "--version", "--bogus"])
def test_the_list_of_commands_imports_no_command(argument):
    modules = modules_of(argument)
    assert len(ours(modules)) <= 13
    assert packages(modules) <= {"click", "kinetoscope_tb"}


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """One recording of a GPU, alone in its folder."""
    path = tmp_path_factory.mktemp("recording") / "rank0.1.pt.trace.json"
    path.write_text(TraceBuilder().step(1, 0, 100).op("aten::mm", 10, 50).kernel("gemm", 20, 60).text())
    return str(path)


NOT_OF_ONE_RECORDING = {"api", "compare", "timeline.core", "export", "plugin", "distributed.run", "views.distributed"}
NOT_OF_ONE_RECORDING |= {"engine.engine", "engine.trace_cache", "engine.summary_loader", "reader.nsight.ingest"}
NOT_OF_ONE_RECORDING |= {"reader.perfetto.ingest", "web.app", "web.encode_comparison", "cli.compare", "cli.ranks"}
NOT_OF_ONE_RECORDING |= {"measures.graphs.join", "measures.serving.limits", "critical_path.graph"}
NOT_OF_ONE_RECORDING |= {"distributed.collectives.calls", "advice.serving", "measures.calls.module_calls"}


@pytest.mark.parametrize(
    ("arguments", "most", "unneeded"),
    [
        (("summary",), 254, {"web.encode"}),
        (("view", "overview"), 204, {"cli.summary", "answer.recording", "views.overview.advice", "advice.kernels"}),
        (("view", "kernels"), 206, {"cli.summary", "answer.recording", "views.overview.advice", "advice.kernels"}),
    ],
)
def test_an_answer_about_one_recording_imports_what_it_answers_with(arguments, most, unneeded, recording):
    modules = modules_of(*arguments, recording)
    assert {f"kinetoscope_tb.{name}" for name in NOT_OF_ONE_RECORDING | unneeded} & set(modules) == set()
    assert len(ours(modules)) <= most
    assert {"rich.console", "tensorboard", "torch", "fsspec"} & set(modules) == set()


def test_the_page_is_there_before_what_answers_it_is_imported():
    modules = modules_of("open", "--help")
    late = {"web.app", "engine.engine", "reader.read", "timeline", "compare", "distributed", "plugin"}
    assert {f"kinetoscope_tb.{name}" for name in late} & set(modules) == set()
    assert len(ours(modules)) <= 63
    assert {"numpy", "polars", "tensorboard", "torch", "fsspec", "rich.console"} & set(modules) == set()


def test_what_answers_requests_needs_no_tensorboard():
    code = "import sys, kinetoscope_tb.web.app; print(*{name.partition('.')[0] for name in sys.modules})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"tensorboard", "tensorboard_data_server", "torch", "fsspec"} & set(run.stdout.split()) == set()


def test_first_answers_wait_for_no_timeline():
    code = "import sys, kinetoscope_tb.web.app; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    late = {"kinetoscope_tb.timeline", "kinetoscope_tb.export", "kinetoscope_tb.web.export", "kinetoscope_tb.web.area"}
    assert late & set(run.stdout.split()) == set()


@pytest.mark.parametrize("room", ["diagnostics", "discovery", "engine", "filesystem", "measures", "names", "reader"])
def test_importing_a_module_compiles_no_regular_expression(room):
    modules = (Path(kinetoscope_tb.__file__).parent / room).rglob("*.py")
    assert [module for module in modules if re.search(r"^\S.*\bre\.compile\(", module.read_text(), re.MULTILINE)] == []
