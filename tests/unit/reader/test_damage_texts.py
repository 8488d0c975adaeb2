"""Damage inside texts: it is kept or replaced, and counted."""

import pytest

from kinetoscope_tb.reader import read_blocks


def named(*names):
    rows = (
        b'{"ph": "X", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": %d, "dur": 2, "name": "%s"}' % (10 * i, name)
        for i, name in enumerate(names)
    )
    return read_blocks([b'{"traceEvents": [' + b",\n".join(rows) + b"]}"], path="t.json")


def names(trace):
    return trace.host_events["name"].to_list()


def rules(trace):
    return {diagnostic.rule: diagnostic.count for diagnostic in trace.diagnostics}


@pytest.mark.parametrize(
    ("written", "name", "rule"),
    [
        ("Größe".encode("cp1252"), "Größe", "cp1252_text"),
        ("Übung – fertig".encode("cp1252"), "Übung – fertig", "cp1252_text"),
        (b"na\xc3\xafve", "naïve", None),
        (b"na\xc3\xafve \xe4", "naïve �", "not_utf8"),
        (b"kernel\xff", "kernel�", "not_utf8"),
        (b"cut in a letter \xc3", "cut in a letter �", "not_utf8"),
        (b"\x90\xc8#", "��#", "not_utf8"),
        (rb"C:\dir\new", "C:\\dir\new", "bad_escape"),
        (rb"a\u00e9\\\"", 'aé\\"', None),
        (b"a\nb", "a\nb", "control_characters"),
        (b"unknown", "unknown", None),  # `names_lost` of the rules says it
    ],
)
def test_texts_are_read_as_they_were_meant(written, name, rule):
    trace = named(b"sound", written, written)
    assert names(trace) == ["sound", name, name]
    assert set(rules(trace)) == ({rule} if rule else set())


def test_counts_are_of_distinct_texts():
    trace = named(b"a\tb", b"a\tb", b"\\d", b"\\w")
    assert rules(trace) == {"control_characters": 1, "bad_escape": 2}


def test_line_breaks_in_lists_are_no_damage():
    rows = b'[{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "args": {"Input Dims": [\n [2],\n [3]]}}]'
    assert rules(read_blocks([rows], path="t.json")) == {}
