"""Any odd value in any field of a trace: everything that is asked of it is answered, and of the run that it is in.

Cases are shuffled, so that a part of them is a fair sample; `make fuzz` runs as many as it is told, up to all.
"""

import functools
import random

import pytest

from kinetoscope_tb.distributed.summary import summary
from kinetoscope_tb.errors import KinetoscopeError
from support.every_field import MISSING, cases, replaced, sample, text
from support.fuzzing import case_numbers, named
from support.questions import ask, file_questions, identity, questions, reading, run_questions

GROUPS = 10
_asked = set()


@functools.cache
def others():
    """(the trace without any odd value, the summaries of its two neighbors)."""
    return reading(text(sample())), [summary(reading(text(sample(rank)))) for rank in (1, 2)]


@functools.cache
def shuffled():
    numbers = list(range(len(cases())))
    random.Random(0).shuffle(numbers)
    return numbers


@pytest.mark.parametrize("group", range(GROUPS))
def test_everything_is_answered(group, tmp_path):
    for case in case_numbers(group, GROUPS, share=0.02):
        if case < len(cases()):
            path, value = cases()[shuffled()[case]]
            with named(case):
                fail_if_anything_fails(
                    path, value, is_escaped=case % 2 == 0, numbers=random.Random(case), folder=tmp_path
                )


def fail_if_anything_fails(path, value, *, is_escaped, numbers, folder):
    undamaged, neighbors = others()
    data = text(replaced(sample(), path, value), is_escaped=is_escaped)
    try:
        trace = reading(data)
    except KinetoscopeError:
        return
    if (same := identity(trace)) in _asked:
        return
    _asked.add(same)
    failed = (
        ask(questions(trace, data, undamaged, numbers))
        | ask(file_questions(data, folder))
        | ask(run_questions(trace, neighbors, numbers))
    )
    if failed:
        shown = "nothing" if value is MISSING else repr(value)[:200]
        raise AssertionError(f"{shown} at {path}: {', '.join(failed)}") from next(iter(failed.values()))
