"""A damaged trace written anew: strict JSON that gives the same trace, without damage."""

import gzip
import json
import random

import pytest

from kinetoscope_tb.errors import TraceError
from kinetoscope_tb.export.repair import RepairError, repair
from kinetoscope_tb.reader import read
from kinetoscope_tb.trace.model import COLLECTED
from support.build import TraceBuilder

DAMAGE = {
    "unescaped_quote",
    "unescaped_backslash",
    "wrong_brackets",
    "bare_word",
    "bare_hex",
    "missing_value",
    "wrong_commas",
    "damaged_events",
    "truncated",
    "control_characters",
    "bad_escape",
    "not_utf8",
    "cp1252_text",
    "byte_order_mark",
    "converted_encoding",
    "damaged_compression",
    "damaged_metadata",
    "damaged_end",
    "several_arrays",
    "second_document",
}


def refused(constant):
    raise ValueError(constant)


def check(data, tmp_path, name="t.json", out="fixed.json"):
    """Repair the data; the copy is strict and gives the same trace. Returns what was repaired."""
    path, copy = tmp_path / name, tmp_path / out
    path.write_bytes(data)
    result = repair(str(path), str(copy))
    text = copy.read_bytes()
    json.loads(gzip.decompress(text) if out.endswith(".gz") else text, parse_constant=refused)
    was, now = read(path), read(copy)
    assert was.origin_ns == now.origin_ns
    assert was.window == now.window
    assert was.meta.events == now.meta.events == result.events
    for frame in (*COLLECTED, "threads"):
        before, after = (getattr(trace, frame) for trace in (was, now))
        columns = [column for column in before.columns if column not in ("offset", "length")]
        assert before.select(columns).equals(after.select(columns)), frame
    assert not {diagnostic.rule for diagnostic in now.diagnostics} & DAMAGE
    assert path.read_bytes() == data
    copy.unlink()
    return {diagnostic.rule for diagnostic in result.diagnostics}


def text(*damaged, tail="", **top):
    sound = TraceBuilder(**top).op("a", 0, 5).kernel("k", 2, 9, 3, grid=[1, 2, 3]).python("f", 1, 4).text()
    return sound.replace("\n]}", "".join(",\n" + event for event in damaged) + "\n]" + tail + "}").encode()


X = '"ph": "X", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": 50, "dur": 2'


@pytest.mark.parametrize(
    ("damaged", "rule"),
    [
        (f'{{{X}, "name": "a " b"}}', "unescaped_quote"),
        (f'{{{X}, "name": "C:\\dir\\", "args": {{}}}}', "unescaped_backslash"),
        (f'{{{X}, "name": "b", "args": {{"Input Dims": [[1, 2}}}}', "wrong_brackets"),
        (f'{{{X}, "name": "b", "args": {{"x": inf, "Input Dims": N/A, "Call stack": nan, "y": -inf}}}}', "bare_word"),
        (f'{{{X}, "name": bare, "args": {{"External id": 12ab}}}}', "bare_word"),
        (f'{{{X}, "name": "b", "args": {{"src": 0x7f00, "External id": 0x10}}}}', "bare_hex"),
        (f'{{{X}, "name": "b", "args": {{"x": , "Call stack": , "z": }}}}', "missing_value"),
        (f'{{{X},, "name": "b", "args": {{,"x": 1,}}, }}', "wrong_commas"),
        (f'{{{X} "name": "b" "args": {{"x": "1" "y": 2}}}}', "wrong_commas"),
        (f'{{{X}, "name": 1 2}}', "damaged_events"),
        (f'{{{X}, "name": "b", "args": {{"Input Dims": [[1 2],, zz], "o": {{"occupancy" 1}}}}}}', None),
        (f'{{{X}, "name": "tab\there", "args": {{"Call stack": "x\ny\\d\\u12"}}}}', None),
        (f'{{{X}, "name": "\\ud800", "name": "twice"}}', None),
    ],
)
def test_damaged_events_are_repaired(tmp_path, damaged, rule):
    rules = check(text(damaged), tmp_path)
    assert rule is None or rule in rules


def test_texts_in_other_encodings_are_repaired(tmp_path):
    check(text(f'{{{X}, "name": "Größe"}}').decode().encode("cp1252"), tmp_path)
    check(text(f'{{{X}, "name": "Größe"}}').replace("ß".encode(), b"\xff"), tmp_path)
    assert check(text(f'{{{X}, "name": "Größe"}}').decode().encode("utf-16"), tmp_path) == {"converted_encoding"}
    assert check(b"\xef\xbb\xbf" + text(), tmp_path) == {"byte_order_mark"}


def test_values_beside_the_events_are_kept_or_left_out(tmp_path):
    head = '{"bad": garbage", "schemaVersion": 1, "baseTimeNanoseconds": 170000000000, "traceEvents": ['
    event = f'{{{X}, "name": "b"}}'
    check(f'{head}{event}], "x": {{"a": ,}}, "log": ["say "hi""]}}'.encode(), tmp_path)
    check(
        f'{{"a": [1, NaN], "b": "x\ny", "traceEvents": [{event}], "c": 1.50, "baseTimeNanoseconds": 7}}'.encode(),
        tmp_path,
    )
    check(f"[{event}, {event},]".encode(), tmp_path)
    check(b'{"traceEvents": []}', tmp_path)


def test_a_truncated_or_packed_file_is_repaired(tmp_path):
    whole = text()
    assert check(whole[:-60], tmp_path) == {"truncated"}
    assert check(gzip.compress(whole), tmp_path, name="t.json.gz", out="fixed.json.gz") == set()
    packed = gzip.compress(text(*(f'{{{X}, "name": "{i:x}"}}' for i in range(9000))))
    assert check(packed[: len(packed) // 2], tmp_path, "t.json.gz") == {"truncated", "damaged_compression"}
    assert check(whole + whole, tmp_path) == {"second_document"}


def test_several_arrays_become_one(tmp_path):
    one = f'{{{X}, "name": "b"}}'
    document = f'{{"traceEvents": 5, "traceEvents": [{one}], "k": 1, "traceEvents": [{one}], "k": 2}}'
    assert check(document.encode(), tmp_path) == {"several_arrays"}
    assert check(f'{{"traceEvents": [{one}], "k": 1 x}}'.encode(), tmp_path) == {"damaged_end"}


def test_any_flipped_bytes_give_a_strict_copy_of_the_same_trace(tmp_path):
    numbers, whole = random.Random(3), text(f'{{{X}, "name": "b", "args": {{"Call stack": "x", "l": ["a", "b"]}}}}')
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(numbers.choice([1, 1, 3])):
            data[numbers.randrange(len(data))] = numbers.choice(b'"{}[],:\\ x0\n\xff')
        try:
            check(bytes(data), tmp_path)
        except TraceError:
            assert list(tmp_path.iterdir()) == [tmp_path / "t.json"]


def test_nothing_is_overwritten_and_nothing_half_written_stays(tmp_path):
    path = tmp_path / "t.json"
    path.write_bytes(text())
    with pytest.raises(RepairError, match="this file exists, and nothing is overwritten"):
        repair(str(path), str(path))
    with pytest.raises(RepairError, match="can't be written"):
        repair(str(path), str(tmp_path / "none" / "x.json"))
    path.write_bytes(b"garbage")
    with pytest.raises(TraceError):
        repair(str(path), str(tmp_path / "x.json"))
    assert list(tmp_path.iterdir()) == [path]
