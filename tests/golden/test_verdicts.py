"""The verdicts of all real traces in one file that a person can read: verdicts.txt.

`make golden` writes it again; `oracle/test_each_recording.py` compares it with the verdict of each trace. docs/verdicts.md
says what each claim rests on.
"""

import os

import pytest

from kinetoscope_tb.errors import TraceError
from kinetoscope_tb.reader import read
from support.real_traces import FOLDER, MISSING
from support.verdicts import FILE, as_text, from_text, heading, judged_traces, verdict

UPDATES = bool(os.environ.get("UPDATE_GOLDEN"))


def read_or_error(path):
    try:
        return read(path)
    except TraceError as error:
        return error


@pytest.mark.slow
@pytest.mark.skipif(not FOLDER.is_dir(), reason=MISSING)
def test_the_file_holds_a_verdict_of_each_real_trace_and_nothing_else():
    if UPDATES:
        FILE.write_text(as_text({heading(file): verdict(read_or_error(file)) for file in judged_traces()}), "utf-8")
    text = FILE.read_text("utf-8")
    verdicts = from_text(text)
    assert list(verdicts) == [heading(file) for file in judged_traces()]
    assert as_text(verdicts) == text
