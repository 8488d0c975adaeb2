"""Ranks that are late in turn: communication waits for them, and what takes them longer then is named."""

from dataclasses import replace

import polars as pl
import pytest

from kinetoscope_tb.advice.communication import EVEN_OUT, WAITING
from kinetoscope_tb.advice.model import Culprit, Exposure, KindOfCalls
from kinetoscope_tb.answer.late_cause import less_there
from kinetoscope_tb.answer.late_in_turn import shared_work, turns
from kinetoscope_tb.answer.model import Answer, Claim
from kinetoscope_tb.answer.run import with_ranks, workers_behind
from kinetoscope_tb.answer.step_work import step_work
from kinetoscope_tb.views import EVERY_VIEW
from support.build import TraceBuilder
from support.machine import MS

DECODE, COLLATE = "data.py(30): decode", "data.py(44): collate"
STEPS = 6


def frames(own_ms, wait_ms=5, transfer_ms=(1,) * STEPS, rule="no_straggler", calls="all_reduce", saving_ms=None):
    """The views of a run whose ranks take so many ms in each step."""
    rows = [
        {"worker": f"rank{rank}", "step": str(step), "is_complete": True, "total_ns": 20 * MS}
        | {
            "without_waiting_ns": ms * MS,
            "exposed_wait_ns": wait_ms * MS,
            "exposed_transfer_ns": transfer_ms[step] * MS,
        }
        for rank, times in enumerate(own_ms)
        for step, ms in enumerate(times)
    ]
    late = None if rule == "no_straggler" else "rank1"
    said = {"rule": rule, "title": "Ranks.", "evidence": "", "action": "Record more.", "confidence": "cannot_tell"}
    said |= {"view": "stragglers", "filter": late, "saving_ns": None if saving_ms is None else saving_ms * MS}
    moved = {"operation": calls, "total_ns": 60 * MS, "is_transfer_known": True, "message_bytes": 1 << 26}
    of_view = {"rank_steps": rows, "run_advice": [said], "communication": [{**moved, "mean_transfer_ns": 1 * MS}]}
    of_view["stragglers"] = [
        {"worker": f"rank{rank}", "rank": rank, "verdict": "straggler" if f"rank{rank}" == late else "waits"}
        for rank in range(len(own_ms))
    ]
    return {view: pl.DataFrame(part, schema=EVERY_VIEW[view].table.schema()) for view, part in of_view.items()}


IN_TURN = [[15 if step % 3 == rank else 10 for step in range(STEPS)] for rank in range(3)]


def trace(late):
    """Steps in which the host collates, and decodes for 5 ms in some."""
    builder = TraceBuilder()
    for step in range(STEPS):
        at = step * 20 * MS
        builder.step(step, at, 20 * MS).op("aten::mm", at, 1000).python(COLLATE, at, 6 * MS)
        if step in late:
            builder.python(DECODE, at + 7 * MS, 5 * MS)
    return builder.build()


def answer(worker, late=(), kind="all_reduce"):
    exposure = Exposure("", KindOfCalls(kind, "100 %", "1 call per step", "", None), None, "")
    claim = Claim(
        *("communication", "recording", "Exposed.", "", "Communicate less.", 6 * MS, 0.3, "medium", "high", "medium"),
        *(Culprit(), "steps", ""),
        exposure=exposure,
    )
    made = Answer(rows={}, environment="", steps=STEPS, step_noun="step", events=0, window_ns=0, claims=(claim,))
    return replace(made, worker=worker, step_work=step_work(trace(late)))


def test_ranks_are_late_in_turn_if_several_are_late_in_some_steps():
    rows = frames(IN_TURN)["rank_steps"].rows(named=True)
    assert {worker: [*late] for worker, late in turns(rows).late_ns.items()} == {
        "rank0": ["0", "3"],
        "rank1": ["1", "4"],
        "rank2": ["2", "5"],
    }
    for times in (IN_TURN[:1] + [[10] * STEPS] * 2, [[10] * STEPS] * 3):
        assert not turns(frames(times)["rank_steps"].rows(named=True))


def test_the_function_that_late_ranks_share_is_named_with_its_remedy():
    of_run = frames(IN_TURN)
    assert workers_behind(of_run, "rank0")[:3] == ["rank0", "rank1", "rank2"]
    others = [answer(f"rank{rank}", (rank, rank + 3)) for rank in (1, 2)]
    claims = with_ranks(answer("rank0", (0, 3)), of_run, EVERY_VIEW, 3, others).claims
    said = {claim.id: claim for claim in claims}
    assert said["communication"].title == (
        "Exposed. 5 ms of it per step is waiting for ranks that are late in turn, when `decode (data.py:30)` takes them longer."
    )
    assert said["communication"].culprit.function == said["no_straggler"].culprit.function == DECODE
    assert said["communication"].action == said["no_straggler"].action == less_there("decode (data.py:30)")
    assert "rank1 is late in 2 of 6 steps. In these steps `decode (data.py:30)` takes 5 ms, else 0 ns." in (
        said["no_straggler"].evidence
    )


