"""Another thread that runs Python, while the main thread would."""

import pytest

from kinetoscope_tb.advice.advice import advice
from kinetoscope_tb.advice.facts import Facts
from support.machine import A100, MS, Machine

PARSE = "prefetch.py(31): parse"
LOCK = "<built-in method acquire of _thread.lock object at 0x7f00>"


def first(frames, own="train.py(9): log", device=A100, is_traced=True, cores=None):
    """The claim about the host of a loop whose main thread is in `own` for 10 of 14 ms, another thread in `frames`."""
    machine = Machine(device)
    if is_traced:
        machine.builder.python("<built-in function len>", 50 * MS, 1000, thread=7)
    if cores is not None:
        machine.builder.event("", "process cpu", 0, None, ph="C", cores=cores)
    for depth, frame in enumerate(frames):
        machine.builder.python(frame, depth, 600 * MS - 2 * depth, thread=7)

    def step(_):
        if device:
            machine.kernel(4 * MS)
            machine.wait()
        else:
            machine.op("aten::mm", lambda: machine.work(4 * MS))
        machine.function(own, lambda: machine.work(10 * MS))

    return next(row for row in advice(Facts(machine.steps(step, 40))) if row.rule == "host_bound")


@pytest.mark.parametrize("device", [A100, None], ids=["GPU", "CPU"])
@pytest.mark.parametrize("frames", [(PARSE,), (PARSE, "<built-in function sum>")], ids=["Python", "C that keeps it"])
def test_the_thread_that_holds_the_lock_is_named_and_not_what_waits_for_it(frames, device):
    row = first(frames, device=device)
    assert "competes with `parse (prefetch.py:31)` of another thread for Python's lock (GIL)" in row.title
    assert "For 100 % of that time another thread runs Python" in row.evidence
    assert row.action.startswith("Run it in another process")
    assert row.culprit.function == PARSE


@pytest.mark.parametrize(
    "frames",
    [
        (),
        (PARSE, LOCK),
        (PARSE, "<built-in method read of _io.BufferedReader object at 0x7f00>"),
    ],
    ids=["no other thread", "it waits", "C that releases it"],
)
def test_a_thread_that_may_not_hold_the_lock_is_not_blamed(frames):
    row = first(frames)
    assert "GIL" not in row.title + row.evidence + row.action
    assert row.culprit.function == "train.py(9): log"


def test_what_the_main_thread_waits_for_is_no_competitor():
    assert "GIL" not in first((PARSE,), own=LOCK).title


@pytest.mark.parametrize("cores", [None, 0.3], ids=["no counters", "a third of a core"])
def test_a_thread_that_is_not_traced_may_sleep_in_its_function(cores):
    """The profiler notes in which function it is when recording begins, and nothing after that."""
    row = first((PARSE,), device=None, is_traced=False, cores=cores)
    assert "GIL" not in row.title + row.evidence + row.action


def test_a_thread_that_is_not_traced_runs_if_the_process_uses_a_core():
    assert "GIL" in first((PARSE,), device=None, is_traced=False, cores=1.0).title
