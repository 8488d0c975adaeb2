"""Pickles of plain values, without unpickling."""

import pickle
import random
import sys
import tracemalloc
from contextlib import suppress

import pytest

from kinetoscope_tb.reader.pickles.machine import Kind, Machine, PickleError, Schema
from kinetoscope_tb.reader.pickles.plain import plain_value
from support.pickles import PROTOCOLS, hostile, text, typed_lists
from support.real_traces import FOLDER

DUMPS = sorted((FOLDER.parent / "flight-recorder").glob("*/comm_lib_trace_rank_*"))
SNAPSHOTS = sorted((FOLDER.parent / "snapshots").glob("*.pickle"))
HOSTILE = hostile()
VALUES = [
    *(None, True, False, 0, 255, 256, 65535, 65536, -1, 2**31 - 1, -(2**31), 2**59, -(2**59), 2**59 - 1, 2**63 - 1),
    *(2**63, 2**64 - 1, -(2**63), 0.0, -0.5, 1e300, float("inf"), "", "a", "é\0", "x" * 255, "x" * 256, "x" * 5000),
    *([], {}, (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), [[[]]], {"a": [], "b": {"c": ()}}, {1: 2, None: 3, (4, 5): 6}),
    *(list(range(5000)), [[n] for n in range(3000)], {str(n): n for n in range(3000)}),
]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:20])
def test_a_plain_value_is_read_as_it_was_written(value, protocol):
    assert plain_value(pickle.dumps(value, protocol)) == value


@pytest.mark.parametrize("path", [*DUMPS, *SNAPSHOTS[:1]], ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_torch_writes_is_read_as_unpickling_would(path):
    data = path.read_bytes()
    assert plain_value(data) == pickle.loads(data)


def test_shared_values_are_shared():
    shared = ["a"]
    first, second = plain_value(pickle.dumps([shared, shared]))
    assert first is second


def test_torchs_typed_lists_are_their_lists():
    value = {"sizes": [1, 2], "none": [], "more": [-5]}
    assert plain_value(typed_lists(value)) == value


@pytest.mark.parametrize("block", [1, 7, 1000])
def test_blocks_make_no_difference(block):
    data = pickle.dumps(VALUES[:-3], 4)
    machine = Machine()
    for at in range(0, len(data), block):
        machine.feed(data[at : at + block])
    assert machine.is_over
    assert machine.read_bytes == len(data)
    assert len(machine.items(machine.root)) == len(VALUES) - 3


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_pickle_is_a_value_or_an_error(name):
    before = set(sys.modules)
    with suppress(PickleError):
        plain_value(HOSTILE[name])
    assert set(sys.modules) == before


def test_there_are_at_least_300_hostile_pickles():
    assert len(HOSTILE) >= 300


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (
            b"\x80\2cos\nsystem\n" + text("true") + b"\x85R.",
            "its opcode GLOBAL of os.system is refused: it names code (at byte 2)",
        ),
        (
            b"\x80\4\x8c\2os\x8c\6system\x93.",
            "its opcode STACK_GLOBAL is refused: it isn't one of plain values (at byte 14)",
        ),
        (b"\x80\2N}b.", "its opcode BUILD is refused: it isn't one of plain values (at byte 4)"),
        (
            b"\x80\2]q\0h\0a.",
            "its opcode APPEND changes a value that is already inside another, which would make a cycle (at byte 7)",
        ),
        (b"\x80\2\xee.", "its opcode 0xee is refused: it isn't one of plain values (at byte 2)"),
        (b"\x80\2)" + b"\x85" * 70 + b".", "at its opcode TUPLE1, values are nested over 64 deep (at byte 66)"),
        (b"\x80\2j\1\0\0\0.", "its opcode LONG_BINGET asks for a value that wasn't stored (at byte 2)"),
        (b"\x80\4N", "it ends too early (at byte 3)"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_what_is_refused_is_named_with_its_place(data, problem):
    with pytest.raises(PickleError) as raised:
        plain_value(data)
    assert str(raised.value) == problem


@pytest.mark.parametrize(
    "name", [name for name in HOSTILE if "LONG_BINPUT" in name or "bytes" in name or "itself" in name]
)
def test_memory_follows_the_size_of_the_file(name):
    data = HOSTILE[name]
    tracemalloc.start()
    with suppress(PickleError):
        plain_value(data)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < (2 << 20) + 200 * len(data)


def test_a_text_of_many_blocks_is_copied_a_few_times_at_most():
    machine = Machine()
    long_text = b"X\x00\x00\x80\x00" + b"a" * (1 << 23)
    for at in range(0, len(long_text), 1 << 16):
        machine.feed(long_text[at : at + (1 << 16)])
    assert machine.read_bytes == len(long_text)


SCHEMA = Schema([("filename", "line", "name"), ("action", "size", "frames")], [("filename", "line"), ("action",)])


def test_known_dicts_become_records_and_their_stacks_are_stored_once():
    frames = [{"filename": "a.py", "line": n, "name": "f"} for n in range(3)]
    events = [{"action": "alloc", "size": n, "frames": list(frames), "other": 1} for n in range(3)]
    machine = Machine(SCHEMA)
    machine.feed(pickle.dumps({"events": events}, 4))
    records = machine.taken_records()
    assert len(records) == 3
    assert [int(word) >> 4 for word in records[:, 2]] == [0, 1, 2]
    stack = int(records[0, 3])
    assert stack & 15 == Kind.STACK
    assert set(records[:, 3].tolist()) == {stack}
    assert machine.stacks[0].tolist() == [0, 1, 2]
    assert [machine.text(int(word)) for word in machine.frames[:, 0]] == ["a.py"] * 3
    key, events_word = machine.items(machine.root).tolist()
    assert machine.text(key) == "events"
    assert [int(word) & 15 for word in machine.items(events_word)] == [Kind.RECORD] * 3


def test_a_truncated_pickle_keeps_what_was_read():
    events = [{"action": "alloc", "size": n} for n in range(2500)]
    data = pickle.dumps({"segments": [], "events": [events]}, 4)
    machine = Machine(SCHEMA)
    machine.feed(data[: len(data) // 2])
    machine.end()
    read = len(machine.taken_records())
    assert 1000 < read < 1500
    items = machine.items(machine.root).tolist()
    assert [machine.text(key) for key in items[::2]] == ["segments", "events"]
    (list_of_events,) = machine.items(items[3]).tolist()
    assert len(machine.items(list_of_events)) >= read


def test_a_pickle_that_ends_anywhere_is_closed():
    data = pickle.dumps([VALUES, {"a": VALUES[-1], "b": [VALUES]}], 4)
    for at in random.Random(1).sample(range(len(data)), 60):
        machine = Machine(SCHEMA)
        machine.feed(data[:at])
        machine.end()
        assert machine.root & 15 in (Kind.MISSING, Kind.LIST)
