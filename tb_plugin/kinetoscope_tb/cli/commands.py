"""The commands by name, and the module of each, which is imported when the command is called.

So `--help` and completion import no command: what they print of each is here.
"""

from __future__ import annotations

import difflib
import shlex
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from ..docstrings import docstring
from ..errors import BadParameter
from ..views import EVERY_VIEW

if TYPE_CHECKING:
    from collections.abc import Sequence

GROUPS = {
    "Read": {
        "open": "Open traces in the browser, without TensorBoard.",
        "summary": "Say where the time of a run or a recording went, and what to do.",
        "view": "Print one view of a trace.",
        "views": "List the views; as markdown, with the definition of every column.",
        "compare": "Compare two recordings: BASE and NEW are trace files or logdirs; without NEW both are in BASE.",
        "gate": "Judge by several recordings a side whether NEW became slower than BASE, with a stated rate of false "
        "alarms.",
        "history": "Say since which run of LOGDIR a step takes longer, what of it, and what changed in the "
        "environment.",
        "check": "Check that the traces in PATH are complete: readable, without losses, from every rank, with "
        "consistent clocks.",
        "why": "Say why a job stands still or died: which rank holds up the others or ended first, where, and how.",
        "event": "Print one event of a trace with every argument, as recorded in the file.",
        "report": "Write the page of a recording to OUT.html, which opens in a browser without a server or network.",
        "export": "Write a recording's timeline to OUT.json.gz for Perfetto and chrome://tracing, without losing "
        "slices.",
        "stacks": "Write call stacks to OUT for flame graph viewers: where in the program host and device time come "
        "from.",
        "otlp": "Write how long each step took to OUT.json for dashboards, as OpenTelemetry's collector takes it "
        "(OTLP/JSON).",
        "tables": "Write every table of a recording into the folder OUT as Parquet: one file for each view.",
    },
    "Record": {
        "run": "Run a training that has no Tracer, and record it.",
        "selftest": "Say what of a recording into DIR survives kills, a full disk and a rank that hangs, on this "
        "machine.",
        "demo": "Record a real training on two processes and show it in TensorBoard.",
        "status": "Show what each rank of the job that records into the folder RUN is doing, or did last.",
        "trigger": "Request that the job which records into the folder RUN record its next steps, the same ones on all "
        "ranks.",
        "recover": "Recover traces of killed processes of the run in the folder RUN.",
    },
    "Files": {
        "publish": "Publish the traces of any writer under PATH in LOGDIR: one folder per run, one file per worker and "
        "span.",
        "index": "Summarize every recording of a run, so that the views of its ranks open at once, here and in "
        "TensorBoard.",
        "merge": "Write all ranks' traces of one span of a run in PATH into one file, for Perfetto and "
        "chrome://tracing.",
        "repair": "Repair a damaged trace IN: write OUT as strict JSON, which other tools can read; .gz compresses it.",
        "prune": "Remove the oldest windows of the runs in LOGDIR, except the newest of each run.",
        "cache": "Show the cached traces, which open fast.",
    },
    "Shell": {"completion": "Print the script that completes commands, views, options and paths on Tab."},
}
"""The first sentence of each command's help, by the groups of `--help`."""

SENTENCES = {name: sentence for group in GROUPS.values() for name, sentence in group.items()}
_MODULES = {"recover": "jobs", "status": "jobs", "trigger": "jobs"}  # of the others, the module has the command's name

EXAMPLES = (
    ("kinetoscope open trace.json.gz", "The page of one trace in the browser."),
    ("kinetoscope summary runs", "Where the time of the newest run went, and what to do."),
    ("kinetoscope view kernels trace.json.gz --top 5", "The five kernels that took longest."),
)


class _Commands(click.Group):
    """All commands, listed by what they are for. A path in place of a command is summarized."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """The names of all commands, in the order of the alphabet, as shells complete them."""
        return sorted(SENTENCES)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, from its module; None if there is none."""
        if cmd_name not in SENTENCES:
            return None
        command: click.Command = getattr(import_module(f".{_MODULES.get(cmd_name, cmd_name)}", __package__), cmd_name)
        if command.help is None and command.callback is not None:  # Python removed the docstring, as with -OO
            command.help = docstring(command.callback)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first argument names.

        Raises:
            BadParameter: There is none; says which was probably meant.
        """
        name = args[0]
        if name not in SENTENCES and (Path(name).exists() or "://" in name):
            return "summary", self.get_command(ctx, "summary"), args
        if name not in SENTENCES and not name.startswith("-"):
            raise BadParameter(f"There is no command {name!r}.{_suggestion(name, args[1:])}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands and options that begin so."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        helps = [click.Command(name, help=SENTENCES[name]).get_short_help_str() for name in names]
        items = [CompletionItem(name, help=text) for name, text in zip(names, helps, strict=True)]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in groups."""
        for title, sentences in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([*sentences.items()])

    def format_epilog(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write examples."""
        with formatter.section("Examples"):
            formatter.write_dl(EXAMPLES)


def _suggestion(name: str, rest: Sequence[str]) -> str:
    """What was probably meant."""
    after = f" {shlex.join(rest)}" if rest else ""
    if name in EVERY_VIEW:
        return f" For that view: kinetoscope view {name}{after}"
    if near := difflib.get_close_matches(name, SENTENCES, 1):
        return f" Did you mean: kinetoscope {near[0]}{after}"
    if near := difflib.get_close_matches(name, EVERY_VIEW, 1):
        return f" Did you mean: kinetoscope view {near[0]}{after}"
    return " kinetoscope --help lists them."


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help="PyTorch profiles in the terminal. The same views in the browser: kinetoscope open PATH.",
)
@click.version_option(package_name="kinetoscope")
def commands() -> None:
    """The commands do everything."""
