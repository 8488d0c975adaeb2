"""`%%kinetoscope`: record a cell of a notebook and show the recording below it.

`%load_ext kinetoscope` registers it. The viewer, `kinetoscope_tb`, shows the recording where it is installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError as MagicError
from IPython.core.magic_arguments import MagicArgumentParser
from IPython.display import display

from ..optional_packages import optional_package
from ..tracer import Tracer

if TYPE_CHECKING:
    from pathlib import Path


class CellError(RuntimeError):
    """A cell failed while it was recorded; IPython has printed its traceback already."""

    def _render_traceback_(self) -> list[str]:
        """What IPython prints instead of a second traceback."""
        return [str(self)]


def load_ipython_extension(shell: Any) -> None:
    """Register `%%kinetoscope`; called by `%load_ext kinetoscope`."""

    def magic(line: str, cell: str) -> None:
        record_cell(shell, line, cell)

    magic.__doc__ = f"Record the cell, and show the recording below it.\n\n{_parser().format_help()}"
    shell.register_magic_function(magic, "cell", "kinetoscope")


def record_cell(shell: Any, line: str, cell: str) -> None:
    """Run a cell while a Tracer records it, and show the recording; also of a cell that fails.

    Args:
        shell: IPython's shell.
        line: The options behind `%%kinetoscope`.
        cell: The code.

    Raises:
        CellError: The cell failed.
        IPython.core.error.UsageError: An unknown option, or a cell with an `await` of its own.
        ProfilerBusyError: Another Tracer is active.
        UsageError: Arguments that Tracer refuses.
    """
    options: dict[str, Any] = vars(_parser().parse_argstring(line))
    if shell.should_run_async(cell, transformed_cell=shell.transform_cell(cell)):
        raise MagicError("%%kinetoscope can't record a cell that uses `await` outside of a function.")
    name = options.pop("name")
    with Tracer(**options, requests=False, save_on_signal=False, scalars=False, keep_events=False) as tracer:
        result = shell.run_cell(cell)
    for path in tracer.saved_traces[-1:]:
        _show(shell, path, name)
    error = result.error_before_exec or result.error_in_exec
    if error is not None:
        raise CellError(f"The cell ended with {type(error).__name__}, see above; it is recorded until then.")


def _parser() -> Any:
    parser = MagicArgumentParser("%%kinetoscope", add_help=False)
    parser.add_argument("name", nargs="?", help="The variable that is to hold the recording.")
    parser.add_argument("--logdir", default="runs", help="The folder of runs, as for Tracer.")
    parser.add_argument("--run", help="The run's name; by default the time.")
    parser.add_argument("--with-stack", action="store_true", help="Record Python calls.")
    parser.add_argument("--profile-memory", action="store_true", help="Record allocations.")
    return parser


def _show(shell: Any, path: Path, name: str | None) -> None:
    """Show a recording, and name it in the notebook; without the viewer, say where it is."""
    try:
        viewer = optional_package("kinetoscope_tb", "kinetoscope")
    except ImportError:
        print(f"The recording is {path}.")  # noqa: T201  the output of the cell
        return
    profile = viewer.open(path)
    if name is not None:
        shell.user_ns[name] = profile
    display(profile)
