"""Annotations against a slow re-implementation that looks at one range and one instant after the other."""

from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.arrays.gather import NONE
from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder
from support.examples import examples
from support.strategies import builders


@st.composite
def annotated(draw):
    """A random trace with ranges of few names on one thread, and launches among them."""
    builder = draw(st.one_of(st.just(TraceBuilder()), builders()))
    for _ in range(draw(st.integers(1, 8))):
        at, dur = draw(st.integers(0, 40)), draw(st.integers(0, 30))
        builder.annotation(draw(st.sampled_from(["a", "b", "FSDP::c"])), at, dur, thread=5)
    for number in range(200, 200 + draw(st.integers(0, 6))):
        at, wait, dur = (draw(st.integers(0, most)) for most in (60, 20, 10))
        builder.launch(at, 1, number, thread=5).kernel("k", at + wait, dur, number, stream=draw(st.integers(7, 8)))
    return builder


def chain(trace, row):
    """The annotations at or around a host event, the innermost first."""
    rows = []
    while row != NONE:
        if trace.host_events["kind"][row] == "annotation":
            rows.append(row)
        row = trace.host_events["parent"][row]
    return rows


@examples(60)
@given(annotated())
def test_gpu_times_are_those_of_each_instant_of_the_work_launched_inside(builder):
    trace = builder.build()
    host, calls, device = trace.host_events, trace.launches, trace.device_events
    tid = [trace.threads["tid"][thread] for thread in host["thread"]]
    names = [str(name) for name in host["name"]]
    works, spans = {}, {}
    for work in device.rows(named=True):
        if work["launch"] == NONE or trace.threads["tid"][calls["thread"][work["launch"]]] != "5":
            continue
        for row in chain(trace, calls["host"][work["launch"]]):
            instants = range(work["start_ns"], work["start_ns"] + work["dur_ns"])
            path = " / ".join(names[outer] for outer in reversed(chain(trace, row)))
            works.setdefault(path, []).append(instants)
            spans.setdefault(path, {}).setdefault(row, []).append(work)
    busy = {at for work in device.rows(named=True) for at in range(work["start_ns"], work["start_ns"] + work["dur_ns"])}
    counts = {}
    for row in range(host.height):
        if host["kind"][row] == "annotation" and tid[row] == "5":
            path = " / ".join(names[outer] for outer in reversed(chain(trace, row)))
            counts[path] = counts.get(path, 0) + 1
    got = {row["path"]: row for row in VIEWS["annotations"].run(trace).rows(named=True)}
    for path, calls_of in counts.items():
        if any(tid[row] != "5" and names[row] == path.split(" / ")[0] for row in range(host.height)):
            continue  # a range of another thread has the same path
        assert got[path]["calls"] == calls_of
        if not device.height:
            continue
        assert got[path]["gpu_ns"] == len({at for instants in works.get(path, []) for at in instants})
        assert got[path]["gpu_sum_ns"] == sum(map(len, works.get(path, [])))
        whole = [
            range(min(w["start_ns"] for w in rows), max(w["start_ns"] + w["dur_ns"] for w in rows))
            for rows in spans.get(path, {}).values()
        ]
        spanned = {at for span in whole for at in span}
        assert got[path]["gpu_span_ns"] == len(spanned)
        assert got[path]["gpu_idle_ns"] == len(spanned - busy)
