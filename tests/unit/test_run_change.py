"""What changed between two runs of several ranks: that they wait for a rank comes before that communication grew."""

import pytest

from kinetoscope_tb.answer.recording import recording_answer
from kinetoscope_tb.answer.run_change import run_side, with_runs
from kinetoscope_tb.compare.changes import changes
from kinetoscope_tb.engine.answers import cached_frames
from kinetoscope_tb.views import EVERY_VIEW
from support.simulated import Truth, run_of, simulated, trace_of

LATE = {"late": {(2, None): 5_000_000}, "by": "data loading"}


def compared(base, new, workers=("rank0", "rank0")):
    """The changes of the first rank, with those of the run."""
    made = [simulated(Truth(noise=0.0, jitter_ns=500, **truth)) for truth in (base, new)]
    result = changes(EVERY_VIEW, *(trace_of(one, 0).build() for one in made))
    sides = [
        run_side(worker, run_of(one), EVERY_VIEW, lambda _: None) for worker, one in zip(workers, made, strict=True)
    ]
    return with_runs(result, *sides)


def sentences(result):
    """What the headline says of the run."""
    return result.headline[result.headline.index("Ranks wait") :]


def test_that_ranks_wait_for_one_is_said_before_that_communication_grew():
    result = compared({}, LATE)
    assert sentences(result).startswith("Ranks wait longer for rank 2: ")
    assert " → 5 ms of each step; moving data takes 1.68 ms in both. Rank 2 loads data 5 ms longer" in result.headline
    assert result.headline.endswith("in each step: 5 of the 6.68 ms of communication wait for it.")
    first = result.frame.row(0, named=True)
    assert (first["kind"], first["name"], first["verdict"]) == (
        *("communication", "waiting for other ranks", "beyond noise"),
    )
    assert first["delta_ns"] == pytest.approx(5_000_000, rel=0.01)
    communication = result.frame.filter(kind="category", name="Communication")["delta_ns"][0]
    parts = result.frame.filter(kind="communication")["delta_ns"].sum()
    assert parts == pytest.approx(communication, rel=0.01)


def test_that_they_wait_no_longer_is_said_with_why_they_did():
    result = compared(LATE, {})
    assert sentences(result).startswith("Ranks wait less for rank 2: 5 ms → ")
    assert " In the base: Rank 2 loads data 5 ms longer in each step" in result.headline


def test_ranks_that_wait_for_a_late_one_are_meant_where_that_one_is_compared():
    result = compared({}, LATE, ("rank2", "rank2"))
    assert sentences(result).startswith("Ranks wait longer for rank 2: ")
    assert "waiting for other ranks" not in result.frame["name"]


def test_transfers_that_take_longer_are_no_waits():
    result = compared({}, {"bytes": 256 << 20})
    assert "Moving data between ranks takes 1.68 ms → 6.71 ms of each step; they wait " in result.headline
    assert result.frame.row(0, named=True)["name"] == "moving data"


def test_nothing_is_said_of_ranks_where_nothing_changed():
    result = compared({}, {"seed": 1})
    assert "rank" not in result.headline


def test_the_code_of_a_late_rank_is_that_of_its_own_recording():
    asked = []

    def answer_of(worker):
        asked.append(worker)
        return recording_answer(trace_of(simulated(Truth(noise=0.0, **LATE)), 2).build(), EVERY_VIEW, cached_frames)

    run_side("rank0", run_of(simulated(Truth(noise=0.0, **LATE))), EVERY_VIEW, answer_of)
    assert asked == ["rank2", "rank0"]
