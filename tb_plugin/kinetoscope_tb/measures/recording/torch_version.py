"""Estimates the torch version that wrote a trace, from format features that its release added or removed.

Torch doesn't write its version into traces. What each release changed is in kineto's and torch's history; the tables
cite the commits. A feature that only later releases write is a certain lower bound. Upper bounds are weaker, since
files get rewritten, cut and mixed: a removed feature, a missing one, a recording date before a release. So the upper
bound never goes below the lower one.
"""

from __future__ import annotations

from datetime import datetime, timezone

import polars as pl

from ...arrays.gather import categories_of
from ...trace.model import Trace
from ...trace.results import once_per_trace

_BEGUN = {  # release → date of the kineto that it was built with, or the start of the range if not known exactly
    "1.8": "2021-02-01", "1.9": "2021-05-26", "1.10": "2021-08-31", "1.11": "2021-11-12", "1.12": "2022-04-08",
    "1.13": "2022-06-19", "2.0": "2023-02-02", "2.1": "2023-08-08", "2.2": "2023-10-31", "2.3": "2024-01-18",
    "2.4": "2024-05-24", "2.5": "2024-08-07", "2.6": "2024-11-08", "2.7": "2025-02-13", "2.8": "2025-06-16",
    "2.9": "2025-06-16", "2.10": "2025-11-04", "2.11": "2026-01-27", "2.12": "2026-04-07", "2.13": "2026-06-03",
    "2.14": "2026-06-05", "2.15": "2026-06-05", "later": "2026-06-05",
}  # fmt: skip
_RELEASES = tuple(_BEGUN)
_CREDIBLE_CLOCK_NS = 1_577_836_800 * 10**9  # 2020: a clock before it was never set

_SINCE = {  # features that this release was the first to write
    "1.9": {"key:blocks per SM", "key:Input Dims", "key:Module Hierarchy", "top:deviceProperties", "cat:cpu_op"},
    "1.10": {"cat:async_gpu", "cat:forward_backward", "top:distributedInfo"},  # kineto 7fbf128f
    "1.11": {"cat:python_function", "key:Python id"},  # b5bb62d2
    "1.12": {
        "cat:kernel", "cat:gpu_memcpy", "cat:gpu_memset", "cat:cuda_runtime", "cat:gpu_user_Annotation",
        "cat:async_cpu_to_gpu", "cat:overhead",
    },  # 1679e50e, fd335826
    "1.13": {"key:Profiler Event Index", "cat:gpu_user_annotation", "name:[OutOfMemory]"},  # 3db5c597
    "2.0": {
        "key:Ev Idx", "cat:ac2g", "cat:fwdbwd", "cat:hpu_op", "top:record_shapes", "top:profile_memory",
        "top:with_stack", "top:with_modules", "top:with_flops",
    },  # fbd4d5be
    "2.1": {"key:Concrete Inputs", "cat:cuda_driver", "cat:cuda_sync", "cat:mtia_runtime", "cat:xpu_runtime"},
    "2.2": {"key:In msg size", "key:In msg nelems", "key:wait_on_cuda_event_record_corr_id"},  # 8378f0d5, 4df86b0b
    "2.3": {"cat:collective_comm", "dist:pg_config", "dist:nccl_version"},  # d659be20
    "2.4": {
        "top:baseTimeNanoseconds", "key:Record function id", "key:Input Strides", "key:Process Group Name",
        "key:Process Group ID", "key:Process Group Ranks", "key:cid", "cat:privateuse1_runtime",
        "cat:privateuse1_driver", "cat:mtia_workloadd", "form:bare_fractions",
    },  # 84d95b82, ca24bca5, 445909a8
    "2.5": {"key:Src Rank", "key:Dst Rank"},
    "2.6": {
        "top:trace_id", "top:cupti_version", "top:cuda_runtime_version", "top:hip_runtime_version",
        "key:Input Tensors start",
    },  # 338140f5, ca1eedb9
    "2.7": {
        "key:finished", "overhead:Runtime Triggered Module Loading", "overhead:Lazy Function Loading",
        "overhead:Command Buffer Full", "overhead:Activity Buffer Request",
    },  # daa56485, c2bbbdd4
    "2.8": {"form:base_first", "cat:mtia_insight"},  # 08fcb941
    "2.10": {"cat:cuda_event"},  # de208906
    "2.11": {
        "top:PT_PROFILER_JOB_NAME", "top:PT_PROFILER_JOB_VERSION", "top:PT_PROFILER_JOB_ATTEMPT_INDEX",
        "cat:xpu_driver",
    },  # 7a731b6a
    "2.12": {
        "form:many_lines", "key:Seq", "key:Is asynchronized op", "key:graph node id", "key:limitingFactors",
        "cat:mtia_counters",
    },  # c51fcfea, 1a72dcae, 185fe9c5, f882254e
    "2.13": {
        "key:channel_type", "key:Comms Id", "key:copy kind", "cat:xpu_scope_profiler", "form:memory_range",
    },  # 094d3c1d, d636a941
    "2.14": {
        "key:hsa_queue", "cat:hardware_counters", "cat:xpu_sync", "cat:graph_event_node", "cat:graph_host_node",
    },  # 1d43601b, e8f56bd8, 8285e5bf; torch/profiler/_cupti
    "2.15": {"top:cudaGraphInlineAnnotated"},  # torch/profiler/_chrome_trace_export.py
}  # fmt: skip
_UNTIL = {  # features that this release was the last to write
    "1.8": {"key:Input dims", "cat:User"},
    "1.9": {"cat:Operator", "cat:async", "form:text_tid", "key:theoretical occupancy %"},  # 6f9c0eef, d492d29e
    "1.11": {"cat:Kernel", "cat:Memcpy", "cat:Memset", "cat:Runtime", "cat:async_gpu", "key:external id"},  # 1679e50e
    "1.12": {"cat:gpu_user_Annotation"},
    "1.13": {
        "cat:async_cpu_to_gpu", "cat:forward_backward", "key:Trace name", "key:Profiler Event Index",
    },  # fbd4d5be
    "2.2": {"key:In msg size"},
    "2.3": {"form:whole_times", "key:Kernel"},
    "2.4": {"key:Process Group ID", "form:bare_fractions"},
    "2.7": {"form:base_last", "cat:mtia_workloadd"},
    "2.11": {"form:one_line", "top:INFO"},  # c51fcfea, 502c5136
}  # fmt: skip
_UNTIL_WITHOUT = (  # if these features are present and that one is missing, this release was the last
    ({"cat:async_cpu_to_gpu", "cat:cpu_op"}, "key:Profiler Event Index", "1.12"),
    ({"cat:async_cpu_to_gpu", "cat:kernel"}, "top:deviceProperties", "1.12"),  # lost until 955fa148
    ({"key:Ev Idx", "key:Input Dims"}, "key:Concrete Inputs", "2.0"),
    ({"key:Ev Idx", "cat:cpu_op"}, "key:Record function id", "2.3"),
    ({"top:baseTimeNanoseconds"}, "top:trace_id", "2.5"),
    ({"top:baseTimeNanoseconds", "key:Addr"}, "key:finished", "2.6"),
    ({"top:baseTimeNanoseconds"}, "top:host_name", "2.11"),
    ({"key:registers per thread", "top:baseTimeNanoseconds"}, "key:limitingFactors", "2.11"),
)
_CALLED_AT = {
    1534: "2.3",
    1743: "2.6",
    1755: "2.7",
    1779: "2.9",
    1780: "2.10",
    1783: "2.11",
    1782: "2.13",
    1787: "2.14",
    1791: "2.15",
}
"""Line of nn.Module._call_impl in torch/nn/modules/module.py; with stacks, every call of a module has it."""

