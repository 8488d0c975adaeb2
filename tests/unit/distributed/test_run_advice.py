"""The sentence that says who is slow, or that nobody is."""

import re

import pytest

from kinetoscope_tb.distributed.imbalance.collective_waits import collective_waits
from kinetoscope_tb.distributed.imbalance.late_rank import CommunicationOfOthers, evidence, of_saving, title
from kinetoscope_tb.distributed.run import Member, Ranks
from kinetoscope_tb.distributed.summary import summary
from kinetoscope_tb.reader import read
from kinetoscope_tb.views import RUN_VIEWS, VIEWS
from support.real_traces import FOLDER, MISSING
from support.simulated import Truth, run_of, simulated, summary_of, trace_of


def advice_of(run):
    return RUN_VIEWS["run_advice"].run(run).rows(named=True)


def test_the_straggler_is_named_with_how_much_how_often_and_who_waits():
    run = run_of(simulated(Truth(late={(2, None): 5_000_000}, noise=0.0, jitter_ns=0)))
    (row,) = advice_of(run)
    assert (row["rule"], row["view"], row["filter"], row["confidence"]) == ("straggler", "stragglers", "rank2", "high")
    assert row["title"] == "Rank 2 computes 5 ms longer in each step: 5 of the 6.68 ms of communication wait for it."
    assert row["evidence"] == (
        "Without waiting it takes 16.7 ms in each step, the others typically 11.7 ms; all of the difference is "
        "computation. In the typical step noise alone stays below 334 µs. It runs as many kernels of the same size as "
        "the others, on inputs as large: its device is slower."
    )
    assert row["saving_ns"] == 5_000_000
    assert abs(row["saving_frac"] - 5 / 16.678) < 1e-3


BUCKETED = {  # a rank that computes 22 ms longer, of which the others wait for 17: their transfers were hidden before
    "rank": 2,
    "worker": "rank2",
    "host": None,
    "device": "H100",
    "ranks": 4,
    "cause": "computation",
    "part_ns": 22_200_000,
    "steps": 5,
    "slow_steps": 5,
    "cost_ns": 17_800_000,
    "without_waiting_ns": 88_500_000,
    "others_ns": 70_700_000,
    "late_own_ns": 88_500_000,
    "late_excess_ns": 17_400_000,
    "late_steps": ["1", "2", "3", "4", "5"],
    "threshold_ns": 1_770_000,
    "launches_frac": None,
}


def test_numbers_of_a_late_rank_agree_with_those_of_the_table_and_of_the_waits():
    communication = CommunicationOfOthers(24_400_000, 17_300_000)
    assert title(BUCKETED, communication) == (
        "Rank 2 computes 22.2 ms longer in each step: 17.3 of the 24.4 ms of communication wait for it."
    )
    assert evidence(BUCKETED).startswith(
        "Without waiting it takes 88.5 ms in each step, the others typically 70.7 ms; all of the difference is "
        "computation; other parts take 4.4 ms less. "
    )
    some = BUCKETED | {"slow_steps": 3, "late_steps": ["1", "2", "3"], "part_ns": 17_500_000}
    assert " in these steps (1, 2, 3), the others typically 71.1 ms; all of the difference is computation. " in (
        evidence(some)
    )


@pytest.mark.parametrize(
    ("saved_ns", "exposed_ns", "words"),
    [
        (22_200_000, 24_400_000, " 4.9 of the 22.2 ms saved is moving data that computation could hide then."),
        (17_300_000, 24_400_000, ""),
        (25_000_000, 24_400_000, ""),  # more than all communication: something else is saved
        (22_200_000, 17_000_000, ""),  # the title tells of no part of the communication
        (None, 24_400_000, ""),
    ],
)
def test_what_a_late_rank_saves_besides_waits_is_said(saved_ns, exposed_ns, words):
    assert of_saving(BUCKETED, saved_ns, CommunicationOfOthers(exposed_ns, 17_300_000)) == words


def test_of_two_ranks_the_other_one_is_neither_typical_nor_several():
    (row,) = advice_of(run_of(simulated(Truth(ranks=2, late={(1, None): 5_000_000}, noise=0.0, jitter_ns=0))))
    assert row["evidence"].startswith("Without waiting it takes 16.7 ms in each step, the other rank 11.7 ms; ")
    assert "It runs as many kernels of the same size as the other rank, " in row["evidence"]
    (row,) = advice_of(run_of(simulated(Truth(ranks=2, noise=0.0, jitter_ns=0))))
    assert " exceeds the other rank: typically by 0 ns per step." in row["evidence"]


