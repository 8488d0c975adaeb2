"""The original event of a row, by the place that the row has."""

import gzip
import json
import math

import fsspec
import polars as pl
import pytest
import zstandard

from kinetoscope_tb.errors import NotFound, TraceError
from kinetoscope_tb.reader import event as module
from kinetoscope_tb.reader import read
from kinetoscope_tb.reader.event import EventTexts, event_length, event_of
from kinetoscope_tb.trace.model import COLLECTED
from support.build import TraceBuilder


def a_trace():
    return (
        TraceBuilder()
        .op("aten::mm", at=10, dur=30, **{"Input Dims": [[2, 2], []], "unknown": {"deep": [1, None, True]}})
        .launch(at=15, dur=5, correlation=1)
        .kernel("a kernel", at=25, dur=50, correlation=1, stream=7)
        .memory(64, at=12, address=2**63 - 1)
        .python("f.py(1): f", at=5, dur=60)
        .event("odd", "é“\u2028”", at=7, dur=1)
    )


def files(tmp_path):
    """The same trace as a plain file, gzip with the wrong name, in two members, and far away."""
    data = a_trace().text().encode()
    contents = {
        "plain.json": data,
        "bom.json": b"\xef\xbb\xbf" + data,
        "spaces.json": b"\n  " + data,
        "wrong_name.json": gzip.compress(data),
        "members.json.gz": gzip.compress(data[:500]) + gzip.compress(data[500:]),
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        yield str(tmp_path / name)
        url = f"memory://event/{name}"
        with fsspec.open(url, "wb") as file:
            file.write(content)
        yield url


def places(trace):
    for name in COLLECTED:
        yield from getattr(trace, name).select("offset", "length").rows()


def test_each_row_leads_to_its_event_wherever_the_file_lies(tmp_path):
    for path in files(tmp_path):
        trace, texts = read(path), EventTexts()
        events = [texts.event(path, 1, *place).value for place in places(trace)]
        expected = json.loads(a_trace().text(), parse_int=module._integer)["traceEvents"]
        assert sorted(map(str, events)) == sorted(map(str, expected)), path


def test_numbers_that_javascript_would_change_are_texts():
    numbers = (
        "[9007199254740992, 9007199254740993, -9007199254740993, 0.5, 0.10, 1e3, 1712345678901234.567, 1e999, NaN]"
    )
    event = event_of(f'{{"args": {numbers}}}'.encode())
    assert event.value["args"] == [
        9007199254740992,
        "9007199254740993",
        "-9007199254740993",
        0.5,
        0.1,
        1000.0,
        "1712345678901234.567",
        "1e999",
        "NaN",
    ]
    json.dumps(event.value, allow_nan=False)


@pytest.mark.parametrize(
    ("raw", "value", "words"),
    [
        (rb'{"ph": "X", "name": "C:\Users"}', {"ph": "X", "name": "C:\\Users"}, "repaired"),
        (b'{"ph": "X", "name": "a "b" c", "ts": 1.5}', {"ph": "X", "name": 'a "b" c', "ts": 1.5}, "repaired"),
        (b'{"ph": "X", "args": {"src": 0x7f, "x": }}', {"ph": "X", "args": {"src": "0x7f", "x": None}}, "repaired"),
        (b'{"ph": X"Y: {{', None, "as recorded"),
    ],
)
def test_a_damaged_event_is_shown_as_it_is_and_as_it_was_repaired(raw, value, words):
    event = event_of(raw, offset=100)
    assert (event.text, event.value, event.length) == (raw.decode(), value, len(raw))
    assert "damaged at byte 1" in event.problem
    assert words in event.problem


def test_places_are_those_of_the_text_that_was_scanned_whatever_the_file_is(tmp_path):
    text = a_trace().text()
    for name, data in {"utf16": text.encode("utf-16"), "zstd": zstandard.compress(text.encode())}.items():
        path = tmp_path / name
        path.write_bytes(data)
        trace, texts = read(path), EventTexts()
        for place in places(trace):
            assert texts.event(str(path), 1, *place).value["ph"] in "Xi"


def test_an_event_that_is_not_utf_8_is_read_with_a_note():
    event = event_of(b'{"name": "\xff"}')
    assert event.value == {"name": "\ufffd"}
    assert "UTF-8" in event.problem


@pytest.mark.parametrize("raw", [b"", b"[1]", b"{" * 10**5, b'{"a": ' + b"[" * 10**5, b'{"a": ' + b"9" * 10**5 + b"}"])
def test_whatever_lies_there_is_shown(raw):
    event = event_of(raw)
    assert event.text == raw.decode()
    assert event.value is None or isinstance(event.value, dict)


def test_a_place_where_no_event_begins_is_no_event():
    trace = a_trace().build()
    start, length = next(places(trace))
    assert event_length(trace, start) == length
    for wrong in (start + 1, start - 1, 0, 10**18):
        with pytest.raises(NotFound, match=rf"no event that begins at byte '{wrong}'; there is one at \d+\."):
            event_length(trace, wrong)
    with pytest.raises(NotFound, match="there is none"):
        event_length(TraceBuilder().build(), 0)


def test_a_file_that_was_cut_says_so(tmp_path):
    whole, cut = tmp_path / "whole.json.gz", tmp_path / "cut.json.gz"
    whole.write_bytes(gzip.compress(a_trace().text().encode()))
    cut.write_bytes(gzip.compress(a_trace().text().encode()[:300]))
    last = max(places(read(str(whole))))
    with pytest.raises(TraceError, match=r"cut\.json\.gz: its text ends before byte"):
        EventTexts().event(str(cut), 1, *last)


def test_neighbors_of_an_event_come_without_reading_again(tmp_path, monkeypatch):
    path = str(tmp_path / "trace.json.gz")
    with gzip.open(path, "wb") as file:
        file.write(a_trace().text().encode())
    trace, texts, reads = read(path), EventTexts(), []
    source = module.Source
    monkeypatch.setattr(module, "Source", lambda *what: reads.append(what) or source(*what))
    for _ in range(3):
        for place in places(trace):
            texts.event(path, 1, *place)
    assert len(reads) == 1
    texts.event(path, 2, *place)  # the file has changed
    assert len(reads) == 2


def test_what_is_remembered_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_AROUND_BYTES", 1000)
    many = TraceBuilder()
    for nth in range(3000):
        many.op(f"op{nth}", at=nth, dur=1, random=str(math.sin(nth)))
    path = str(tmp_path / "trace.json.gz")
    with gzip.open(path, "wb") as file:
        file.write(many.text().encode())
    trace, texts = read(path), EventTexts()
    for name, offset, length in trace.host_events.select(pl.col("name"), "offset", "length")[::100].rows():
        assert texts.event(path, 1, offset, length).value["name"] == name
    assert sum(len(window) for *_, window in texts._windows) < 4 * 2500
