"""Traces with one known cause get the advice for it and no other; healthy ones get none."""

from functools import partial

import polars as pl
import pytest

from kinetoscope_tb.advice.advice import advice as advice_of
from kinetoscope_tb.advice.facts import Facts
from kinetoscope_tb.diagnostics.diagnose import diagnose
from kinetoscope_tb.measures.recording.vendor import vendor_terms
from kinetoscope_tb.views import VIEWS
from kinetoscope_tb.views.overview.advice import advice
from support.build import TraceBuilder
from support.machine import A100, MS, ON_TENSOR_CORES, P100, US, V100, Machine

SGEMM = "volta_sgemm_128x64_nn"


def rules_of(trace):
    """The rules that found anything, in order."""
    table = advice(trace)
    assert table["rule"][-1] == "nothing_to_fix"
    assert all(view in VIEWS for view in table["view"])
    return table["rule"].to_list()[:-1]


def row(trace, rule):
    return advice(trace).row(by_predicate=pl.col("rule") == rule, named=True)


def computing(machine, kernels=50, dur=100 * US, **args):
    for _ in range(kernels):
        machine.kernel(dur, **args)


def test_a_healthy_training_needs_nothing():
    machine = Machine()
    near_roof = {"shapes": [[2304, 2304], [2304, 2304]], "types": ["c10::BFloat16", "c10::BFloat16"]}
    trace = machine.steps(lambda _: computing(machine, **near_roof))
    assert rules_of(trace) == []
    assert row(trace, "nothing_to_fix")["title"] == "Nothing stands out: the GPU computes for 99 % of the average step."


def test_a_busy_device_whose_kernels_cannot_be_rated_is_not_all_well():
    machine = Machine()
    last = row(machine.steps(lambda _: computing(machine)), "nothing_to_fix")
    assert last["title"].startswith("What costs most can't be said: for 99 % of the average step it is unknown")
    assert last["confidence"] == "cannot_tell"


def test_waiting_for_a_loader_in_the_training_process():
    machine = Machine()

    def step(_):
        machine.load(4 * MS)
        computing(machine, 60)
        machine.wait("cudaDeviceSynchronize", "torch::sync")

    trace = machine.steps(step)
    first = row(trace, "data_loading")
    assert rules_of(trace)[0] == "data_loading"
    assert first["saving_ns"] == 4 * MS
    assert first["title"] == "39.7 % of every step waits for data."
    assert "in 5 of 5 steps; the GPU is idle then; the loader runs in the training process" in first["evidence"]
    assert "num_workers=4" in first["action"]


def test_workers_that_are_too_slow_are_told_from_none():
    machine = Machine()

    def step(_):
        machine.load(8 * MS, "_MultiProcessingDataLoaderIter")
        computing(machine, 40)

    assert "prefetch_factor" in row(machine.steps(step), "data_loading")["action"]


@pytest.mark.parametrize(
    ("milliseconds", "title", "evidence"),
    [
        (
            [1, 1, 150, 1, 1, 1],
            ", most of it for batch 3 of 6.",
            "Batch 3 of 6 takes 150 ms of the 155 ms in the loader.",
        ),
        (
            [1, 90, 1, 1, 1, 60, 1],
            ", most of it for 2 of 7 batches.",
            "2 of 7 batches take 150 ms of the 155 ms in the loader, batch 2 most.",
        ),
        ([40, 40, 40, 40], " waits for data.", ""),
    ],
)
def test_without_steps_a_wait_for_few_batches_is_told_from_a_slow_loader(milliseconds, title, evidence):
    machine = Machine()
    for wait in milliseconds:
        machine.load(wait * MS, "_MultiProcessingDataLoaderIter")
        computing(machine, 300)
        machine.wait()
    first = row(machine.builder.build(), "data_loading")
    assert first["title"].endswith(title)
    assert evidence in first["evidence"]
    assert first["action"].startswith("Look at what the loader does for that batch" if evidence else "Prepare batches")


def test_loading_behind_the_device_costs_nothing():
    machine = Machine()

    def step(_):
        computing(machine, 60)
        machine.load(2 * MS)

    assert rules_of(machine.steps(step)) == []


def test_many_short_kernels_are_bound_by_their_launches():
    machine = Machine()
    trace = machine.steps(lambda _: computing(machine, 200, 4 * US, host=20 * US))
    assert rules_of(trace) == ["launch_bound"]
    assert "200 kernels per step, of 4 µs on average" in row(trace, "launch_bound")["evidence"]
    assert row(trace, "launch_bound")["saving_ns"] == pytest.approx(200 * 16 * US, rel=0.02)


def test_a_long_pause_of_the_host_is_no_matter_of_launches():
    machine = Machine()

    def step(_):
        computing(machine, 20)
        machine.work(6 * MS)

    trace = machine.steps(step)
    assert rules_of(trace) == ["host_bound"]
    evidence = row(trace, "host_bound")["evidence"]
    assert evidence.startswith("No device work was queued for ")
    assert "the host spent 100 % of its time in code that wasn't recorded" in evidence


def test_reading_a_result_in_the_step_leaves_the_device_idle():
    machine = Machine()

    def step(_):
        for _ in range(4):
            computing(machine, 10)
            machine.wait()
            machine.work(300 * US)

    trace = machine.steps(step)
    assert rules_of(trace) == ["synchronizing"]
    first = row(trace, "synchronizing")
    assert (
        "`aten::_local_scalar_dense` (.item(), float() or a print of a tensor; 4 times per step)" in first["evidence"]
    )
    assert first["saving_ns"] == pytest.approx(4 * 300 * US, rel=0.1)