_PYTHON_EXPORTER = "torch's exporter in Python (use_python_export)"
_CUPTI_MONITOR, _CUSPY = "torch's CUPTI monitor", "torch's CUPTI monitor or Cuspy"
_INSTANT = "cat:cpu_instant_event"

_AUTOGRAD, _ASCEND = "torch's autograd profiler without kineto", "torch_npu"
NSIGHT, MEMORY_TIMELINE = "Nsight Systems", "torch's memory timeline (export_memory_timeline)"
_WRITERS_SINCE = {_PYTHON_EXPORTER: "2.13", _CUPTI_MONITOR: "2.13", _CUSPY: "2.13"}
_DEVICE_WORK = {"cat:kernel", "cat:gpu_memcpy", "cat:gpu_memset"}
_OF_CUSPY = {"key:channel", "cat:graph_event_node", "cat:graph_host_node"}
"""Writers with a layout of their own, and what CUPTI's in-process writer of 2.14 added (_cupti/monitor_trace.py)."""

_OTHER_WRITERS = (_AUTOGRAD, _ASCEND, NSIGHT, MEMORY_TIMELINE)
"""Writers outside kineto's history."""


@once_per_trace
def torch_version(trace: Trace) -> str | None:
    """The version that our recorder wrote, or else "≈ …" from the file's features; None if unknown."""
    recorded_version = trace.meta.producer.get("torch_version")
    if recorded_version:
        return str(recorded_version)
    if trace.meta.foreign_writer is not None or writer(trace) in _OTHER_WRITERS:
        return None
    release = _by_source_line(trace)
    if release:
        return f"≈ {release}"
    first, last = _range_of(_features(trace), _begun_by(trace.origin_ns), writer(trace))
    if (first, last) == (_RELEASES[0], _RELEASES[-1]):
        return None
    if last == _RELEASES[-1]:
        return f"later than {_RELEASES[-2]}" if first == last else f"≈ {first} or later"
    return f"≈ {first}" if first == last else f"≈ {first}–{last}"


