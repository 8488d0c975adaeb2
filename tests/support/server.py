"""Simulated servers: any number of iterations in any dialect, with and without graphs, and what is true of them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from .build import TraceBuilder

MODEL = ("embed", "kernel_unified_attention_3d", "nvjet_sm103_tst_256x16_64x6_4x1_v_bz_TNT", "fused_moe_kernel")
ARGMAX = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float> > >"
PHASES = ("prefill", "decode", "mixed")


@dataclass
class Pass:
    """One iteration as it was simulated.

    Args:
        phase: One of PHASES.
        batch: Requests.
        tokens: Tokens of the model.
        start: When the host began it.
        end: When the host left it.
        device_end: When its last kernel ended.
        correlations: Of its launches.
        kernels: How many kernels those ran.
    """

    phase: str
    batch: int
    tokens: int
    start: int
    end: int = 0
    device_end: int = 0
    correlations: list[int] = field(default_factory=list)
    kernels: int = 0


def _counts(phase: str, batch: int, chooser: random.Random) -> tuple[int, int, int]:
    """Requests in their prompt, prompt tokens, and requests that generate."""
    context = {"prefill": batch, "decode": 0}.get(phase, max(batch // 2, 1))
    return context, sum(chooser.randint(1, 400) for _ in range(context)), batch - context


def annotation_of(dialect: str, phase: str, context: int, tokens: int, generation: int) -> str:
    """The name that a server gives such an iteration."""
    batch = context + generation
    if dialect == "vLLM":
        return f"execute_context_{context}({tokens})_generation_{generation}({generation})"
    if dialect == "vLLM detailed":
        sums = f"(sq{tokens}sk{tokens}sqsq9sqsk9)_generation_{generation}(sq{generation}sk99sqsq9sqsk9)"
        return f"execute_{tokens + generation}_context_{context}{sums}"
    if dialect == "SGLang":
        details = f" c={context} g={generation} c_sq={tokens} c_sk=9 c_sqsq=9 c_sqsk=9 g_sq={generation}"
        return {
            "prefill": f"step[EXTEND bs={batch} toks={tokens}]",
            "decode": f"step[DECODE bs={batch}]",
            "mixed": f"step[MIXED bs={batch}{details}]",
        }[phase]
    if dialect == "ATOM":
        kinds = {
            "prefill": f"prefill[bs={batch} tok={tokens}]",
            "decode": f"decode[bs={batch}/999 tok={batch} d={batch}]",
        }
        mixed = f"decode[bs={batch} tok={tokens + generation} p={context} d={generation}]"
        return kinds.get(phase, mixed)
    return f"[Executor] _forward_step 7: {context} ctx reqs, {tokens} ctx tokens, {generation} gen reqs"


DIALECTS = ("vLLM", "vLLM detailed", "SGLang", "ATOM", "TensorRT-LLM")


class Server:
    """A server's main loop: schedule, run the model, sample, and sometimes wait for the tokens.

    Args:
        seed: Of all random choices.
        dialect: One of DIALECTS, or empty for a server that writes no annotations.
        graph: Whether decodes replay one graph.
        layers: Layers of the model.
        waits: Whether the host waits for each iteration's tokens before it schedules the next one.
    """

    def __init__(self, seed: int, dialect: str, *, graph: bool, layers: int = 3, waits: bool = True) -> None:
        self.random = random.Random(seed)
        self.dialect, self.graph, self.layers, self.waits = dialect, graph, layers, waits
        self.builder = TraceBuilder()
        self.passes: list[Pass] = []
        self.now = self.device = 1_000
        self.correlation = 0

    def serve(self, phase: str, batch: int) -> Pass:
        """Run one iteration."""
        context, tokens, generation = _counts(phase, batch, self.random)
        self.now += self.random.randint(5_000, 90_000)  # scheduling
        made = Pass(phase, batch, tokens + generation, self.now)
        self._run(made, ["prepare"], graph=False)
        if self.graph and phase == "decode":
            self._run(made, list(MODEL) * self.layers, graph=True)
        else:
            for name in MODEL * self.layers:
                self._run(made, [name], graph=False)
        self._run(made, [ARGMAX], graph=False)
        made.end = self.now
        if self.dialect:
            name = annotation_of(self.dialect, phase, context, tokens, generation)
            self.builder.annotation(name, made.start, made.end - made.start)
        if self.waits and self.device > self.now:
            self.builder.launch(self.now, self.device - self.now, 0, name="cudaEventSynchronize")
            self.now = self.device
        self.passes.append(made)
        return made

    def _run(self, made: Pass, names: list[str], *, graph: bool) -> None:
        """One call that launches some kernels, which run one after the other."""
        self.correlation += 1
        duration = self.random.randint(1_000, 3_000)
        self.builder.launch(
            self.now, duration, self.correlation, name="cudaGraphLaunch" if graph else "cudaLaunchKernel"
        )
        self.device = max(self.device, self.now + duration)
        for name in names:
            length = self.random.randint(500, 9_000)
            self.builder.kernel(name, self.device, length, self.correlation)
            self.device += length + self.random.randint(0, 400)
            made.device_end = self.device
        made.device_end = max(e["ts"].ns + e["dur"].ns for e in self.builder.events[-len(names) :])
        made.correlations.append(self.correlation)
        made.kernels += len(names)
        self.now += duration + self.random.randint(0, 2_000)
