"""The iterations of a server have one name in the timeline and in the views."""

from __future__ import annotations

import pytest

from kinetoscope_tb.measures.serving.iteration_labels import labels_of_iterations
from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder

MARKS = ["execute_context_0(0)_generation_8(8)", "execute_context_0(0)_generation_7(7)"]


def server():
    """Two iterations of a server: in each the device waits while the host does what isn't recorded in it."""
    builder = TraceBuilder().op("vllm::attention", 0, 10)
    for number, mark in enumerate(MARKS):
        start = 100 + 5_000 * number
        builder.annotation(mark, start, 4_000)
        for part in (0, 3_000):
            correlation = 10 * number + part
            builder.launch(start + 500 + part, 10, correlation).kernel("gemm", start + 600 + part, 100, correlation)
    return builder.build()


@pytest.mark.parametrize(("view", "column"), [("idle_culprits", "host"), ("lanes", "largest_name")])
def test_iterations_of_a_phase_are_one_name_in(view, column):
    names = VIEWS[view].run(server())[column].drop_nulls().to_list()
    assert names.count("vLLM decode iteration") == 1
    assert not set(MARKS) & set(names)


def test_a_slice_of_an_iteration_is_called_as_the_views_call_it():
    builder = TraceBuilder().op("sgl_kernel::silu", 0, 10).annotation("mine", 60, 5)
    marks = ["execute_16_context_0(sq0sk0sqsq0sqsk0)_generation_16(sq16sk99sqsq16sqsk9)", "step[DECODE bs=16]"]
    for number, mark in enumerate(marks):
        builder.annotation(mark, 10 + 20 * number, 15)
    trace = builder.build()
    labels = labels_of_iterations(trace)
    assert labels == {marks[0]: "decode iteration", marks[1]: "SGLang decode iteration"}
    assert set(labels.values()) <= set(VIEWS["annotations_by_name"].run(trace)["name"])
