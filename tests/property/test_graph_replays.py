"""Joins of replayed kernels are exact by construction, for any graphs, iterations and dialects."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.measures.calls.op_calls import UNATTRIBUTED, operator_table
from kinetoscope_tb.measures.graphs.replayed_kernels import each_replayed_kernel, replayed_kernels
from kinetoscope_tb.measures.python.call_stacks import Stacks
from kinetoscope_tb.trace import Trace
from support.examples import examples
from support.graphs import DIALECTS, WORKS, Dialect, GraphRecording, Work, joined, kernels_of, stack_of, truth

_GRAPHS = st.lists(WORKS, min_size=1, max_size=4, unique_by=lambda work: tuple(kernels_of(work)))
_NAMED = st.sampled_from([dialect for dialect in DIALECTS if dialect == "rocm"])


def _replays(dialect: Dialect, graphs: list[Work], iterations: int) -> GraphRecording:
    recording = GraphRecording(dialect)
    for _ in range(iterations):
        for number, work in enumerate(graphs, 1):
            recording.replayed(work, number)
    return recording


def _captures(dialect: Dialect, graphs: list[Work], *, has_text: bool = False) -> Trace:
    recording = GraphRecording(dialect, has_text=has_text)
    for work in graphs:
        recording.captured(work)
    return recording.builder.build()


def _found(trace: Trace) -> list[tuple[str | None, str | None, str | None]]:
    return each_replayed_kernel(trace).select("op", "input_shapes", "module").rows()


@examples(40)
@given(_NAMED, _GRAPHS, st.integers(1, 4))
def test_a_capture_names_each_replayed_kernel(dialect: Dialect, graphs: list[Work], iterations: int) -> None:
    trace = joined(_replays(dialect, graphs, iterations).builder.build(), _captures(dialect, graphs))
    assert _found(trace) == iterations * [row for work in graphs for row in truth(work)]
    assert set(each_replayed_kernel(trace)["provenance"]) == {"capture"}
    assert set(each_replayed_kernel(trace)["confidence"]) == {"high"}


@examples(40)
@given(_GRAPHS, st.integers(1, 4))
def test_a_capture_without_names_explains_as_many_numbered_graphs(graphs: list[Work], iterations: int) -> None:
    dialect: Dialect = "cuda node ids"
    trace = joined(_replays(dialect, graphs, iterations).builder.build(), _captures(dialect, graphs))
    lengths = [len(kernels_of(work)) for work in graphs]
    expected = [row for work in graphs for row in truth(work)]
    if len(set(lengths)) == len(lengths):  # else only the order of the captures tells graphs of one form apart
        assert _found(trace) == iterations * expected
        assert set(each_replayed_kernel(trace)["confidence"]) == {"medium"}
    for row, found in zip(iterations * expected, _found(trace), strict=True):
        assert found in ((None, None, None), row) or len(set(lengths)) < len(lengths)


def _replayed_stacks(trace: Trace) -> list[str | None]:
    """The call stacks of the operators that the graphs replay."""
    added = trace.all_host_events[trace.host_events.height :]
    return added.filter(pl.col("kind") == "operator")["call_stack"].cast(pl.String).to_list()


@examples(25)
@given(_GRAPHS, st.integers(1, 3))
def test_replays_have_the_call_stacks_of_a_capture_without_their_text(graphs: list[Work], iterations: int) -> None:
    plain = _replays("rocm", graphs, iterations).builder.build()
    captures = [_captures("rocm", graphs, has_text=has_text) for has_text in (False, True)]
    rebuilt, written = (_replayed_stacks(joined(plain, one)) for one in captures)
    assert rebuilt == written == iterations * [stack_of(operator) for work in graphs for operator in work]


@examples(25)
@given(WORKS, st.integers(1, 4))
def test_replays_of_a_capture_without_stacks_have_that_of_their_launch(work: Work, iterations: int) -> None:
    recording = GraphRecording("rocm")
    for place in range(iterations):
        recording.builder.python(f"serve.py({place}): step", 200 * place, 100)
        recording.replayed(work, 1)
    recording.builder.python("serve.py(9): save", 200 * iterations, 100).op("aten::cpu", 200 * iterations + 10, 10)
    capture = GraphRecording("rocm").captured(work).builder
    capture.events = [event for event in capture.events if event["cat"] != "python_function"]
    trace = joined(recording.builder.build(), capture.build())
    stacks = Stacks.of(trace)
    expected = ["serve.py(9): save", *(f"serve.py({n}): step" for n in range(iterations) for _ in work)]
    assert stacks.texts(stacks.number) == expected


@examples(25)
@given(st.sampled_from(DIALECTS), WORKS.filter(lambda work: len(kernels_of(work)) >= 4), st.booleans())
def test_replays_have_the_call_stacks_of_eager_work_without_their_text(
    dialect: Dialect, work: Work, is_eager: bool
) -> None:
    expected = [stack_of(operator) for operator in work]
    for has_text in (False, True):
        recording = GraphRecording(dialect, has_text=has_text)
        (recording.eager if is_eager else recording.captured)(work)
        assert _replayed_stacks(joined(recording.replayed(work, 1).builder.build())) == expected


@examples(25)
@given(st.sampled_from(DIALECTS), WORKS.filter(lambda work: len(kernels_of(work)) >= 4), st.integers(1, 3))
def test_eager_work_of_the_same_recording_explains_a_graph(dialect: Dialect, work: Work, iterations: int) -> None:
    recording = GraphRecording(dialect).eager(work)
    for _ in range(iterations):
        recording.replayed(work, 1)
    trace = joined(recording.builder.build())
    assert _found(trace) == iterations * truth(work)
    assert set(each_replayed_kernel(trace)["provenance"]) == {"eager"}


@examples(25)
@given(_GRAPHS, st.integers(1, 3))
def test_no_time_is_lost_or_counted_twice(graphs: list[Work], iterations: int) -> None:
    plain = _replays("rocm", graphs, iterations).builder.build()
    trace = joined(plain, _captures("rocm", graphs))
    spent = plain.device_events["dur_ns"].sum()
    operators = operator_table(trace, ["name", "input_shapes"])
    assert operators["device_self_ns"].sum() == spent == replayed_kernels(trace)["total_ns"].sum()
    assert UNATTRIBUTED not in operators["name"].to_list()
    assert operators["host_total_ns"].sum() == operator_table(plain, ["name"])["host_total_ns"].fill_null(0).sum()
    calls = sum(len(work) for work in graphs) * iterations
    assert operators["calls"].sum() == calls
    assert joined(plain).replayed is None


@examples(25)
@given(WORKS.filter(lambda work: len(kernels_of(work)) >= 20), st.data())
def test_a_replay_that_differs_is_aligned(work: Work, data: st.DataObject) -> None:
    """Kernels that only the replay runs have no operator; all others keep theirs."""
    kernels, expected = kernels_of(work), truth(work)
    place = data.draw(st.integers(0, len(kernels)))
    more = [*kernels[:place], "only in the replay", *kernels[place:]]
    recording = GraphRecording("rocm").captured(work).replayed(work, 1, kernels=more)
    found = _found(joined(recording.builder.build()))
    assert found[place][0] is None
    assert found[:place] + found[place + 1 :] == expected


@examples(20)
@given(_GRAPHS, st.integers(1, 3))
def test_the_order_of_captures_and_unrelated_ones_change_nothing(graphs: list[Work], iterations: int) -> None:
    plain = _replays("rocm", graphs, iterations).builder.build()
    other = _captures("rocm", [(*graphs[0], *graphs[0])])
    both = [_captures("rocm", graphs[::-1]), other]
    expected = [row for work in graphs for row in truth(work)] * iterations
    if tuple(kernels_of((*graphs[0], *graphs[0]))) in {tuple(kernels_of(work)) for work in graphs}:
        return
    assert _found(joined(plain, *both)) == expected
    assert _found(joined(plain, *both[::-1])) == expected
    assert pl.Series(_found(plain)).len() == len(expected)
