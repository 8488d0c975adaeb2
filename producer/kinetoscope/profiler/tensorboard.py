"""`tensorboard_trace_handler`: names the folder that `profile` records into."""

from __future__ import annotations

import os
from dataclasses import dataclass
from inspect import getclosurevars, isfunction
from typing import Any

from torch.profiler import tensorboard_trace_handler as torch_handler

from ..handler import file_template


@dataclass(frozen=True)
class TensorBoardHandler:
    """What `tensorboard_trace_handler` returns.

    `profile` records into its folder. A handler of the program's own that calls it writes a file as torch's does.
    """

    dir_name: str
    worker_name: str | None
    use_gzip: bool

    def __call__(self, profiler: Any) -> None:
        """Write a profiler's last window."""
        torch_handler(self.dir_name, self.worker_name, self.use_gzip)(profiler)


def tensorboard_trace_handler(
    dir_name: str | os.PathLike[str],
    worker_name: str | None = None,
    use_gzip: bool = False,  # noqa: FBT001, FBT002  as in torch
    use_python_export: bool = False,  # noqa: ARG001, FBT001, FBT002  as in torch
) -> TensorBoardHandler:
    """Return what has `profile` record into `dir_name`: `{dir_name}/{run}/{worker_name}.{steps}.pt.trace.json`.

    Args:
        dir_name: The folder that TensorBoard reads.
        worker_name: This process's name; by default its rank, `rank3`.
        use_gzip: Whether traces are compressed.
        use_python_export: As in torch 2.13, but without effect: the recorder writes the file.

    Raises:
        UsageError: A name that no file can have.
    """
    file_template(worker_name, use_gzip=use_gzip)
    return TensorBoardHandler(os.fspath(dir_name), worker_name, use_gzip)


def as_tensorboard_handler(callback: object) -> TensorBoardHandler | None:
    """Return a handler for TensorBoard as ours, also if torch's function made it; None if it is another callback."""
    if isinstance(callback, TensorBoardHandler):
        return callback
    if not isfunction(callback) or callback.__qualname__ != f"{torch_handler.__name__}.<locals>.handler_fn":
        return None
    values = getclosurevars(callback).nonlocals
    if "dir_name" not in values:
        return None
    return tensorboard_trace_handler(values["dir_name"], values.get("worker_name"), bool(values.get("use_gzip")))
