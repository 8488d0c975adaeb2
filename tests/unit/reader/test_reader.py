"""What the reader makes of each form that writers have used: one test per quirk."""

import gzip
import json
import math

import fsspec
import polars as pl
import pytest

from kinetoscope_tb.arrays.gather import NONE
from kinetoscope_tb.errors import NotATrace, TraceError
from kinetoscope_tb.reader import Progress, read, read_blocks
from support.build import TraceBuilder, same

BASE = 1_700_000_000_000_000_000


def of(text):
    return read_blocks([text if isinstance(text, bytes) else text.encode()], path="t.json")


def event(**keys):
    return {"ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": 1, "ts": 5, "dur": 2, "args": {}} | keys


def events(*rows, **top):
    return of(json.dumps({**top, "traceEvents": list(rows)}))


def rules(trace):
    return {diagnostic.rule: diagnostic.count for diagnostic in trace.diagnostics}


def problem(data):
    with pytest.raises(NotATrace) as caught:
        of(data)
    return str(caught.value)


# ---- forms of the document


def test_a_top_level_array_is_a_trace():
    assert of(json.dumps([event(), event(ts=9)])).host_events["start_ns"].to_list() == [0, 4000]


def test_the_base_time_may_come_after_the_events():
    text = json.dumps({"traceEvents": [event(ts=1.5)], "baseTimeNanoseconds": BASE})
    assert of(text).origin_ns == BASE + 1500


def test_the_base_time_is_found_beside_broken_metadata():
    text = f'{{"bad": garbage", "baseTimeNanoseconds": {BASE}, "traceEvents": [{json.dumps(event(ts=1))}]}}'
    assert of(text).origin_ns == BASE + 1000


def test_any_blanks_and_a_byte_order_mark_are_read():
    text = (
        b"\xef\xbb\xbf" + json.dumps({"a": 1, "traceEvents": [event()]}, indent="\t").replace("\n", "\r\n\r\n").encode()
    )
    trace = of(text)
    assert trace.host_events.height == 1
    assert trace.meta.top == {"a": 1}


def test_metadata_with_a_missing_value_is_repaired():
    trace = of('{"info": {"desc": , "x": 1,}, "traceEvents": [' + json.dumps(event()) + '], "after": [1]}')
    assert trace.meta.top == {"info": {"desc": None, "x": 1}, "after": [1]}


def test_a_second_document_in_the_file_is_reported_and_not_read():
    one = json.dumps({"traceEvents": [event()]})
    trace = of(one + one)
    assert trace.host_events.height == 1
    assert rules(trace) == {"second_document": 1}


def test_an_empty_recording_is_a_trace_that_says_so():
    assert rules(events()) == {"no_events": 1}


# ---- times


@pytest.mark.parametrize(
    ("written", "ns"),
    [
        ("1712345678901234.567", 1712345678901234567),
        ("4367675575715.5", 4367675575715500),
        ("12", 12000),
        ("0.001", 1),
        ("-3.25", -3250),
        ("7.1239", 7123),
        ('"123.4"', 123400),
        ("1e3", 1000000),
        ("1.5E-2", 15),
    ],
)
def test_times_are_exact_from_any_spelling(written, ns):
    trace = of(f'[{{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":{written},"dur":{written}}}]')
    assert trace.origin_ns == ns
    assert trace.host_events["dur_ns"].to_list() == [ns if 0 < ns < 24 * 3600 * 10**9 else 0]


def test_rows_clamped_to_zero_far_from_all_others_leave_the_axis():
    far = event(ts=4367675575715.568)
    trace = events(event(ts=0.0, dur=0.0), far, baseTimeNanoseconds=BASE)
    assert trace.host_events.height == 1
    assert rules(trace) == {"zero_time": 1}
    assert trace.origin_ns == BASE + 4367675575715568


@pytest.mark.parametrize("lost", [0, 1])
def test_a_pair_with_a_time_clamped_to_zero_is_read_as_a_complete_event(lost):
    near = [event(ts=4367675575715.0 + at, dur=1.0) for at in range(4)]
    times = [4367675575720.0, 4367675575721.0]
    times[lost] = 0.0
    pair = [event(ph=ph, ts=ts, dur=None) for ph, ts in zip("BE", times, strict=True)]
    complete = event(ts=times[0], dur=times[1] - times[0] if lost else 1.0)
    assert (
        rules(events(*near, *pair)) == rules(events(*near, complete)) == {("zero_time", "negative_duration")[lost]: 1}
    )


