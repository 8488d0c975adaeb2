"""Files of other programs than torch.profiler, as short as they can be and as these programs write them.

Written after recordings and sources of each program, with invented names and numbers; `VIZTRACER` is what VizTracer
1.1.1 wrote of a function that was called twice.
"""

from __future__ import annotations

import json
from typing import Any

Event = dict[str, Any]


def span(name: str, at: float, dur: float, pid: Any = 1, tid: Any = 1, **more: Any) -> Event:
    """A complete event, in µs."""
    return {"ph": "X", "pid": pid, "tid": tid, "ts": at, "dur": dur, "name": name, **more}


def process(pid: Any, name: str) -> Event:
    """The name of a process."""
    return {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}}


def thread(pid: Any, tid: Any, name: str) -> Event:
    """The name of a thread."""
    return {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": name}}


def of_events(*events: Event, **top: Any) -> str:
    """An object with these events."""
    return json.dumps({**top, "traceEvents": list(events)})


VIZTRACER = of_events(
    process(6553, "MainProcess"),
    thread(6553, 6553, "MainThread"),
    span("builtins.sum", 1177179972.336, 12.879140020178527, 6553, 6553, cat="FEE"),
    span("f (train.py:6)", 1177179971.144, 14.341312992920413, 6553, 6553, cat="FEE"),
    span("f (train.py:6)", 1177180032.866, 12.158068417182529, 6553, 6553, cat="FEE"),
    viztracer_metadata={"version": "1.1.1", "overflow": False, "baseTimeNanoseconds": 1795654435822247777},
    file_info={"files": {}, "functions": {}},
)
JAX = of_events(
    process(1, "/device:GPU:0"),
    thread(1, 13, "Stream #13(Compute)"),
    thread(1, 14, "Stream #14(MemcpyH2D)"),
    thread(1, 1, "XLA Modules"),
    thread(1, 2, "XLA Ops"),
    process(701, "/host:CPU"),
    thread(701, 7, "python"),
    span("PjitFunction(train_step)", 100.0, 40, 701, 7),
    span("jit_train_step(123)", 105.0, 35, 1, 1),
    span("MemcpyH2D", 100.0, 5, 1, 14),
    span("ampere_sgemm_128x64_nn", 105.0, 30, 1, 13, args={"hlo_module": "jit_train_step", "hlo_op": "dot.3"}),
    span("dot.3", 105.0, 30, 1, 2),
    span("loop_add_fusion", 135.0, 5, 1, 13, args={"hlo_module": "jit_train_step", "hlo_op": "add.7"}),
    {},
    displayTimeUnit="ns",
    metadata={"highres-ticks": True},
)
JAX_ON_TPU = of_events(
    process(3, "/device:TPU:0"),
    thread(3, 1, "Steps"),
    thread(3, 2, "XLA Modules"),
    thread(3, 3, "XLA Ops"),
    span("0", 10, 30, 3, 1),
    span("jit_train_step(9)", 10, 30, 3, 2),
    span("fusion.4", 10, 20, 3, 3),
    {},
)
TENSORFLOW = of_events(
    process(0, "/job:localhost/replica:0/task:0/device:CPU:0 Compute"),
    process(1, "/job:localhost/replica:0/task:0/device:GPU:0/stream:15 Compute"),
    process(2, "/job:localhost/replica:0/task:0/device:GPU:0/stream:all Compute"),
    span("MatMul", 5, 50, 0, 0, cat="Op", args={"name": "dense/MatMul", "op": "MatMul"}),
    span("volta_sgemm_128x64_nn", 20, 30, 1, 0, args={"name": "dense/MatMul", "op": "MatMul"}),
)
ONNX_RUNTIME = json.dumps(
    [
        span("model_loading_array", 11, 698, 34368, 39520, cat="Session", args={}),
        span("session_initialization", 869, 15496, 34368, 39520, cat="Session", args={}),
        span(
            "Convolution28_kernel_time",
            16800,
            66055,
            34368,
            39520,
            cat="Node",
            args={"op_name": "Conv", "provider": "CUDAExecutionProvider", "parameter_size": "832"},
        ),
        span("model_run", 16700, 70000, 34368, 39520, cat="Session", args={}),
    ]
)
TLPARSE = json.dumps(
    [
        {"name": name, "ts": at, "args": {"compile_id": "0/0"}, "ph": phase, "cat": "dynamo_timed", "tid": 0, "pid": 0}
        for name, at, phase in (
            ("dynamo", 1000.5, "B"),
            ("entire_frame_compile", 1001.0, "B"),
            ("backend_compile", 1100.0, "B"),
            ("backend_compile", 8100.0, "E"),
            ("entire_frame_compile", 9001.0, "E"),
            ("dynamo", 9002.0, "E"),
        )
    ],
    indent=2,
)
ROCPROF = of_events(
    {},
    process(2, "CPU HIP API"),
    process(1, "COPY"),
    process(6, "GPU0"),
    process(518, "GPU Barriers0"),
    span("hipMalloc", "120", "40", 2, 2385, args={"BeginNs": "120000", "EndNs": "160000", "pid": "2385"}),
    span("hipLaunchKernel", "170", "5", 2, 2385, args={"BeginNs": "170000", "EndNs": "175000"}),
    span("rms_norm(float*, float const*) [clone .kd]", "180", "30", 6, 0, args={"BeginNs": "180000", "dev-id": "0"}),
    span("CopyHostToDevice", "160", "10", 1, 0, args={"BeginNs": "160000", "EndNs": "170000"}),
    span("<barrier packet>", "215", "1", 518, 0, args={"BeginNs": "215000"}),
    otherData={"rocm": "5.7"},
)
EBPF = of_events(
    process(4211, "python3"),
    span("uprobe:libcudart:cudaLaunchKernel", 1000, 8, 4211, 4211, cat="cuda_api"),
    span("uprobe:libcudart:cudaMemcpyAsync", 1010, 20, 4211, 4211, cat="cuda_api"),
    otherData={"tool": "gpuprobe-bpf"},
)
UNITRACE = of_events(
    process(50, "HOST<python>"),
    span("zeCommandListAppendLaunchKernel", 100, 5, 50, 50, cat="cpu_op", args={"id": "1"}),
    span("gemm_kernel[SIMD16]", 110, 50, 51, 1, cat="gpu_op", args={"id": "1"}),
)
CHROME = of_events(
    thread(10, 11, "CrRendererMain"),
    span("RunTask", 1, 50, 10, 11, cat="disabled-by-default-devtools.timeline"),
    span("FunctionCall", 5, 20, 10, 11, cat="devtools.timeline"),
    metadata={"clock-domain": "LINUX_CLOCK_MONOTONIC"},
)
PY_SPY = json.dumps(
    [
        {"name": "train", "cat": "py-spy", "ph": phase, "ts": at, "pid": 5, "tid": 5, "args": {"line": 3}}
        for at, phase in ((0, "B"), (10000, "E"))
    ]
)
SPEEDSCOPE = of_events(span("main", 0, 900, cat="rbspy"), speedscope=True)  # as reader/input/speedscope.py makes it
CLANG = of_events(span("ExecuteCompiler", 0, 900, 8, 8), span("Frontend", 10, 600, 8, 8), beginningOfTime=1)
BAZEL = of_events(
    span("Launch Blaze", 0, 900, 1, 0, cat="general information"), otherData={"bazel_version": "release 7.1.0"}
)
HOROVOD = json.dumps(
    [{"name": n, "ph": p, "ts": t, "pid": 1} for n, p, t in (("NEGOTIATE_ALLREDUCE", "B", 1), ("", "E", 9))]
)
RAY = json.dumps([span("train", 0, 50, "Node 10.0.0.1", "worker:1", cat="task::train", args={"task_id": "a"})])
RUST = json.dumps([span("step", 0, 5, cat="app", **{".file": "main.rs", ".line": 4})])
ROCPROFV3 = of_events(span("saxpy", 0, 5, cat="kernel_dispatch"), span("hipMalloc", 0, 5, cat="hip_api"))
CUPTI_ROWS = json.dumps(
    [
        span("[MEMCPY] HtoD", 1000.0, 8000.0, 1, 7, args={"correlationId": 1, "externalId": 1}),
        *(
            span(f"void at::native::vectorized_elementwise_kernel<{n}, x>", 10000.0 + 100 * n, 60.0, 1, 7)
            for n in range(1, 9)
        ),
        span("_my_triton_kernel", 20000.0, 100.0, 1, 7),
    ]
)
XLA = of_events(
    process(701, "/host:CPU"),
    thread(701, 7, "tf_XLAEigen/7"),
    span("ThunkExecute", 0, 5, 701, 7, args={"hlo_op": "dot.3", "hlo_module": "main"}),
)
SYSTEM = of_events(process(612, "surfaceflinger"), span("onMessageReceived", 0, 5, 612, 612))
ANOTHER = of_events(span("work", 0, 30), span("inner", 10, 5), span("aside", 100, 10, tid=2))

FILES = {
    "VizTracer": VIZTRACER,
    "JAX (XLA's profiler)": JAX,
    "TensorFlow's profiler": TENSORFLOW,
    "ONNX Runtime": ONNX_RUNTIME,
    "torch.compile's event log (tlparse)": TLPARSE,
    "rocprof": ROCPROF,
    "rocprofv3": ROCPROFV3,
    "an eBPF tracer": EBPF,
    "Intel's unitrace": UNITRACE,
    "Chrome": CHROME,
    "py-spy": PY_SPY,
    "a profiler that writes speedscope's format": SPEEDSCOPE,
    "Clang (-ftime-trace)": CLANG,
    "Bazel": BAZEL,
    "Horovod's timeline": HOROVOD,
    "Ray": RAY,
    "Rust's tracing-chrome": RUST,
    "a tracer of GPU kernels": CUPTI_ROWS,
    "XLA's profiler": XLA,
    "Perfetto's system tracing": SYSTEM,
    "another program": ANOTHER,
}
"""By the name of the program, as kinetoscope_tb.reader.foreign_writers has it."""
