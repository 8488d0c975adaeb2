"""What all callbacks do: own a Tracer for as long as a training runs, and never stop the training."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from ..errors import ProfilerBusyError
from ..tracer import Tracer

if TYPE_CHECKING:
    import os
    from pathlib import Path

_LOG = logging.getLogger("kinetoscope")


class Loop:
    """A Tracer that comes and goes with trainings.

    Args:
        logdir: As for `Tracer`; None for what the trainer calls its folder.
        options: More arguments for `Tracer`.

    Raises:
        UsageError: Arguments that can't work, before any training.
    """

    def __init__(self, logdir: str | os.PathLike[str] | None, options: dict[str, Any]) -> None:
        self._logdir, self._options = logdir, options
        self.tracer: Tracer | None = None
        """The Tracer of the training that runs, or ran last."""
        self._is_open = False
        Tracer(logdir or "runs", **options)

    @property
    def is_open(self) -> bool:
        """Whether a training runs and is recorded."""
        return self._is_open

    @property
    def saved_traces(self) -> tuple[Path, ...]:
        """The files that are written, oldest first."""
        return () if self.tracer is None else self.tracer.saved_traces

    def begin(self, default_logdir: str | os.PathLike[str], **options: Any) -> None:
        """Start to record a training.

        Args:
            default_logdir: Where to, if the program didn't say.
            options: More arguments for `Tracer`, unless the program gave them.
        """
        if self._is_open:
            return
        self.tracer = Tracer(self._logdir or default_logdir, **{**options, **self._options})
        try:
            self.tracer.__enter__()
            self._is_open = True
        except ProfilerBusyError as error:
            _LOG.warning("This training isn't recorded. %s", error)

    def step(self, *, samples: int | None = None, tokens: int | None = None) -> None:
        """Count a step."""
        if self._is_open and self.tracer is not None:
            self.tracer.step(samples=samples, tokens=tokens)

    def epoch(self) -> None:
        """Count an epoch."""
        if self._is_open and self.tracer is not None:
            self.tracer.epoch()

    def end(self, error: BaseException | None = None) -> None:
        """Stop to record, and save what there is.

        Args:
            error: What stopped the training.
        """
        if self._is_open and self.tracer is not None:
            self._is_open = False
            self.tracer.__exit__(None if error is None else type(error), error, None)
