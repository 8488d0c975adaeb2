"""The common part of all callbacks: it owns a Tracer while a training runs, and never stops the training."""

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
    """A Tracer for each training, one after the other.

    Args:
        logdir: As for `Tracer`; None for the trainer's own folder.
        options: More arguments for `Tracer`.

    Raises:
        UsageError: Arguments that can't work; raised before any training.
    """

    def __init__(self, logdir: str | os.PathLike[str] | None, options: dict[str, Any]) -> None:
        self._logdir, self._options = logdir, options
        self.tracer: Tracer | None = None
        """The Tracer of the current or last training."""
        self._is_open = False
        Tracer(logdir or "runs", **options)

    @property
    def is_open(self) -> bool:
        """Whether a training is being recorded."""
        return self._is_open

    @property
    def saved_traces(self) -> tuple[Path, ...]:
        """The files written so far, oldest first."""
        return () if self.tracer is None else self.tracer.saved_traces

    def begin(self, default_logdir: str | os.PathLike[str], **options: Any) -> None:
        """Start recording a training.

        Args:
            default_logdir: The logdir if the program gave none.
            options: Defaults for arguments of `Tracer` that the program didn't give.
        """
        if self._is_open:
            return
        self.tracer = Tracer(self._logdir or default_logdir, **{**options, **self._options})
        try:
            self.tracer.start()
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
        """Stop recording, and save what is recorded.

        Args:
            error: The exception that stopped the training.
        """
        if self._is_open and self.tracer is not None:
            self._is_open = False
            self.tracer.__exit__(None if error is None else type(error), error, None)
