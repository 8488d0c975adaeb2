"""Records a program that has no Tracer: `python -m kinetoscope run train.py`.

Steps are those of the optimizer that steps first: a step is complete when its `step()` returns. The recording begins
with the first one, and ends with the program.
"""

from __future__ import annotations

import argparse
import logging
import os
import runpy
import sys
import threading
import weakref
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch.optim import Optimizer

from ..errors import RecorderError
from ..scheduling.schedule import cyclic
from .loop import Loop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_LOG = logging.getLogger("kinetoscope")


def main(words: Sequence[str]) -> None:
    """Run a program as `python` does, and record its training.

    Args:
        words: The options, the script or `-m` and a module, and its arguments.
    """
    options = _parser().parse_args(words)
    schedule = cyclic(wait=options.wait, warmup=options.warmup, active=options.active)
    when = {"budget": options.budget} if options.budget else {"schedule": schedule}
    own = {"run": options.run, "with_stack": options.stacks, "slow_step": options.slow_step}
    try:
        recording = ProgramRecording(Loop(options.logdir, {**own, **when}))
    except RecorderError as error:
        _parser().error(str(error))
    program = options.program[1:] if options.program[:1] == ["--"] else options.program
    if not program:
        _parser().error("Name the program: a script, or -m and a module.")
    with counted_steps(recording.end_step):
        try:
            _run(program, is_module=options.module)
        except BaseException as error:
            is_success = isinstance(error, SystemExit) and error.code in (None, 0)
            recording.end(None if is_success else error)
            raise
        recording.end(None)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "kinetoscope run",
        description="Run a training that has no Tracer, and record it: a few steps at once, and more when they are "
        "requested with `kinetoscope trigger`. A step is one of the optimizer that steps first. With torchrun: "
        "torchrun -m kinetoscope run train.py.",
    )
    parser.add_argument("--logdir", default="runs", help="the folder of the runs; by default runs")
    parser.add_argument("--run", help="the run's name; by default the launcher's name of the job, else the time")
    parser.add_argument("--wait", type=int, default=10, help="steps before the first window; by default 10")
    parser.add_argument("--warmup", type=int, default=2, help="steps that the profiler warms up; by default 2")
    parser.add_argument("--active", type=int, default=3, help="steps to record; by default 3")
    parser.add_argument("--stacks", action="store_true", help="record Python calls too; traces are many times larger")
    parser.add_argument(
        "--budget",
        default=os.environ.get("KINETOSCOPE_BUDGET"),
        help="choose the steps to record, and spend no more than this, such as '0.5%%, 2 GB/day', in place of --wait, "
        "--warmup and --active; by default the environment variable KINETOSCOPE_BUDGET",
    )
    parser.add_argument("--slow-step", type=float, help="also record after a step that took so many times the usual")
    parser.add_argument("-m", dest="module", action="store_true", help="the program is a module")
    parser.add_argument("program", nargs=argparse.REMAINDER, help="the script or module, and its arguments")
    return parser


class ProgramRecording:
    """The recording of a program, from the first step of its optimizer on.

    Args:
        loop: Owns the Tracer.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._thread: int | None = None
        self._optimizer: weakref.ref[Any] | None = None

    def end_step(self, optimizer: object) -> None:
        """Count a step if the optimizer is the one that stepped first, or follows one that is gone."""
        first = None if self._optimizer is None else self._optimizer()
        if first is None:
            self._optimizer, first = weakref.ref(optimizer), optimizer
        if first is not optimizer:
            return
        if self._thread is None:
            self._thread = threading.get_ident()
            self._loop.begin("runs")
        elif self._thread == threading.get_ident():
            try:
                self._loop.step()
            except RecorderError as error:  # the program has ended the Tracer, or started its own
                self._thread = -1
                _LOG.warning("The rest of this training isn't recorded. %s", error)

    def end(self, error: BaseException | None) -> None:
        """Save what is recorded; a recording of another thread ends with the process.

        Args:
            error: The exception that ended the program.
        """
        if self._thread is None:
            _LOG.warning("No optimizer made a step, so nothing was recorded.")
        elif self._thread == threading.get_ident():
            self._loop.end(error)


@contextmanager
def counted_steps(on_step: Callable[[Any], None]) -> Iterator[None]:
    """Call a function after each step of an optimizer, outside of the range that torch records for it.

    torch.optim wraps `step` of each class when its first optimizer is made, with `Optimizer.profile_hook_step`
    (torch/optim/optimizer.py, torch 1.12 to 2.15). Its hooks are called inside of that range.

    Args:
        on_step: Called with the optimizer. Not for steps of optimizers inside another one's.
    """
    wrap, depth = Optimizer.profile_hook_step, threading.local()

    def wrap_and_count(step: Callable[..., Any]) -> Callable[..., Any]:
        recorded_step = wrap(step)

        @wraps(recorded_step)
        def count_step(optimizer: Any, *arguments: Any, **options: Any) -> Any:
            depth.value = getattr(depth, "value", 0) + 1
            try:
                result = recorded_step(optimizer, *arguments, **options)
            finally:
                depth.value -= 1
            if not depth.value:
                on_step(optimizer)
            return result

        return count_step

    Optimizer.profile_hook_step = staticmethod(wrap_and_count)  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        Optimizer.profile_hook_step = staticmethod(wrap)  # type: ignore[method-assign]


def _run(program: Sequence[str], *, is_module: bool) -> None:
    name, *_ = program
    sys.argv = list(program)
    if is_module:
        sys.path.insert(0, "")
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, str(Path(name).resolve().parent))
        runpy.run_path(name, run_name="__main__")
