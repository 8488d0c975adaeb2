"""Each command takes what its options and arguments give it, under these names."""

import inspect

import click
import pytest

from kinetoscope_tb.cli.commands import commands
from kinetoscope_tb.errors import BadParameter

CONTEXT = click.Context(commands)


def leaves(group, path=()):
    """Each command below a group, by its path."""
    for name in group.list_commands(CONTEXT):
        command = group.get_command(CONTEXT, name)
        if isinstance(command, click.Group):
            yield from leaves(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(leaves(commands))


def names_of(command):
    """What click passes to the command's function, by keyword."""
    return {parameter.name for parameter in command.params if parameter.expose_value}


def problem(command):
    """Why the command's function doesn't accept these names; empty if it does."""
    context = (CONTEXT,) if hasattr(command.callback, "__wrapped__") else ()  # click.pass_context gives it first
    try:
        inspect.signature(command.callback).bind(*context, **dict.fromkeys(names_of(command)))
    except TypeError as error:
        return str(error)
    return ""


def test_views_and_commands_of_groups_are_among_them():
    assert {"report", "view kernels", "trigger"} <= COMMANDS.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_function_takes_its_commands_parameters(name):
    assert problem(COMMANDS[name]) == ""


@pytest.mark.parametrize(
    "line",
    [
        *([name, "", "out"] for name in ("export", "merge", "publish", "repair", "report")),
        *([name, "runs", ""] for name in ("export", "merge", "publish", "repair", "report", "compare", "gate", "open")),
        *(
            [name, ""]
            for name in ("summary", "check", "why", "history", "index", "status", "trigger", "recover", "gate")
        ),
        ["view", "kernels", ""],
        ["recover", "runs", "--output", ""],
        [""],
    ],
    ids=" ".join,
)
def test_an_empty_path_is_not_the_current_folder(line):
    with pytest.raises(BadParameter, match="A path is empty"):
        commands.main(line, standalone_mode=False)


def test_a_parameter_of_another_name_is_a_problem():
    @click.command
    @click.option("--every", is_flag=True)
    @click.option("--quiet", is_flag=True, expose_value=False)
    def command(all_workers):
        """A command whose option has another name than its function's argument."""

    assert problem(command) == "missing a required argument: 'all_workers'"
    command.params[0].name = "all_workers"
    assert problem(command) == ""
