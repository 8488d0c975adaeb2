"""For loops with an Accelerator.

with recording(accelerator, "runs", schedule=cyclic(wait=5, active=3)) as tracer:
for batch in steps(accelerator, tracer, loader):
with accelerator.accumulate(model):
...
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..batches import counted
from ..tracer import Tracer

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    from ..batches import Count

T = TypeVar("T")


def recording(accelerator: Any, logdir: str | os.PathLike[str] | None = None, **options: Any) -> Tracer:
    """Return a Tracer for the Accelerator's training, to be used in a `with`.

    Args:
        accelerator: Of the training.
        logdir: As for `Tracer`; by default the Accelerator's `logging_dir` or `project_dir`, or else `runs`.
        options: The other arguments of `Tracer`.

    Raises:
        UsageError: Arguments that can't work.
    """
    return Tracer(Path(logdir or accelerator.logging_dir or accelerator.project_dir or "runs"), **options)


def steps(
    accelerator: Any, tracer: Tracer, loader: Iterable[T], *, samples: Count[T] = None, tokens: Count[T] = None
) -> Iterator[T]:
    """Return the loader's batches. A step is complete with the batch after which gradients are synchronised.

    Args:
        accelerator: Of the training.
        tracer: From `recording`.
        loader: Gives the batches.
        samples: How many samples a batch holds, or what tells it of one.
        tokens: The same for tokens.
    """
    held = [0, 0]
    for batch in loader:
        yield batch
        held = [before + (counted(count, batch) or 0) for before, count in zip(held, (samples, tokens), strict=True)]
        if accelerator.sync_gradients:
            tracer.step(samples=held[0] or None, tokens=held[1] or None)
            held = [0, 0]
    tracer.epoch()