def test_counters_and_spans_far_from_the_recording_are_left_out():
    span, days_us = {"cat": "Trace", "name": "PyTorch Profiler (0)"}, 3 * 24 * 3600 * 10**6
    counter = {"ph": "C", "cat": None, "name": "loss", "args": {"loss": 1}}
    near = [event(ts=float(at), dur=1.0) for at in range(9)]
    trace = events(*near, event(ts=0.0, dur=20.0, **span), event(ts=5.0, **counter))
    assert (trace.window, trace.counters.height, rules(trace)) == ((0, 20_000), 1, {})
    far = events(*near, event(ts=float(days_us), dur=20.0, **span), event(ts=float(-days_us), **counter))
    assert (far.window, far.counters.height, rules(far)) == ((0, 9000), 0, {"far_from_others": 2})


@pytest.mark.parametrize("dur", [40 * 24 * 3600 * 1e6, 1e30, -1.0])
def test_a_step_whose_end_is_damaged_is_in_no_average(dur):
    marks = [{"cat": "user_annotation", "name": f"ProfilerStep#{n}", "ts": 10.0 * n, "dur": 9.0} for n in range(4)]
    marks[1]["dur"] = dur
    trace = events(*(event(**mark) for mark in marks), *(event(ts=10.0 * n + 1, dur=1.0) for n in range(4)))
    assert trace.steps["is_complete"].to_list() == [True, False, True, True]
    assert sum(rules(trace).values()) == 1


def test_the_recording_lasts_as_long_as_the_profiler_says_if_most_events_lie_in_it():
    span, days_us = {"cat": "Trace", "name": "PyTorch Profiler (0)"}, 3 * 24 * 3600 * 10**6
    burst = [event(ts=float(at), dur=1.0) for at in range(99)]
    trace = events(*burst, event(ts=0.0, dur=float(days_us), **span), event(ts=days_us - 2.0, dur=1.0))
    assert (trace.host_events.height, trace.window, rules(trace)) == (100, (0, days_us * 1000), {})


def test_time_zero_near_the_others_is_an_ordinary_time():
    assert rules(TraceBuilder().op("a", 0, 10).op("b", 50, 10).build()) == {}


def test_events_without_a_usable_time_are_counted():
    trace = events(event(), event(ts=None), event(ts="soon"), event(ts=10**30))
    assert trace.host_events.height == 1
    assert rules(trace) == {"untimed": 3}


def test_a_negative_duration_is_none_at_all_and_reported():
    trace = events(event(dur=-4))
    assert trace.host_events["dur_ns"].to_list() == [0]
    assert rules(trace) == {"negative_duration": 1}


def test_an_event_without_a_duration_lasts_no_time_and_other_rows_have_none():
    bare = event()
    del bare["dur"]
    trace = events(bare, bare | {"cat": "overhead"})
    assert trace.host_events["dur_ns"].to_list() == [0]
    assert trace.others["dur_ns"].to_list() == [NONE]


def test_the_profilers_span_is_the_window():
    trace = TraceBuilder().window(100, 900).op("a", 200, 10).build()
    assert trace.window == (0, 900)


# ---- kinds


@pytest.mark.parametrize(
    ("category", "frame", "kind"),
    [
        ("cpu_op", "host_events", "operator"),
        ("Operator", "host_events", "operator"),
        ("hpu_op", "launches", "runtime"),
        ("user_annotation", "host_events", "annotation"),
        ("Runtime", "launches", "runtime"),
        ("cuda_runtime", "launches", "runtime"),
        ("privateuse1_runtime", "launches", "runtime"),
        ("xpu_driver", "launches", "driver"),
        ("Kernel", "device_events", "kernel"),
        ("mtia_ccp_events", "device_events", "kernel"),
        ("Memcpy", "device_events", "memcpy"),
        ("gpu_memset", "device_events", "memset"),
        ("python_function", "python_calls", None),
        ("cuda_sync", "syncs", None),
        ("xpu_sync", "syncs", None),
        ("gpu_user_Annotation", "others", None),
    ],
)
def test_categories_of_every_era_have_their_frame(category, frame, kind):
    trace = events(event(cat=category))
    rows = getattr(trace, frame)
    assert rows.height == 1
    assert kind is None or rows["kind"].to_list() == [kind]
    assert trace.diagnostics == ()


