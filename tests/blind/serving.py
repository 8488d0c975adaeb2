"""A server that generates tokens: requests come, are scheduled, run through the model, and are answered, again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

from . import devices as dv
from .machine import Kernel, Node
from .programs import graph_node
from .training import BF16, Hook, Place, call_hooks, copy_in

PYTHON = "python_function"
CONTEXT = 1_024  # tokens of a request so far
RMS_NORM = "void vllm::rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, c10::BFloat16 const*, float, int, int)"
STORE = "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16, 0>(__nv_bfloat16 const*, __nv_bfloat16*, long const*, long, int)"
DECODE = "void flashinfer::BatchDecodeWithPagedKVCacheKernel<1, 2u, 8u, 16u, 2u, 8u>(flashinfer::BatchDecodeParams)"
PREFILL = "void flashinfer::BatchPrefillWithPagedKVCacheKernel<1, 64u, 128u, 4u>(flashinfer::BatchPrefillPagedParams)"
ARGMAX = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, long, 4, 4> >(at::native::ReduceOp<float>)"


@dataclass(frozen=True)
class Functions:
    """How a server calls what it does: frames of Python."""

    step: str
    receive: str
    schedule: str
    execute: str
    answer: str


WRITTEN = (
    Functions(
        "llm/core/engine.py(302): advance", "llm/core/engine.py(340): drain_inbox", "llm/core/planner.py(88): plan",
        "llm/worker/runner.py(510): run_batch", "llm/core/output.py(61): publish",
    ),
    Functions(
        "serve/loop.py(45): turn", "serve/loop.py(71): intake", "serve/batching.py(130): next_batch",
        "serve/backend/cuda.py(204): forward", "serve/loop.py(90): respond",
    ),
    Functions(
        "inference.py(611): one_pass", "mailbox.py(30): collect", "policy/fcfs.py(57): choose",
        "model_host.py(144): infer", "stream.py(25): emit",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Server:
    """How a server works, and what it marks.

    `dialect`: whose annotations it writes, none if empty; `functions`: how they are called; `is_ahead`: it launches an
    iteration before it reads the tokens of the one before; `batch`: requests that decode, by step; `arrivals`: requests
    whose prompt runs in a step; `has_graph`: whether the decode of a step replays a graph.
    """

    dialect: str
    functions: Functions
    is_ahead: bool
    batch: Callable[[int], int]
    arrivals: Callable[[int], int] = lambda step: 0
    has_graph: Callable[[int], bool] = lambda step: True
    prompt: int = 256

    def mark(self, step: int) -> str:
        """The name of the annotation around an iteration; empty if there is none."""
        context, generation = self.arrivals(step), self.batch(step)
        tokens = context * self.prompt
        if self.dialect == "vLLM":
            return f"execute_context_{context}({tokens})_generation_{generation}({generation})"
        if self.dialect == "SGLang":
            return f"step[EXTEND bs={context} toks={tokens}]" if context else f"step[DECODE bs={generation}]"
        return ""


def drawn_server(chance: Random, batch: int, arrivals: Callable[[int], int] | None = None) -> Server:
    """Some server with so many requests."""
    return Server(
        chance.choice(["vLLM", "SGLang", ""]),
        chance.choice(WRITTEN),
        is_ahead=chance.random() < 0.4,
        batch=lambda step: batch,
        arrivals=arrivals or (lambda step: 0),
        prompt=chance.choice([64, 128, 256]),
    )


def serve(server: Server) -> Hook:
    """An iteration of its loop; hooks: `data` where requests come, `start` while it schedules, `end` where it answers."""
    functions = server.functions

    def iterate(place: Place) -> None:
        host, chance = place.host, place.random
        with host.range(functions.step, PYTHON):
            with host.range(functions.receive, PYTHON):
                host.spend(chance.randint(5_000, 15_000))
                call_hooks(place, "data")
            with host.range(functions.schedule, PYTHON):
                host.spend(chance.randint(30_000, 90_000))
                call_hooks(place, "start")
            with host.range(functions.execute, PYTHON), _marked(place, server):
                tokens = run_model(place, server)
            with host.range(functions.answer, PYTHON):
                before = place.state.get("tokens")
                place.state["tokens"] = tokens
                awaited = before if server.is_ahead else tokens
                if awaited:
                    host.call("cudaEventSynchronize", until=[awaited])
                host.spend(chance.randint(20_000, 70_000))
                call_hooks(place, "end")

    return iterate


@contextmanager
def _marked(place: Place, server: Server) -> Iterator[None]:
    name = server.mark(place.step)
    if not name:
        yield
        return
    with place.host.range(name):
        yield


def run_model(place: Place, server: Server) -> Node:
    """Copy inputs, run all layers, choose tokens, and copy them to the host."""
    host, step = place.host, place.step
    copy_in(place, 4 * server.batch(step))
    kernels = model_kernels(place, server)
    if server.has_graph(step) and not server.arrivals(step):
        graph = host.call("cudaGraphLaunch", 60_000)
        for _, _, kernel in kernels:
            host.process.queue(graph_node(place, place.stretched(kernel), graph))
    else:
        for operator, dims, kernel in kernels:
            with host.operator(operator, dims, [BF16] * len(dims)):
                place.launch(kernel)
    with host.operator("aten::argmax", [(server.batch(step), 32_000)], ["float"]):
        place.launch(Kernel(ARGMAX, 9_000, (max(1, server.batch(step)), 1, 1)))
    return host.copy("Memcpy DtoH (Device -> Pinned)", 8 * server.batch(step), 1)


Operator = tuple[str, list[tuple[int, ...]], Kernel]


def model_kernels(place: Place, server: Server) -> list[Operator]:
    """The operators of an iteration with the shapes of their inputs, and their kernels."""
    job, step = place.job, place.step
    h, decoded, prompts = job.hidden, server.batch(step), server.arrivals(step) * server.prompt
    if server.dialect == "SGLang" and prompts:
        decoded = 0
    t = decoded + prompts
    norm: Operator = ("_C::rms_norm", [(t, h)], dv.elementwise(job.device, RMS_NORM, t * h * 4))
    store: Operator = ("_C_cache_ops::reshape_and_cache_flash", [(t, h)], dv.elementwise(job.device, STORE, t * h * 8))
    attend: Operator = (
        "flashinfer::attention",
        [(t, h)],
        dv.elementwise(job.device, PREFILL if prompts else DECODE, (decoded * CONTEXT + prompts) * h * 4),
    )
    activate: Operator = ("_C::silu_and_mul", [(t, 4 * h)], dv.elementwise(job.device, dv.GELU, t * 12 * h))

    def product(n: int, k: int) -> Operator:
        return "aten::mm", [(t, k), (k, n)], dv.matmul(job.device, t, n, k, roof_frac=job.roof_frac)

    layer = [
        norm,
        product(3 * h, h),
        store,
        attend,
        product(h, h),
        norm,
        product(4 * h, h),
        activate,
        product(h, 4 * h),
    ]
    return layer * job.layers