def may_lack_compile(trace: Trace) -> bool:
    """Whether the version is one that may be older than PyTorch 2, and so without torch.compile."""
    version = torch_version(trace)
    return version is not None and version.removeprefix("≈ ").startswith("1.")


@once_per_trace
def writer(trace: Trace) -> str | None:
    """The writer of the file, if it isn't torch's usual exporter; None if unknown."""
    if trace.meta.foreign_writer is not None:
        return trace.meta.foreign_writer
    if "nsight" in trace.meta.top:
        return NSIGHT
    if trace.meta.top.get("memoryTimeline") is True:
        return MEMORY_TIMELINE
    features = _features(trace)
    is_compact = {"form:compact", "form:base_first", "cat:Trace"} <= features
    if "key:copy kind" in features or (is_compact and features & {"top:trace_id", "top:host_name"}):
        return _CUPTI_MONITOR if features & _DEVICE_WORK and not features & _OF_CUSPY else _CUSPY
    if "cat:async_npu" in features:
        return _ASCEND
    if "form:memory_range" in features or is_compact:
        return _PYTHON_EXPORTER
    if trace.path.endswith((".annotated.json", ".annotated.json.gz")):
        return "torch.cuda._annotate_cuda_graph_trace"
    if set(trace.threads["pid"]) & {"CPU functions", "CUDA functions"}:
        return _AUTOGRAD
    name = str(trace.meta.top.get("traceName") or "")
    return "kineto on demand" if "libkineto_activities_" in name else None


@once_per_trace
def _features(trace: Trace) -> set[str]:
    """All features of the file, each with its kind before a colon."""
    meta, others = trace.meta, trace.others
    cost = others.filter(pl.col("category").cast(pl.String) == "overhead")["name"]
    categories = {
        *meta.fingerprint.categories,
        *_texts(others["category"]),
        *_texts(trace.flows["category"]),
        *_texts(trace.syncs["category"]),
    }
    sorts = {
        "key": meta.fingerprint.keys,
        "form": meta.fingerprint.forms,
        "cat": categories,
        "top": meta.top.keys(),
        "dist": meta.distributed_info.keys(),
        "overhead": _texts(cost),
        "name": _texts(trace.memory["name"]),
    }
    features = {f"{sort}:{name}" for sort, names in sorts.items() for name in names}
    return features - {"top:deviceProperties"} if not meta.devices else features


def _range_of(features: set[str], newest: str, writer: str | None) -> tuple[str, str]:
    """(first, last) release that fits the features; `newest`: the last one at the time of the recording."""
    index = _RELEASES.index
    first = max((index(release) for release, names in _SINCE.items() if names & features), default=0)
    if writer in _WRITERS_SINCE:
        last = "2.14" if "form:memory_range" in features else "2.13" if writer == _CUPTI_MONITOR else _RELEASES[-1]
        first = max(first, index(_WRITERS_SINCE[writer]))
        if writer == _CUSPY and features & _OF_CUSPY:
            first = max(first, index("2.14"))
        if writer == _PYTHON_EXPORTER and _INSTANT in features and "form:memory_range" not in features:
            first = max(first, index("2.15"))  # before, it wrote [memory] as ranges
        return _RELEASES[first], _RELEASES[max(first, min(index(last), index(newest)))]
    if {"cat:cpu_op", "cat:Kernel"} <= features and "form:text_tid" not in features:
        first = max(first, index("1.10"))  # 031f2dee: before, thread ids were strings
    if "top:host_name" in features and "form:one_line" not in features:
        first = max(first, index("2.12"))  # 628e1d0f; some writers add it themselves
    lasts = [index(release) for release, names in _UNTIL.items() if names & features]
    lasts += [
        index(release) for present, absent, release in _UNTIL_WITHOUT if present <= features and absent not in features
    ]
    if first or lasts:
        lasts.append(index(newest))
    return _RELEASES[first], _RELEASES[max(first, min(lasts, default=len(_RELEASES) - 1))]


def _begun_by(origin_ns: int) -> str:
    """The newest release at a time; the newest of all if the time isn't credible."""
    if origin_ns < _CREDIBLE_CLOCK_NS:
        return _RELEASES[-1]
    day = f"{datetime.fromtimestamp(origin_ns / 1e9, timezone.utc):%Y-%m-%d}"
    return max((r for r in _RELEASES if _BEGUN[r] <= day), key=_RELEASES.index, default=_RELEASES[0])


def _by_source_line(trace: Trace) -> str | None:
    """The release whose source calls modules at the recorded line."""
    calls = categories_of(trace.python_calls["name"])
    lines = calls.str.extract(r"torch/nn/modules/module\.py\((\d+)\): _call_impl$").drop_nulls().unique()
    return _CALLED_AT.get(int(lines[0])) if lines.len() == 1 else None


def _texts(names: pl.Series) -> set[str]:
    return set(names.unique().cast(pl.String).drop_nulls())
