"""Whatever the bytes, reading gives a trace with findings or a TraceError, and nothing else."""

import contextlib
import functools
import gzip
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kinetoscope_tb.errors import TraceError
from kinetoscope_tb.reader import read, read_blocks
from kinetoscope_tb.trace import Trace
from support.build import TraceBuilder
from support.examples import examples

SMALL = (
    "single/hta_backward_thread.json",
    "single/hta_event_sync_trace.json.gz",
    "single/kineto_h100_before_fix_trace.json",
    "single/hta_triton_example.json.gz",
    "single/tracelens_mi300_torch_compile_triton.json.gz",
)


def built() -> bytes:
    trace = TraceBuilder(deviceProperties=[{"id": 0, "name": "GPU"}])
    for i in range(4):
        at = 1000 * i
        trace.step(i, at, 900).op("aten::mm", at + 10, 300, **{"Input Dims": [[2, 3], [3, 2]], "Sequence number": i})
        trace.launch(at + 50, 20, i + 1).kernel("gemm", at + 100, 200, i + 1, grid=[1, 1, 1], block=[64, 1, 1])
        trace.memory(512, at + 60).python("train.py(1): step", at, 800)
    return trace.window(0, 5000).text().encode()


@functools.cache
def texts(folder):
    real = [(folder / name).read_bytes() for name in SMALL]
    return [built(), *(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data for data in real)]


def trace_or_error(data: bytes, size: int = 1 << 16) -> Trace | None:
    try:
        return read_blocks([data[i : i + size] for i in range(0, len(data), size)], path="damaged.json")
    except TraceError:
        return None


@functools.cache
def whole_trace(text: bytes) -> Trace:
    """What an undamaged text gives, read once."""
    trace = trace_or_error(text)
    assert trace is not None
    return trace


def draw_text(data, traces):
    return data.draw(st.sampled_from(texts(traces)))


@examples(150)
@given(data=st.data())
def test_any_prefix_gives_its_complete_events_or_an_error(data, traces):
    text = draw_text(data, traces)
    cut = data.draw(st.integers(0, len(text) - 1))
    whole, trace = whole_trace(text), trace_or_error(text[:cut], data.draw(st.integers(100, 5000)))
    if trace:
        assert trace.meta.events <= whole.meta.events
        assert trace.host_events["name"].to_list() == [] or trace.meta.events
        if trace.meta.events < whole.meta.events:
            assert {diagnostic.rule for diagnostic in trace.diagnostics} & {"truncated", "damaged_events"}


@examples(200)
@given(data=st.data())
def test_a_flipped_byte_costs_few_events_and_never_raises_anything_else(data, traces):
    undamaged = draw_text(data, traces)
    text = bytearray(undamaged)
    start = text.find(b"[", text.find(b"traceEvents")) + 1
    at = data.draw(st.integers(start, len(text) - 1))
    text[at] = data.draw(st.integers(0, 255))
    trace = trace_or_error(bytes(text))
    assert trace is not None
    assert trace.meta.events >= whole_trace(undamaged).meta.events - 3, trace.diagnostics


@examples(200)
@given(data=st.data())
def test_deleted_and_overwritten_ranges_never_raise_anything_else(data, traces):
    text = draw_text(data, traces)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        length = data.draw(st.integers(0, 200))
        text = text[:at] + data.draw(st.binary(max_size=20)) + text[at + length :]
    first, second = trace_or_error(text), trace_or_error(text, data.draw(st.integers(50, 3000)))
    assert (first is None) == (second is None)
    if first and second:
        assert first.meta == second.meta
        assert first.diagnostics == second.diagnostics
        assert first.host_events.equals(second.host_events)


JSON_LIKE = st.lists(
    st.sampled_from([*'{}[]",:\\ \n0123.-', '"ph":"X"', '"ts":', '"traceEvents":[', '"args":{', "null"])
)


@examples(300)
@given(st.one_of(st.binary(), JSON_LIKE.map(lambda parts: "".join(parts).encode())))
@example(b'{"traceEvents":[' + b"[" * 100_000)
@example(b'{"traceEvents":[' + b'{"a":' * 10_000)
@example(b'{"traceEvents":[{"ph":"X","ts":"\xff","name":"\\ud800"}]}')
def test_any_bytes_give_a_trace_or_an_error(data):
    trace_or_error(data)
    trace_or_error(b'{"traceEvents":[' + data)
    trace_or_error(b'{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":2},' + data)


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.integers(), max_size=3), st.just({})
)


@examples(200)
@given(
    st.lists(
        st.fixed_dictionaries(
            {"ph": st.sampled_from(3 * "X" + "isfMC")},
            optional={
                "cat": st.sampled_from(["cpu_op", "Kernel", "cuda_runtime", "gpu_memcpy", "new", 7, None]),
                "name": st.one_of(st.sampled_from(["ProfilerStep#1", "[memory]", "thread_name"]), SCALARS),
                "pid": SCALARS,
                "tid": SCALARS,
                "ts": st.one_of(st.integers(-(2**70), 2**70), SCALARS),
                "dur": SCALARS,
                "id": SCALARS,
                "args": st.dictionaries(
                    st.sampled_from(["correlation", "device", "stream", "Bytes", "bytes", "grid", "finished", "name"]),
                    SCALARS,
                ),
            },
        )
    )
)
def test_any_json_values_give_a_trace_or_an_error(events):
    trace_or_error(json.dumps({"baseTimeNanoseconds": 10**18, "traceEvents": events}).encode())


@examples(50)
@given(data=st.data())
def test_a_gzip_file_cut_or_damaged_anywhere_gives_a_trace_or_an_error(data, traces, tmp_path_factory):
    packed = bytearray(gzip.compress(draw_text(data, traces)))
    cut = data.draw(st.integers(0, len(packed)))
    if data.draw(st.booleans()):
        packed[data.draw(st.integers(0, len(packed) - 1))] ^= data.draw(st.integers(1, 255))
    path = tmp_path_factory.mktemp("gz") / "trace.json"
    path.write_bytes(packed[:cut])
    with contextlib.suppress(TraceError):
        read(path)


@pytest.fixture(autouse=True, scope="module")
def _compiled():
    trace_or_error(built())
