"""The command line: the same views and the same answers as the page.

Standard output has the answer and nothing else; notes and progress go to standard error. The exit status is 0 for an
answer (also for `missing`: the recording has no data for the view) and 1 for `failed`.
"""

from __future__ import annotations

import difflib
import gc
import itertools
import os
import re
import shlex
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from ..docstrings import docstring
from ..errors import BadParameter, KinetoscopeError, NotFound
from .cache import cache
from .check import check
from .compare import compare
from .completion import answer_shell, complete_path, completion
from .event import event
from .export import export
from .index import index
from .jobs import recover, status, trigger
from .merge import merge
from .publish import publish
from .report import report
from .row_options import RowOptions, row_options
from .streams import discard_output, prepare_streams
from .summary import summary
from .traces import capture_option, chosen, communication_option, device_option, listed, opened, side_by_side, where

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from click.shell_completion import CompletionItem

    from ..view import View

GROUPS = {
    "Read": ("summary", "view", "views", "compare", "check", "event", "report", "export"),
    "Record": ("demo", "status", "trigger", "recover"),
    "Files": ("publish", "index", "merge", "repair", "cache"),
    "Shell": ("completion",),
}
EXAMPLES = (
    ("kinetoscope summary runs", "Where the time of the newest run went, and what to do."),
    ("kinetoscope view kernels trace.json.gz --top 5", "The five kernels that took longest."),
)
FORMATS = ("text", "json", "csv")
PLACES = {
    "tab": "Tab *{label}*.",
    "head": "Shown above the tabs.",
    "part": "Shown below `{of}`.",
    "detail": "Shown in an opened row of `{of}`.",
}

_OBJECTS_PER_COLLECTION = 100_000
"""Importing the views makes so many objects that stay; Python's default of 700 would walk them again and again."""

_format = click.Option(
    ["--format", "form"],
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="Output format. In CSV, text that a spreadsheet would run as a formula gets an apostrophe in front.",
)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit; without arguments, the one of the command line, and the process ends at once."""
    if arguments is None:
        gc.set_threshold(_OBJECTS_PER_COLLECTION)
    try:
        if prepare_streams():
            status = _exit_status(sys.argv[1:] if arguments is None else arguments)
            sys.stdout.flush()
        else:
            _print_error("Standard output is closed. Redirect it to a file, or to /dev/null.")
            status = 1
    except BrokenPipeError:  # the reader has seen enough, as in `… | head`
        discard_output()
        status = 0
    except OSError as error:  # of a file that a command needs, or of standard output, such as a full disk
        if error.filename is None:
            discard_output()
        what = "The answer can't be written" if error.filename is None else error.filename
        _print_error(f"{what}: {error.strerror or error}.")
        status = 1
    except KeyboardInterrupt:
        status = 130
    if arguments is None:
        leave(status)
    sys.exit(status)


def leave(status: int) -> NoReturn:
    """End the process after everything is written and closed.

    A regular exit frees a trace's columns piece by piece, which takes 0.3 s without benefit.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # a closed pipe
            stream.flush()
    os._exit(status)


def _exit_status(arguments: Sequence[str]) -> int:
    if (status := answer_shell(commands)) is not None:
        return status
    try:
        _check_texts(arguments)
        # Not commands.main(), which makes a closed pipe exit status 1.
        with commands.make_context("kinetoscope", list(arguments)) as context:
            commands.invoke(context)
    except click.exceptions.Exit as done:  # --help, --version
        return done.exit_code
    except (KinetoscopeError, click.ClickException) as error:
        _print_failure(error, arguments)
        return 1
    return 0


def _check_texts(arguments: Sequence[str]) -> None:
    """Refuse arguments that no system call accepts as a path.

    Raises:
        BadParameter: One contains a zero byte or a lone surrogate.
    """
    for argument in arguments:
        try:
            is_impossible = b"\0" in os.fsencode(argument)
        except UnicodeEncodeError:
            is_impossible = True
        if is_impossible:
            raise BadParameter(f"{argument[:500]!a} can't be an argument: no path and no name has such a character.")


