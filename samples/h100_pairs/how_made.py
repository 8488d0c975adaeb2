"""Record these samples again, on a CUDA GPU: a training with a part that can be left out, and what that saves.

The steps are timed without a profiler, in blocks by turns: with the part, without it, and with about half of it.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch reports each recording on standard error

import torch
from torch import Tensor, nn
from torch.profiler import record_function

from kinetoscope import Tracer, cyclic

Work = Callable[[], object]
SIZES = {"device": (4096, 8, 8192), "short": (1024, 6, 1024)}  # width, layers, batch
BLOCKS, STEPS_OF_BLOCK = 7, 10
SCHEDULE = cyclic(wait=25, warmup=2, active=6)


def training(width: int, layers: int, batch: int) -> tuple[Callable[[], Tensor], nn.Module]:
    """Return (a step that returns its loss, its model)."""
    model = nn.Sequential(*(part for _ in range(layers) for part in (nn.Linear(width, width), nn.ReLU())))
    model = model.cuda().to(torch.bfloat16)
    inputs = torch.randn(batch, width, device="cuda", dtype=torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, foreach=True)

    def step() -> Tensor:
        loss = model(inputs).float().pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return step, model


def spin(ms: float) -> None:
    end = time.perf_counter() + ms / 1000
    while time.perf_counter() < end:
        pass


def parts(model: nn.Module, loss: Callable[[], Tensor]) -> dict[str, tuple[Work, Work | None]]:
    """The parts by name: (the part, about half of it)."""
    matrix, on_host = torch.randn(4096, 4096, device="cuda"), torch.randn(4096, 4096)
    pinned, vectors = on_host.pin_memory(), [torch.randn(64, device="cuda") for _ in range(200)]
    stream, weights = torch.cuda.Stream(), list(model.parameters())

    def product(columns: int = 4096) -> Tensor:
        return matrix @ matrix[:, :columns]

    def product_on_side_stream() -> Tensor:
        with torch.cuda.stream(stream):
            return product()

    def allocate() -> None:
        torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
        torch.cuda.empty_cache()

    return {
        "python_2ms": (lambda: spin(2), lambda: spin(1)),
        "python_10ms": (lambda: spin(10), lambda: spin(5)),
        "sleep_5ms": (lambda: time.sleep(0.005), lambda: time.sleep(0.0025)),
        "item": (lambda: loss().item(), None),
        "synchronize": (torch.cuda.synchronize, None),
        "fp32_matmul": (product, lambda: product(2048)),
        "three_matmuls": (lambda: [product() for _ in range(3)], None),
        "pageable_copy": (on_host.cuda, lambda: on_host[:2048].cuda()),
        "pinned_copy": (lambda: pinned.cuda(non_blocking=True), lambda: pinned[:2048].cuda(non_blocking=True)),
        "copy_back": (lambda: matrix[:1024].cpu(), lambda: matrix[:512].cpu()),
        "tiny_kernels": (lambda: [v.add_(1) for v in vectors], lambda: [v.add_(1) for v in vectors[:100]]),
        "elementwise": (lambda: [matrix.mul(1.01) for _ in range(10)], lambda: [matrix.mul(1.01) for _ in range(5)]),
        "norm_per_parameter": (
            lambda: [weight.detach().norm().item() for weight in weights],
            lambda: [weight.detach().norm().item() for weight in weights[::2]],
        ),
        "side_stream_matmul": (product_on_side_stream, None),
        "cuda_malloc": (allocate, None),
        "argmax_to_list": (lambda: matrix[:64].argmax(-1).tolist(), None),
    }


def milliseconds(step: Work, part: Work | None) -> float:
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(STEPS_OF_BLOCK):
        step()
        if part is not None:
            part()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / STEPS_OF_BLOCK * 1000


def record(path: Path, step: Work, part: Work) -> None:
    with tempfile.TemporaryDirectory() as folder:
        with Tracer(folder, run="pair", schedule=SCHEDULE, system=(), scalars=False) as tracer:
            for _ in tracer.steps(range(SCHEDULE.steps_needed)):
                step()
                with record_function("extra_part"):
                    part()
        shutil.copy(*tracer.saved_traces, path)


def main(folder: Path) -> None:
    """Records each part in each training."""
    rows = []
    for size, shape in SIZES.items():
        losses: list[Tensor] = []
        step, model = training(*shape)

        def numbered_step(step: Callable[[], Tensor] = step, losses: list[Tensor] = losses) -> None:
            losses[:] = [step()]

        for name, (part, half) in parts(model, lambda losses=losses: losses[0]).items():  # type: ignore[misc]
            blocks = [
                [milliseconds(numbered_step, work) for work in (part, half or part, None)] for _ in range(BLOCKS + 1)
            ]
            with_part, with_half, without = (statistics.median(times) for times in zip(*blocks[1:], strict=True))
            times = {"with_ms": with_part, "half_ms": with_half if half else None, "without_ms": without}
            recording = f"{size}-{name}"
            rows.append({"recording": recording, **{key: ms and round(ms, 3) for key, ms in times.items()}})
            record(folder / f"{recording}.pt.trace.json.gz", numbered_step, part)
    lines = ",\n".join(json.dumps(row) for row in sorted(rows, key=lambda row: str(row["recording"])))
    (folder / "measured.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent))