def test_the_line_that_reads_a_result_is_named_if_stacks_were_recorded():
    def evidence(frames, **args):
        machine = Machine()

        def step(_):
            for _ in range(4):
                computing(machine, 10)
                start = machine.now
                machine.op(
                    "aten::item", lambda: machine.call("cudaStreamSynchronize", machine.free - machine.now), **args
                )
                for frame in frames:
                    machine.builder.python(frame, start, machine.now - start)
                machine.work(300 * US)

        return row(machine.steps(step), "synchronizing")["evidence"]

    call = "`aten::item` (.item(); 4 times per step, the longest at `log (train.py:12)`)"
    stack = ["train.py(12): log", "<built-in method item of Tensor object at 0x7f>"]
    assert call in evidence(stack)
    assert call in evidence([], **{"Call stack": "torch/_tensor.py(99): item;train.py(12): log;train.py(3): main"})
    assert "`aten::item` (.item(); 4 times per step)" in evidence([])


def test_without_the_wait_the_host_would_only_be_as_early_as_it_had_waited():
    machine = Machine()

    def step(_):
        machine.kernel(50 * US)
        machine.wait()
        machine.work(3 * MS)

    trace = machine.steps(step)
    assert rules_of(trace) == ["host_bound"]


def test_copies_from_pageable_memory_that_nothing_hides():
    machine = Machine()

    def step(_):
        machine.copy(2 * MS)
        computing(machine, 60)

    trace = machine.steps(step)
    assert rules_of(trace) == ["copies"]
    assert row(trace, "copies")["saving_ns"] == pytest.approx(2 * MS, rel=0.01)
    assert "pin_memory" in row(trace, "copies")["action"]
    machine = Machine()
    pinned = machine.steps(lambda _: (machine.copy(2 * MS, "Memcpy HtoD (Pinned -> Device)"), computing(machine, 60)))
    assert "one batch ahead" in row(pinned, "copies")["action"]


def test_communication_that_nothing_hides():
    machine = Machine()

    def step(_):
        computing(machine, 40)
        machine.kernel(2 * MS, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "nccl:all_reduce")

    trace = machine.steps(step)
    assert rules_of(trace) == ["communication"]
    assert row(trace, "communication")["saving_ns"] == 2 * MS
    assert "Computation hides 0 % of 2 ms of communication per step." in row(trace, "communication")["evidence"]


@pytest.mark.parametrize(
    ("kind", "kernel", "elements", "evidence", "action"),
    [
        ("allreduce", "AllReduce_Sum_f32", 10**6, "may include waiting", "no_sync()"),
        ("all_to_allv", "SendRecv", 10**6, "may include waiting", "embeddings or tokens in bfloat16"),
        ("_allgather_base", "AllGather", 10**6, "may include waiting", "HYBRID_SHARD"),
        ("_allgather_base", "AllGather", 2 * 10**5, "may include waiting", "SyncBatchNorm"),
        (
            "allreduce",
            "AllReduce_Sum_f32",
            100,
            "At least 1.9 ms of it per step is waiting",
            "Find the rank that comes last",
        ),
        ("all_to_allv", "SendRecv", 100, "At least 1.9 ms of it per step is waiting", "Find the rank that comes last"),
    ],
)
def test_what_is_done_about_communication_depends_on_the_collective_and_on_waiting(
    kind, kernel, elements, evidence, action
):
    machine = Machine()
    call = {"Collective name": kind, "dtype": "Float", "In msg nelems": elements, "Out msg nelems": elements}

    def step(_):
        computing(machine, 40)
        machine.op("autograd::engine::evaluate_function: MmBackward0", lambda: machine.work(US))
        name = f"ncclDevKernel_{kernel}_RING_LL"
        machine.op("record_param_comms", lambda: machine.kernel(2 * MS, name, f"nccl:{kind}"), **call)

    given = row(machine.steps(step), "communication")
    assert evidence in given["evidence"]
    assert action in given["action"]


@pytest.mark.parametrize(
    ("dtype", "is_in_forward", "action"),
    [
        ("Float", False, "gradients in bfloat16"),
        ("BFloat16", False, "gradient accumulation under `no_sync()`, larger batches per rank"),
        ("Float", True, "split over ranks (tensor parallelism), not to gradients"),
    ],
)
def test_what_is_done_about_all_reduces_depends_on_what_they_reduce_and_when(dtype, is_in_forward, action):
    machine = Machine()
    call = {"Collective name": "allreduce", "dtype": dtype, "In msg nelems": 10**6, "Out msg nelems": 10**6}

    def step(_):
        name = "ncclDevKernel_AllReduce_Sum_RING_LL"
        backward = "autograd::engine::evaluate_function: MmBackward0"
        exchange = lambda: machine.op("record_param_comms", lambda: machine.kernel(2 * MS, name), **call)  # noqa: E731
        parts = (exchange, lambda: machine.op(backward, lambda: machine.work(US)))
        computing(machine, 40)
        for part in parts if is_in_forward else parts[::-1]:
            part()

    assert action in row(machine.steps(step), "communication")["action"]


@pytest.mark.parametrize(
    ("calls", "formats"),
    [
        ({"_allgather_base": "Float"}, "parameters in bfloat16, sharding"),
        ({"_allgather_base": "BFloat16"}, ""),
        ({"_allgather_base": "Float8_e4m3fn"}, ""),
        ({"_allgather_base": "Byte"}, ""),
        ({"_allgather_base": "Float", "_reduce_scatter_base": "Float"}, "parameters and gradients in bfloat16, "),
        ({"_allgather_base": "BFloat16", "_reduce_scatter_base": "Float"}, "gradients in bfloat16, sharding"),
        ({"_reduce_scatter_base": "Half"}, ""),
        ({"allreduce": "Float"}, "gradients in bfloat16, larger batches"),
        ({"allreduce": "Half"}, ""),
        ({"all_to_allv": "Float"}, "embeddings or tokens in bfloat16, fewer"),
        ({"all_to_allv": "BFloat16"}, ""),
        ({"all_to_allv": "Long"}, ""),
    ],
)
def test_a_shorter_format_is_offered_only_of_what_has_a_long_one(calls, formats):
    action = exchanging(calls, computing_times=40)
    assert formats in action
    assert ("bfloat16" in action) == bool(formats)


