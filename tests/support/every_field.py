"""One small trace that holds every field of every kind of event, and the same trace with an odd value in one of them.

`fuzz/fields.json` lists the keys that occur in the real traces, by phase and category; the keys that the reader looks
for are added from its own table. `fields()` has the path of each, those inside lists and objects too.
"""

from __future__ import annotations

import copy
import functools
import json
import re
from pathlib import Path
from typing import Any, ClassVar

from kinetoscope_tb.reader.scan.columns import ARGS
from support.fuzzing import ODD_VALUES, RAW_TEXTS

KEYS = Path(__file__).parents[1] / "fuzz" / "fields.json"
_RAW = re.compile(r'"(raw \d+)"')
MISSING = object()
"""In place of a value: the field isn't there."""

RANKS = 3
BASE_NS = 1_700_000_000_000_000_000
_COLLECTIVE = {
    "Collective name": "allreduce",
    "dtype": "Float",
    "In msg nelems": 1024,
    "Out msg nelems": 1024,
    "In split size": "[]",
    "Out split size": "[]",
    "Group size": RANKS,
    "Process Group Name": "0",
    "Process Group Description": "default_pg",
    "Process Group Ranks": "[0, 1, 2]",
    "Seq": 1,
    "Is asynchronized op": False,
}
_VALUES = {
    **_COLLECTIVE,
    "Input Dims": [[2, 3], [3, 4]],
    "Input dims": [[2, 3], [3, 4]],
    "Input type": ["float", "float"],
    "Input Strides": [[3, 1], [4, 1]],
    "Concrete Inputs": ["", "", "1"],
    "Call stack": "train.py(3): step;train.py(9): <module>",
    "Module Hierarchy": "Net.forward",
    "finished": "true",
    "grid": [1, 1, 1],
    "block": [32, 1, 1],
    "blocks per SM": 0.5,
    "warps per SM": 2.0,
    "est. achieved occupancy %": 40,
    "theoretical occupancy %": 40,
    "occupancy": {"limitingFactors": "REGS", "activeBlocksPerMultiprocessor": 2},
    "cuda_sync_kind": "Stream Wait Event",
    "device": 0,
    "stream": 7,
    "bytes": 4096,
    "Process Group ID": "0",
    "kind": "HtoD",
    "labels": "CPU",
    "name": "python",
}
"""What the keys hold that the code reads; any other holds 1."""


def event(ph: str, cat: str | None, name: str, at: float, dur: float | None = None, /, **args: Any) -> dict[str, Any]:
    """An event at a time in µs; what begins with `_` is no argument but stands beside them."""
    fields = {key[1:]: args.pop(key) for key in list(args) if key.startswith("_")}
    event = {"ph": ph, "cat": cat, "name": name, "pid": 1000, "tid": 1, "ts": at, "dur": dur, **fields, "args": args}
    return {key: value for key, value in event.items() if value is not None}


def _products(at: float) -> list[dict[str, Any]]:
    """Operators whose operations are counted from shapes, types and values."""
    image, weight, head = [2, 3, 8, 8], [4, 3, 3, 3], [1, 2, 8, 16]
    inputs = {
        "aten::addmm": ([[4], [2, 3], [3, 4]], ["", "", "", "1", "1"]),
        "aten::convolution": (
            [image, weight, [4]],
            ["", "", "", "[1, 1]", "[0, 0]", "[1, 1]", "False", "[0, 0]", "1"],
        ),
        "aten::_scaled_mm": ([[2, 3], [3, 4], [], [], [], [], []], ["", "", "", "", "", "", "15", ""]),
        "aten::_scaled_dot_product_flash_attention": ([head, head, head], ["", "", "", "0.", "True"]),
    }
    return [
        event(
            "X", "cpu_op", name, at + place / 4, 0.2,
            **{"Input Dims": shapes, "Input type": ["float"] * len(shapes), "Concrete Inputs": values},
        )
        for place, (name, (shapes, values)) in enumerate(inputs.items())
    ]  # fmt: skip


