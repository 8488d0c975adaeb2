"""What the command line draws on a terminal while it reads a file."""

import io
import sys

from kinetoscope_tb.cli.traces import open_trace
from kinetoscope_tb.discovery import TraceFile
from kinetoscope_tb.reader import Progress
from support.build import TraceBuilder

FILE = TraceFile("run", "rank0", "5", "/logs/rank0.5.json", "rank0[red].5.json", 4_000_000, "stamp")
TRACE = TraceBuilder().build()


class Terminal(io.StringIO):
    def isatty(self):
        return True


def drawn(monkeypatch, terminal):
    """What is written to standard error while a reader tells three times how far it is."""

    def slowly(file, _cache, note):
        for stage, read_bytes in (("reading", 1_000_000), ("reading", 3_000_000), ("linking", 4_000_000)):
            if note is not None:
                note(Progress(stage, read_bytes, file.bytes))
        return TRACE, False

    monkeypatch.setattr("kinetoscope_tb.cli.traces.open_or_read", slowly)
    monkeypatch.setattr(sys, "stderr", terminal)
    for name, value in {"COLUMNS": "120", "TERM": "xterm", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    with open_trace(FILE) as trace:
        assert trace is TRACE
    return terminal.getvalue()


def test_a_terminal_shows_stage_share_rate_and_time_left(monkeypatch):
    text = drawn(monkeypatch, Terminal())
    assert "linking rank0[red].5.json" in text
    assert "100%" in text
    assert "B/s" in text
    assert "0:00:00" in text


def test_what_is_no_terminal_stays_silent(monkeypatch):
    assert drawn(monkeypatch, io.StringIO()) == ""
