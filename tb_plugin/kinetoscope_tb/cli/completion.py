"""`kinetoscope completion`: Tab completion for bash, zsh and fish, by click.

The script calls `kinetoscope` at each Tab with the line so far in variables, as click's shell_completion documents.
"""

from __future__ import annotations

import os

import click
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ZshComplete, shell_complete

from ..errors import KinetoscopeError

SHELLS = ("bash", "zsh", "fish")
_PROGRAM = "kinetoscope"
_VARIABLE = "_KINETOSCOPE_COMPLETE"


def complete_path(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let the shell complete a file or a folder."""
    return [CompletionItem(incomplete, type="file")]


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