def test_unknown_categories_are_kept_and_named():
    trace = events(event(cat="Wafer"), event(cat="wafer"), event(ph="i", cat="other"))
    assert trace.others.height == 3
    assert rules(trace) == {"unknown_category": 2}
    assert "Wafer" in trace.diagnostics[0].consequence


def test_steps_and_data_loading_are_annotations_even_where_the_category_says_operator():
    names = ["ProfilerStep#3", "enumerate(DataLoader)#_Next", "Optimizer.step#SGD.step", "my step"]
    trace = events(*(event(name=name, ts=i) for i, name in enumerate(names)))
    assert trace.host_events["kind"].to_list() == ["annotation"] * 3 + ["operator"]


@pytest.mark.parametrize("row", [{"ph": "i"}, {"ph": "X", "cat": "cpu_instant_event"}, {"ph": "i", "cat": None}])
def test_memory_rows_are_known_by_name_whatever_their_phase(row):
    args = {"Device Type": 1, "Device Id": 0, "Addr": 2**62 + 1, "Bytes": -512}
    trace = events(event(name="[memory]", args=args, **row))
    assert trace.memory.select("device_type", "device", "address", "bytes").rows() == [(1, 0, 2**62 + 1, -512)]


# ---- threads, devices, arguments


def test_a_thread_is_one_whether_its_number_is_text_or_not():
    name = {"ph": "M", "name": "thread_name", "pid": 1, "tid": 7, "ts": 0, "args": {"name": "thread 7 (python) "}}
    trace = events(event(tid="7"), event(tid=7), event(tid=12), name)
    assert trace.threads.rows() == [("1", "7", None, "thread 7 (python)"), ("1", "12", None, None)]
    assert trace.host_events["thread"].to_list() == [0, 0, 1]


def test_device_and_stream_come_from_the_arguments_or_else_from_the_row():
    rows = [
        event(cat="kernel", pid=0, tid=9, ts=1, args={"device": 3, "stream": 20}),
        event(cat="Kernel", pid=2, tid="stream 7", ts=2),
        event(cat="Kernel", pid="GPU", tid="queue", ts=3),
    ]
    assert events(*rows).device_events.select("device", "stream").rows() == [(3, 20), (2, 7), (0, NONE)]


def test_no_correlation_is_the_same_as_zero_and_the_first_of_two_holds():
    for written, value in (('"correlation": 0', NONE), ('"a": 1', NONE), ('"correlation": 4, "correlation": 5', 4)):
        trace = of('[{"ph":"X","cat":"kernel","name":"k","ts":1,"args":{' + written + "}}]")
        assert trace.device_events["correlation"].to_list() == [value]


def test_of_equal_keys_the_last_holds():
    trace = of('[{"ph":"X","cat":"cpu_op","name":"a","ts":1,"name":"b","args":{"External id":1,"External id":2}}]')
    assert trace.host_events.select("name", "external_id").rows() == [("b", 2)]


def test_numbers_beyond_64_bits_are_missing_and_stay_in_the_file():
    text = json.dumps([event(cat="kernel", args={"bytes": 2**64, "correlation": 2**63 - 1})])
    row = of(text).device_events.row(0, named=True)
    assert (row["bytes"], row["correlation"]) == (NONE, 2**63 - 1)
    assert str(2**64) in text[row["offset"] : row["offset"] + row["length"]]


@pytest.mark.parametrize("written", ['"inf"', "inf", "NaN", "N/A", '"N/A"', "null", ""])
def test_values_that_are_no_numbers_are_missing(written):
    args = f'"blocks per SM": {written}, "bytes": {written}'
    row = of('[{"ph":"X","cat":"Memcpy","name":"k","ts":1,"args":{' + args + "}}]").device_events.row(0, named=True)
    assert math.isnan(row["blocks_per_sm"])
    assert row["bytes"] == NONE


