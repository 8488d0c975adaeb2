"""For Lightning: `Trainer(callbacks=[TracerCallback("runs", schedule=cyclic(wait=5, active=3))])`.

Steps are batches of the training. If the trainer has no profiler, Lightning's own names, such as
`[pl][profile]run_training_batch`, are markers in the trace, which viewers with a Lightning page look for. Both packages
work: `lightning` and `pytorch_lightning`.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..progress import Progress
from .loop import Loop

if TYPE_CHECKING:
    import os

    from ..profiling.annotations import Marker

if ("pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules) or find_spec("lightning") is None:
    from pytorch_lightning.callbacks import Callback
    from pytorch_lightning.profilers import PassThroughProfiler, Profiler
else:
    from lightning.pytorch.callbacks import Callback
    from lightning.pytorch.profilers import PassThroughProfiler, Profiler


class TracerCallback(Callback):  # type: ignore[misc]
    """Records trainings.

    Args:
        logdir: As for `Tracer`. By default traces go to the folder of the trainer's logger, next to its curves, such as
            `lightning_logs/version_0`; our own curves, which would hide those, are then off. If the logger has no
            folder per run, the logdir is its `save_dir`; without a logger it is the trainer's `default_root_dir`.
        batch_size: Samples per batch, for the throughput; or a function of the batch that returns it.
        options: The other arguments of `Tracer`.

    Raises:
        UsageError: Arguments that can't work.
    """

    def __init__(self, logdir: str | os.PathLike[str] | None = None, *, batch_size: Any = None, **options: Any) -> None:
        self._loop, self._batch_size, self._has_logdir = Loop(logdir, options), batch_size, logdir is not None
        self._names: _Names | None = None

    @property
    def tracer(self) -> Any:
        """The Tracer of the current or last training; None before the first."""
        return self._loop.tracer

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin."""
        logdir, options = ("", {}) if self._has_logdir else _default_logdir(trainer)
        self._loop.begin(logdir, progress=_progress(trainer, self._batch_size), **options)
        if self._loop.is_open and self._loop.tracer is not None:
            self._loop.tracer.preset_metadata_json("Framework", '"pytorch-lightning"')
            if isinstance(trainer.profiler, PassThroughProfiler):
                self._names = _Names(self._loop.tracer, trainer.profiler)
                trainer.profiler = self._names

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Count a batch."""
        size = self._batch_size
        self._loop.step(samples=size(batch) if callable(size) else size)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Count an epoch."""
        self._loop.epoch()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """End."""
        self._end(trainer)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Save what is recorded so far."""
        self._end(trainer, exception)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """End if it is still recording."""
        self._end(trainer)

    def _end(self, trainer: Any, error: BaseException | None = None) -> None:
        if self._names is not None:
            trainer.profiler = self._names.before
            self._names = None
        self._loop.end(error)


def _default_logdir(trainer: Any) -> tuple[str | Path, dict[str, Any]]:
    """Return the default logdir, and more arguments for the Tracer."""
    candidates = [
        folder for folder in (trainer.log_dir, trainer.default_root_dir) if folder and "://" not in str(folder)
    ]
    folder = Path(candidates[0] if candidates else "runs").absolute()
    has_own_folder = getattr(trainer.logger, "log_dir", None) is not None and candidates[:1] == [trainer.log_dir]
    if has_own_folder and folder.name and not folder.name.startswith("."):
        return folder.parent, {"run": folder.name, "scalars": False}
    return folder, {}


def _progress(trainer: Any, batch_size: Any) -> Progress:
    """Return the progress at the start: a training that resumes from a checkpoint has complete batches.

    In a checkpoint that a callback writes at the end of a batch, that batch is processed but not yet completed
    (Lightning 2.6).
    """
    batches = trainer.fit_loop.epoch_loop.batch_progress.total.processed
    samples = batches * batch_size if isinstance(batch_size, int) else 0
    return Progress(epoch=trainer.current_epoch, batch=batches, sample=samples)


class _Names(Profiler):  # type: ignore[misc]
    """Records Lightning's own names as markers."""

    def __init__(self, tracer: Any, before: Any) -> None:
        super().__init__(dirpath=None, filename=None)
        self._tracer = tracer
        self.before = before
        self._open: dict[str, list[Marker]] = {}

    def start(self, action_name: str) -> None:
        """Begin a marker."""
        marker = self._tracer.marker(f"[pl][profile]{action_name}")
        marker.start()
        self._open.setdefault(action_name, []).append(marker)

    def stop(self, action_name: str) -> None:
        """End a marker."""
        if self._open.get(action_name):
            self._open[action_name].pop().finish()

    def summary(self) -> str:
        """Return nothing to print."""
        return ""
