"""The iterations of a server have one name in the timeline and in the views."""

from __future__ import annotations

from kinetoscope_tb.measures.calls.annotation_ranges import labels_of_iterations
from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder


def test_a_slice_of_an_iteration_is_called_as_the_views_call_it():
    builder = TraceBuilder().op("sgl_kernel::silu", 0, 10).annotation("mine", 60, 5)
    marks = ["execute_16_context_0(sq0sk0sqsq0sqsk0)_generation_16(sq16sk99sqsq16sqsk9)", "step[DECODE bs=16]"]
    for number, mark in enumerate(marks):
        builder.annotation(mark, 10 + 20 * number, 15)
    trace = builder.build()
    labels = labels_of_iterations(trace, [*marks, "mine"])
    assert labels == {marks[0]: "decode iteration", marks[1]: "SGLang decode iteration"}
    assert set(labels.values()) <= set(VIEWS["annotations_by_name"].run(trace)["name"])
