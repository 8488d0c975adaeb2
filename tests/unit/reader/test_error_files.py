"""torchrun's error files: what is read of them, and that any value may be damaged."""

import json

import pytest

from kinetoscope.journal.ending import ErrorText
from kinetoscope_tb.distributed.why import answer_why
from kinetoscope_tb.reader.flight_recorder.error_files import ending_in
from kinetoscope_tb.reader.flight_recorder.files import read_folder

SECOND = 1_000_000_000
STACK = """Traceback (most recent call last):
  File "/job/train.py", line 8, in parse
    return int(line)
           ^^^^^^^^^
ValueError: invalid literal

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/venv/lib/python3.12/site-packages/torch/distributed/elastic/multiprocessing/errors/__init__.py", line 357, in wrapper
    return f(*args, **kwargs)
  File "/job/train.py", line 88, in main
    raise Lost("x")
jobs.errors.Lost: first line
second line
"""
LOST = "RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:1929"


def error_file(message="Lost: first line\nsecond line", stack=STACK, timestamp="1795650000"):
    return {"message": {"message": message, "extraInfo": {"py_callstack": stack, "timestamp": timestamp}}}


def ending(value):
    return ending_in(json.dumps(value).encode())


def test_an_error_file_has_the_exception_its_lines_and_its_first_cause():
    found = ending(error_file())
    assert (found.ns, found.is_exact) == (1_795_650_000 * SECOND, False)
    assert found.exception == ErrorText("jobs.errors.Lost", "first line\nsecond line")
    assert found.cause == ErrorText("ValueError", "invalid literal")
    assert [call[1:] for call in found.calls] == [
        (88, "main"),
        (357, "torch.distributed.elastic.multiprocessing.errors.wrapper"),
    ]


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"message": "a text"},
        {"message": {"message": 3}},
        {"message": {"message": "x", "extraInfo": []}},
        error_file(timestamp="soon"),
        error_file(timestamp=-1),
        error_file(message=None),
    ],
)
def test_another_file_is_none(value):
    assert ending(value) is None


@pytest.mark.parametrize(
    "stack", ["", None, 7, "\n" * 100, '  File "a", line 1, in b', "x" * 5000, STACK[:150], STACK[-40:]]
)
def test_a_damaged_stack_leaves_the_message(stack):
    found = ending(error_file("KeyError: 'x'", stack))
    assert found.exception.message == "'x'"


def written(folder, rank, value, attempt=0):
    file = folder / f"none_x1/attempt_{attempt}/{rank}/error.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(value))


def test_the_rank_that_did_not_only_lose_another_one_is_named(tmp_path):
    written(tmp_path, 0, error_file(LOST, ""))
    written(tmp_path, 2, error_file("KeyError: 'x'", ""))
    (tmp_path / "none_x1/attempt_0/3").mkdir()
    answer = answer_why(read_folder(str(tmp_path)))
    assert (answer.kind, answer.culprits) == ("exception", (2,))
    assert answer.sentence.endswith("; then rank 0 lost the connection to another rank.")
    assert [row.end for row in answer.rows][1::2] == ["left nothing"] * 2


def test_other_exceptions_within_a_second_may_have_been_first(tmp_path):
    written(tmp_path, 0, error_file("ValueError: y", ""))
    written(tmp_path, 1, error_file("KeyError: 'x'", ""))
    answer = answer_why(read_folder(str(tmp_path)))
    assert (answer.outcome, answer.suspects) == ("cannot tell", (0, 1))


def test_the_newest_attempt_counts(tmp_path):
    written(tmp_path, 0, error_file("ValueError: y", ""))
    written(tmp_path, 1, error_file("KeyError: 'x'", "", timestamp="1795650100"), attempt=1)
    answer = answer_why(read_folder(str(tmp_path)))
    assert answer.culprits == (1,)
    assert [problem.path.endswith("attempt_0") for problem in answer.problems] == [True]
