"""For MMEngine: `custom_hooks = [dict(type="TracerHook", logdir="runs", schedule=cyclic(wait=5, active=3))]`.

Importing the module registers the name: `custom_imports = dict(imports=
["kinetoscope.integrations.mmengine"])`. All ranks record, unlike with MMEngine's own ProfilerHook.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mmengine.hooks import Hook
from mmengine.registry import HOOKS

from ..progress import Progress
from ..scheduling.schedule import cyclic
from .loop import Loop

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping


@HOOKS.register_module()
class TracerHook(Hook):  # type: ignore[misc]
    """Records trainings.

    Args:
        logdir: As for `Tracer`; by default the runner's `log_dir`.
        schedule: As for `Tracer`; a configuration file may give the arguments of `cyclic` as a dict.
        batch_size: Samples per batch, for the throughput.
        options: The other arguments of `Tracer`.

    Raises:
        UsageError: Arguments that can't work.
    """

    priority = "VERY_LOW"

    def __init__(
        self,
        logdir: str | os.PathLike[str] | None = None,
        *,
        schedule: Any = None,
        batch_size: int | None = None,
        **options: Any,
    ) -> None:
        if isinstance(schedule, dict):
            schedule = cyclic(**schedule)
        self._loop, self._batch_size = Loop(logdir, {"schedule": schedule, **options}), batch_size

    @property
    def tracer(self) -> Any:
        """The Tracer of the current or last training; None before the first."""
        return self._loop.tracer

    def before_train(self, runner: Any) -> None:
        """Begin."""
        self._loop.begin(runner.log_dir, progress=self._progress(runner))

    def _progress(self, runner: Any) -> Progress:
        """Return the progress at the start: a training that resumes from a checkpoint has complete iterations."""
        return Progress(epoch=runner.epoch, batch=runner.iter, sample=runner.iter * (self._batch_size or 0))

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Mapping[str, Any] | None = None
    ) -> None:
        """Count a batch."""
        self._loop.step(samples=self._batch_size)

    def after_train_epoch(self, runner: Any) -> None:
        """Count an epoch."""
        self._loop.epoch()

    def after_train(self, runner: Any) -> None:
        """End."""
        self._loop.end()
