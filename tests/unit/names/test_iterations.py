"""A real name for each form of an iteration's annotation and function, with what it says."""

import pytest

from kinetoscope_tb.names.iterations import (
    PHASES,
    USER_PATTERN,
    IterationName,
    SequenceLengths,
    iteration_function,
    iteration_name,
    sequence_lengths,
    show_iterations,
)

NAMES = [
    # vLLM 0.13 and later, plain: TraceLens tests/test_annotation_utils.py, vllm/v1/worker/gpu_worker.py
    ("execute_context_2(14721)_generation_0(0)", ("vLLM", "prefill", 2, 14721)),
    ("execute_context_0(0)_generation_64(64)", ("vLLM", "decode", 64, 64)),
    ("execute_context_0(0)_generation_32(128)", ("vLLM", "decode", 32, 128)),  # speculative decoding
    ("execute_context_2(6144)_generation_3(3)", ("vLLM", "mixed", 5, 6147)),
    ("execute_context_0(0)_generation_0(0)", ("vLLM", "idle", 0, 0)),
    # with detailed_trace_annotation: the traces in ../shared
    (
        "execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(sq37sk34489sqsq37sqsk34489)",
        ("vLLM", "mixed", 46, 8192),
    ),
    (
        "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)",
        ("vLLM", "decode", 32, 32),
    ),
    # older releases of vLLM
    ("execute_new_3_cached_13", ("vLLM", "mixed", 16, None)),
    ("execute_new_0_cached_13", ("vLLM", "decode", 13, None)),
    ("execute_new_2_cached_0", ("vLLM", "prefill", 2, None)),
    # SGLang: the traces in ../shared, sglang test/registered/profiling, TraceLens
    ("step[DECODE bs=16]", ("SGLang", "decode", 16, 16)),
    ("step[EXTEND bs=15 toks=15360]", ("SGLang", "prefill", 15, 15360)),
    ("step[EXTEND bs=2 toks=12 c_sqsq=80 c_sqsk=120 c_sk=20]", ("SGLang", "prefill", 2, 12)),
    ("step[DECODE bs=64 g_sq=128 g_sqsq=256 g_sqsk=262144 g_sk=131072]", ("SGLang", "decode", 64, 128)),
    (
        "step[MIXED bs=2 c=1 g=1 c_sq=5 c_sk=8 c_sqsq=25 c_sqsk=40 g_sq=1 g_sk=12 g_sqsq=1 g_sqsk=12]",
        ("SGLang", "mixed", 2, 6),
    ),
    ("step[MIXED bs=2]", ("SGLang", "mixed", 2, None)),
    ("step[IDLE bs=0]", ("SGLang", "idle", 0, 0)),
    ("step[TARGET_VERIFY bs=4]", ("SGLang", "decode", 4, None)),
    ("step[DRAFT_EXTEND_V2 bs=4]", ("SGLang", "draft", 4, None)),
    # SGLang 0.5.23: names of its own for both models of speculative decoding, and the number of the forward pass
    ("step[VERIFY bs=4]", ("SGLang", "decode", 4, None)),
    ("step[VERIFY bs=4 g_sq=16 g_sqsq=64 g_sqsk=4160 g_sk=1040 forward_id=7]", ("SGLang", "decode", 4, 16)),
    ("step[DRAFT bs=4]", ("SGLang", "draft", 4, None)),
    ("step[DLLM_EXTEND bs=4]", ("SGLang", "other", 4, None)),
    # ATOM: atom/model_engine/model_runner.py, TraceLens
    ("prefill[bs=2 tok=14721 ctx=[7803, 6918]]", ("ATOM", "prefill", 2, 14721)),
    ("prefill[bs=6 tok=17408 ctx=[4096, 4096, 4096]...+3 sqsq=59768832]", ("ATOM", "prefill", 6, 17408)),
    ("decode[bs=64 tok=64 d=64]", ("ATOM", "decode", 64, 64)),
    ("decode[bs=117/128 tok=117 d=117]", ("ATOM", "decode", 117, 117)),
    ("decode[bs=128 tok=384 p=2 d=126 sqsq=132612 tbo=1]", ("ATOM", "mixed", 128, 384)),
    ("eager_decode[bs=4 tok=4 ctx=[9, 9, 9, 9]]", ("ATOM", "decode", 4, 4)),
    ("draft[1/3 bs=32]", ("ATOM", "draft", 32, None)),
    # TensorRT-LLM: tensorrt_llm/_torch/pyexecutor/py_executor.py
    ("[Executor] _forward_step 12: 1 ctx reqs, 7 gen reqs", ("TensorRT-LLM", "mixed", 8, None)),
    ("[Executor] _forward_step 13: 0 ctx reqs, 32 gen reqs", ("TensorRT-LLM", "decode", 32, 32)),
    ("[Executor] _forward_step 14: 2 ctx reqs, 2048 ctx tokens, 0 gen reqs", ("TensorRT-LLM", "prefill", 2, 2048)),
    # captures: vLLM, SGLang, ATOM
    ("capture_32_FULL", ("capture", "capture", 32, None)),
    ("capture_8192_PIECEWISE", ("capture", "capture", 8192, None)),
    ("capture_32_DECODE", ("capture", "capture", 32, None)),
    ("capture_256_mixed_prefill", ("capture", "capture", 256, None)),
    ("execute_diffusion_1_256x256", ("xDiT", "diffusion", 1, None)),
]


@pytest.mark.parametrize(("name", "said"), NAMES)
def test_a_name_says_the_phase_the_batch_and_the_tokens(name, said):
    assert iteration_name(name) == IterationName(*said)
    assert said[1] in PHASES


