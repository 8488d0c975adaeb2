"""What stands beside the events: known keys hold what they promise or null, and what doesn't is told."""

import json

import pytest

from kinetoscope_tb.measures.recording.device_properties import Devices
from kinetoscope_tb.reader import read_blocks

EVENT = '{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}'


def read(before, behind="", size=1 << 20):
    """A file with members before the events and behind them, each a text."""
    text = f'{{{before}, "traceEvents": [{EVENT}]{behind}}}'.encode("utf-8", "surrogatepass")
    return read_blocks([text[i : i + size] for i in range(0, len(text), size)], path="a.json")


def counts_by_rule(trace):
    return {diagnostic.rule: diagnostic.count for diagnostic in trace.diagnostics}


def members(**top):
    return json.dumps(top)[1:-1]


@pytest.mark.parametrize("deep", ["[" * 100_000 + "]" * 100_000, '{"a": ' * 100_000 + "1" + "}" * 100_000])
@pytest.mark.parametrize("size", [1 << 20, 1000])
def test_a_value_that_nests_too_deeply_is_dropped_alone(deep, size):
    known = members(distributedInfo={"rank": 3})
    for trace in (
        read(f'"deep": {deep}, {known}', size=size),
        read('"a": 1', f', "deep": {deep}, {known}', size=size),
    ):
        assert trace.meta.rank == 3
        assert "deep" not in trace.meta.top
        assert counts_by_rule(trace) == {"damaged_metadata": 1}
        assert trace.host_events.height == 1


def test_a_deep_value_without_an_end_hides_no_event():
    trace = read(f'"deep": {"[" * 100_000}')
    assert trace.host_events.height == 1


@pytest.mark.parametrize(
    ("top", "odd", "value"),
    [
        ({"deviceProperties": 7}, "deviceProperties", []),
        ({"deviceProperties": [7]}, "deviceProperties", []),
        ({"deviceProperties": [{"id": [0]}]}, "deviceProperties.id", []),
        ({"deviceProperties": [{"id": 0, "numSms": "x"}]}, "deviceProperties.numSms", [{"id": 0, "numSms": None}]),
        ({"distributedInfo": []}, "distributedInfo", {}),
        ({"distributedInfo": {"rank": {}}}, "distributedInfo.rank", {"rank": None}),
        ({"distributedInfo": {"pg_config": "{}"}}, "distributedInfo.pg_config", {"pg_config": []}),
        ({"host_name": 2**70}, "host_name", None),
        ({"anything": [2**70, {"a": float("nan")}]}, "anything, anything.a", [None, {"a": None}]),
        ({"anything": ["\ud800"]}, "anything", ["\ufffd"]),
        ({"\ud800": "\udfff"}, "\ufffd", "\ufffd"),
    ],
)
def test_a_value_of_another_kind_is_null_and_named(top, odd, value):
    trace = read(members(**top))
    (diagnostic,) = trace.diagnostics
    assert diagnostic.rule == "odd_metadata"
    assert diagnostic.consequence.endswith(f": {odd}.")
    assert list(trace.meta.top.values()) == [value]


@pytest.mark.parametrize(
    "top",
    [
        {"distributedInfo": {"rank": "3", "world_size": "8"}},
        {"distributedInfo": {"rank": 3.0, "world_size": 8}},
        {"global_rank": "3", "distributedInfo": {"rank": -1, "world_size": 8}},
        {"kinetoscope": {"global_rank": 3, "world_size": 8}, "distributedInfo": {"rank": None}},
    ],
)
def test_a_number_is_read_however_it_is_spelled(top):
    trace = read(members(**top))
    assert (trace.meta.rank, trace.meta.world_size) == (3, 8)
    assert not trace.diagnostics


def test_groups_may_be_a_text():
    group = {"pg_name": "0", "ranks": [0, 1]}
    trace = read(members(distributedInfo={"pg_config": json.dumps([group])}))
    assert trace.meta.distributed_info["pg_config"] == [group]


def test_a_device_that_is_described_oddly_is_described_as_far_as_it_can_be():
    device = {"id": 0, "name": "GPU", "totalGlobalMem": 2**64, "numSms": 108.0, "warpSize": True}
    facts = Devices.of(read(members(deviceProperties=[device])).meta).facts(0)
    assert (facts.name, facts.memory_bytes, facts.multiprocessors, facts.warp_size) == ("GPU", None, 108, None)


@pytest.mark.parametrize("base", [2**63 - 1, -(2**63), 9 * 10**18, 10**29, '"99999999999999999999"'])
def test_a_clock_that_cannot_be_is_none(base):
    trace = read(f'"baseTimeNanoseconds": {base}')
    assert trace.origin_ns == 1000
    assert counts_by_rule(trace)["impossible_metadata"] == 1
    assert trace.meta.impossible[0].startswith("baseTimeNanoseconds is ")


def test_numbers_of_events_that_cannot_be_are_unknown():
    args = [{"bytes": 2**62, "device": 0, "stream": 7}, {"bytes": 64, "device": 0, "stream": 7}]
    events = [{"ph": "X", "cat": "gpu_memcpy", "name": "c", "ts": i, "dur": 1, "args": a} for i, a in enumerate(args)]
    trace = read_blocks([json.dumps(events).encode()], path="a.json")
    assert trace.device_events["bytes"].to_list() == [-1, 64]
    assert counts_by_rule(trace) == {"impossible_number": 1}


def test_a_share_that_cannot_be_is_unknown():
    args = [{"est. achieved occupancy %": share, "blocks per SM": share} for share in (-1, 40, 10**20, "x")]
    events = [{"ph": "X", "cat": "kernel", "name": "k", "ts": i, "dur": 1, "args": a} for i, a in enumerate(args)]
    trace = read_blocks([json.dumps(events).encode()], path="a.json")
    assert trace.device_events["occupancy_frac"].fill_nan(None).to_list() == [None, 0.4, None, None]
    assert trace.device_events["blocks_per_sm"].fill_nan(None).to_list() == [None, 40, None, None]


@pytest.mark.parametrize("dur", [2**62, 1e308, "soon", 1e18])
def test_a_duration_that_cannot_be_is_none(dur):
    events = [{"ph": "X", "cat": "cpu_op", "name": "a", "ts": i, "dur": d} for i, d in enumerate((dur, 3))]
    trace = read_blocks([json.dumps(events).encode()], path="a.json")
    assert trace.host_events["dur_ns"].to_list() == [0, 3000]
    assert counts_by_rule(trace) == {"impossible_duration": 1}


def test_events_months_from_most_others_are_left_out():
    months_us = 2**52 // 1000
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "a", "ts": ts, "dur": 1} for ts in (7, 8, 9, 10, months_us, -months_us)
    ]
    trace = read_blocks([json.dumps(events).encode()], path="a.json")
    assert trace.host_events["start_ns"].to_list() == [0, 1000, 2000, 3000]
    assert counts_by_rule(trace) == {"far_from_others": 2}


def test_durations_that_exceed_64_bits_together_are_none():
    events = [{"ph": "X", "cat": "cpu_op", "name": "a", "ts": i, "dur": 2**42 if i else 3} for i in range(600)]
    trace = read_blocks([json.dumps(events).encode()], path="a.json")
    assert trace.host_events["dur_ns"].to_list() == [3000] + [0] * 599
    assert counts_by_rule(trace) == {"impossible_duration": 599}