@pytest.mark.parametrize(("late_steps", "listed"), [(4, "(1, 3, 5, 7)"), (6, "(1, 3, 5, …)")])
def test_up_to_five_late_steps_are_all_listed(late_steps, listed):
    late = {(1, 1 + 2 * i): 5_000_000 for i in range(late_steps)}
    (row,) = advice_of(run_of(simulated(Truth(ranks=2, steps=16, late=late, noise=0.0, jitter_ns=0))))
    assert f" in these steps {listed}, the other rank " in row["evidence"]
    assert "those of the other rank, and look for other jobs" in row["action"]


def test_of_two_ranks_the_other_one_waited_for_the_last():
    (row,) = advice_of(run_of(simulated(Truth(ranks=2, steps=1, late={(1, None): 5_000_000}, jitter_ns=0, noise=0.0))))
    assert "; the other rank waited " in row["title"]


def test_of_three_ranks_two_late_ones_are_compared_with_the_other():
    late = {(1, None): 5_000_000, (2, None): 4_000_000}
    first, _ = advice_of(run_of(simulated(Truth(ranks=3, late=late, noise=0.0, jitter_ns=0))))
    assert "rank 2 is late, too, and both as fast as the other rank save" in first["title"]


def test_work_that_other_ranks_can_take_over_saves_what_spreading_it_does():
    truth = Truth(late={(2, None): 8_000_000}, by="more work", noise=0.0, jitter_ns=0)
    (row,) = advice_of(run_of(simulated(truth)))
    assert row["saving_ns"] == 6_000_000  # each of the four ranks then computes 2 ms of it
    assert row["evidence"].endswith("it has more work. Spread evenly over all 4 ranks, a part of it stays on each.")
    late = {(1, None): 8_000_000, (2, None): 8_000_000}
    first, *_ = advice_of(run_of(simulated(Truth(late=late, by="more work", noise=0.0, jitter_ns=0))))
    assert first["saving_ns"] == 4_000_000


def test_of_two_late_ranks_either_is_bounded_by_the_other_and_both_are_named():
    late = {(1, None): 5_000_000, (3, None): 4_000_000}
    first, second = advice_of(run_of(simulated(Truth(late=late, noise=0.0, jitter_ns=0))))
    assert (first["filter"], second["filter"]) == ("rank1", "rank3")
    assert first["title"].endswith("; rank 3 is late, too, and both as fast as the others save 5 ms per step.")
    assert first["evidence"].endswith("As fast as the others, rank 1 alone saves 1 ms per step.")
    assert (first["saving_ns"], second["saving_ns"]) == (5_000_000, 0)


def test_a_rank_saves_no_more_than_it_takes_longer(monkeypatch):
    module = "kinetoscope_tb.views.distributed.run_advice.savings_at_pace_of_others"
    monkeypatch.setattr(module, lambda _, choices: [50_000_000] * len(choices))
    (row,) = advice_of(run_of(simulated(Truth(late={(2, None): 5_000_000}, noise=0.0, jitter_ns=0))))
    assert row["saving_ns"] == 5_000_000


def test_ranks_that_are_late_in_turns_save_together_what_they_save_alone():
    late = {(rank, step): 4_000_000 for rank in (0, 1, 2, 3, 4) for step in range(rank, 20, 5)}
    first, *others = advice_of(run_of(simulated(Truth(ranks=16, steps=20, late=late, noise=0.0, jitter_ns=0))))
    assert first["saving_ns"] == 4_000_000
    assert "all 5 as fast as the others save 4 ms per step" in first["title"]
    assert re.search(r"; ranks \d, \d, \d and 1 more are late, too, ", first["title"])
    assert [row["saving_ns"] for row in others] == [800_000, 800_000]


def test_a_straggler_that_is_one_in_each_recording_is_said_to_be():
    spans = [simulated(Truth(ranks=3, steps=5, seed=seed, late={(1, None): 4_000_000})) for seed in range(3)]
    members = [Member(f"rank{r}", str(n), n, summary_of(made, r)) for r in range(3) for n, made in enumerate(spans)]
    (row,) = advice_of(Ranks("r", tuple(members)))
    assert row["filter"] == "rank1"
    assert " longer in each step: " in row["title"]
    assert "This holds in 3 of 3 traces." in row["evidence"]


