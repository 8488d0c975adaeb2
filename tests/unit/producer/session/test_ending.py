"""What a recording that ends says of how, and that a reader believes no value that isn't valid."""

import json
import sys

import pytest

from kinetoscope import Tracer, on_request
from kinetoscope.journal.ending import Ending, ErrorText, ending_of
from kinetoscope.journal.status import rank_statuses
from kinetoscope.session.ending import ending, uncaught_exception


def load():
    raise KeyError("batch 5")


def fail():
    try:
        load()
    except KeyError as error:
        raise RuntimeError("the loader failed, with token=abc") from error


class Wordless(Exception):
    def __str__(self):
        raise ValueError("no message")


def caught(function, *arguments):
    try:
        function(*arguments)
    except BaseException as error:  # noqa: BLE001
        return error
    return None


def fail_while_recording(tracer):
    with tracer:
        tracer.step()
        load()


def test_an_exception_has_its_cause_and_its_lines_but_no_secrets():
    value = ending_of(json.loads(json.dumps(ending(caught(fail), None, None))))
    assert value.exception == ErrorText("RuntimeError", "the loader failed, with token=***")
    assert value.cause == ErrorText("KeyError", "'batch 5'")
    assert [call[0] for call in value.calls] == [__file__, __file__]
    assert [call[2].rpartition(".")[2] for call in value.calls] == ["fail", "caught"]


@pytest.mark.parametrize(("code", "expected"), [(None, 0), (4, 4), ("bad arguments", 1)])
def test_an_exit_has_its_code(code, expected):
    assert ending_of(ending(caught(sys.exit, code), None, None)).exit_code == expected


def test_an_error_of_the_system_has_its_number():
    assert ending_of(ending(OSError(28, "No space left on device"), None, None)).errno == 28


def test_an_exception_without_a_message_and_a_circle_of_causes_do_no_harm():
    error, other = Wordless(), KeyError("x")
    error.__context__, other.__context__ = other, error
    value = ending_of(ending(error, None, None))
    assert (value.exception.message, value.cause) == ("", ErrorText("KeyError", "'x'"))


def test_a_signal_has_its_time_and_where_the_program_was():
    value = ending_of(ending(KeyError("in flight"), sys._getframe(), 77))
    assert (value.ns, value.exception.type, value.calls[0][0]) == (77, "KeyError", __file__)


def test_a_console_s_exception_of_long_ago_ends_nothing(monkeypatch):
    error = KeyError("x")
    monkeypatch.setattr(sys, "last_value", error, raising=False)
    assert uncaught_exception() is error
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    assert uncaught_exception() is None


def test_the_journal_and_the_manifest_have_it(tmp_path):
    tracer = Tracer(tmp_path, run="job", schedule=on_request, system=())
    assert isinstance(caught(fail_while_recording, tracer), KeyError)
    (status,) = rank_statuses(tmp_path / "job")
    assert (status.state, status.reason, status.completed) == ("ended", "exception: KeyError", 1)
    assert status.ending.exception == ErrorText("KeyError", "'batch 5'")
    assert status.news == ()
    (rank,) = json.loads((tmp_path / "job" / "run.json").read_text())["ranks"]
    assert ending_of(rank["ending"]) == status.ending


@pytest.mark.parametrize("value", [None, 7, [], {}, {"ns": "now"}, {"ns": True}, {"ns": -1}, {"ns": 1 << 70}])
def test_what_is_no_end_is_none(value):
    assert ending_of(value) is None


def test_values_that_are_not_valid_are_left_out():
    value = {
        "ns": 5,
        "exception": {"type": 7},
        "cause": "x",
        "calls": [["a.py", "1", "f"], ["a.py", 1], ["a.py", 3, "g"]] + [["a.py", 1, "h" * 999]] * 99,
        "exit_code": -1,
        "signal": "9",
        "oom_kills": None,
        "errno": 1.5,
    }
    read = ending_of(value)
    assert (read.exception, read.cause, read.exit_code, read.signal, read.oom_kills, read.errno) == (None,) * 4 + (
        0,
        None,
    )
    assert read.calls[0] == ("a.py", 3, "g")
    assert len(read.calls) < 64
    assert len(read.calls[1][2]) == 300
    assert ending_of({"ns": 5}) == Ending(5)