@pytest.mark.parametrize(
    "name",
    [
        "ProfilerStep#3",
        "execute_context_",
        "execute_model",
        "step[decode bs=3]",
        "decode",
        "prefill",
        "capture_image_3",
        "## Call CompiledFxGraph fjs75i4jmhjizyb52gwp7gln7sgi42fcmh5xdwningderuqcuslv ##",
        "nccl:all_reduce",
        "x step[DECODE bs=16]",
    ],
)
def test_other_annotations_mark_no_iteration(name):
    assert iteration_name(name) is None


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        ("vllm/v1/worker/gpu_model_runner.py(3380): execute_model", "vLLM"),
        ("vllm/worker/model_runner.py(1624): execute_model", "vLLM"),
        ("/sgl-workspace/sglang/python/sglang/srt/managers/tp_worker.py(447): forward_batch_generation", "SGLang"),
        ("/app/ATOM/atom/model_engine/model_runner.py(2012): forward", "ATOM"),
        ("tensorrt_llm/_torch/pyexecutor/py_executor.py(1700): _forward_step", "TensorRT-LLM"),
        ("vllm/v1/worker/gpu_model_runner.py(3102): _model_forward", None),
        ("/sgl-workspace/sglang/python/sglang/srt/managers/scheduler.py(3006): run_batch", None),
        ("torch/nn/modules/module.py(1779): forward", None),
    ],
)
def test_a_server_is_known_by_the_function_that_runs_an_iteration(name, engine):
    assert iteration_function(name) == engine


def test_impossible_numbers_are_not_known():
    assert iteration_name(f"step[DECODE bs={10**30}]") == IterationName("SGLang", "decode")
    assert iteration_name(f"step[DECODE bs={'9' * 5000}]") is None


def test_users_add_a_form_of_their_own(monkeypatch):
    monkeypatch.setenv(USER_PATTERN, r"batch (?P<batch>\d+) of (?P<tokens>\d+) tokens, (?P<phase>\w+)|pass#\d+")
    assert iteration_name("batch 8 of 64 tokens, Decode") == IterationName("user", "decode", 8, 64)
    assert iteration_name("pass#7") == IterationName("user", "other")
    assert iteration_name("step[DECODE bs=16]") is not None


def test_a_form_that_counts_requests_has_its_phase_from_them(monkeypatch):
    monkeypatch.setenv(USER_PATTERN, r"c(?P<context>\d+)g(?P<generation>\d+)")
    assert iteration_name("c1g3") == IterationName("user", "mixed", 4)


@pytest.mark.parametrize(("pattern", "problem"), [("(", "no regular expression"), ("(?P<size>x)", "the groups may be")])
def test_a_wrong_form_is_refused_with_a_message(monkeypatch, pattern, problem):
    monkeypatch.setenv(USER_PATTERN, pattern)
    with pytest.raises(ValueError, match=problem):
        iteration_name("anything")


def shown(annotations=(), functions=(), operators=(), kernels=(), *, graphs=False):
    return show_iterations(annotations, functions, [*operators, *annotations], kernels, graphs=graphs)


PAGED = "void paged_attention_ll4mi_QKV_mfma16_kernel<0, __hip_bfloat16>"
ARGMAX = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>>>"


def test_what_shows_iterations():
    assert shown(annotations=["step[DECODE bs=1]"])
    assert shown(functions=["vllm/v1/worker/gpu_model_runner.py(3380): execute_model"])
    assert shown(kernels=[PAGED, ARGMAX])
    assert shown(kernels=[PAGED], graphs=True)


def test_what_shows_none():
    assert not shown(kernels=[PAGED])  # neither sampled nor in a graph: nothing tells iterations apart
    assert not shown(kernels=["flash_fwd_kernel", ARGMAX], graphs=True)  # no cache of keys and values: not a server
    assert not shown(annotations=["ProfilerStep#1"], kernels=[PAGED, ARGMAX])
    assert not shown(operators=["autograd::engine::evaluate_function: MmBackward0"], kernels=[PAGED, ARGMAX])
    assert not shown(annotations=["Optimizer.step#AdamW.step"], kernels=[PAGED, ARGMAX])


def test_sums_of_lengths_give_the_pairs_of_causal_attention():
    name = "execute_6_context_1(sq3sk5sqsq9sqsk15)_generation_2(sq3sk20sqsq5sqsk29)"
    lengths = sequence_lengths(name)
    assert (lengths.queries, lengths.keys) == (6, 25)
    requests = [(3, 5), (1, 11), (2, 9)]  # new tokens, and all tokens
    assert lengths.pairs == sum(seen - new + i for new, seen in requests for i in range(1, new + 1))
    assert sequence_lengths("execute_context_0(0)_generation_4(4)") is None
    extend = "step[EXTEND bs=2 toks=12 c_sq=12 c_sqsq=80 c_sqsk=120 c_sk=20 forward_id=3]"
    assert sequence_lengths(extend) == SequenceLengths(12, 20, 80, 120, 0, 0, 0, 0)
    decode = "step[DECODE bs=64 g_sq=64 g_sqsq=64 g_sqsk=131072 g_sk=131072]"
    assert sequence_lengths(decode) == SequenceLengths(0, 0, 0, 0, 64, 131072, 64, 131072)
    mixed = "step[MIXED bs=2 c=1 g=1 c_sq=5 c_sk=8 c_sqsq=25 c_sqsk=40 g_sq=1 g_sk=12 g_sqsq=1 g_sqsk=12]"
    assert sequence_lengths(mixed) == SequenceLengths(5, 8, 25, 40, 1, 12, 1, 12)
    assert sequence_lengths("step[DECODE bs=16]") is None
    assert sequence_lengths(name.replace("sq3", f"sq{10**30}", 1)) is None
