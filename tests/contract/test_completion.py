"""Tab completion: what the shells ask for, and the scripts that they load."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kinetoscope_tb.cli.completion import SHELLS
from kinetoscope_tb.views import EVERY_VIEW

RUN = (sys.executable, "-c", "from kinetoscope_tb.cli import main; main()")


def completions(shell, line, *, code=RUN[2]):
    """What a shell gets at a Tab at the end of the line: the texts, and the output as it is."""
    words = line.split(" ")
    asked = {
        "_KINETOSCOPE_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": words[-1] if shell == "fish" else str(len(words) - 1),
    }
    done = subprocess.run(
        [*RUN[:2], code], env={**os.environ, **asked}, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    if shell == "zsh":  # three lines each: kind, text, help
        return lines[1::3], done.stdout
    return [line.split(",", 1)[1].split("\t")[0] for line in lines], done.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_it_completes_commands_views_options_and_their_values(shell):
    def texts(line):
        return completions(shell, line)[0]

    assert texts("kinetoscope vi") == ["view", "views"]
    assert texts("kinetoscope view ") == list(EVERY_VIEW)
    assert texts("kinetoscope view kernels_") == ["kernels_by_op"]
    assert texts("kinetoscope view kernels --f") == ["--filter", "--format"]
    assert texts("kinetoscope view kernels trace.json --format ") == ["text", "json", "csv"]
    assert texts("kinetoscope completion ") == list(SHELLS)


@pytest.mark.parametrize(
    "line", ["summary run", "view kernels run", "compare run", "check run", "event run", "export run", "status run"]
)
def test_the_shell_completes_paths(line):
    assert completions("bash", f"kinetoscope {line}")[1] == "file,run\n"


@pytest.mark.parametrize("line", ["kinetoscope quux --", "kinetoscope view quux --"])
def test_what_does_not_exist_has_no_completions(line):
    assert completions("bash", line) == ([], "")


def test_completing_a_view_imports_no_view():
    code = "import sys\nfrom kinetoscope_tb.cli import main\ntry: main(())\n"
    code += "finally: print('x,LOADED', *{'numpy', 'polars'} & set(sys.modules))"
    assert completions("bash", "kinetoscope view idle_", code=code)[0] == ["idle_culprits", "LOADED"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_loads_the_script_and_completes(tmp_path):
    program = tmp_path / "kinetoscope"
    program.write_text(f"#!/bin/sh\nexec {RUN[0]} -c '{RUN[2]}' \"$@\"\n")
    program.chmod(0o755)
    script = """
        eval "$(kinetoscope completion bash)"
        complete -p kinetoscope
        COMP_WORDS=(kinetoscope view gpu_a) COMP_CWORD=2
        _kinetoscope_completion kinetoscope
        echo "${COMPREPLY[@]}"
    """
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script], env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[-1] == "gpu_activity", done.stderr
    assert "-F _kinetoscope_completion kinetoscope" in done.stdout


def test_every_shell_has_a_script_that_names_the_command(kinetoscope):
    scripts = [kinetoscope("completion", shell) for shell in SHELLS]
    assert [(status, err) for status, _, err in scripts] == [(0, "")] * len(SHELLS)
    assert all(
        f"_KINETOSCOPE_COMPLETE={shell}_complete" in out for shell, (_, out, _) in zip(SHELLS, scripts, strict=True)
    )


def test_the_docs_name_every_shell():
    docs = (Path(__file__).parents[2] / "docs/command-line.md").read_text()
    assert all(f"kinetoscope completion {shell}" in docs for shell in SHELLS)
