"""Record these samples again, on a CUDA GPU: a training that wastes time in one way each, and what that costs.

The steps are timed without a profiler, in blocks by turns: with the cause and without it.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch reports each recording on standard error

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from kinetoscope import Tracer, cyclic

BLOCKS, STEPS_OF_BLOCK = 7, 12
BOXES, PICTURES = 60, 12
CHECKPOINT = Path(tempfile.gettempdir(), "h100_causes.pt")

Step = Callable[[int], object]


class Training:
    """A perceptron; what a step of it takes is up to its sizes."""

    def __init__(self, width: int, layers: int, batch: int) -> None:
        parts = (part for _ in range(layers) for part in (nn.Linear(width, width), nn.ReLU()))
        self.model = nn.Sequential(*parts).cuda().to(torch.bfloat16)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-5, fused=True)
        self.inputs = torch.randn(batch, width, device="cuda", dtype=torch.bfloat16)

    def step(self, inputs: Tensor) -> None:
        """One step."""
        loss = self.model(inputs).float().square().mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()


class Pictures(Dataset[Tensor]):
    """Pictures that take a while to decode, or are decoded."""

    def __init__(self, width: int, *, decodes: bool) -> None:
        self._decodes, self._picture = decodes, torch.rand(width)

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, index: int) -> Tensor:
        return decode(self._picture) if self._decodes else self._picture


def decode(picture: Tensor) -> Tensor:
    spin(0.6)
    return picture


def spin(ms: float) -> None:
    end = time.perf_counter() + ms / 1000
    while time.perf_counter() < end:
        pass


def suppress(overlaps: Tensor) -> list[int]:
    """Keep boxes that overlap with no other one that is kept: a read of the device for each pair."""
    kept: list[int] = []
    for box in range(BOXES):
        if all(overlaps[box, other] < 0.9 for other in kept[-3:]):
            kept.append(box)
    return kept


def add_noise(inputs: Tensor) -> Tensor:
    """Add noise by a schedule that is computed on the host again and again."""
    left = 1.0
    for step in range(50_000):
        left *= 1.0 - 0.02 * step / 50_000
    return inputs * torch.tensor(max(left, 0.5), device="cuda", dtype=inputs.dtype)


def save_checkpoint(model: nn.Module) -> None:
    torch.save(model.state_dict(), CHECKPOINT)


@dataclass(frozen=True)
class Cause:
    """A training with a cause, and without it.

    Args:
        training: Its width, layers and batch.
        wasteful: Its step with the cause.
        right: The same without.
        batches: Where its inputs come from, if not from the device.
        stacks: Whether Python stacks are recorded.
        active: How many steps are.
    """

    training: tuple[int, int, int]
    wasteful: Callable[[Training, Tensor, int], object]
    right: Callable[[Training, Tensor, int], object]
    batches: Callable[..., Iterator[Tensor]] | None = None
    stacks: bool = True
    active: int = 4


SMALL, LARGE = (1024, 12, 512), (2048, 40, 4096)


def plain(training: Training, inputs: Tensor, _: int) -> None:
    training.step(inputs)


def with_suppression(training: Training, inputs: Tensor, _: int) -> None:
    suppress(inputs[:BOXES, :BOXES].float())
    training.step(inputs)


def with_noise(training: Training, inputs: Tensor, _: int) -> None:
    training.step(add_noise(inputs))


def with_checkpoints(training: Training, inputs: Tensor, number: int) -> None:
    training.step(inputs)
    if number % 4 == 0:
        save_checkpoint(training.model)


def loaded_pictures(*, decodes: bool) -> Iterator[Tensor]:
    return iter(DataLoader(Pictures(SMALL[0], decodes=decodes), batch_size=PICTURES, num_workers=0))


CAUSES = {
    "healthy": Cause(LARGE, plain, plain, active=3),
    "suppression": Cause(SMALL, with_suppression, plain),
    "noise": Cause(SMALL, with_noise, plain),
    "checkpoints": Cause(SMALL, with_checkpoints, plain, active=6),
    "checkpoints_without_stacks": Cause(SMALL, with_checkpoints, plain, stacks=False, active=6),
    "loading": Cause((SMALL[0], SMALL[1], PICTURES), plain, plain, loaded_pictures, active=3),
}


def steps_of(cause: Cause, training: Training, *, is_wasteful: bool) -> Step:
    body = cause.wasteful if is_wasteful else cause.right
    batches = cause.batches(decodes=is_wasteful) if cause.batches else None

    def step(number: int) -> None:
        inputs = training.inputs if batches is None else next(batches).to("cuda", torch.bfloat16)
        body(training, inputs, number)

    return step


def milliseconds(step: Step) -> float:
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for number in range(STEPS_OF_BLOCK):
        step(number)
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / STEPS_OF_BLOCK * 1000


def record(path: Path, step: Step, cause: Cause) -> None:
    schedule = cyclic(wait=16, warmup=2, active=cause.active)
    with tempfile.TemporaryDirectory() as folder:
        tracer = Tracer(folder, run="cause", schedule=schedule, with_stack=cause.stacks, system=(), scalars=False)
        with tracer:
            for number in tracer.steps(range(schedule.steps_needed)):
                step(number)
        shutil.copy(*tracer.saved_traces, path)


def main(folder: Path) -> None:
    """Records each."""
    rows = []
    for name, cause in CAUSES.items():
        training = Training(*cause.training)
        both = [steps_of(cause, training, is_wasteful=is_wasteful) for is_wasteful in (True, False)]
        blocks = [[milliseconds(step) for step in both] for _ in range(BLOCKS + 1)]
        with_ms, without_ms = (round(statistics.median(times), 3) for times in zip(*blocks[1:], strict=True))
        rows.append({"recording": name, "with_ms": with_ms, "without_ms": without_ms})
        record(folder / f"{name}.pt.trace.json.gz", both[0], cause)
    lines = ",\n".join(json.dumps(row) for row in sorted(rows, key=lambda row: str(row["recording"])))
    (folder / "measured.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent))
