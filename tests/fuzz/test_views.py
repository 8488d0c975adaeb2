"""Real traces with random damage that still open: everything that is asked of them is answered, and of their run."""

import functools
import gzip
import random

import pytest

from kinetoscope_tb.distributed.summary import summary
from kinetoscope_tb.errors import KinetoscopeError
from support.every_field import sample, text
from support.fuzzing import case_numbers, damaged, named
from support.questions import ask, file_questions, questions, reading, run_questions

GROUPS = 5
BYTES = 70_000  # of each file: the beginning of a larger one
REAL = (
    "single/hta_backward_thread.json",
    "single/particle_runtime_only.json",
    "single/kineto_h100_before_fix_trace.json",
    "single/hta_triton_example.json.gz",
    "single/hta_event_sync_trace.json.gz",
    "single/tracelens_mi300_torch_compile_triton.json.gz",
    "single/hta_mi250_minitoy_train_ROCm6_2.json.gz",
    "single/tracelens_rocm_old_gemm_01.json",
    "single/kineto_gpu_metrics_input.json",
    "single/hta_mtia_inference_rank_0.json.gz",
    "single/torch1.8.1_schemaVersion/worker0.pt.trace.json.gz",
    "single/torch1.8.0_array_form/worker0.pt.trace.json.gz",
    "runs/dlrm_8gpu_nccl/worker0_step_12.1694128201545.pt.trace.json",
)


@functools.cache
def texts(folder):
    real = [(folder / name).read_bytes() for name in REAL]
    plain = [gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data for data in real]
    return [text(sample()), *(data[:BYTES] for data in plain)]


@functools.cache
def undamaged(folder, number):
    """(a trace, its summary in a list)."""
    trace = reading(texts(folder)[number])
    return trace, [summary(trace)]


@pytest.mark.parametrize("group", range(GROUPS))
def test_what_opens_is_answered(group, traces, tmp_path):
    for case in case_numbers(group, GROUPS, share=0.015):
        numbers = random.Random(case)
        number = numbers.randrange(len(texts(traces)))
        with named(case):
            fail_if_anything_fails(
                damaged(texts(traces)[number], numbers), *undamaged(traces, number), numbers, tmp_path
            )


def fail_if_anything_fails(data, other, neighbors, numbers, folder):
    try:
        trace = reading(data)
    except KinetoscopeError:
        return
    failed = (
        ask(questions(trace, data, other, numbers))
        | ask(file_questions(data, folder))
        | ask(run_questions(trace, neighbors, numbers))
    )
    if failed:
        raise AssertionError(", ".join(failed)) from next(iter(failed.values()))
