"""Ranks in one file: on one clock, apart in processes and arrows."""

import gzip
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.discovery import list_path
from kinetoscope_tb.errors import TraceError
from kinetoscope_tb.export.merge import merge, microseconds, nanoseconds
from support.build import PID, TraceBuilder

BASE = 1_700_000_000_000_000_000


def rank(number, base_ns=BASE, **clock):
    top = {"kinetoscope": {"global_rank": number, **({"clock": clock} if clock else {})}}
    trace = TraceBuilder(base_ns, **top)
    trace.op("aten::mm", 1_500, 2_000).launch(2_000, 500, 7).kernel("gemm", 4_001, 1_000, 7)
    trace.events += [
        {"ph": "M", "name": "process_name", "pid": PID, "tid": 0, "ts": 1.5, "args": {"name": "python"}},
        {"ph": "M", "name": "process_sort_index", "pid": 0, "tid": 0, "ts": 1.5, "args": {"sort_index": 5_000_000}},
        {"ph": "s", "id": 7, "pid": PID, "tid": 1, "ts": 2, "cat": "ac2g", "name": "ac2g"},
        {"ph": "f", "id": 7, "pid": 0, "tid": 7, "ts": 4.001, "cat": "ac2g", "name": "ac2g", "bp": "e"},
    ]
    return trace


@pytest.fixture
def merged(tmp_path):
    def of(*texts, suffix=""):
        for number, text in enumerate(texts):
            path = tmp_path / f"job/rank{number}.5.pt.trace.json{suffix}"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(gzip.compress(text.encode()) if suffix else text.encode())
        out = io.BytesIO()
        result = merge(list_path(str(tmp_path)).files, out)
        return result, json.loads(out.getvalue())

    return of


def times(document, name):
    """Unix time in ns and process of each event of a name."""
    zero = document["baseTimeNanoseconds"]
    events = [e for e in document["traceEvents"] if e["name"] == name]
    return [(zero + nanoseconds(e["ts"]), e["pid"]) for e in events]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_all_ranks_are_on_one_clock_whatever_their_zeros_and_clocks(merged, suffix):
    other = rank(1, BASE + 10_000, offset_ns=4_000, error_ns=20).text()
    result, document = merged(rank(0).text(), other, suffix=suffix)
    # Rank 1's clock is 4 µs ahead of rank 0's, and its file counts from 10 µs later.
    assert times(document, "aten::mm") == [(BASE + 1_500, 1), (BASE + 1_500 + 10_000 - 4_000, 1001)]
    assert times(document, "gemm") == [(BASE + 4_001, 2), (BASE + 4_001 + 6_000, 1002)]
    assert [(w["worker"], w["clock_offset_ns"], w["clock_error_ns"]) for w in result.workers] == [
        ("rank0", None, None),
        ("rank1", 4_000, 20),
    ]
    assert document["merged"] == result.workers


def test_processes_and_arrows_of_two_ranks_stay_apart_and_keep_their_names(merged):
    result, document = merged(rank(0).text(), rank(1).text())
    events = document["traceEvents"]
    assert len(events) == result.events
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert names == {1: "rank0 · python", 2: "rank0 · process 0", 1001: "rank1 · python", 1002: "rank1 · process 0"}
    order = {e["pid"]: e["args"]["sort_index"] for e in events if e["name"] == "process_sort_index"}
    assert sorted(order, key=order.__getitem__) == [2, 1, 1002, 1001]
    arrows = [(e["ph"], e["id"], e["pid"]) for e in events if e["name"] == "ac2g"]
    assert arrows == [("s", 7, 1), ("f", 7, 2), ("s", 2**42 + 7, 1001), ("f", 2**42 + 7, 1002)]
    assert {w["worker"]: w["processes"] for w in result.workers} == {
        "rank0": {"1": "1000", "2": "0"},
        "rank1": {"1001": "1000", "1002": "0"},
    }


def test_a_base_time_behind_the_events_counts_too(merged):
    first = rank(0).text()
    events = json.loads(first)["traceEvents"]
    behind = json.dumps({"traceEvents": events, "baseTimeNanoseconds": BASE + 1_000})
    _, document = merged(first, behind)
    assert [ns for ns, _ in times(document, "aten::mm")] == [BASE + 1_500, BASE + 2_500]


def test_damage_is_repaired_and_what_has_no_process_is_counted(merged):
    broken = rank(1).text().replace("\n]", ',\n{"ph": "i", "name": "nowhere", "ts": 1, "s": "g"}, {"ph": "X", "na')
    result, document = merged(rank(0).text(), broken)
    assert result.skipped == 1
    assert len(times(document, "gemm")) == 2


@given(st.integers(0, 7_889_238 * 10**9))
def test_times_stay_exact_to_the_nanosecond(ns):
    assert nanoseconds(json.loads(json.dumps(microseconds(ns)))) == ns


@pytest.mark.parametrize(
    ("member", "value"),
    [("ts", "1e999"), ("ts", "-1e308"), ("id", f'"{"f" * 5000}"'), ("id", "9" * 5000), ("cat", '"\\ud800"')],
)
def test_an_odd_value_leaves_the_file_valid(merged, member, value):
    text = rank(0).text().replace(f'"{member}":', f'"{member}": {value}, "other":', 1)
    _, content = merged(text)
    assert content == json.loads(json.dumps(content, allow_nan=False))


def test_a_clock_that_cannot_be_is_named(tmp_path):
    for number, base in enumerate((BASE, 2**63 - 1)):
        (tmp_path / f"rank{number}.5.pt.trace.json").write_text(rank(number, base).text())
    with pytest.raises(TraceError, match=r"rank1.*baseTimeNanoseconds is 9223372036854775807. Leave it out"):
        merge(list_path(str(tmp_path)).files, io.BytesIO())