def test_a_number_may_be_written_as_text_or_as_a_float():
    args = {"bytes": "4096", "registers per thread": 32.0, "est. achieved occupancy %": 25}
    row = events(event(cat="kernel", args=args)).device_events.row(0, named=True)
    assert (row["bytes"], row["registers_per_thread"], row["occupancy_frac"]) == (4096, 32, 0.25)


def test_the_occupancy_limiter_is_found_inside_its_object():
    args = {"occupancy": {"blockLimitRegs": 2, "limitingFactors": "REGS|WARPS"}, "bytes": 3}
    row = events(event(cat="kernel", args=args)).device_events.row(0, named=True)
    assert (row["occupancy_limiter"], row["bytes"]) == ("REGS|WARPS", 3)


def test_a_range_that_the_end_of_the_recording_cut_is_not_finished():
    trace = events(event(args={"finished": False}), event(args={"finished": True}, ts=6))
    assert trace.host_events["is_finished"].to_list() == [False, True]


def test_texts_are_decoded_whatever_is_in_them():
    name = rb"a\u00e9\n\"q\" C:\dir \ud800 " + b"\xff\x01\t|"
    trace = of(b'[{"ph":"X","cat":"cpu_op","name":"' + name + b'","ts":1}]')
    assert trace.host_events["name"].to_list() == ['aé\n"q" C:\\dir \ufffd \ufffd\x01\t|']


def test_a_missing_name_has_a_name_of_its_own_and_is_counted():
    events = [
        {"ph": "X", "cat": "cpu_op", "ts": 1, **name} for name in ({}, {"name": None}, {"name": 7}, {"name": "a"})
    ]
    trace = of(json.dumps(events))
    assert trace.host_events["name"].to_list() == ["(no name)", "(no name)", "7", "a"]
    assert [(found.rule, found.count) for found in trace.diagnostics] == [("odd_name", 3)]


def test_a_missing_text_is_null():
    assert of('[{"ph":"X","cat":"cpu_op","name":"a","ts":1}]').host_events["input_shapes"].to_list() == [None]


def test_texts_with_the_same_hash_are_told_apart():
    names = ["8yn0iYCKYHlIj4-BwPqk", "GReLUrM4wMqfg9yzV3KQ"]  # equal in 64-bit FNV-1a
    assert events(*(event(name=name) for name in names)).host_events["name"].to_list() == names


def test_any_number_of_different_texts_is_kept():
    names = [f"op {i}" for i in range(50_000)]
    trace = events(*(event(name=name, ts=10 * i) for i, name in enumerate(names)))
    assert trace.host_events["name"].to_list() == names


# ---- files


def test_gzip_is_told_by_content_with_members_and_padding(tmp_path):
    text = TraceBuilder().op("a", 0, 5).op("b", 9, 5).text().encode()
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(text[:300]) + b"\0" * 40 + gzip.compress(text[300:]) + b"\0" * 99)
    trace = read(path)
    assert trace.host_events["name"].to_list() == ["a", "b"]
    assert trace.diagnostics == ()


def test_progress_reaches_the_size_of_the_file(tmp_path):
    path = tmp_path / "t.json"
    path.write_bytes(TraceBuilder().op("a", 0, 5).text().encode())
    seen = []
    read(path, progress=seen.append)
    assert seen[-1] == Progress("linking", path.stat().st_size, path.stat().st_size)


def test_a_url_is_opened_through_fsspec():

    with fsspec.open("memory://t.json", "wb") as file:
        file.write(TraceBuilder().op("a", 0, 5).text().encode())
    assert read("memory://t.json").host_events.height == 1


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "whitespace"),
        (b"  \n", "whitespace"),
        (b"<html><body>Sign in</body>", "HTML"),
        (b"hello", "isn't JSON"),
        (b'{"a": 1}', "no traceEvents"),
        (b"[1, 2, 3]", "no traceEvents"),
        (b"[]", "no traceEvents"),
        (b"[[-1, 1, 864, 0], [5, 2, -64]]", "memory timeline"),
        (b"[[1, 2], [[0, 1], [2, 3]]", "memory timeline"),
        (b"[[[1]]]", "no traceEvents"),
        (b'{"traceEvents": [1, 2]}', "no usable event"),
        (b'{"schema": "1.0.2-chakra.0.0.4", "nodes": []}', "execution trace"),
    ],
)
def test_what_is_no_trace_is_said(data, words):
    assert words in problem(data)


