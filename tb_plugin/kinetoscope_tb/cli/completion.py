"""`kinetoscope completion`: Tab completion for bash, zsh and fish, by click.

The script calls `kinetoscope` at each Tab with the line so far in variables, as click's shell_completion documents.
"""

from __future__ import annotations

import os

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete, shell_complete

from ..errors import BadParameter, KinetoscopeError

SHELLS = ("bash", "zsh", "fish")
_PROGRAM = "kinetoscope"
_VARIABLE = "_KINETOSCOPE_COMPLETE"
_EMPTY_PATH = "A path is empty. Is a variable of the shell not set? The current folder is written as a dot."


class NonEmptyPath(click.Path):
    """A path that isn't empty; a folder or a file, which shells complete."""

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """The path.

        Raises:
            BadParameter: It is empty, which would be the current folder.
        """
        if not os.fspath(value):
            raise BadParameter(_EMPTY_PATH)
        return super().convert(value, param, ctx)


PATH = NonEmptyPath(readable=False)  # whether it can be read says what reads it


def answer_shell(commands: click.Command) -> int | None:
    """Print completions if a shell asks for them, and return the exit status; None if no shell asks."""
    instruction = os.environ.get(_VARIABLE)
    if not instruction:
        return None
    try:
        return shell_complete(commands, {}, _PROGRAM, _VARIABLE, instruction)
    except KinetoscopeError:  # the line names no command or no view: nothing completes it
        return 1


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands, views, options and paths on Tab.

    In ~/.bashrc or ~/.zshrc: eval "$(kinetoscope completion bash)", or zsh. For fish: kinetoscope completion fish >
    ~/.config/fish/completions/kinetoscope.fish
    """
    scripts = {script.name: script for script in (BashComplete, FishComplete, ZshComplete)}
    click.echo(scripts[shell](ctx.find_root().command, {}, _PROGRAM, _VARIABLE).source())
