"""The preview of a file that is being read, worked out by hand."""

from kinetoscope_tb.reader import Preview, read_blocks
from kinetoscope_tb.reader.preview import NamedTime
from support.build import TraceBuilder

PADDING = 6000  # more text than is read before the first piece


def previews_of(builder: TraceBuilder, size: int = 512) -> list[Preview]:
    """The preview after each chunk."""
    text, previews = builder.text().encode(), []
    blocks = [text[i : i + size] for i in range(0, len(text), size)]
    read_blocks(blocks, path="t.json", progress=lambda p: p.preview and previews.append(p.preview()))
    return previews


def test_it_counts_events_by_kind_and_sums_up_their_time_by_name():
    trace = TraceBuilder(deviceProperties=[{"id": 0, "name": "GPU"}], distributedInfo={"rank": 3, "world_size": 8})
    trace.step(5, 100, 40).step(6, 140, 60).step(7, 200, 50)
    trace.op("aten::linear", 100, 30).op("aten::mm", 105, 20).op("aten::mm", 150, 5)
    trace.python("f.py(1): f", 90, 500).launch(107, 2, 1).kernel("gemm", 120, 11, 1).kernel("gemm", 130, 9).memset(
        140, 3
    )
    trace.memory(64, 108)
    preview = previews_of(trace)[-1]
    assert preview.events == 12
    assert preview.kinds == {
        "operators": 3,
        "annotations": 3,
        "Python calls": 1,
        "runtime calls": 1,
        "kernels": 2,
        "copies and fills": 1,
        "memory events": 1,
        "arrows": 0,
        "others": 0,
    }
    assert preview.operators == (NamedTime("aten::linear", 1, 30), NamedTime("aten::mm", 2, 25))
    assert preview.kernels == (NamedTime("gemm", 2, 20),)
    assert (preview.steps, preview.step_ns) == (3, 50)
    assert preview.span_ns == 250 - 100
    assert (preview.meta.rank, preview.meta.world_size, preview.meta.devices) == (3, 8, [{"id": 0, "name": "GPU"}])


def test_before_any_kernel_or_step_is_read_nothing_is_said_of_them():
    trace = TraceBuilder().op("aten::mm", 1, 2, note="x" * PADDING)
    trace.step(1, 0, 9, note="x" * PADDING).kernel("gemm", 3, 4, note="x" * PADDING)
    first = previews_of(trace)[0]
    assert (first.events, first.steps, first.step_ns, first.kernels) == (1, 0, None, ())
    assert first.operators == (NamedTime("aten::mm", 1, 2),)


def test_names_that_are_spelt_differently_are_one_name():
    text = TraceBuilder().op("one", 1, 2).op("aten::ä", 2, 3).op("plain", 5, 4).text()
    assert "\\u00e4" in text
    text, previews = text.replace("plain", "aten::ä"), []
    read_blocks([text.encode()], path="t.json", progress=lambda p: p.preview and previews.append(p.preview()))
    assert previews[-1].operators == (NamedTime("aten::ä", 2, 7), NamedTime("one", 1, 2))


def test_an_event_whose_time_was_lost_does_not_stretch_the_span():
    trace = TraceBuilder().op("a", 0, 5).op("b", 1_700_000_000_000_000_000, 7)
    assert previews_of(trace)[-1].span_ns == 7


def test_without_events_that_last_there_is_no_span():
    assert previews_of(TraceBuilder().memory(1, 5))[-1].span_ns is None


def test_a_damaged_time_gives_no_span():
    trace = TraceBuilder().op("aten::mm", 1, 2).op("aten::mm", 10**18, 2, note="x" * PADDING)
    assert [preview.span_ns for preview in previews_of(trace)][-1] is None
