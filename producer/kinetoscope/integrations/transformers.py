"""For Hugging Face's Trainer: `Trainer(…, callbacks=[TracerCallback("runs", schedule=cyclic(wait=5, active=3))])`.

A step is an optimizer step, as everywhere in that Trainer: with gradient accumulation it has several batches. The
Trainer calls no callback when a training fails; the recording is then saved when the program ends. A training that
resumes from a checkpoint continues its step numbers.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from ..progress import Progress
from .loop import Loop

if TYPE_CHECKING:
    import os


class TracerCallback(TrainerCallback):  # type: ignore[misc]
    """Records trainings.

    Args:
        logdir: As for `Tracer`; by default the folder `runs` in the training's `output_dir`.
        options: The other arguments of `Tracer`.

    Raises:
        UsageError: Arguments that can't work.
    """

    def __init__(self, logdir: str | os.PathLike[str] | None = None, **options: Any) -> None:
        self._loop = Loop(logdir, options)
        self._tokens = 0

    @property
    def tracer(self) -> Any:
        """The Tracer of the current or last training; None before the first."""
        return self._loop.tracer

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Begin."""
        name = getattr(args, "run_name", None)
        run_argument = {"run": name} if isinstance(name, str) and name and "/" not in name and name[0] != "." else {}
        self._tokens = _tokens(state)
        self._loop.begin(Path(args.output_dir) / "runs", progress=_progress(args, state), **run_argument)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Count an optimizer step."""
        before, self._tokens = self._tokens, _tokens(state)
        self._loop.step(samples=_samples(args), tokens=(self._tokens - before) or None)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Count an epoch."""
        self._loop.epoch()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """End."""
        self._loop.end()


def _progress(args: Any, state: Any) -> Progress:
    """Return the progress at the start: a training that resumes from a checkpoint has complete steps."""
    steps = int(state.global_step or 0)
    return Progress(epoch=int(state.epoch or 0), batch=steps, sample=steps * _samples(args), token=_tokens(state))


def _samples(args: Any) -> int:
    """Return how many samples an optimizer step has on each rank."""
    return int(args.per_device_train_batch_size * args.gradient_accumulation_steps)


def _tokens(state: Any) -> int:
    """Return how many tokens the Trainer has counted; None if it doesn't count them."""
    return int(getattr(state, "num_input_tokens_seen", 0) or 0)
