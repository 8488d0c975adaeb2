"""Causes planted in a program that keeps its device busy: each costs a chosen share of the step.

A plant takes the program, an amount of nanoseconds per step, and chance; `calibrate` finds the amount that costs the
share.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from planted.devices import (
    DEVICES,
    H100,
    Device,
    attention_flops,
    convolution_flops,
    matmul_flops,
)
from planted.replay import DEVICE, Info, Program
from planted.sketch import HEAVY, PAUSE_NS, Sketch, choose, insert, read_scalar, spots, without_waits

Plant = Callable[[Program, int, np.random.Generator], Program]


@dataclass(frozen=True)
class Cause:
    """What is planted.

    Args:
        id: Of the cause.
        plant: Plants it.
        cause: What an answer must say, a key of `blind.words.CAUSES`.
        shares: Of the step that it costs, from, to.
        reads: Whether the host must wait for the device at each step's end, for the plant to cost what it takes.
        rest: Patterns of the culprit, each of which must be found in the answer.
        is_scaled: Whether the amount is found by calibration; else the plant takes the share in thousandths.
        is_nvidia: Whether what is planted exists on NVIDIA's devices alone.
        stretches: Whether the plant also makes the device's work longer: without its waits the step is what it would be.
    """

    id: str
    plant: Plant
    cause: str
    shares: tuple[float, float] = (0.25, 0.6)
    reads: bool | None = None
    rest: tuple[str, ...] = ()
    is_scaled: bool = True
    is_nvidia: bool = False
    stretches: bool = False


def load_data(program: Program, amount: int, rng: np.random.Generator) -> Program:
    """The main thread reads and collates each batch itself, or waits for its workers."""
    sketch = Sketch(0, program.main)
    name = ("_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter")[int(rng.integers(2))]
    with sketch.slice(f"enumerate(DataLoader)#{name}.__next__"):
        if name.startswith("_Single"):
            for _ in range(8):
                with sketch.slice("aten::to"):
                    sketch.idle(amount // 10)
            with sketch.slice("aten::stack"):
                sketch.idle(amount // 10)
        sketch.idle(amount // 10 if name.startswith("_Single") else amount)
    return insert(program, [sketch])


def delay_in_python(program: Program, amount: int, rng: np.random.Generator) -> Program:
    """Python code at many places, of which nothing is recorded."""
    sketches = choose(program, 40, rng)
    parts = rng.dirichlet(np.full(len(sketches), 3.0))
    for sketch, part in zip(sketches, parts, strict=True):
        sketch.idle(int(amount * part))
    return insert(program, sketches)


def pause_at_one_place(program: Program, amount: int, rng: np.random.Generator) -> Program:
    """The same pause at the same place of each step."""
    sketch = choose(program, 1, rng)[0]
    sketch.idle(amount)
    return insert(program, [sketch])


def work_in_an_operator(program: Program, amount: int, rng: np.random.Generator) -> Program:
    """An operator that computes on the host within the step."""
    sketches = choose(program, int(rng.integers(2, 6)), rng)
    for sketch in sketches:
        with sketch.slice("vision::nms_on_host"):
            sketch.idle(amount // len(sketches))
    return insert(program, sketches)


def read_scalars(program: Program, amount: int, rng: np.random.Generator) -> Program:
    """`.item()` at many places: each drains the queue, and the host starts anew behind it.

    Behind a read it does what a warm loop does between two launches, and no more: what takes longer is a cause of its own.
    """
    count = max(12, amount // PAUSE_NS)
    return _behind_reads(program, count, min(amount // count, PAUSE_NS), rng)


def pause_behind_reads(program: Program, amount: int, rng: np.random.Generator) -> Program:
    """`.item()` at a few places, behind each of which the host is busy for long with what isn't recorded.

    Without the reads the queue would hide that, and without that the reads would cost next to nothing: either is right.
    """
    return _behind_reads(program, 12, amount // 12, rng)


def _behind_reads(program: Program, count: int, pause: int, rng: np.random.Generator) -> Program:
    """Reads at so many places, with a pause of the host behind each that the queue would hide without the read.

    The device's work is stretched so that it would, whatever the pause. Nothing else waits for the device: what the
    program waited for by itself would drain the queue just before a read.
    """
    program = without_waits(program)
    sketches = choose(program, count, rng)
    room = 1.2 * (program.length + pause * len(sketches)) / program.busy_ns()
    program.dur = np.where(program.computing(HEAVY), program.dur * max(1.0, room), program.dur).astype(np.int64)
    for sketch in sketches:
        read_scalar(sketch)
        sketch.idle(pause)
    return insert(program, sketches)


def _copy(kind: str, *, waits: bool) -> Plant:
    def copy(program: Program, amount: int, rng: np.random.Generator) -> Program:
        count = int(rng.integers(1, 5))
        sketches = choose(program, count, rng)
        bandwidth = 5.0 if "Pageable" in kind else 22.0  # GB/s: PCIe through a staging buffer, and PCIe 4
        for sketch in sketches:
            dur = amount // count
            with sketch.slice("aten::to"), sketch.slice("aten::_to_copy"), sketch.slice("aten::copy_"):
                sketch.launch(
                    kind, dur, cat="gpu_memcpy", call="cudaMemcpyAsync", length=8_000, waits=waits,
                    bytes=int(dur * bandwidth), **{"memory bandwidth (GB/s)": bandwidth},
                )  # fmt: skip
                if waits:
                    sketch.call("cudaStreamSynchronize", 3_000, (0, 0))
        return insert(program, sketches)

    return copy


def communicate(program: Program, amount: int, rng: np.random.Generator) -> Program:
    """All-reduces on a stream of their own that the next computation waits for."""
    count = int(rng.integers(2, 7))
    sketches = choose(program, count, rng)
    name = ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL",
            "ncclKernel_AllReduce_RING_LL_Sum_float")[int(rng.integers(3))]  # fmt: skip
    for sketch in sketches:
        with sketch.slice("c10d::allreduce_"), sketch.slice("record_param_comms"):
            sketch.launch(
                f"{name}(ncclDevComm*, unsigned long, ncclWork*)", amount // count, stream=40, joins=True,
                call="cudaLaunchKernelExC",
            )  # fmt: skip
    return insert(program, sketches)


def hide_communication(program: Program, amount: int, rng: np.random.Generator) -> Program:
    """All-reduces beside computation: they cost nothing."""
    sketches = choose(program, 4, rng)
    for sketch in sketches[:-1]:
        with sketch.slice("c10d::allreduce_"), sketch.slice("record_param_comms"):
            sketch.launch(
                "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*)",
                amount // 5,
                stream=40,
                call="cudaLaunchKernelExC",
            )
    return insert(program, sketches)


def allocate(program: Program, amount: int, rng: np.random.Generator) -> Program:
    """The caching allocator frees its blocks and asks the driver for others in each step."""
    sketches = choose(program, int(rng.integers(3, 9)), rng)
    part = amount // len(sketches)
    for sketch in sketches:
        with sketch.slice("aten::empty"):
            sketch.call("cudaFree", max(2_000, part // 4), (DEVICE, 0))
            sketch.idle(500)
            sketch.call("cudaMalloc", max(2_000, part))
    return insert(program, sketches)


def slow_launches(program: Program, amount: int, rng: np.random.Generator) -> Program:
    """A few launches whose call takes long: the driver loads modules, or works on something else."""
    count = max(1, min(6, amount // 400_000))
    sketches = choose(program, count, rng)
    for sketch in sketches:
        with sketch.slice("aten::mul"):
            sketch.launch("void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float>>()", 3_000,
                          length=amount // len(sketches))  # fmt: skip
    planted = insert(program, sketches)
    long = planted.end[planted.launch] - planted.begin[planted.launch]
    planted.lead = np.where(long > 150_000, long, planted.lead)
    return planted


def tiny_kernels(program: Program, thousandths: int, rng: np.random.Generator) -> Program:
    """Kernels so short that launching them takes longer: all durations are scaled down."""
    goal = (1 - thousandths / 1000) * program.length
    result = program.copy()
    result.dur = np.clip(program.dur * goal / program.dur.sum(), 1_000, 18_000).astype(np.int64)
    return result


def collect_garbage(program: Program, amount: int, rng: np.random.Generator) -> Program:
    """Python collects garbage in each step."""
    sketches = choose(program, int(rng.integers(1, 4)), rng)
    for sketch in sketches:
        with sketch.slice("<built-in function collect>", "python_function", **{"Python id": 77}):
            sketch.idle(amount // len(sketches))
    return insert(program, sketches)


def step_an_optimizer(program: Program, amount: int, rng: np.random.Generator) -> Program:
    """An optimizer that goes parameter by parameter: many small operators, at the end of the step."""
    place = spots(program, in_optimizer=True)[-1]
    sketch = Sketch(*place)
    with sketch.slice("Optimizer.step#AdamW.step", "user_annotation"):
        while sketch.now < amount:
            for name in ("mul_", "lerp_", "addcmul_", "sqrt", "add_", "addcdiv_"):
                with sketch.slice(f"aten::{name}"):
                    sketch.idle(3_000)
                    sketch.launch(f"void at::native::vectorized_elementwise_kernel<4, at::native::{name}>()", 1_800)
                sketch.idle(2_000)
    return insert(program, [sketch])


def record_much(program: Program, amount: int, rng: np.random.Generator) -> Program:
    """The profiler's own work holds the host up in launches."""
    sketches = choose(program, 4, rng)
    for sketch in sketches:
        begin = sketch.now
        sketch.idle(amount // 4)
        sketch.slices.append([begin, sketch.now, Info("overhead", "Activity Buffer Request", *sketch.thread, {})])
    return insert(program, sketches)


def recompile(program: Program, amount: int, rng: np.random.Generator) -> Program:
    """Dynamo compiles again within the step."""
    sketch = choose(program, 1, rng)[0]
    with sketch.slice("Torch-Compiled Region: 0/3"):
        for name in ("_compile.compile_inner", "OutputGraph.call_user_compiler", "compile_fx_inner"):
            begin = sketch.now
            sketch.idle(amount // 3)
            info = Info("user_annotation", f"{name} (dynamo_timed)", *sketch.thread, {})
            sketch.slices.append([begin, sketch.now, info])
    return insert(program, [sketch])


def break_graphs(program: Program, amount: int, rng: np.random.Generator) -> Program:
    """A compiled model in many pieces, with Python between them."""
    sketches = choose(program, 40, rng)
    for number, sketch in enumerate(sketches):
        sketch.idle(amount // len(sketches))
        with sketch.slice(f"Torch-Compiled Region: {number}/0"), sketch.slice("CompiledFunction"):
            sketch.launch(f"triton_poi_fused_add_mul_{number}", 3_000, call="cuLaunchKernel")
    return insert(program, sketches)


_BINARY = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)"  # fmt: skip
_GELU = "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int)"  # fmt: skip
_NORM = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float, c10::BFloat16 const*)"
_CAST = "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}, std::array<char*, 2ul>, TrivialOffsetCalculator<1, unsigned int>, at::native::memory::LoadWithCast<1>, at::native::memory::StoreWithCast<1> >(int)"  # fmt: skip
_TRANSPOSE = "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(c10::BFloat16)#1}> >(int)"  # fmt: skip
_NHWC = "void cudnn::ops::nchwToNhwcKernel<__nv_bfloat16, __nv_bfloat16, float, false, true, (cudnnKernelDataType_t)2>(cudnn::ops::nchw2nhwc_params_t<float>)"  # fmt: skip


_SOFTMAX = "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, c10::BFloat16, float, c10::BFloat16, at::native::(anonymous namespace)::SoftMaxForwardEpilogue>(c10::BFloat16*, c10::BFloat16 const*, int)"  # fmt: skip
_FLASH = "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<{}, 128, 64, 4, false, false, cutlass::bfloat16_t>, false, false, false, false, true, false>(pytorch_flash::Flash_fwd_params)"  # fmt: skip
_GEMM = "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x256x64_stage3_warpsize2x4x1_tensor16x8x16_kernel"
_WMMA_GEMM = (
    "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x1_nn_align1>(cutlass_80::Params)"
)
_FPROP = "sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_stage4_warpsize2x2x1_g1_tensor16x8x16_execute_kernel__5x_cudnn"  # fmt: skip


def _bf16(*dims: list[int]) -> dict[str, object]:
    return {"Input Dims": list(dims), "Input type": ["c10::BFloat16"] * len(dims)}


def _device(program: Program, rng: np.random.Generator) -> tuple[Program, Device]:
    """The program on a device that its trace names: of the generation that its kernels are for."""
    device = H100 if any("sm90" in info.name for info in program.rows) else DEVICES[int(rng.integers(len(DEVICES)))]
    number = program.rows[0].args.get("device", 0)
    properties = [{**device.properties(), "id": at} for at in range(int(number or 0) + 1)]
    return dataclasses.replace(program, head={**program.head, "deviceProperties": properties}), device


def elementwise(share: float) -> Plant:
    """Elementwise and normalization kernels of large tensors, at a share of the bandwidth."""

    def plant(program: Program, amount: int, rng: np.random.Generator) -> Program:
        program, device = _device(program, rng)
        sketches = choose(program, 24, rng)
        dur = max(5_000, amount // (3 * len(sketches)))
        rows = max(1, int(dur * 1e3 * device.memory_tb_s * share / (4096 * 2 * 2.5)))
        for sketch in sketches:
            for op, kernel, inputs in (
                ("aten::add", _BINARY, 2), ("aten::gelu", _GELU, 1), ("aten::native_layer_norm", _NORM, 1)
            ):  # fmt: skip
                shape = [rows, 4096]
                moved = rows * 4096 * 2 * (inputs + 1)
                with sketch.slice(op, **_bf16(*[shape] * inputs)):
                    sketch.launch(kernel, device.memory_ns(moved, share), length=3_500)
        return insert(program, sketches)

    return plant


def cast(program: Program, amount: int, rng: np.random.Generator) -> Program:
    """Tensors are converted between float32 and bfloat16 again and again."""
    program, device = _device(program, rng)
    sketches = choose(program, 24, rng)
    rows = max(1, int(amount / len(sketches) * 1e3 * device.memory_tb_s * 0.8 / (4096 * 6)))
    for sketch in sketches:
        args = {"Input Dims": [[rows, 4096], [], [], []], "Input type": ["float", "Scalar", "", ""]}
        copied = {"Input Dims": [[rows, 4096], [rows, 4096], []], "Input type": ["c10::BFloat16", "float", "Scalar"]}
        with sketch.nest(("aten::to", args), ("aten::_to_copy", args), ("aten::copy_", copied)):
            sketch.launch(_CAST, device.memory_ns(rows * 4096 * 6, 0.8))
    return insert(program, sketches)


def change_layouts(program: Program, amount: int, rng: np.random.Generator) -> Program:
    """Transposes and conversions between NCHW and NHWC."""
    program, device = _device(program, rng)
    sketches = choose(program, 20, rng)
    is_cudnn = bool(rng.integers(2))
    rows = max(1, int(amount / len(sketches) * 1e3 * device.memory_tb_s * 0.7 / (4096 * 4)))
    dur = device.memory_ns(rows * 4096 * 4, 0.7)
    for sketch in sketches:
        if is_cudnn:
            with sketch.slice("aten::cudnn_convolution", **_bf16([rows, 4096, 1, 1], [64, 4096, 1, 1])):
                sketch.launch(_NHWC, dur)
        else:
            copied = _bf16([rows, 4096], [rows, 4096])
            with (
                sketch.slice("aten::contiguous", **_bf16([rows, 4096])),
                sketch.slice("aten::clone", **_bf16([rows, 4096])),
                sketch.slice("aten::copy_", **copied),
            ):
                sketch.launch(_TRANSPOSE, dur)
    return insert(program, sketches)


def float_matmuls(program: Program, amount: int, rng: np.random.Generator) -> Program:
    """Matmuls in float32 without TF32, near the roof of that."""
    program, device = _device(program, rng)
    sketches = choose(program, 12, rng)
    side = max(256, int((amount / len(sketches) * device.float_tflops * 0.85e3 / 2) ** (1 / 3)) // 128 * 128)
    name = {"sm80": "ampere_sgemm_128x128_tn", "sm90": "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel__51_cublas"}[device.sm]  # fmt: skip
    dims = {"Input Dims": [[side, side], [side, side]], "Input type": ["float", "float"]}
    for sketch in sketches:
        with sketch.slice("aten::mm", **dims):
            sketch.launch(name, round(matmul_flops(side, side, side) / (device.float_tflops * 0.85) / 1e3))
    return insert(program, sketches)


def eager_attention(program: Program, amount: int, rng: np.random.Generator) -> Program:
    """Softmax between two batched matmuls over a long sequence, instead of one fused kernel."""
    program, device = _device(program, rng)
    layers = int(rng.integers(4, 13))
    heads, size = 16, 64
    length = max(256, int((amount / layers * device.memory_tb_s * 1e3 * 0.6 / (heads * 2 * 6)) ** 0.5) // 8 * 8 + 1)
    scores = [heads, length, length]
    moved = heads * length * length * 2
    gemm = "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x128_32x4_{}_align1>(cutlass_80::Params)"
    sketches = choose(program, layers, rng)
    for sketch in sketches:
        with sketch.slice("aten::bmm", **_bf16([heads, length, size], [heads, size, length])):
            sketch.launch(gemm.format("tn"), device.memory_ns(moved, 0.5))
        softmax = _bf16(scores, [], [])
        with sketch.nest(("aten::softmax", softmax), ("aten::_softmax", softmax)):
            sketch.launch(_SOFTMAX, device.memory_ns(2.5 * moved, 0.6))
        with sketch.slice("aten::bmm", **_bf16(scores, [heads, length, size])):
            sketch.launch(gemm.format("nn"), device.memory_ns(moved, 0.5))
    return insert(program, sketches)


def efficient(program: Program, amount: int, rng: np.random.Generator) -> Program:
    """Matmuls, convolutions or attention near the roof of a device that the trace names: there is nothing to fix."""
    return _family(program, amount, rng, ("matmul", "convolution", "attention")[int(rng.integers(3))], (0.68, 0.85))


def _family(
    program: Program, amount: int, rng: np.random.Generator, kind: str, shares: tuple[float, float] = (0.05, 0.25)
) -> Program:
    """Operators of one family at a share of the roof; far below it, with the shapes that make them so."""
    program, device = _device(program, rng)
    share = float(rng.uniform(*shares))
    is_slow = share < 0.5
    sketches = choose(program, int(rng.integers(6, 16)), rng)
    flops = amount / len(sketches) * device.matrix_tflops * 1e3 * share
    for sketch in sketches:
        if kind == "matmul":
            side = max(256, int((flops / 2) ** (1 / 3)) // 256 * 256) + is_slow
            dur = device.matrix_ns(matmul_flops(side, side, side), share)
            with sketch.slice("aten::mm", **_bf16([side, side], [side, side])):
                sketch.launch(_WMMA_GEMM if is_slow else _GEMM, dur)
        elif kind == "convolution":
            channels = 60 if is_slow else 256
            batch = max(1, int(flops / (2.0 * 56 * 56 * channels * channels * 9)))
            data, weight = (batch, channels, 56, 56), (channels, channels, 3, 3)
            dur = device.matrix_ns(convolution_flops(data, weight), share)
            args = {
                "Input Dims": [list(data), list(weight), [], [], [], [], [], [], []],
                "Input type": ["c10::BFloat16", "c10::BFloat16", "", "", "", "", "", "", ""],
                "Concrete Inputs": ["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"],
            }
            with sketch.slice("aten::convolution", **args), sketch.slice("aten::_convolution", **args):
                concrete = ["", "", "[1, 1]", "[1, 1]", "[1, 1]", "1", "False", "False", "True"]
                with sketch.slice("aten::cudnn_convolution", **{**args, "Concrete Inputs": concrete}):
                    sketch.launch(_FPROP, dur)
        else:
            size = 96 if is_slow else 128
            length = max(256, int((flops / (4.0 * 32 * size)) ** 0.5) // 128 * 128)
            shape = [1, 32, length, size]
            dur = device.matrix_ns(attention_flops(*shape), share)
            args = _bf16(shape, shape, shape)
            inner = _bf16(*[[1, length, 32, size]] * 3)
            with sketch.nest(
                ("aten::scaled_dot_product_attention", {**args, "Concrete Inputs": ["", "", "", "", "0.", "False"]}),
                ("aten::_scaled_dot_product_flash_attention", {**args, "Concrete Inputs": ["", "", "", "0.", "False"]}),
                ("aten::_flash_attention_forward", inner),
            ):
                sketch.launch(_FLASH.format(size), dur)
    return insert(program, sketches)


def slow_matmuls(program: Program, amount: int, rng: np.random.Generator) -> Program:
    """Odd sizes on kernels that load one element at a time."""
    return _family(program, amount, rng, "matmul")


def slow_convolutions(program: Program, amount: int, rng: np.random.Generator) -> Program:
    """Channels that don't fit the tiles."""
    return _family(program, amount, rng, "convolution")


def slow_attention(program: Program, amount: int, rng: np.random.Generator) -> Program:
    """Fused attention that reaches little of the roof."""
    return _family(program, amount, rng, "attention")


def small_grids(program: Program, thousandths: int, rng: np.random.Generator) -> Program:
    """Kernels that fill few of the multiprocessors."""
    result = program.copy()
    heavy = result.computing(HEAVY)
    for row in np.flatnonzero(heavy):
        blocks = int(rng.integers(2, 12))
        added = {"grid": [blocks, 1, 1], "block": [128, 1, 1], "blocks per SM": round(blocks / 108, 3),
                 "warps per SM": round(blocks * 4 / 108, 3), "est. achieved occupancy %": 1}  # fmt: skip
        info = result.rows[row]
        result.rows[row] = info._replace(args={**info.args, **added})
    return result


_READ = r"aten::item|_local_scalar_dense"
_SLOW = (0.35, 0.7)
CAUSES = (
    Cause("data_loading", load_data, "loader", reads=True),
    Cause("python_between_launches", delay_in_python, "host_unrecorded", reads=True),
    Cause("pause_at_one_place", pause_at_one_place, "host_unrecorded", reads=True),
    Cause("operator_on_the_host", work_in_an_operator, "host_function", reads=True, rest=("nms_on_host",)),
    Cause("reads_of_scalars", read_scalars, "synchronize", (0.2, 0.4), reads=False, rest=(_READ,), stretches=True),
    Cause("pauses_behind_reads", pause_behind_reads, "pauses_behind_reads", (0.2, 0.4), reads=False, rest=(_READ,), stretches=True),
    Cause("pageable_copies", _copy("Memcpy HtoD (Pageable -> Device)", waits=True), "pageable_copies", is_nvidia=True),
    Cause("exposed_copies", _copy("Memcpy HtoD (Pinned -> Device)", waits=False), "copies_not_hidden", (0.25, 0.45), is_nvidia=True),  # computation is longer
    Cause("copies_to_the_host", _copy("Memcpy DtoH (Device -> Pageable)", waits=True), "copies_to_host", is_nvidia=True),
    Cause("exposed_communication", communicate, "communication", is_nvidia=True),
    Cause("allocation", allocate, "allocation"),
    Cause("slow_launches", slow_launches, "slow_launches", reads=True, is_nvidia=True),
    Cause("tiny_kernels", tiny_kernels, "host_function", (0.5, 0.85), is_scaled=False),
    Cause("garbage_collection", collect_garbage, "garbage_collection", reads=True),
    Cause("optimizer_in_a_loop", step_an_optimizer, "launch_bound", reads=True, rest=("AdamW",)),
    Cause("profiler_overhead", record_much, "profiler", reads=True),
    Cause("recompiles", recompile, "recompilation", reads=True),
    Cause("graph_breaks", break_graphs, "graph_breaks", reads=True),
    Cause("elementwise", elementwise(0.85), "elementwise", (0.35, 0.6), is_nvidia=True),
    Cause("slow_elementwise", elementwise(0.2), "elementwise", (0.35, 0.6), is_nvidia=True),
    Cause("casts", cast, "casts", (0.3, 0.6), is_nvidia=True),
    Cause("layout_changes", change_layouts, "device_copies", (0.3, 0.6), is_nvidia=True),
    Cause("float_matmuls", float_matmuls, "precision", (0.4, 0.7), is_nvidia=True),
    Cause("eager_attention", eager_attention, "attention", _SLOW, is_nvidia=True),
    Cause("slow_matmuls", slow_matmuls, "poor_kernel", _SLOW, is_nvidia=True, rest=("aten::mm|matmul",)),
    Cause("slow_convolutions", slow_convolutions, "poor_kernel", _SLOW, is_nvidia=True, rest=("convolution",)),
    Cause("slow_attention", slow_attention, "poor_kernel", _SLOW, is_nvidia=True, rest=("attention",)),
    Cause("small_grids", small_grids, "small_grids", is_scaled=False),
)  # fmt: skip
