"""What only several files of a run can tell."""

import pytest

from kinetoscope_tb.diagnostics.verification import run_problems, verdict
from kinetoscope_tb.discovery import TraceFile
from kinetoscope_tb.errors import TraceError
from support.build import TraceBuilder

S = 10**9


def a_verdict(rank, span="5", size=2, base_ns=1_700_000_000 * S):
    metadata = {} if rank is None else {"rank": rank, "world_size": size}
    trace = TraceBuilder(base_ns, distributedInfo=metadata).op("aten::mm", 0, S).window(0, S).build()
    file = TraceFile("job", f"rank{rank}", span, "path", "path", 1, None)
    return verdict(file, trace)


def test_a_run_with_every_rank_has_no_problem():
    assert run_problems([a_verdict(0), a_verdict(1)]) == []
    assert run_problems([a_verdict(None)]) == []


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        ([a_verdict(1, size=4), a_verdict(2, size=4)], "Span 5: of 4 ranks 2 left no trace: rank 0, rank 3."),
        ([a_verdict(0), a_verdict(0), a_verdict(1)], "Span 5: more than one file claims to be rank 0."),
        (
            [a_verdict(0, size=2), a_verdict(1, size=4)],
            "The files disagree on the number of ranks (2, 4): traces of different jobs are in one run.",
        ),
        (
            [a_verdict(0), a_verdict(1, base_ns=1_700_000_004 * S)],
            "Span 5: rank1 begins 3 s after rank0 ended: their clocks differ, or they didn't record the same steps.",
        ),
    ],
    ids=["missing", "twice", "two jobs", "apart"],
)
def test_what_is_wrong_with_a_run_is_said(verdicts, words):
    assert run_problems(verdicts) == [words]


def test_spans_that_are_times_are_matched_by_their_order():
    first, second = ("1733769848514071115", "1733769849514071115"), ("1733769848514071999", "1733769849514071999")
    spans = [a_verdict(rank, span) for rank, both in ((0, first), (1, second)) for span in both]
    assert run_problems(spans) == []


def test_the_worst_of_a_file_is_its_state():
    assert a_verdict(0).state == "ok"
    unreadable = verdict(a_verdict(0).file, TraceError("path", "It is broken."))
    assert (unreadable.state, unreadable.problem) == ("unreadable", "path: It is broken.")