def _step(rank: int, number: int, at: float) -> list[dict[str, Any]]:
    """One step: a module's matmul and its backward, a collective, memory, waits."""
    c = 100 * number
    late = 3 * rank
    work = {"device": 0, "stream": 7, "_pid": 0, "_tid": 7}
    arguments = {**_COLLECTIVE, "Seq": number}
    return [
        event("X", "user_annotation", f"ProfilerStep#{number}", at, 100),
        event("X", "user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + 1, 4),
        event("X", "python_function", "train.py(9): <module>", at, 98, **{"Python id": c + 1}),
        event(
            "X", "python_function", "nn.Module: Linear_0", at + 5, 40,
            **{"Python id": c + 2, "Python parent id": c + 1, "Python module id": 0},
        ),
        event(
            "X", "cpu_op", "aten::mm", at + 10, 20,
            **{name: _VALUES[name] for name in ("Input Dims", "Input type", "Concrete Inputs", "Call stack")},
            **{"External id": c, "Sequence number": c, "Fwd thread id": 0},
        ),
        *_products(at + 32),
        event("X", "cuda_runtime", "cudaLaunchKernel", at + 12, 3, correlation=c, **{"External id": c}),
        event(
            "X", "kernel", "ampere_sgemm_128x64", at + 20, 30, correlation=c, **work,
            **{"External id": c, "grid": [1, 1, 1], "block": [32, 1, 1], "blocks per SM": 0.5, "shared memory": 0},
        ),
        event("s", "fwdbwd", "fwdbwd", at + 11, _id=c),
        event("f", "fwdbwd", "fwdbwd", at + 51, _id=c, _tid=2, _bp="e"),
        event("s", "ac2g", "ac2g", at + 12, _id=c + 1),
        event("f", "ac2g", "ac2g", at + 20, _id=c + 1, _pid=0, _tid=7, _bp="e"),
        event("X", "cpu_op", "autograd::engine::evaluate_function: MmBackward0", at + 50, 15, _tid=2,
              **{"Sequence number": c, "Fwd thread id": 1, "External id": c + 3}),
        event("X", "cuda_driver", "cuLaunchKernel", at + 52, 2, _tid=2, correlation=c + 1),
        event("X", "gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", at + 54, 5, correlation=c + 1, bytes=4096, **work),
        event("X", "cuda_runtime", "cudaMemsetAsync", at + 56, 1, correlation=c + 4),
        event("X", "gpu_memset", "Memset (Device)", at + 60, 2, correlation=c + 4, bytes=64, **work),
        event("X", "cuda_runtime", "cudaGraphLaunch", at + 58, 1, correlation=c + 5),
        event("X", "kernel", "triton_poi_fused_0", at + 63, 2, correlation=c + 5, **{"graph id": 3}, **work),
        event("X", "cpu_op", "record_param_comms", at + 70 + late, 10, **arguments, **{"External id": c + 2}),
        event("X", "cuda_runtime", "cudaLaunchKernelExC", at + 72 + late, 2, correlation=c + 2),
        event(
            "X", "kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + 76 + late, 18 - late, correlation=c + 2,
            device=0, stream=20, _pid=0, _tid=20, **arguments,
        ),
        event(
            "X", "cuda_sync", "Stream Wait Event", at + 94, 2, correlation=c + 3, _pid=0, _tid=7,
            cuda_sync_kind="Stream Wait Event", stream=7, device=0, wait_on_stream=20,
            wait_on_cuda_event_id=1, wait_on_cuda_event_record_corr_id=c + 2,
        ),
        event("X", "cuda_runtime", "cudaStreamSynchronize", at + 95, 4, correlation=c + 3),
        *(
            event(
                "i", "cpu_instant_event", "[memory]", at + when, _s="t",
                **{"Device Type": 1, "Device Id": 0, "Addr": c, "Bytes": size, "Ev Idx": 1},
                **{"Total Allocated": 1 << 20, "Total Reserved": 1 << 21},
            )
            for when, size in ((13, 4096), (66, -4096))
        ),
        event("C", None, "loss", at + 40, loss=0.5, rate=2),
        event("X", "overhead", "Buffer Flush", at + 80, 1, _tid=3),
        event("X", "gpu_user_annotation", f"ProfilerStep#{number}", at + 20, 60, _pid=0, _tid=7),
    ]  # fmt: skip


def _metadata(rank: int) -> dict[str, Any]:
    return {
        "schemaVersion": 1,
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": BASE_NS,
        "deviceProperties": [
            {
                "id": 0, "name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 84990623744, "computeMajor": 8,
                "computeMinor": 0, "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048,
                "regsPerMultiprocessor": 65536, "warpSize": 32, "sharedMemPerMultiprocessor": 167936,
                "maxSharedMemoryPerMultiProcessor": 167936, "numSms": 108,
            },
        ],
        "distributedInfo": {
            "backend": "nccl", "rank": rank, "world_size": RANKS, "pg_count": 1, "nccl_version": "2.27.7",
            "pg_config": [
                {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": RANKS,
                 "ranks": list(range(RANKS))},
            ],
        },
        "global_rank": rank,
        "host_name": f"host{rank}",
        "trace_id": "D84EEAE1",
        "traceName": "/tmp/libkineto_activities_1.json",
        "cuda_runtime_version": 12040,
        "hip_runtime_version": 70253211,
        "record_shapes": 1, "profile_memory": 1, "with_stack": 1, "with_modules": 1, "with_flops": 1,
        "metadata": {"any": ["thing"]},
        "INFO": ["INFO"],
        "kinetoscope": {
            "version": "0.1.0", "run": "ddp", "global_rank": rank, "world_size": RANKS, "local_rank": rank,
            "node_rank": 0, "local_world_size": RANKS, "host": "vm", "pid": 1000, "torch_version": "2.13.0",
            "cuda_version": "12.4", "python_version": "3.11.7", "window": 1, "launcher": "torchrun",
            "mesh": {"dp": rank}, "clock": {"offset_ns": 1000 * rank, "error_ns": 100}, "ranks": list(range(RANKS)),
            "options": {"activities": ["CPU"], "record_shapes": True, "with_stack": False},
            "markers": {"triton_poi_fused_0": {"label": "fused"}}, "counters": {"loss": {"unit": "bytes"}},
        },
    }  # fmt: skip


@functools.cache
def _sample(rank: int) -> dict[str, Any]:
    events = [
        event("M", None, "process_name", 0, _pid=1000, name="python"),
        event("M", None, "process_labels", 0, _pid=0, labels="GPU 0"),
        event("M", None, "process_sort_index", 0, _pid=0, sort_index=5),
        event("M", None, "thread_name", 0, name="main"),
        event("X", "Trace", "PyTorch Profiler (0)", 0, 250, _pid="Spans", _tid="PyTorch Profiler"),
        *_step(rank, 1, 10),
        *_step(rank, 2, 110),
        event("i", None, "Iteration Start: PyTorch Profiler", 5, _s="g"),
        event("B", "cpu_op", "begun", 215),
        event("E", "cpu_op", "begun", 217),
        event("i", "cpu_instant_event", "[OutOfMemory]", 216, _s="t", **{"Device Type": 1, "Device Id": 0, "Bytes": 9}),
    ]
    return {**_metadata(rank), "traceEvents": _with_every_key(events)}


def _with_every_key(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events, the first of each kind with all keys of its kind; kinds that none is of come behind."""
    for kind, keys in json.loads(KEYS.read_text()).items():
        phase, _, category = kind.partition(" ")
        one = next((e for e in events if e["ph"] == phase and e.get("cat") == (category or None)), None)
        if one is None:
            one = event(phase, category, category, 220, 2)
            events.append(one)
        for key in keys:
            _put_missing(one, key.split("/"))
    for kind in ("cpu_op", "kernel"):
        one = next(e for e in events if e.get("cat") == kind)
        for arg in ARGS:
            for key in arg.keys:
                _put_missing(one, [["args", "occupancy"], ["args"], []][2 - arg.level] + [key])
    return events


def _put_missing(inside: dict[str, Any], path: list[str]) -> None:
    for key in path[:-1]:
        inside = inside.setdefault(key, {})
        if not isinstance(inside, dict):
            return
    if path[-1] not in inside:
        inside[path[-1]] = copy.deepcopy(_VALUES.get(path[-1], 1))


def sample(rank: int = 0) -> dict[str, Any]:
    """The document of one rank."""
    return copy.deepcopy(_sample(rank))


Path_ = tuple[str | int, ...]


def _paths(value: Any, path: Path_) -> list[Path_]:
    """The places in a JSON value, itself too; of a list those of its first and its last element."""
    paths = [path] if path else []
    if isinstance(value, dict):
        for key, inner in value.items():
            paths += _paths(inner, (*path, key))
    elif isinstance(value, list):
        for at in sorted({0, len(value) - 1} if value else ()):
            paths += _paths(value[at], (*path, at))
    return paths


@functools.cache
def fields() -> tuple[Path_, ...]:
    """The path of each field of the sample: of the metadata, and of the first event that has it of each kind."""
    document = _sample(0)
    paths = list(_paths({k: v for k, v in document.items() if k != "traceEvents"}, ()))
    paths.append(("traceEvents",))
    seen = set()
    for at, one in enumerate(document["traceEvents"]):
        kind = (one["ph"], one.get("cat"), one["name"].partition("#")[0])
        for path in _paths(one, ()):
            if (kind, path) not in seen:
                seen.add((kind, path))
                paths.append(("traceEvents", at, *path))
    return tuple(paths)


def value_at(document: Any, path: Path_) -> Any:
    """What the document has at a path."""
    return functools.reduce(lambda inside, key: inside[key], path, document)


def odd_values(value: Any) -> tuple[Any, ...]:
    """What is put in place of a value: any odd one; nothing; of a text its own form with odd content."""
    odd: list[Any] = [MISSING, *ODD_VALUES, *RAW]
    if isinstance(value, str):
        digits = [i for i, c in enumerate(value) if c.isdigit()]
        if digits:
            odd += [
                value[: digits[0]] + other + value[digits[-1] + 1 :]
                for other in ("9" * 20, "-1", "٣", "²", "", "1e400")
            ]
        if value.startswith("["):
            odd += ["[0, 1000000000]", '["\ud800"]', "[[[", "[" * 1000 + "]" * 1000, "[NaN]", "[1e999]", "{}"]
    return tuple(odd)


class Raw(str):
    """JSON, or nearly, that `json.dumps` never writes: a text that stands for it until the file is written."""

    __slots__ = ()
    TOKENS: ClassVar[dict[str, str]] = {}

    def __new__(cls, token: str) -> Raw:
        marker = super().__new__(cls, f"raw {len(cls.TOKENS)}")
        cls.TOKENS[marker] = token
        return marker


RAW = tuple(map(Raw, RAW_TEXTS))


def replaced(document: dict[str, Any], path: Path_, value: Any) -> dict[str, Any]:
    """The document with another value at a path; it is changed."""
    inside = value_at(document, path[:-1])
    if value is not MISSING:
        inside[path[-1]] = value
    else:
        del inside[path[-1]]
    return document


def text(document: dict[str, Any], *, is_escaped: bool = True) -> bytes:
    """The document as a file, with halves of surrogate pairs as escapes or as bytes that are no UTF-8."""
    written = json.dumps(document, ensure_ascii=is_escaped)
    for marker in set(_RAW.findall(written)):
        written = written.replace(f'"{marker}"', Raw.TOKENS[marker])
    return written.encode("utf-8", "surrogatepass")


@functools.cache
def cases() -> tuple[tuple[Path_, Any], ...]:
    """Every odd value in every field."""
    document = _sample(0)
    return tuple((path, value) for path in fields() for value in odd_values(value_at(document, path)))