@pytest.mark.parametrize(
    ("kind", "hiding", "less"),
    [
        ("_allgather_base", "refetch the next unit", "ather and reduce less"),
        ("_reduce_scatter_base", "educe the gradients of a unit while", "ather and reduce less"),
        ("allreduce", "buckets ", "ommunicate less often"),
        ("all_to_allv", "un work that doesn't need the result", "xchange less"),
    ],
)
@pytest.mark.parametrize("computing_times", [40, 1])
def test_what_hides_communication_comes_first_where_computation_could(kind, hiding, less, computing_times):
    action = exchanging({kind: "BFloat16"}, computing_times)
    assert (action.index(hiding) < action.index(less)) == (computing_times == 40)


def exchanging(calls, computing_times):
    """The action about collectives of 2 ms each, with their formats, behind some computation."""
    machine = Machine()

    def step(_):
        computing(machine, computing_times)
        machine.op("autograd::engine::evaluate_function: MmBackward0", lambda: machine.work(US))
        for kind, dtype in calls.items():
            call = {"Collective name": kind, "dtype": dtype, "In msg nelems": 10**7, "Out msg nelems": 10**7}
            name = {"_allgather_base": "AllGather", "allreduce": "AllReduce_Sum", "all_to_allv": "SendRecv"}
            name = f"ncclDevKernel_{name.get(kind, 'ReduceScatter_Sum')}_RING_LL"
            machine.op("record_param_comms", partial(machine.kernel, 2 * MS, name, f"nccl:{kind}"), **call)

    return row(machine.steps(step), "communication")["action"]


@pytest.mark.parametrize(
    ("operator", "group", "thread", "is_of_layers"),
    [
        ("c10d::allreduce_", "mesh_tp", 2, True),
        ("_c10d_functional::all_reduce", "default_pg", 1, True),
        ("_c10d_functional::all_reduce", "default_pg", 2, False),  # compiled data parallelism
        ("c10d::allreduce_", "default_pg", 1, False),
    ],
)
def test_all_reduces_of_split_layers_are_no_gradients(operator, group, thread, is_of_layers):
    builder, call = TraceBuilder(), {"Collective name": "allreduce", "dtype": "BFloat16", "Group size": 4}
    call |= {"In msg nelems": 10**7, "Out msg nelems": 10**7, "Process Group Name": "3"}
    call |= {"Process Group Description": group, "Process Group Ranks": "[0, 1, 2, 3]"}
    for step in range(3):
        at = step * 10 * MS
        builder.step(step, at, 10 * MS).op("aten::mm", at, 50 * US).launch(at + US, 5 * US, 2 * step + 1)
        builder.kernel("gemm", at + 10 * US, 5 * MS, 2 * step + 1)
        builder.annotation("Optimizer.step#Adam.step", at + 60 * US, 20 * US)
        begin = at + 100 * US
        builder.op(operator, begin, 50 * US, thread=thread)
        builder.op("record_param_comms", begin + US, 40 * US, thread=thread, **call)
        builder.launch(begin + 2 * US, 5 * US, 2 * step + 2, thread=thread)
        builder.kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", at + 6 * MS, 3 * MS, 2 * step + 2, **call)
        builder.launch(at + 1 * MS, 8 * MS + 10 * US, 100 + step, name="cudaDeviceSynchronize")
    action = row(builder.build(), "communication")["action"]
    assert ("split over ranks (tensor parallelism), not to gradients" in action) == is_of_layers
    assert ("no_sync" in action) != is_of_layers


def test_gradients_of_gpus_that_travel_by_gloo():
    machine = Machine()

    def step(_):
        computing(machine, 20)
        machine.wait("cudaStreamSynchronize", "aten::copy_")
        machine.annotation("gloo:all_reduce", lambda: machine.work(3 * MS))

    assert "gloo" in rules_of(machine.steps(step))
    assert "nccl" in row(machine.steps(step), "gloo")["action"]


def test_nccl_of_which_the_kernels_are_missing_is_neither_gloo_nor_timed():
    machine = Machine()

    def step(_):
        computing(machine, 20)
        machine.annotation("nccl:all_reduce", lambda: machine.work(3 * MS))

    trace = machine.steps(step)
    assert not {"gloo", "communication"} & set(rules_of(trace))
    assert "Unknown: what communication costs" in row(trace, "nothing_to_fix")["evidence"]


