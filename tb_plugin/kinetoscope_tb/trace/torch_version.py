"""Which torch wrote a trace that doesn't say so: about, from the form of the file.

No trace names its torch. What each release added or renamed is in kineto's history: `host_name` in 628e1d0f, the
versions of CUPTI and CUDA in ca1eedb9, `baseTimeNanoseconds` in 84d95b82, the names of arrows in fbd4d5be and be239c04.
Torch 2.13's exporter in Python leaves out what the one in C++ writes, and passes for an older one here.
"""

from __future__ import annotations

from .model import Trace

_OPTIONS = {"record_shapes", "profile_memory", "with_stack", "with_modules", "with_flops"}
_BY_KEY = (  # the newest first: any of these keys beside the events → the releases that write it
    ({"host_name"}, "2.12 or later"),
    ({"PT_PROFILER_JOB_NAME", "PT_PROFILER_JOB_VERSION", "PT_PROFILER_JOB_ATTEMPT_INDEX"}, "2.11"),
    ({"trace_id", "cupti_version", "cuda_runtime_version", "hip_runtime_version"}, "2.6–2.11"),
    ({"baseTimeNanoseconds"}, "2.4–2.5"),
    (_OPTIONS, "2.0–2.3"),
)
_BY_ARROW = (
    ({"ac2g", "fwdbwd"}, "2.0–2.3"),
    ({"async_cpu_to_gpu"}, "1.12–1.13"),
    ({"async_gpu", "forward_backward"}, "1.10–1.11"),
)


def torch_version(trace: Trace) -> str | None:
    """What our own recorder wrote, or else "≈ …" by the form of the file; None if that tells nothing."""
    said = trace.meta.producer.get("torch_version")
    if said:
        return str(said)
    keys, arrows = set(trace.meta.top), set(trace.flows["category"].cast(str).unique())
    for marks, releases in _BY_KEY:
        if keys & marks:
            return f"≈ {releases}"
    for marks, releases in _BY_ARROW:
        if arrows & marks:
            return f"≈ {releases}"
    if "async" in arrows:
        return "≈ 1.9" if "deviceProperties" in keys else "≈ 1.8"
    return None