def test_files_that_cannot_be_read_are_said(tmp_path):
    empty = tmp_path / "empty"
    empty.touch()
    zipped = tmp_path / "t.zip"
    zipped.write_bytes(b"PK\x03\x04....")
    for path, words in (
        (tmp_path / "none", "no such file"),
        (tmp_path, "a folder"),
        (empty, "0 bytes"),
        (zipped, "zip"),
        ("nowhere://x", "can't be opened"),
    ):
        with pytest.raises(TraceError, match=words):
            read(path)


def test_missing_columns_are_never_of_another_type():
    trace = events(event(cat="kernel"))
    assert trace.host_events.schema["name"] == pl.Enum([])
    assert trace.device_events.schema["device"] == pl.Int32


def test_what_is_known_of_a_collective_is_tied_to_its_operator_and_its_kernel():
    args = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 8, "Group size": 2, "Seq": 5}
    builder = TraceBuilder().op("a", 0, 9, dtype="Long").op("record_param_comms", 10, 9, **args)
    trace = builder.launch(12, 2, 1).kernel("k", 20, 3, 7).kernel("ncclKernel", 30, 3, 1, **args, Rank=1).build()
    same(
        trace.collectives,
        """
        name       dtype  in_elements  out_elements  group_size  nth  rank  host_event  device_event
        allreduce  Float  8            -1            2           5    -1    1           -1
        allreduce  Float  8            -1            2           5    1     -1          1
        """,
    )


def test_waits_keep_what_they_wait_for():
    wait = {"cuda_sync_kind": "Stream Wait Event", "wait_on_stream": 9, "wait_on_cuda_event_id": 3}
    builder = TraceBuilder().device("cuda_sync", "w", 10, 5, 4, **wait, wait_on_cuda_event_record_corr_id=2)
    builder.device("cuda_sync", "c", 20, 5, 6, stream=4294967295, cuda_sync_kind="Context Sync")
    same(
        builder.device("cuda_event", "e", 30, 0, 2, event_id=3).build().syncs,
        """
        name  category    stream  start_ns  correlation  sync_kind          wait_on_stream  wait_on_event  wait_on_record  event_id
        w     cuda_sync   7       0         4            Stream Wait Event  9               3              2               -1
        c     cuda_sync   -1      10        6            Context Sync       -1              -1             -1              -1
        e     cuda_event  7       20        2            -                  -1              -1             -1              3
        """,
    )


def test_the_values_of_inputs_are_kept_where_matrices_are_multiplied():
    trace = (
        TraceBuilder()
        .op("aten::convolution", 0, 9, **{"Concrete Inputs": ["", "", "[2, 2]"]})
        .op("aten::add", 10, 9, **{"Concrete Inputs": ["", "3"]})
        .op("aten::mm", 20, 9)
        .build()
    )
    assert trace.host_events["concrete_inputs"].to_list() == ['["", "", "[2, 2]"]', None, None]


def test_rows_of_a_graph_s_launch_name_graph_and_node_and_zero_is_none():
    trace = (
        TraceBuilder()
        .kernel("a", 0, 1, **{"graph id": 7, "graph node id": 0})
        .kernel("b", 2, 1, **{"graph id": 0, "graph node id": 0})
        .kernel("c", 4, 1)
        .build()
    )
    assert trace.device_events.select("graph_id", "graph_node_id").rows() == [(7, 7 << 32), (-1, -1), (-1, -1)]


def test_a_copy_between_devices_names_both():
    trace = TraceBuilder().memcpy(0, 5, name="Memcpy PtoP (Device -> Device)", fromDevice=0, toDevice=3).build()
    assert trace.device_events.select("from_device", "to_device").rows() == [(0, 3)]