def test_a_straggler_of_some_recordings_is_said_to_be_one_only_there():
    lateness = ({(1, None): 8_000_000}, {(1, None): 8_000_000}, {})
    spans = [simulated(Truth(ranks=3, steps=5, seed=seed, late=late)) for seed, late in enumerate(lateness)]
    members = [Member(f"rank{r}", str(n), n, summary_of(made, r)) for r in range(3) for n, made in enumerate(spans)]
    (row,) = advice_of(Ranks("r", tuple(members)))
    assert row["filter"] == "rank1"
    assert row["evidence"].startswith("Only in span 0 and 1, not in 2. Without waiting it takes ")


def test_a_single_slow_step_is_named_as_one_with_low_confidence():
    (row,) = advice_of(run_of(simulated(Truth(ranks=8, steps=10, late={(3, 4): 6_000_000}))))
    assert (row["rule"], row["confidence"], row["filter"]) == ("slow_at_times", "low", "rank3")
    assert re.match(
        r"Rank 3 computes 6\.\d+ ms longer in step 4, one of 10: on average [\d.]+ µs of the ", row["title"]
    )


def test_a_recording_alone_says_that_it_waits_if_equal_calls_are_much_faster():
    late = {(1, step): 30_000_000 for step in (1, 3, 4)}
    trace = trace_of(simulated(Truth(ranks=2, late=late, bytes=256 << 20)), 0).build()
    row = VIEWS["advice"].run(trace).filter(rule="communication").row(0, named=True)
    assert "At least " in row["evidence"]
    assert row["action"].startswith("Find the rank that comes last")


def test_ranks_that_wait_in_turns_are_no_all_clear():
    late = {(step % 2, step): 4_000_000 for step in range(10)}
    (row,) = advice_of(run_of(simulated(Truth(ranks=2, steps=10, noise=0.02, late=late))))
    assert (row["rule"], row["confidence"]) == ("no_straggler", "cannot_tell")
    assert row["title"].startswith("Ranks wait for each other in turns, ")


@pytest.mark.parametrize("absent", [(3,), ()])
def test_a_rank_whose_trace_is_unreadable_may_be_slow_too(absent):
    run = run_of(simulated(Truth(ranks=4, missing=absent)))
    members = [*run.members[:2], Member("rank2", "1", 0, None, "this isn't JSON. Copy it again."), *run.members[3:]]
    (row,) = advice_of(Ranks("r", tuple(members)))
    assert (row["title"], row["confidence"]) == ("No recorded rank is slower than noise explains.", "medium")
    why = "Rank 2 may be slow too; its trace can't be read: this isn't JSON. Copy it again."
    assert row["evidence"].endswith(f"{' Rank 3 has no trace and may be slow too.' if absent else ''} {why}")


def test_a_rank_one_of_whose_traces_is_readable_is_compared():
    run = run_of(simulated(Truth(ranks=4)))
    unread = Member("rank2", "2", 1, None, "this isn't JSON.")
    (row,) = advice_of(Ranks("r", (*run.members, unread)))
    assert (row["title"], row["confidence"]) == ("No rank is slower than noise explains.", "high")


def test_missing_ranks_and_too_few_steps_are_said():
    (row,) = advice_of(run_of(simulated(Truth(ranks=4, missing=(3,)))))
    assert row["rule"] == "no_straggler"
    assert row["evidence"].endswith("Rank 3 has no trace and may be slow too.")
    assert row["title"] == "No recorded rank is slower than noise explains."
    assert row["confidence"] == "medium"
    (unknown,) = advice_of(run_of(simulated(Truth(ranks=3, steps=2, missing=(2,)))))
    assert (unknown["rule"], unknown["confidence"]) == ("unknown", "cannot_tell")
    assert unknown["evidence"].startswith("2 ranks recorded at most 2 complete steps each. ")


def test_a_single_step_says_who_came_last_how_often():
    (row,) = advice_of(run_of(simulated(Truth(ranks=4, steps=1, late={(2, None): 5_000_000}, jitter_ns=0, noise=0.0))))
    assert (row["rule"], row["confidence"], row["view"], row["filter"]) == ("last_rank", "low", "rank_waits", "rank2")
    assert row["title"].startswith("Rank 2 was last at ")
    assert row["title"].endswith("the others waited 15 ms in total. It computes 5 ms longer.")
    assert "Each rank recorded at most 1 complete step." in row["evidence"]
    assert row["saving_ns"] is None


