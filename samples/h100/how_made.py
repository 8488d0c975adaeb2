"""Record these samples again, on a CUDA GPU: a training, a compiled training in CUDA graphs, and a server's loop.

What torch's own `key_averages()` says of each window is written beside its run.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch reports each recording on standard error

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from kinetoscope import Tracer, cyclic

WORDS, LENGTH, WIDTH, LAYERS = 8192, 256, 512, 4
SCHEDULE = cyclic(wait=20, warmup=2, active=3)


class Block(nn.Module):
    """Attention and a feed-forward network, before each of which the input is normalized."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.projections = nn.Linear(WIDTH, 3 * WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)
        self.feed_forward = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:  # noqa: D102
        batch, length, _ = x.shape
        projections = self.projections(self.norms[0](x)).view(batch, length, 3, 8, WIDTH // 8)
        query, key, value = (part.transpose(1, 2) for part in projections.unbind(2))
        attention = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.output(attention.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.feed_forward(self.norms[1](x))


class LanguageModel(nn.Module):
    """A small decoder."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.logits = nn.Linear(WIDTH, WORDS)

    def forward(self, words: Tensor) -> Tensor:  # noqa: D102
        x = self.words(words)
        for block in self.blocks:
            x = block(x)
        return self.logits(x)


class DecodeStep(nn.Module):
    """One token for each request: attention over a cache of fixed length."""

    def __init__(self, batch: int) -> None:
        super().__init__()
        self.model = LanguageModel()
        cache = torch.zeros(LAYERS, 2, batch, 8, LENGTH, WIDTH // 8, dtype=torch.bfloat16)
        self.register_buffer("cache", cache)

    def forward(self, words: Tensor) -> Tensor:  # noqa: D102
        x = self.model.words(words)
        for block, (keys, values) in zip(self.model.blocks, self.cache, strict=True):
            query = block.projections(block.norms[0](x))[..., :WIDTH].view(len(words), 8, 1, WIDTH // 8)
            attention = nn.functional.scaled_dot_product_attention(query, keys, values)
            x = x + block.output(attention.reshape(len(words), WIDTH))
            x = x + block.feed_forward(block.norms[1](x))
        return self.model.logits(x).argmax(-1)


def write_key_averages(folder: Path, name: str) -> Callable[[torch.profiler.profile], None]:
    """Return a callback of a window that writes torch's own averages, in nanoseconds, as JSON."""

    def write(profiler: torch.profiler.profile) -> None:
        rows = [
            {
                "name": row.key,
                "calls": row.count,
                "host_total_ns": round(row.cpu_time_total * 1000),
                "host_self_ns": round(row.self_cpu_time_total * 1000),
                "device_total_ns": round(row.device_time_total * 1000),
                "device_self_ns": round(row.self_device_time_total * 1000),
                "is_device": str(row.device_type) != "DeviceType.CPU",
            }
            for row in profiler.key_averages()
        ]
        lines = ",\n".join(json.dumps(row) for row in rows)
        (folder / f"{name}.key_averages.json").write_text(f"[\n{lines}\n]\n")

    return write


def batches(number: int, batch: int) -> DataLoader[tuple[Tensor, ...]]:
    words = torch.randint(WORDS, (number * batch, LENGTH + 1))
    return DataLoader(TensorDataset(words), batch_size=batch, num_workers=1, pin_memory=True)


def train(tracer: Tracer, model: nn.Module, batch: int = 16) -> None:
    """Trains as people do: mixed precision, a copy without waiting, clipping, a logged loss every other step."""
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    for index, (words,) in enumerate(tracer.steps(batches(SCHEDULE.steps_needed, batch))):
        with tracer.marker("batch to device"):
            text = words.to("cuda", non_blocking=True)
        with tracer.marker("forward"), torch.autocast("cuda", torch.bfloat16):
            logits = model(text[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1).float(), text[:, 1:].flatten())
        with tracer.marker("backward"):
            loss.backward()
        with tracer.marker("optimizer"):
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        if index % 2:
            loss.item()


def serve(tracer: Tracer, batch: int = 8) -> None:
    """Prefills a request and decodes tokens for all of them from a CUDA graph, as servers do."""
    step = DecodeStep(batch).cuda().to(torch.bfloat16).eval()
    words = torch.randint(WORDS, (batch,), device="cuda")
    prompt = torch.randint(WORDS, (1, LENGTH), device="cuda")
    side = torch.cuda.Stream()
    with torch.inference_mode(), torch.cuda.stream(side):
        for _ in range(3):
            step(words)
            step.model(prompt)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.inference_mode():
        with torch.cuda.graph(graph):
            following = step(words)
        for _ in tracer.steps(range(SCHEDULE.steps_needed)):
            with torch.profiler.record_function(f"execute_context_1({LENGTH})_generation_0(0)"):
                step.model(prompt).argmax(-1)[:, -1].cpu()
            for _ in range(6):
                with torch.profiler.record_function(f"execute_context_0(0)_generation_{batch}({batch})"):
                    graph.replay()
                    words.copy_(following)
                    words.cpu()


def record(folder: Path, run: str, loop: Callable[[Tracer], None], **options: bool) -> None:
    on_window = write_key_averages(folder, run)
    with Tracer(folder, run=run, schedule=SCHEDULE, on_window=on_window, system_interval_s=0.02, **options) as tracer:
        loop(tracer)
    print(*tracer.saved_traces, sep="\n")


def main(folder: Path) -> None:
    """Records the three runs below a folder."""
    torch.manual_seed(0)
    record(folder, "training", lambda tracer: train(tracer, LanguageModel().cuda()), profile_memory=True)
    compiled = torch.compile(LanguageModel().cuda(), mode="reduce-overhead")
    record(folder, "compiled", lambda tracer: train(tracer, compiled))
    record(folder, "server", serve)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent))
