"""What a command imports: what it answers with. Counts stand for time, which depends on the machine."""

import json
import subprocess
import sys

import click
import pytest

from kinetoscope_tb.cli.commands import SENTENCES, commands

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
    assert len(ours(modules)) <= 14
    assert packages(modules) <= {"click", "kinetoscope_tb"}