def test_who_was_last_by_less_than_the_ends_differ_is_not_counted():
    """Ranks come 0.2 ms apart to some of the collectives, of which the ends differ by about as much."""
    groups = tuple((f"{i}", (0, 1)) for i in range(10))
    late = {(1, None): 500_000}
    truth = Truth(ranks=2, steps=1, groups=groups, late=late, jitter_ns=200_000, noise=0.03, compute_ns=5_000_000)
    run = run_of(simulated(truth))
    rows = collective_waits(run)
    noise = rows["noise_ns"].max()
    assert noise > 200_000
    assert (rows["last"].is_null() == (rows["max_wait_ns"] <= noise)).all()
    assert 0 < rows["last"].null_count() < rows.height
    (row,) = advice_of(run)
    assert f"At {rows['last'].null_count()} other collectives it is unclear who was last" in row["evidence"]
    counted = RUN_VIEWS["rank_waits"].run(run).filter("is_last").height
    assert counted == rows.height - rows["last"].null_count()


def test_a_single_step_without_waits_names_nobody():
    (row,) = advice_of(run_of(simulated(Truth(ranks=4, steps=1, noise=0.0))))
    assert (row["rule"], row["confidence"], row["filter"]) == ("no_last_rank", "low", None)
    assert row["title"].startswith("No rank held the others up for long: ")


@pytest.mark.skipif(not (FOLDER / "runs/dlrm_8gpu_nccl").is_dir(), reason=MISSING)
def test_who_came_last_in_a_real_step_of_eight_ranks():
    folder = sorted((FOLDER / "runs/dlrm_8gpu_nccl").glob("*.json"))
    (row,) = advice_of(Ranks("dlrm", tuple(Member(f"rank{i}", "1", 0, summary(read(p))) for i, p in enumerate(folder))))
    assert row["title"] == (
        "Rank 7 was last at 5 of 8 collectives; the others waited 35.5 ms in total. It began the step 6.22 ms after the "
        "first rank, the others typically 1.69 ms."
    )
    assert row["action"].startswith("What made it late lies before the step")
    assert row["evidence"].startswith("That is 75.9 % of all waiting, 26.4 ms of it at one all_to_all.")


def test_nothing_is_said_of_a_run_of_which_most_ranks_are_absent():
    (row,) = advice_of(run_of(simulated(Truth(ranks=8, missing=(2, 3, 4, 5, 6, 7)))))
    assert (row["rule"], row["confidence"]) == ("unknown", "cannot_tell")
    assert row["evidence"].endswith("Ranks 2-7 have no trace and may be slow too.")


def test_a_slow_link_is_named_as_such():
    groups = tuple((f"dp{n}", (2 * n, 2 * n + 1)) for n in range(8))
    (row,) = advice_of(run_of(simulated(Truth(ranks=16, groups=groups, slow={6: 2.0}))))
    assert (row["rule"], row["view"], row["saving_ns"]) == ("slow_link", "links", None)
    assert "2 times as long as comparable links" in row["title"]
    assert "dp6" in row["filter"]


@pytest.mark.slow  # many runs
@pytest.mark.parametrize("ranks", [2, 8])
def test_noise_alone_names_nobody(ranks):
    seeds = range(60)
    rules = [
        advice_of(run_of(simulated(Truth(ranks=ranks, steps=6, noise=0.03, seed=seed))))[0]["rule"] for seed in seeds
    ]
    assert rules.count("straggler") <= 3  # one run of a hundred, by the threshold
    assert rules.count("no_straggler") >= 50


def test_a_slow_rank_that_noise_could_explain_is_no_all_clear():
    runs = [
        run_of(simulated(Truth(ranks=2, steps=6, noise=0.25, late={(1, None): 3_000_000}, seed=s))) for s in range(20)
    ]
    rows = [row for run in runs if (row := advice_of(run)[0])["rule"] == "no_straggler"]
    hidden = [row for row in rows if row["confidence"] == "cannot_tell"]
    assert len(hidden) > len(rows) / 2
    assert hidden[0]["title"] in {f"Steps vary too much to tell whether rank {rank} is slow." for rank in range(2)}
    assert hidden[0]["action"] == "Record more steps, on machines that do nothing else."
