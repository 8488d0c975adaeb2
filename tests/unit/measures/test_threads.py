"""Which threads run the backward pass."""

import numpy as np
import pytest

from kinetoscope_tb.measures.time.threads import autograd_threads, main_thread
from support.build import TraceBuilder


@pytest.mark.parametrize(
    ("name", "is_engine"),
    [
        ("autograd::engine::evaluate_function: MmBackward0", True),
        ("torch::autograd::AccumulateGrad", True),  # all that torch 1.8 writes of the engine
        ("aten::mm", False),
    ],
)
def test_threads_of_the_engine_are_known_by_its_ranges(name, is_engine):
    builder = TraceBuilder().op("aten::mm", 0, 100, thread=1).launch(10, 5, 1, thread=1).kernel("k", 20, 10, 1)
    trace = builder.op(name, 200, 50, thread=2).build()
    threads = autograd_threads(trace)
    other = np.unique(trace.host_events["thread"].to_numpy())
    assert threads.sum() == int(is_engine)
    assert not threads[main_thread(trace)]
    assert other.size == 2
