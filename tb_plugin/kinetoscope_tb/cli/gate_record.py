"""`kinetoscope gate record`: recordings of two commands by turns, with what the machine was like during each."""

from __future__ import annotations

import shlex
import shutil
import signal
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..compare.gate.conditions import FILE_NAME, Conditions, conditions_in, problems
from ..discovery import list_path
from ..errors import BadParameter, KinetoscopeError, LogdirError
from ..filesystem import atomic_write
from ..names.text import visible
from .gate_machine import Machine, run_to_end

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SIDES = ("base", "new")
PLACEHOLDER, VARIABLE = "{out}", "KINETOSCOPE_GATE_OUT"
_UNFINISHED = ".unfinished"
_LAST_LINES = 12  # of what a failing command printed
_WRITTEN_WITHIN_S, _LOOK_EVERY_S = 20, 0.2


class RecordingFailed(KinetoscopeError):
    """A command of `gate record` failed, or recorded nothing."""


def _turns(count: int, *, is_interleaved: bool) -> list[tuple[str, int]]:
    """Side and number of each recording, in order: A B A B …, or A A … B B …."""
    if is_interleaved:
        return [(side, nth) for nth in range(1, count + 1) for side in SIDES]
    return [(side, nth) for side in SIDES for nth in range(1, count + 1)]


def _record(base: str, new: str, out: str, count: int, warm_ups: int, is_interleaved: bool) -> None:
    commands = dict(zip(SIDES, (base, new), strict=True))
    folder = Path(out)
    missing = [turn for turn in _turns(count, is_interleaved=is_interleaved) if not _is_made(folder, turn, commands)]
    if not missing:
        click.echo(f"All {2 * count} recordings are in {out} already.", err=True)
    with _ends_on_signals():
        for side in SIDES if missing else ():
            for nth in range(1, warm_ups + 1):
                _make(folder / _UNFINISHED, side, commands[side], f"warm-up {nth} of {side}", is_recorded=False)
        for nth, (side, number) in enumerate(missing, 1):
            name = f"{side} {number} of {count}"
            conditions = _make(folder / _UNFINISHED, side, commands[side], name, is_recorded=True, nth=number)
            (folder / side).mkdir(exist_ok=True)
            (folder / _UNFINISHED).rename(_folder_of(folder, (side, number)))
            click.echo(f"{nth} of {len(missing)}: {name}, {conditions.wall_s:.1f} s", err=True)
    _report(folder, count)


def _folder_of(folder: Path, turn: tuple[str, int]) -> Path:
    return folder / turn[0] / f"{turn[1]:02}"


def _is_made(folder: Path, turn: tuple[str, int], commands: dict[str, str]) -> bool:
    """Whether an earlier call has made this recording.

    Raises:
        BadParameter: It is of another command.
    """
    conditions = conditions_in(_folder_of(folder, turn))
    if conditions is not None and conditions.command != commands[turn[0]]:
        raise BadParameter(
            f"{_folder_of(folder, turn)} is a recording of another command: {conditions.command}. Choose another --out."
        )
    return conditions is not None


def _make(target: Path, side: str, command: str, name: str, *, is_recorded: bool, nth: int = 0) -> Conditions:
    """Run a command with a folder of its own.

    Raises:
        RecordingFailed: It ended with an error, or recorded nothing.
    """
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    words = [word.replace(PLACEHOLDER, str(target)) for word in shlex.split(command)]
    log = target / "output.txt"
    machine, started_ns, before = Machine(), time.time_ns(), time.monotonic()
    with log.open("wb") as output:
        status = run_to_end(words, {VARIABLE: str(target)}, output, machine)
    wall_s = time.monotonic() - before
    if status:
        raise RecordingFailed(_failure(f"{name}: exit status {status}", command, log))
    if is_recorded and not _has_traces(target):
        raise RecordingFailed(
            _failure(
                f"{name}: it recorded nothing below {target}. Write its traces there: the command gets the folder in "
                f"place of {PLACEHOLDER}, and as the variable {VARIABLE}",
                command,
                log,
            )
        )
    conditions = Conditions(side, nth, command, started_ns, wall_s, **machine.readings())
    with atomic_write(str(target / FILE_NAME)) as file:
        file.write(conditions.text().encode(errors="backslashreplace"))
    return conditions


def _failure(what: str, command: str, log: Path) -> str:
    """What failed, where, and what it printed last."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST_LINES:]
    output_text = "".join(f"\n  {visible(line)[:300]}" for line in lines) or " nothing."
    return (
        f"{what}.\nThe command: {command}\nIt printed last:{output_text}\n"
        "Complete recordings stay. Mend the command, and call the same again: it makes those that are missing."
    )


def _has_traces(target: Path) -> bool:
    """Whether traces are there, or come soon: a recorder may write them in a process that outlives the training."""
    deadline = time.monotonic() + _WRITTEN_WITHIN_S
    while time.monotonic() < deadline:
        with suppress(LogdirError):
            if list_path(str(target)).files:
                return True
        time.sleep(_LOOK_EVERY_S)
    return False


@contextmanager
def _ends_on_signals() -> Iterator[None]:
    """SIGTERM ends the command's processes as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _report(folder: Path, count: int) -> None:
    """Name the recordings during which something was wrong, and the next command."""
    turns = _turns(count, is_interleaved=True)
    conditions = [conditions_in(_folder_of(folder, turn)) for turn in turns]
    for turn, sentences in zip(turns, problems(conditions), strict=True):
        for sentence in sentences:
            click.echo(f"{turn[0]} {turn[1]}: {sentence}.")
    sides = " ".join(shlex.quote(str(folder / side)) for side in SIDES)
    click.echo(f"To judge them: kinetoscope gate {sides}")


def _params() -> Sequence[click.Parameter]:
    return [
        click.Argument(["base"], metavar="'CMD A'"),
        click.Argument(["new"], metavar="'CMD B'"),
        click.Option(["--out"], default="gate", show_default=True, help="Folder for the recordings."),
        click.Option(
            ["-n", "count"], type=click.IntRange(1, 999), default=6, show_default=True, help="Recordings a side."
        ),
        click.Option(
            ["--interleave/--one-side-first", "is_interleaved"],
            default=True,
            show_default=True,
            help="A B A B …, so that a machine that becomes slower meanwhile affects both sides.",
        ),
        click.Option(
            ["--warm-up", "warm_ups"],
            type=click.IntRange(0, 99),
            default=1,
            show_default=True,
            help="Runs of each command that aren't counted.",
        ),
    ]


record = click.Command(
    "record",
    callback=_record,
    params=[*_params()],
    help=f"""Record two commands by turns, A B A B …, for `kinetoscope gate`.

    Each command runs in a process of its own, without a shell, and writes its traces below {PLACEHOLDER}, which
    is replaced in it, or below ${VARIABLE}: 'python train.py --logdir {PLACEHOLDER}'. Recordings are OUT/base/01,
    OUT/new/01 …. Load, clocks and throttling are noted with each. After a failure or a kill the same call makes those
    that are missing.
    """,
)
