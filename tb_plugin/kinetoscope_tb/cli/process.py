"""The process of a command: its streams, its failures, its exit status."""

from __future__ import annotations

import codecs
import gc
import io
import itertools
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

import click

from ..errors import BadParameter, KinetoscopeError
from ..names.text import visible
from ..web.json_text import failure, json_text
from .commands import commands
from .completion import answer_shell

if TYPE_CHECKING:
    from collections.abc import Sequence

_OBJECTS_PER_COLLECTION = 300_000
"""Importing a command and answering makes about 100,000 objects that stay: most commands end before a collection."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit; without arguments, the one of the command line, and the process ends at once."""
    if arguments is None:
        gc.set_threshold(_OBJECTS_PER_COLLECTION)
    try:
        if _prepare_streams():
            status = _exit_status(sys.argv[1:] if arguments is None else arguments)
            sys.stdout.flush()
        else:
            _print_error("Standard output is closed. Redirect it to a file, or to /dev/null.")
            status = 1
    except BrokenPipeError:  # the reader has seen enough, as in `… | head`
        _discard_output()
        status = 0
    except OSError as error:  # of a file that a command needs, or of standard output, such as a full disk
        if error.filename is None:
            _discard_output()
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
        lines = [visible(line) for line in str(error).splitlines()]
        (error if isinstance(error, click.ClickException) else click.ClickException("\n".join(lines))).show()
        return
    view = arguments[1] if len(arguments) > 1 and arguments[0] == "view" else None
    ours = BadParameter(error.format_message()) if isinstance(error, click.ClickException) else error
    click.echo(json_text(failure(ours, view)))


def _prepare_streams() -> bool:
    """Make both streams accept any text; characters that can't be encoded are escaped as in JSON.

    Returns:
        Whether standard output is open. If it is closed, the next opened file would get its descriptor.
    """
    is_open = sys.stdout is not None
    if not is_open:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115  # until the process ends
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115  # as above
    codecs.register_error("json", _as_json)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="json")
    return is_open


def _discard_output() -> None:
    """Drop unwritten output, and all that follows."""
    with suppress(OSError, ValueError):  # a stream that is no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _as_json(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{high:02x}{low:02x}" for high, low in zip(units[::2], units[1::2], strict=True)), error.end