@pytest.mark.parametrize(
    ("kind", "calls", "words", "action"),
    [
        ("all_reduce", 242, ", most of it in 242 calls of all_reduce per step.", "bucket_cap_mb"),
        ("all_reduce", 2, " % of every step.", "no_sync()"),
        ("barrier", 15, " % of every step.", "Leave out barriers"),
        ("barrier", 30, ", most of it in 30 calls of barrier per step.", "Leave out barriers"),
    ],
)
def test_many_calls_between_hosts_are_told_and_barriers_left_out(kind, calls, words, action):
    machine = Machine(None)

    def step(_):
        machine.op("aten::mm", lambda: machine.work(10 * MS))
        if kind != "barrier":
            machine.op("autograd::engine::evaluate_function: MmBackward0", lambda: machine.work(US))
        for _ in range(calls):
            machine.annotation(f"gloo:{kind}", lambda: machine.work(20 * MS // calls))

    given = row(machine.steps(step), "communication")
    assert given["title"].endswith(words)
    assert f"100 % of the exposed time is {kind} ({calls} calls per step)" in given["evidence"]
    assert action in given["action"]


def test_the_function_that_makes_most_of_many_calls_is_named_and_not_the_backward_pass():
    def given(frames):
        machine = Machine(None)

        def step(_):
            machine.op("aten::mm", lambda: machine.work(10 * MS))
            start = machine.now
            for _ in range(50):
                machine.annotation("gloo:all_reduce", lambda: machine.work(MS // 2))
            for depth, frame in enumerate(frames):
                machine.builder.python(frame, start + depth, machine.now - start - 2 * depth)

        return row(machine.steps(step), "communication")

    named = given(["train.py(9): reduce_metrics"])
    assert "is all_reduce (50 calls per step, most of them in `reduce_metrics (train.py:9)`)" in named["evidence"]
    backward = "<built-in method run_backward of torch._C._EngineBase object at 0x7f>"
    assert "is all_reduce (50 calls per step)" in given(["train.py(9): train", backward])["evidence"]


def test_gloo_between_processes_without_gpus_is_only_communication():
    def step(machine):
        machine.op("aten::mm", lambda: machine.work(5 * MS))
        machine.annotation("gloo:all_reduce", lambda: machine.work(5 * MS))

    machine = Machine(None)
    trace = machine.steps(lambda _: step(machine))
    assert rules_of(trace) == ["communication"]
    assert row(trace, "communication")["saving_ns"] == 5 * MS


@pytest.mark.parametrize(
    ("cpu", "clause"),
    [
        (
            {"processes": 2, "cores": 2, "shared_cores": 2},
            " If each of the job's 2 processes on this machine uses as much as this one, 1.8 of 2 cores are busy: run at "
            "the same time as computation, communication would shorten the step by 10 % at most, unless threads spin "
            "while they wait.",
        ),
        (
            {"cores": 1.2},
            " The process uses 0.9 of the 1.2 cores that it may use: run at the same time as computation, communication "
            "would shorten the step by 25 % at most, unless threads spin while they wait.",
        ),
        (
            {"processes": 2, "cores": 1, "shared_cores": 8},  # each is bound to a core
            " The process uses 0.9 of the 1 core that it may use: run at the same time as computation, communication "
            "would shorten the step by 10 % at most, unless threads spin while they wait.",
        ),
        ({"processes": 2, "cores": 4, "shared_cores": 4}, ""),  # enough are free
        ({"processes": 2}, ""),
        ({"processes": 2, "cores": 2, "shared_cores": 2, "process_ns": 0}, ""),
    ],
)
def test_communication_of_the_host_needs_free_cores_to_be_hidden(cpu, clause):
    cpu = {"window_ns": 100 * MS, "process_ns": 90 * MS, **cpu}
    machine = Machine(None, kinetoscope={"cpu": cpu})

    def step(_):
        machine.op("aten::mm", lambda: machine.work(5 * MS))
        machine.op("autograd::engine::evaluate_function: MmBackward0", lambda: machine.work(US))
        machine.annotation("gloo:all_reduce", lambda: machine.work(5 * MS))

    given = row(machine.steps(step), "communication")
    assert ("at the same time as computation" in given["evidence"]) == bool(clause)
    assert clause in given["evidence"]
    assert ("overlap the backward pass" in given["action"]) == (not clause)


def test_float_products_on_a_device_with_tensor_cores():
    def trace(device, name=SGEMM, types=("float", "float")):
        machine = Machine(device)
        return machine.steps(lambda _: computing(machine, name=name, types=list(types)))

    assert rules_of(trace(V100)) == ["mixed_precision"]
    assert "float16" in row(trace(V100), "mixed_precision")["action"]
    assert "TF32" in row(trace(A100), "mixed_precision")["action"]
    assert row(trace(V100), "mixed_precision")["saving_ns"] == pytest.approx(5 * MS * 2 / 3, rel=0.01)
    assert rules_of(trace(P100)) == []
    assert rules_of(trace(V100, types=("c10::Half", "c10::Half"))) == []
    assert rules_of(trace(A100, ON_TENSOR_CORES)) == []


def test_no_precision_advice_where_it_is_not_known():
    machine = Machine(None)
    silent = machine.steps(lambda _: computing(machine, name=SGEMM, types=["float"]))
    assert rules_of(silent) == []
    assert "the trace doesn't identify the device" in row(silent, "nothing_to_fix")["evidence"]
    machine = Machine(V100)
    unnamed = machine.steps(lambda _: computing(machine, name="my_kernel", types=["float"]))
    assert rules_of(unnamed) == []
    assert "with unknown names" in row(unnamed, "nothing_to_fix")["evidence"]


@pytest.mark.parametrize(
    ("name", "remedy"), [(ON_TENSOR_CORES, "TF32"), ("volta_fp16_s884gemm_fp16_128x128_nn", "float16")]
)
def test_a_kernel_on_tensor_cores_shows_that_an_unnamed_device_has_them(name, remedy):
    machine = Machine(None)

    def step(_):
        computing(machine, name=SGEMM, types=["float", "float"])
        computing(machine, name=name, types=["c10::Half", "c10::Half"])

    trace = machine.steps(step)
    advice = row(trace, "mixed_precision")
    assert "the device has them (kernels use them)" in advice["evidence"]
    assert remedy in advice["action"]
    assert "doesn't identify" not in row(trace, "nothing_to_fix")["evidence"]


MI300X = {"id": 0, "name": "AMD Instinct MI300X", "computeMajor": 9, "computeMinor": 4}
ON_MATRIX_CORES = "Cijk_Ailk_Bljk_SB_MT128x128x16_MI16x16x1"


def test_float_products_on_matrix_cores_of_amd():
    def trace(device, types, name=ON_MATRIX_CORES):
        machine = Machine(device)
        return machine.steps(lambda _: computing(machine, name=name, **({"types": types} if types else {})))

    mixed_precision = row(trace(MI300X, ["float", "float"]), "mixed_precision")
    assert "matrix cores" in mixed_precision["evidence"]
    assert "tensor cores" not in mixed_precision["evidence"]
    assert "bfloat16" in mixed_precision["action"]
    assert "TF32" not in mixed_precision["action"]
    assert rules_of(trace(MI300X, ["c10::BFloat16", "c10::BFloat16"])) == []
    assert rules_of(trace(MI300X, None)) == ["mixed_precision"]  # SB: the kernel multiplies floats
    unknown = trace(MI300X, None, "Cijk_Ailk_Bljk_MT128x128x16_MI16x16x1")
    assert "the precision of matmuls" in row(unknown, "nothing_to_fix")["evidence"]
    of_triton = trace(MI300X, None, "_matmul_ogs_NNT_bf16xbf16xmxfp4_128x128x128x1")
    assert "0 % in float matmuls" in row(of_triton, "nothing_to_fix")["evidence"]
    assert (
        rules_of(trace({"id": 0, "name": "AMD Radeon RX 7900", "computeMajor": 11, "computeMinor": 0}, ["float"])) == []
    )


def test_a_vega_and_a_cdna_have_the_same_number():
    def evidence(name):
        machine = Machine({"id": 0, "name": "AMD Radeon Graphics", "computeMajor": 9, "computeMinor": 0})
        return row(machine.steps(lambda _: computing(machine, name=name, types=["c10::Half"])), "nothing_to_fix")[
            "evidence"
        ]

    assert "doesn't identify the device" in evidence("Cijk_Ailk_Bljk_HB_MT64x64x16_SE")
    assert "in float matmuls" in evidence(ON_MATRIX_CORES)


@pytest.mark.parametrize(("dur", "is_cleared"), [(2 * MS, False), (100 * US, True)])
def test_copies_that_do_not_say_their_direction_are_counted_as_if_they_were_from_or_to_the_host(dur, is_cleared):
    machine = Machine()

    def step(_):
        computing(machine)
        machine.copy(dur, "dma_request")
        machine.wait()

    evidence = row(machine.steps(step), "nothing_to_fix")["evidence"]
    question = "Unknown: what copying between host and device costs, because the names of 5 of the copies don't say"
    assert ("1.9 % in copies, some of unknown direction" in evidence) == is_cleared
    assert (question in evidence) == (not is_cleared)


def test_turning_the_layout_of_images():
    machine = Machine()

    def step(_):
        computing(machine, 40)
        computing(machine, 10, name="void cudnn::ops::nchwToNhwcKernel<__half, __half>", op="aten::cudnn_convolution")

    assert rules_of(machine.steps(step)) == ["channels_last"]


def test_kernels_that_fill_a_small_part_of_the_device():
    machine = Machine()
    trace = machine.steps(lambda _: computing(machine, **{"blocks per SM": 0.2}))
    assert rules_of(trace) == ["small_kernels"]
    assert "fill only 20 %" in row(trace, "small_kernels")["title"]
    assert row(trace, "small_kernels")["confidence"] == "low"


def test_a_kernel_that_fills_a_small_part_of_the_device_is_named_where_others_fill_it():
    machine = Machine()

    def step(_):
        machine.kernel(50 * MS)
        machine.kernel(20 * MS, "selective_scan_fwd_kernel", "SelectiveScan", **{"blocks per SM": 0.125})

    said = row(machine.steps(step), "small_kernels")
    assert said["title"].startswith("`selective_scan_fwd_kernel` fills only 12.5 % of the GPU, which costs ")
    assert "20 ms per step, in 1 call, with 0.125 blocks per multiprocessor" in said["evidence"]
    assert said["saving_ns"] == pytest.approx(20 * MS * 0.875, rel=0.01)


def test_many_short_kernels_are_not_cleared_as_small_where_they_run_too_rarely_to_fill_the_device():
    machine = Machine()
    trace = machine.steps(
        lambda _: [machine.kernel(4 * US, host=60 * US, **{"blocks per SM": 0.2}) for _ in range(200)]
    )
    assert row(trace, "launch_bound")["evidence"].count("200 kernels per step, of 4 µs") == 1
    rest = row(trace, "nothing_to_fix")
    assert "SM efficiency" in rest["title"]
    assert "small" not in rest["title"]
    assert "lost because running kernels leave 80 % of the multiprocessors empty" in rest["evidence"]


def test_device_memory_that_is_nearly_full_and_never_that_of_the_host():
    def trace(kind, total):
        machine = Machine()
        machine.builder.memory(64, 5, **{"Device Type": kind, "Device Id": 0, "Total Allocated": total})
        return machine.steps(lambda _: computing(machine))

    assert rules_of(trace(1, 76 << 30)) == ["memory"]
    assert row(trace(1, 76 << 30), "memory")["saving_ns"] is None
    assert rules_of(trace(1, 40 << 30)) == []
    assert rules_of(trace(0, 400 << 30)) == []


def test_nearly_full_memory_of_a_server_is_no_matter_of_an_optimizer():
    def action(operator):
        machine = Machine()
        machine.builder.memory(64, 5, **{"Device Type": 1, "Device Id": 0, "Total Allocated": 76 << 30})
        machine.builder.op(operator, 0, 1, thread=2)
        return row(machine.steps(lambda _: computing(machine)), "memory")["action"]

    assert "optimizer" not in action("aten::linear")
    assert "optimizer" in action("autograd::engine::evaluate_function: AddmmBackward0")


def test_nothing_runs_while_graphs_are_captured():
    machine = Machine()

    def step(_):
        computing(machine, 2)
        machine.call("cudaStreamBeginCapture", 1 * US)
        machine.work(20 * MS)
        machine.call("cudaStreamEndCapture", 1 * US)
        computing(machine, 2)

    (only,) = advice(machine.steps(step)).rows(named=True)
    assert (only["rule"], only["confidence"], only["view"]) == ("graph_capture", "high", "health")
    assert only["title"].startswith("This recording is of a graph capture, for 9")
    assert only["title"].endswith(" % of every step: nothing that is captured runs.")
    assert only["action"].startswith("Record the replays: start the profiler after the graphs are captured.")


def test_a_capture_in_a_small_part_of_the_steps_is_not_what_the_recording_is_of():
    machine = Machine()

    def step(_):
        computing(machine, 20)
        machine.wait()
        machine.call("cudaStreamBeginCapture", 1 * US)
        machine.work(1 * MS)
        machine.call("cudaStreamEndCapture", 1 * US)

    trace = machine.steps(step)
    assert "graph_capture" not in rules_of(trace)
    assert "graphs are captured" in row(trace, "nothing_to_fix")["evidence"]


def test_what_to_look_at_where_nothing_stands_out_leads_there():
    machine = Machine()

    def step(_):
        computing(machine, 20)
        machine.work(3 * MS)
        machine.call("cudaStreamBeginCapture", 1 * US)
        machine.work(1 * MS)
        machine.call("cudaStreamEndCapture", 1 * US)

    last = row(machine.steps(step), "nothing_to_fix")
    assert (last["action"], last["view"]) == ("Look at the longest gaps, and at the critical path.", "gaps")


def test_many_small_kernels_beside_graphs_are_no_reason_to_use_graphs():
    def action(*calls):
        machine = Machine()

        def step(_):
            for call in calls:
                machine.call(call, 1 * US)
            computing(machine, 200, dur=5 * US, host=40 * US)

        return row(machine.steps(step), "launch_bound")["action"]

    assert "CUDA graphs" in action()
    assert "more of the step in graphs" in action("cudaGraphLaunch")


def test_asking_the_driver_for_memory_in_every_step():
    machine = Machine()

    def step(_):
        computing(machine, 20)
        machine.wait("cudaFree", "aten::empty")
        machine.call("cudaMalloc", 1 * MS)

    assert "allocation" in rules_of(machine.steps(step))
    assert row(machine.steps(step), "allocation")["saving_ns"] == pytest.approx(1 * MS, rel=0.05)


@pytest.mark.parametrize(
    ("optimizer", "action"),
    [
        ("Adam", "`Adam(…, fused=True)` or `foreach=True`."),
        ("Adagrad", "`Adagrad(…, foreach=True)`."),
        ("Lion", "Lion may have an option for it; `torch.optim.AdamW` has `fused=True`."),
    ],
)
def test_an_optimizer_that_takes_one_parameter_after_the_other(optimizer, action):
    machine = Machine()

    def step(_):
        computing(machine, 20)
        machine.annotation(
            f"Optimizer.step#{optimizer}.step",
            lambda: computing(machine, 300, 2 * US, op="aten::addcdiv_", host=12 * US),
        )

    trace = machine.steps(step)
    assert rules_of(trace)[0] == "optimizer"
    assert row(trace, "optimizer")["action"] == f"Let one kernel update many parameters: {action}"
    assert "300 operators and 300 kernels per step" in row(trace, "optimizer")["evidence"]


def test_of_an_optimizer_that_calls_another_only_the_one_named_counts():
    machine = Machine()

    def combined():
        computing(machine, 20, 100 * US, op="aten::linalg_vector_norm")
        machine.annotation(
            "Optimizer.step#Adam.step",
            lambda: computing(machine, 300, 2 * US, op="aten::addcdiv_", host=12 * US),
        )

    trace = machine.steps(lambda _: machine.annotation("Optimizer.step#CombinedOptimizer.step", combined))
    advice = row(trace, "optimizer")
    assert advice["title"].startswith("Adam updates one parameter after the other")
    assert "300 operators and 300 kernels per step" in advice["evidence"]
    assert "and 600 µs of kernels" in advice["evidence"]


def test_data_parallel_drives_several_devices():
    machine = Machine()

    def step(_):
        machine.annotation("DataParallel.forward", lambda: computing(machine, 25))
        computing(machine, 25, device=1)

    assert "data_parallel" in rules_of(machine.steps(step))


def test_many_small_operators_without_a_device():
    machine = Machine(None)

    def step(_):
        for _ in range(300):
            machine.op("aten::add", lambda: machine.work(3 * US))
            machine.work(2 * US)

    trace = machine.steps(step)
    assert rules_of(trace) == ["small_operators"]
    assert "300 operators per step take 3 µs each" in row(trace, "small_operators")["evidence"]


def test_large_operators_without_a_device_are_healthy():
    machine = Machine(None)
    trace = machine.steps(lambda _: [machine.op("aten::mm", lambda: machine.work(MS)) for _ in range(20)])
    assert rules_of(trace) == []
    assert row(trace, "nothing_to_fix")["title"].startswith("Nothing stands out: operators run on the CPU for 100 %")


def test_what_a_gpu_did_is_not_guessed_from_its_host():
    machine = Machine(None)
    trace = machine.steps(lambda _: [machine.op("aten::mm", lambda: machine.call("cudaLaunchKernel", US))] * 200)
    (only,) = advice(trace).rows(named=True)
    assert only["rule"] == "device_not_recorded"
    assert only["evidence"].startswith("`cudaLaunchKernel` was called; there is no kernel")


def test_a_recording_that_mostly_records_itself():
    machine = Machine()

    def step(_):
        computing(machine)
        machine.builder.event("overhead", "Buffer Flush", machine.now - 400 * US, 400 * US, pid=-1)

    assert rules_of(machine.steps(step)) == []
    machine = Machine(None)

    def flushing(_):
        machine.op("aten::mm", lambda: machine.work(4 * MS))
        machine.builder.event("overhead", "Buffer Flush", machine.now - MS, MS, pid=-1)

    assert rules_of(machine.steps(flushing)) == ["profiler_overhead"]


def test_garbage_collection_in_the_steps():
    machine = Machine()

    def step(_):
        computing(machine, 20)
        machine.wait("cudaStreamSynchronize")
        machine.builder.python("<built-in method collect of module object at 0x7f>", machine.now, 2 * MS)
        machine.work(2 * MS)

    assert "garbage_collection" in rules_of(machine.steps(step))


def test_what_the_steps_differ_by_is_no_finding():
    machine = Machine(None)

    def step(number):
        machine.load(300 * US)
        machine.op("aten::mm", lambda: machine.work((5 + 5 * (number % 2)) * MS))

    assert rules_of(machine.steps(step, 6)) == []  # 4 % of a mean step that is known to ± 15 %


def uneven_steps(cost, frac):
    """Steps that take 50 to 150 ms, in each of which something costs a share of 100 ms, without hiding."""
    machine = Machine()

    def step(number):
        cost(machine, round(frac * 100 * MS))
        computing(machine, [5, 9, 13, 7, 11, 15][number % 6], round((1 - frac) * 10 * MS))
        machine.wait("cudaDeviceSynchronize", "torch::sync")

    return machine.steps(step, 12)


def in_function(machine, dur):
    machine.function("train.py(40): log_images", lambda: machine.work(dur))


COSTS = {
    "data_loading": lambda machine, dur: machine.load(dur),
    "allocation": lambda machine, dur: machine.op("aten::empty", lambda: machine.call("cudaMalloc", dur)),
    "copies": lambda machine, dur: machine.copy(dur),
    "host_bound": in_function,
}


@pytest.mark.parametrize("rule", COSTS)
@pytest.mark.parametrize("frac", [0.06, 0.085, 0.099, 0.101, 0.12])
def test_a_cost_of_every_step_that_can_be_acted_on_has_its_size_also_below_a_tenth_of_uneven_steps(rule, frac):
    claim = row(uneven_steps(COSTS[rule], frac), rule)
    assert claim["saving_frac"] == pytest.approx(frac, rel=0.08)
    if rule == "host_bound":
        assert claim["title"].endswith(" in `log_images (train.py:40)`.")


@pytest.mark.parametrize("rule", COSTS)
def test_a_small_cost_of_uneven_steps_is_none(rule):
    assert rule not in rules_of(uneven_steps(COSTS[rule], 0.04))


def test_a_little_waiting_for_the_host_that_no_function_explains_is_none():
    assert "host_bound" not in rules_of(uneven_steps(lambda machine, dur: machine.work(dur), 0.06))


def test_a_recording_without_steps_is_spoken_of_as_a_whole():
    trace = TraceBuilder().op("aten::mm", 0, 10).launch(88, 1, 1).kernel("k", 90, 10, 1).build()
    first = row(trace, "host_bound")
    assert first["title"] == "The GPU waits for the host for 88 % of the recording."
    assert first["confidence"] == "low"
    assert "profiler.step()" in first["action"]


def on_cpu(operators, around=None):
    builder = TraceBuilder()
    for number in range(4):
        at = number * 1000 * US
        builder = builder.step(number, at, 1000 * US).op("aten::mm", at, operators * US)
        if around:
            builder = builder.annotation(around, at, 990 * US)
    return builder.build()


def test_without_a_device_nothing_stands_out_only_where_operators_run():
    busy = row(on_cpu(900), "nothing_to_fix")
    assert (
        busy["title"] == "Nothing stands out: operators run on the CPU for 90 % of the average step, matmuls for 90 %."
    )
    assert (busy["confidence"], busy["action"]) == ("medium", "Nothing.")


@pytest.mark.parametrize("around", [None, "## forward ##"])
def test_without_a_device_annotations_are_no_computation(around):
    idle = row(on_cpu(840, around), "nothing_to_fix")
    assert idle["title"] == "No cause stands out, though operators run on the CPU for only 84 % of the average step."
    assert idle["confidence"] == "cannot_tell"
    assert "with_stack=True" in idle["action"]


@pytest.mark.parametrize("around", ["gloo:all_reduce", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"])
def test_operators_in_communication_and_loading_are_no_computation(around):
    assert Facts(on_cpu(840)).operator_time.tolist() == [840 * US] * 4
    assert Facts(on_cpu(840, around)).operator_time.tolist() == [0] * 4


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("step[DECODE bs=16]", "raise `num_steps` of `/start_profile`"),
        ("vllm::unified_attention", "wait longer between `/start_profile` and `/stop_profile`"),
        ("trtllm::attn_custom_op_inplace", "TLLM_PROFILE_START_STOP"),
    ],
)
def test_the_owner_of_a_server_is_not_told_to_mark_steps(name, how):
    builder = TraceBuilder().annotation(name, 0, 100).op("aten::mm", 0, 10).launch(88, 1, 1)
    trace = builder.kernel("k", 90, 10, 1).build()
    assert how in row(trace, "host_bound")["action"]
    assert row(trace, "host_bound")["action"].startswith("Look at ")
    assert " the host does meanwhile: *Idle* lists that by innermost" in row(trace, "host_bound")["action"]
    unmarked = [each.consequence for each in diagnose(trace) if each.rule == "no_steps"]
    assert all(how in consequence for consequence in unmarked)
    assert bool(unmarked) == (not name.startswith("step["))
    texts = [*VIEWS["advice"].run(trace)["action"], *(each.consequence for each in diagnose(trace))]
    assert not any("profiler.step()" in text for text in texts)


def test_what_to_look_at_on_a_server_is_the_function_that_most_of_the_time_is_in():
    builder = TraceBuilder().annotation("step[DECODE bs=16]", 0, 10_000 * US)
    builder.python("sglang/srt/model_executor/runner.py(12): replay_prepare", 1_000 * US, 8_000 * US)
    for number, at in enumerate((5_000, 9_700, 9_800), 1):
        builder.launch(at * US, US, number).kernel("k", (at + 10) * US, 50 * US, number)
    action = row(builder.build(), "host_bound")["action"]
    assert action.startswith(
        "Look at `replay_prepare` and what it calls, and at what else the host does meanwhile: *Idle* lists that by innermost"
    )


def test_idle_time_of_which_a_part_is_not_shown_is_not_called_idle():
    builder = TraceBuilder().step(1, 0, 1000 * US).launch(5 * US, US, 1).kernel("k", 300 * US, 100 * US, 1)
    trace = builder.launch(10 * US, 5 * US, 2).kernel("k", 900 * US, 100 * US, 2).build()
    first = row(trace, "unexplained_idle")
    assert first["title"] == "For 80 % of step 1 no work of the GPU is recorded, and no reason why."
    assert first["evidence"] == (
        "For 50 % of step 1, work was queued, and waited for nothing that was recorded; for 30 %, work from before "
        "the recording, or work whose launch isn't in it, may have run."
    )


@pytest.mark.parametrize(
    ("call", "device", "names"),
    [
        ("hipLaunchKernel", {}, ("matrix cores", "hipMalloc", "compute units")),
        ("cudaLaunchKernel", {}, ("tensor cores", "cudaMalloc", "multiprocessors")),
        ("launch", {"name": "AMD Instinct MI300X"}, ("matrix cores", "hipMalloc", "compute units")),
        ("launch", {"name": "NVIDIA H100"}, ("tensor cores", "cudaMalloc", "multiprocessors")),
        ("launch", {}, ("tensor or matrix cores", "device allocation", "multiprocessors")),
    ],
)
def test_parts_of_a_device_have_its_vendor_s_names(call, device, names):
    trace = TraceBuilder(deviceProperties=[{"id": 0, **device}]).step(1, 0, 1000 * US).launch(0, US, 1, name=call)
    trace = trace.kernel("k", US, 999 * US, 1, **{"blocks per SM": 2.0}).build()
    evidence = row(trace, "nothing_to_fix")["evidence"]
    assert vendor_terms(trace).matrix_units == names[0]
    assert f"in {names[1]} and the like" in evidence
    assert f"of the {names[2]}" in evidence


def test_idle_time_that_the_recording_does_not_explain_is_a_finding_with_its_size():
    builder = TraceBuilder().step(1, 0, 1000 * US).launch(0, 5 * US, 1).kernel("k", 5 * US, 95 * US, 1)
    trace = builder.launch(10 * US, 5 * US, 2).kernel("k", 900 * US, 100 * US, 2).build()
    first = row(trace, "unexplained_idle")
    assert first["title"] == "The GPU is idle with work already queued for 80 % of step 1, for no recorded reason."
    assert first["evidence"] == "For 80 % of step 1, work was queued, and waited for nothing that was recorded."
    assert (first["saving_ns"], first["confidence"], first["view"], first["filter"]) == (
        None,
        "cannot_tell",
        "gaps",
        "unexplained",
    )
    assert advice(trace)["rule"][0] == "unexplained_idle"  # the largest part of the step comes first


def test_idle_time_in_a_blocking_call_is_said_to_be_with_the_function_that_makes_it():
    builder = TraceBuilder().step(1, 0, 1000 * US).launch(0, 5 * US, 1).kernel("k", 5 * US, 95 * US, 1)
    builder.python("batch.py(44): to_host", 110 * US, 800 * US).op("aten::copy_", 120 * US, 770 * US)
    builder.launch(10 * US, 5 * US, 2).launch(130 * US, 750 * US, 3, name="cudaMemcpyAsync")
    first = row(builder.kernel("k", 900 * US, 100 * US, 2).build(), "unexplained_idle")
    assert first["title"] == (
        "The GPU is idle with work already queued for 80 % of step 1, mostly while the host is in `cudaMemcpyAsync`."
    )
    assert (
        "the host in `cudaMemcpyAsync`, which may wait for the GPU, most of it in `to_host (batch.py:44)`"
        in (first["evidence"])
    )


@pytest.mark.parametrize(
    ("call", "reason", "function"),
    [
        (790, "while the host is in `cudaMemcpyAsync`.", "batch.py(44): to_host"),
        (480, "mostly while the host is in `cudaMemcpyAsync`.", "batch.py(44): to_host"),
        (200, "for no recorded reason.", ""),
    ],
)
def test_queued_idle_time_has_the_call_of_the_host_as_its_reason_only_for_what_lies_in_it(call, reason, function):
    builder = TraceBuilder().step(1, 0, 1000 * US).launch(0, 5 * US, 1).kernel("k", 5 * US, 95 * US, 1)
    builder.python("batch.py(44): to_host", 101 * US, (call + 9) * US).op("aten::copy_", 102 * US, (call + 7) * US)
    builder.launch(10 * US, 5 * US, 2).launch(105 * US, call * US, 3, name="cudaMemcpyAsync")
    trace = builder.kernel("k", 900 * US, 100 * US, 2).build()
    claim = next(claim for claim in advice_of(Facts(trace)) if claim.rule == "unexplained_idle")
    assert claim.title == f"The GPU is idle with work already queued for 80 % of step 1, {reason}"
    assert (claim.culprit.function or "") == function


def test_a_device_that_may_be_busy_with_earlier_work_is_not_called_idle():
    trace = TraceBuilder().step(1, 0, 1000 * US).launch(5 * US, US, 1).kernel("k", 500 * US, 500 * US, 1).build()
    first = row(trace, "unexplained_idle")
    assert first["title"] == "50 % of step 1 isn't in the recording: the GPU may have been busy then."
    assert "host_bound" not in advice(trace)["rule"].to_list()


@pytest.mark.parametrize(
    ("builder", "evidence", "view"),
    [
        (TraceBuilder(), "It holds 0 events, none with a duration.", "health"),
        (TraceBuilder().memory(8, 0), "It holds 1 memory event and nothing with a duration.", "memory_curve"),
    ],
)
def test_a_recording_in_which_nothing_took_time_says_so(builder, evidence, view):
    (said,) = advice(builder.build()).rows(named=True)
    assert (said["rule"], said["confidence"], said["evidence"], said["view"]) == (
        *("nothing_timed", "cannot_tell"),
        *(evidence, view),
    )