def test_no_function_is_named_that_only_one_of_the_late_ranks_runs_then():
    of_run, others = frames(IN_TURN), [answer("rank1", (1, 4)), answer("rank2")]
    assert shared_work(turns(of_run["rank_steps"].rows(named=True)), [answer("rank0"), *others]) is None
    claim = with_ranks(answer("rank0"), of_run, EVERY_VIEW, 3, others).claims[0]
    assert claim.title == "Exposed. 5 ms of it per step is waiting for ranks that are late in turn."
    assert claim.action == EVEN_OUT


@pytest.mark.parametrize(
    ("fields", "action"),
    [
        ({"own_ms": [[10] * STEPS] * 3}, WAITING),
        ({"own_ms": IN_TURN, "wait_ms": 0.5}, "Communicate less."),
        ({"own_ms": IN_TURN, "calls": "barrier"}, "Communicate less."),
        ({"own_ms": IN_TURN, "calls": "recv"}, "Communicate less."),
    ],
    ids=["nobody", "little", "barrier", "pipeline"],
)
def test_what_is_done_about_communication_depends_on_whether_it_is_mostly_waiting(fields, action):
    of_run = frames(**fields)
    claim = with_ranks(answer("rank0", kind=fields.get("calls", "all_reduce")), of_run, EVERY_VIEW, 3).claims[0]
    assert claim.action == action


@pytest.mark.parametrize(
    ("saving_ms", "words"), [(4, ""), (2, " Then: Communicate less."), (1, None)], ids=["most", "part", "little"]
)
def test_communication_part_of_which_waits_for_a_slow_rank_says_so(saving_ms, words):
    of_run = frames([[10] * STEPS, [14] * STEPS], rule="straggler", saving_ms=saving_ms)
    claim = with_ranks(answer("rank0"), of_run, EVERY_VIEW, 2).claims[-1]
    first = "Make rank1 as fast as the other ranks first. On rank1: Record more."
    assert claim.action == ("Communicate less." if words is None else f"{first}{words}")
    assert ("is waiting for rank1." in claim.title) == (words is not None)


@pytest.mark.parametrize(
    ("saving_ms", "transfer_ms", "left_ms"),
    [(4, 4, 2), (4, 1.5, 1.5), (5.5, 4, None), (7, 4, None)],
    ids=["left", "moving data", "little", "nothing"],
)
def test_communication_saves_what_a_late_rank_leaves_of_it(saving_ms, transfer_ms, left_ms):
    """A late rank may save more than the others wait: they hide more of moving data then."""
    of_run = frames([[10] * STEPS, [14] * STEPS], 3, [transfer_ms] * STEPS, "straggler", saving_ms=saving_ms)
    late, claim = with_ranks(replace(answer("rank0"), uses_device=True), of_run, EVERY_VIEW, 2).claims
    assert late.saving_ns == saving_ms * MS
    assert claim.title.startswith("Exposed. 3 ms of it per step is waiting for rank1.")
    assert f"Waiting for other ranks takes 3 ms of it, moving data {transfer_ms} ms." in claim.evidence
    assert claim.saving_ns == (None if left_ms is None else left_ms * MS)
    assert (" Then: " in claim.action) == (left_ms is not None)
    assert (f"about {left_ms} ms is left" in claim.title) == (left_ms is not None)
    of_host = with_ranks(answer("rank0"), of_run, EVERY_VIEW, 2).claims[1]
    assert (of_host.saving_ns, " Then: " in of_host.action) == (None, False)


def test_steps_in_which_moving_data_takes_much_longer_are_named():
    of_run = frames([[10] * STEPS] * 3, wait_ms=0, transfer_ms=(1, 9, 1, 9, 1, 1))
    claim = with_ranks(answer("rank0"), of_run, EVERY_VIEW, 3).claims[0]
    assert claim.title == "Exposed. Most of it is in 2 of 6 steps (1, 3)."
    assert claim.evidence.endswith(" There moving data takes 9 ms per step, else 1 ms.")
    assert claim.action.startswith("See whether these steps move more data")


@pytest.mark.parametrize(
    ("wait_ms", "transfer_ms"),
    [(0, (3, 5, 3, 5, 3, 3)), (9, (1, 9, 1, 9, 1, 1)), (5, (0,) * STEPS)],
    ids=["alike", "waiting", "nothing"],
)
def test_no_steps_are_named_where_moving_data_takes_most_of_the_time_in_none(wait_ms, transfer_ms):
    of_run = frames([[10] * STEPS] * 3, wait_ms=wait_ms, transfer_ms=transfer_ms)
    assert with_ranks(answer("rank0"), of_run, EVERY_VIEW, 3).claims[0].title == "Exposed."
