"""Files in the Trace Event format, or Perfetto's, that torch.profiler didn't write, and who wrote them.

torch.profiler's files have its categories, or metadata of its own. A file that has neither is another program's: its
events lie on the timeline, but none of them is an operator of PyTorch. tests/unit/reader/test_foreign_writers.py has a
sample of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from ..names.device_work import device_work
from ..names.regex import regex
from ..trace.meta import WriterFingerprint
from .scan.kinds import Kind, kind_of_category
from .scan.rows import SortedEvents
from .scan.tokens import Texts, distinct_codes

UNKNOWN = "another program"

_TORCH_KEYS = frozenset(
    {
        *("schemaVersion", "deviceProperties", "distributedInfo", "trace_id", "traceName", "kinetoscope"),
        *("nsight", "memoryTimeline", "record_shapes", "with_stack", "profile_memory"),
    }
)
_TORCH_ARROWS = frozenset(
    {
        *("ac2g", "fwdbwd", "async_cpu_to_gpu", "async_gpu", "async_npu", "async", "forward_backward"),
        *("cpu_to_cuda", "HostToDevice"),
    }
)
_PLAIN_WORDS = frozenset(
    {"trace", "user", "overhead", "runtime", "kernel", "memcpy", "memset", "enqueue", "dequeue", "async"}
)
"""Categories of torch.profiler that other programs may use, too."""

_GPU_OP = "gpu_op"
_LONGEST = 512  # characters of a name that are looked at
_MOST_NAMES = 20_000  # names of events that are looked at


@dataclass(frozen=True)
class Evidence:
    """What shows who wrote a file.

    Args:
        top: The values outside of the events.
        keys: Keys of the events and of their arguments.
        categories: Categories of events.
        labels: Names of processes and of threads.
        names: Names of events.
    """

    top: Mapping[str, Any] = field(default_factory=dict)
    keys: frozenset[str] = frozenset()
    categories: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()

    @cached_property
    def self_description(self) -> str:
        """The values outside of the events as text, as far as programs name themselves there."""
        values = [self.top.get(key) for key in ("otherData", "metadata", "producer", "tool")]
        return " ".join(str(value)[:1000] for value in values if value)


def _any(pattern: str) -> Callable[[Iterable[str]], bool]:
    expression = regex(pattern)
    return lambda texts: any(expression.search(text) for text in texts)


_ONNX_NAMES = _any(r"^(?:model_loading_\w+|session_initialization|model_run)$|_(?:kernel|fence)_(?:time|before|after)$")
_ONNX_CATEGORIES = frozenset({"Session", "Node", "Api"})
_XLA_LABELS = _any(r"^/(?:device:(?:GPU|TPU|CUSTOM)|host:(?:CPU|metadata|TPU))|^XLA (?:Modules|Ops)$|^TFStreamz")
_JAX_NAMES = _any(r"^(?:Pjit|Pmap|Xla)\w*\(|^jit[_(]|^PjRt|^Tfrt\w*Client|^jax\b|^ThunkExecutor")
_TENSORFLOW_LABELS = _any(r"/job:\w+/.*device:|^TFStreamz")
_COMPILE_NAMES = _any(
    r"^(?:entire_frame_compile|_compile\.compile_inner|backend_compile|inductor_compile|GraphLowering\.run)"
)
_ROCPROF_LABELS = _any(r"^\d* ?(?:CPU (?:HIP|HSA) API|GPU Barriers\d+|Markers and Ranges)$")
_CHROME_CATEGORIES = _any(r"(?:^|,)(?:devtools\.timeline|blink|toplevel|disabled-by-default-\w|v8|cc|__metadata)")
_CHROME_LABELS = _any(r"^(?:CrBrowserMain|CrRendererMain|CrGpuMain|Renderer|Browser)$")
_BPF = _any(r"(?i)bpf|^[uk](?:ret)?probe:|^tracepoint:|^usdt:")
_CLANG_NAMES = _any(r"^(?:Total )?(?:ExecuteCompiler|Frontend|InstantiateFunction)$")
_HOROVOD_NAMES = _any(r"^(?:NEGOTIATE_)?(?:ALLREDUCE|ALLGATHER|BROADCAST)$|^(?:NCCL|MPI|GLOO)_ALLREDUCE$")
_RAY_CATEGORIES = _any(r"^task(?:::|:|$)|^(?:worker_idle|submit_task)$")
_SYSTEM_LABELS = _any(r"^(?:system_server|surfaceflinger|zygote(?:64)?|kthreadd|swapper(?:/0)?|com\.android\.\w.*)$")
_LEVEL_ZERO_NAMES = _any(r"^(?:ze|cl|ur|pi)[A-Z]\w+")

WRITERS: tuple[tuple[str, Callable[[Evidence], bool]], ...] = (
    ("VizTracer", lambda e: "viztracer_metadata" in e.top or "FEE" in e.categories),
    ("ONNX Runtime", lambda e: len(_ONNX_CATEGORIES & e.categories) > 1 or _ONNX_NAMES(e.names)),
    ("torch.compile's event log (tlparse)", lambda e: "dynamo_timed" in e.categories or _COMPILE_NAMES(e.names)),
    ("JAX (XLA's profiler)", lambda e: _JAX_NAMES(e.names) and (_XLA_LABELS(e.labels) or "hlo_op" in e.keys)),
    ("TensorFlow's profiler", lambda e: _TENSORFLOW_LABELS(e.labels) or (_XLA_LABELS(e.labels) and "tf_op" in e.keys)),
    ("XLA's profiler", lambda e: _XLA_LABELS(e.labels) or {"hlo_op", "hlo_module"} <= e.keys),
    ("rocprof", lambda e: _ROCPROF_LABELS(e.labels) or {"BeginNs", "EndNs"} <= e.keys),
    ("rocprofv3", lambda e: {"kernel_dispatch", "hip_api"} & e.categories != set()),
    ("Intel's unitrace", lambda e: _GPU_OP in e.categories and _LEVEL_ZERO_NAMES(e.names)),
    ("py-spy", lambda e: "py-spy" in e.categories),
    ("a profiler that writes speedscope's format", lambda e: "speedscope" in e.top),
    ("an eBPF tracer", lambda e: _BPF([e.self_description, *e.categories, *e.labels, *e.names])),
    ("Chrome", lambda e: _CHROME_CATEGORIES(e.categories) or _CHROME_LABELS(e.labels)),
    ("Clang (-ftime-trace)", lambda e: _CLANG_NAMES(e.names)),
    ("Bazel", lambda e: "bazel_version" in e.self_description),
    ("Horovod's timeline", lambda e: _HOROVOD_NAMES(e.names)),
    ("Ray", lambda e: _RAY_CATEGORIES(e.categories)),
    ("Rust's tracing-chrome", lambda e: ".file" in e.keys and ".line" in e.keys),
    ("Perfetto's system tracing", lambda e: _SYSTEM_LABELS(e.labels)),
    (
        "a tracer of GPU kernels",
        lambda e: any(device_work(name) in ("kernel", "memcpy", "memset") for name in e.names),
    ),
)
"""The first that fits."""


def foreign_writer(
    events: SortedEvents, texts: Texts, top: Mapping[str, Any], fingerprint: WriterFingerprint
) -> str | None:
    """Who wrote the file, if it wasn't torch.profiler, or a tool that writes its events; UNKNOWN if nothing shows who.

    Args:
        events: The sorted events, with their names.
        texts: The texts of codes.
        top: The values outside of the events.
        fingerprint: Keys and categories in samples of the text.
    """
    if not events.events or not _TORCH_KEYS.isdisjoint(top):
        return None
    others = events.frames["others"]
    categories = _texts_of(texts, others["category"]) | fingerprint.categories
    if _has_rows_of_torch(events, categories) and _GPU_OP not in categories:
        return None
    frames = ("others", "device_events", "launches", "host_events")
    evidence = Evidence(
        top,
        fingerprint.keys,
        frozenset(categories),
        frozenset(label.strip() for label in _texts_of(texts, events.frames["names"]["label"])),
        frozenset().union(*(_texts_of(texts, events.frames[name]["name"]) for name in frames)),
    )
    writer = next((name for name, fits in WRITERS if fits(evidence)), None)
    return writer or (None if _may_be_of_torch(events, categories, texts) else UNKNOWN)


def _texts_of(texts: Texts, codes: NDArray[Any]) -> frozenset[str]:
    return frozenset(
        (texts[code] or "")[:_LONGEST] for code in distinct_codes(codes, len(texts))[:_MOST_NAMES] if code >= 0
    )


def _has_rows_of_torch(events: SortedEvents, categories: Iterable[str]) -> bool:
    """Whether there are rows that only torch.profiler writes, or categories that only it has."""
    if any(events.frames[name]["kind"].size for name in ("host_events", "python_calls", "memory", "syncs")):
        return True
    return any(_is_of_torch(category) and category.lower() not in _PLAIN_WORDS for category in categories)


def _may_be_of_torch(events: SortedEvents, categories: Iterable[str], texts: Texts) -> bool:
    """Whether torch.profiler may have written it, as far as its categories show, if nothing shows another program."""
    if any(map(_is_of_torch, categories)):
        return True
    device = events.frames["device_events"]
    by_category = device["kind"].size and not any(map(device_work, _texts_of(texts, device["name"])))
    return bool(by_category) or "CUDA functions" in _texts_of(texts, device["pid"])


def _is_of_torch(category: str) -> bool:
    return category in _TORCH_ARROWS or kind_of_category(category.encode()) is not Kind.UNKNOWN
