"""For loops with an Accelerator.

with recording(accelerator, "runs", schedule=cyclic(wait=5, active=3)) as tracer:
for batch in steps(accelerator, tracer, loader):
with accelerator.accumulate(model):
...
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..session.step_loop import count_of
from ..tracer import Tracer

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    from ..session.step_loop import Count

T = TypeVar("T")


def recording(accelerator: Any, logdir: str | os.PathLike[str] | None = None, **options: Any) -> Tracer:
    """Return a Tracer for the Accelerator's training, to use in a `with`.

    Args:
        accelerator: The training's Accelerator.
        logdir: As for `Tracer`; by default the Accelerator's `logging_dir` or `project_dir`, or else `runs`.
        options: The other arguments of `Tracer`.

    Raises:
        UsageError: Arguments that can't work.
    """
    return Tracer(Path(logdir or accelerator.logging_dir or accelerator.project_dir or "runs"), **options)


def steps(
    accelerator: Any, tracer: Tracer, loader: Iterable[T], *, samples: Count[T] = None, tokens: Count[T] = None
) -> Iterator[T]:
    """Yield the loader's batches. A step is complete with the batch after which gradients are synchronized.

    Args:
        accelerator: The training's Accelerator.
        tracer: From `recording`.
        loader: The batches.
        samples: How many samples a batch has, or a function of the batch that returns it.
        tokens: The same for tokens.
    """
    totals = [0, 0]
    for batch in loader:
        yield batch
        totals = [
            before + (count_of(count, batch) or 0) for before, count in zip(totals, (samples, tokens), strict=True)
        ]
        if accelerator.sync_gradients:
            tracer.step(samples=totals[0] or None, tokens=totals[1] or None)
            totals = [0, 0]
    tracer.epoch()