def _print_error(message: str) -> None:
    with suppress(OSError):  # nobody reads it
        click.ClickException(message).show()


def _print_failure(error: KinetoscopeError | click.ClickException, arguments: Sequence[str]) -> None:
    """One JSON object on standard output if JSON was requested, else the message on standard error."""
    wants_json = "--format=json" in arguments or ("--format", "json") in itertools.pairwise(arguments)
    if not wants_json:
        from ..names.text import visible

        lines = [visible(line) for line in str(error).splitlines()]
        (error if isinstance(error, click.ClickException) else click.ClickException("\n".join(lines))).show()
        return
    from ..errors import BadParameter
    from ..web import encode

    view = arguments[1] if len(arguments) > 1 and arguments[0] == "view" else None
    ours = BadParameter(error.format_message()) if isinstance(error, click.ClickException) else error
    click.echo(encode.text(encode.failure(ours, view)))


class _Commands(click.Group):
    """All commands, listed by what they are for. A path in place of a command is summarized."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first argument names.

        Raises:
            BadParameter: There is none; says which was probably meant.
        """
        name = args[0]
        if self.get_command(ctx, name) is None and (Path(name).exists() or "://" in name):
            return "summary", summary, args
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            raise BadParameter(f"There is no command {name!r}.{_suggestion(name, self.list_commands(ctx), args[1:])}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in groups."""
        for title, names in GROUPS.items():
            commands_of = [(name, self.get_command(ctx, name)) for name in names]
            rows = [(name, _first_sentence(command)) for name, command in commands_of if command]
            with formatter.section(title):
                formatter.write_dl(rows)

    def format_epilog(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write examples."""
        with formatter.section("Examples"):
            formatter.write_dl(EXAMPLES)


def _first_sentence(command: click.Command) -> str:
    """The whole first sentence of a command's help, however long."""
    paragraph = " ".join((command.help or "").partition("\n\n")[0].split())
    return re.split(r"(?<=\.) (?=[A-Z])", paragraph)[0]


def _suggestion(name: str, names: Sequence[str], rest: Sequence[str]) -> str:
    """What was probably meant."""
    from ..views import EVERY_VIEW

    after = f" {shlex.join(rest)}" if rest else ""
    if name in EVERY_VIEW:
        return f" For that view: kinetoscope view {name}{after}"
    if near := difflib.get_close_matches(name, names, 1):
        return f" Did you mean: kinetoscope {near[0]}{after}"
    if near := difflib.get_close_matches(name, EVERY_VIEW, 1):
        return f" Did you mean: kinetoscope view {near[0]}{after}"
    return " kinetoscope --help lists them."


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="kinetoscope")
def commands() -> None:
    """PyTorch profiles in the terminal. The same views in the browser: tensorboard --logdir DIR."""


@commands.command()
@click.option("--format", "form", type=click.Choice([*FORMATS, "markdown"]), default="text", show_default=True)
def views(form: str) -> None:
    """List the views; as markdown, with the definition of every column."""
    import polars as pl

    from ..view import catalogue
    from ..views import EVERY_VIEW
    from ..web import encode
    from .text_table import TextColumn, print_table

    described = catalogue(EVERY_VIEW.values())
    rows = [{**view, "entry": view["entry"]["title"]} for view in described]
    names = ("entry", "id", "title", "doc")
    if form == "json":
        click.echo(encode.text(described))
    elif form == "csv":
        click.echo(encode.csv(pl.DataFrame({n: [row[n] for row in rows] for n in names})), nl=False)
    elif form == "markdown":
        click.echo(_markdown(described), nl=False)
    else:
        print_table([TextColumn(n, [row[n].splitlines()[0] for row in rows]) for n in names])


def _markdown(described: Sequence[Mapping[str, Any]]) -> str:
    """The Markdown page of all definitions."""
    lines = ["# Views and columns", "", "Written by `make docs` from the definitions in the code."]
    entry = None
    for view in described:
        if view["entry"] != entry:
            entry = view["entry"]
            lines += ["", f"## {entry['title']}", "", entry["question"]]
        lines += ["", f"### {view['title']} (`{view['id']}`)", "", view["doc"], ""]
        lines += [f"{view['hint']}", ""] if view["hint"] else []
        lines += [PLACES[view["place"]["kind"]].format_map(view["place"]) + "\n"]
        takes = [(p["name"], ", ".join(p["choices"]) or f"a {p['kind']}") for p in view["parameters"]]
        lines += [f"Parameter `{name}`: {values}.\n" for name, values in takes]
        lines += ["| column | kind | |", "| --- | --- | --- |"]
        lines += [f"| `{c['name']}` | {c['kind']} | {c['doc'].replace('|', chr(92) + '|')} |" for c in view["columns"]]
    return "\n".join(lines) + "\n"


class _ViewGroup(click.Group):
    """One command per view of the catalogue, which is imported only when it is needed."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        from ..views import EVERY_VIEW

        return list(EVERY_VIEW)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command:
        from ..views import EVERY_VIEW

        if cmd_name not in EVERY_VIEW and Path(cmd_name).exists():
            raise BadParameter(f"Put the view before the path: kinetoscope view VIEW {cmd_name}.")
        if cmd_name not in EVERY_VIEW:
            raise NotFound("view", cmd_name, EVERY_VIEW)
        return _ViewCommand(EVERY_VIEW[cmd_name])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The views and options that begin so; no view is imported for it."""
        from click.shell_completion import CompletionItem

        views = [CompletionItem(name) for name in self.list_commands(ctx) if name.startswith(incomplete)]
        return [*views, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the views under the page's entries, with their titles."""
        from ..entries import ENTRIES
        from ..views import EVERY_VIEW

        for entry in ENTRIES.values():
            if rows := [(view.id, view.title) for view in EVERY_VIEW.values() if view.entry == entry.title]:
                formatter.write_paragraph()
                formatter.write_text(f"{entry.title}: {entry.question}")
                with formatter.indentation():
                    formatter.write_dl(rows)


class _ViewCommand(click.Command):
    """The command of one view: its parameters are options, and the help defines its columns."""

    def __init__(self, view: View) -> None:
        parameters = [
            click.Option(
                [f"--{p.name.replace('_', '-')}", *([f"--{p.name}"] if "_" in p.name else []), p.name],
                metavar="|".join(p.choices) or p.kind.upper(),
                help=f"Default: {p.choices[0]}." if p.choices else "Default: all rows.",
            )
            for p in view.parameters
        ]
        if view.takes_steps:
            parameters += [
                click.Option(["--phase"], help="Only the steady iterations of a server in this phase, such as decode."),
                click.Option(["--step"], help="Only the step, or a server's iteration, of this number."),
            ]
        summary = view.describe()["doc"]
        super().__init__(
            view.id,
            callback=partial(_show, view),
            params=[
                *where(),
                communication_option(),
                *parameters,
                *_device_options(view),
                *_capture_options(view),
                *row_options(),
                _format,
            ],
            help=summary,
            short_help=summary,
        )
        self.view = view

    def format_epilog(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the definition of each column."""
        with formatter.section("Columns"):
            formatter.write_dl([(f"{c.name} ({c.kind.name})", c.doc) for c in self.view.table.columns])


@commands.command(cls=_ViewGroup, name="view", subcommand_metavar="VIEW PATH [OPTIONS]")
def view_group() -> None:
    """Print one view of a trace. PATH is a trace file or a logdir."""


def _device_options(view: View) -> list[click.Option]:
    """The option that names the devices, where the view has no parameter of that name: then it is a device's number."""
    is_taken = any(parameter.name == "device" for parameter in view.parameters)
    return [] if is_taken or view.scope != "recording" else [device_option()]


def _capture_options(view: View) -> list[click.Option]:
    return [capture_option()] if view.scope == "recording" else []


def _show(
    view: View,
    path: str,
    run: str | None,
    worker: str | None,
    span: str | None,
    communication: Sequence[str],
    form: str,
    **options: Any,
) -> None:
    rows = RowOptions(*(options.pop(name) for name in ("words", "sort", "top", "columns")))
    rows.of(view.table)  # refuses unknown columns before a trace is read
    parameters: dict[str, str | None] = options
    from ..engine import compute, merge_run_notes
    from ..engine.doubts import doubt
    from ..measures.calls.kernel_names import labels_of_kernels

    device = parameters.pop("device", None) if _device_options(view) else None
    captures: Sequence[str] = options.pop("captures", ())
    arguments = view.arguments({name: value for name, value in parameters.items() if value is not None})
    listing, names = listed(path, communication), {"run": run, "worker": worker, "span": span}
    if view.scope == "recording":
        file = chosen(listing, names)
        with opened(file, device, captures) as trace:
            result = merge_run_notes(view, compute(view, trace, arguments), file)
            _print_answer(view, result, form, rows, labels_of_kernels(trace), doubt(view, trace))
    else:
        ranks = side_by_side(listing, chosen(listing, names, levels=("run", "span")), view.scope)
        _print_answer(view, compute(view, ranks, arguments), form, rows, {})


def _print_answer(
    view: View, result: Any, form: str, rows: RowOptions, labels: Mapping[str, str], note: str = ""
) -> None:  # pl.DataFrame | Missing, unimported
    from ..engine import Missing
    from ..web import encode
    from .text_table import print_rows

    if isinstance(result, Missing):
        if form == "json":
            click.echo(encode.text(encode.view_answer(view, result)))
        else:
            click.echo(f"{view.title}: nothing to show. {result.hint}", err=True)
        return
    columns = rows.with_values(view.table, result) if form == "text" else rows.of(view.table)
    frame = rows.rows(view.table, result, labels).select(column.name for column in columns)
    if form == "json":
        click.echo(encode.text(encode.answer(view, columns, frame, note)))
        return
    if note:
        click.echo(note, err=form == "csv")
    if form == "csv":
        click.echo(encode.csv(frame), nl=False)
    else:
        print_rows(columns, frame, labels, weight=view.table.weight, is_limited=rows.top is not None)
    if result.is_empty() and view.hint:
        click.echo(f"{view.title}: no rows. {view.hint}", err=True)
    elif frame.is_empty() and rows.words:
        click.echo("No row matches the filter.", err=True)


for command in (
    *(cache, check, compare, completion, event, export, index, merge, publish, recover, report, status, summary),
    trigger,
):
    commands.add_command(command)


@commands.command()
@click.argument("path", metavar="IN", shell_complete=complete_path)
@click.argument("out", metavar="OUT", shell_complete=complete_path)
def repair(path: str, out: str) -> None:
    """Repair a damaged trace IN: write OUT as strict JSON, which other tools can read; .gz compresses it."""
    from ..export.repair import repair as write_repaired

    result = write_repaired(path, out)
    click.echo(f"{out}: {result.events:,} events, {result.rewritten:,} of which weren't strict JSON.")
    for diagnostic in result.diagnostics:
        click.echo(f"{diagnostic.rule} ({diagnostic.count:,}): {diagnostic.consequence}")


@commands.command()
@click.option("--logdir", default="runs", show_default=True, help="Folder for the recording.")
@click.option("--host", default="localhost", show_default=True, help="The address that TensorBoard listens on.")
@click.option("--port", type=int, help="The port that TensorBoard listens on; by default a free one from 6006.")
@click.option("--record-only", is_flag=True, help="Record, and don't start TensorBoard.")
def demo(logdir: str, host: str, port: int | None, record_only: bool) -> None:
    """Record a real training on two processes and show it in TensorBoard."""
    from .demo import record, tensorboard

    record(logdir)
    if record_only:
        click.echo(f"To see it: tensorboard --logdir {logdir}")
        return
    with tensorboard(logdir, host, port) as (address, process):
        click.echo(f"\n  {address}\n\nCtrl-C stops it.")
        process.wait()


for command in (commands, *commands.commands.values()):
    if command.help is None and command.callback is not None:
        command.help = docstring(command.callback)
