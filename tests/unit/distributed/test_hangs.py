"""Simulated jobs that stand still: the culprit of each is known by construction, and no other rank is ever named."""

import pytest

from kinetoscope_tb.distributed.hangs.cycles import short_cycle
from kinetoscope_tb.distributed.hangs.evidence import evidence, rows
from kinetoscope_tb.distributed.hangs.sentences import sentence
from kinetoscope_tb.distributed.hangs.titles import instant, rank_ranges
from kinetoscope_tb.distributed.hangs.verdict import CANNOT_TELL, CULPRIT, NOTHING_OPEN, verdict
from kinetoscope_tb.reader.flight_recorder.files import DumpFolder, Problem
from kinetoscope_tb.reader.flight_recorder.schema import parse_dump
from support.flight_recorder import LAYOUTS, Call, Simulation, changed, stopped, swapped

BACKENDS = ("nccl", "gloo")
BY_NAME = {layout.name: layout for layout in LAYOUTS}
OF_TWO_GROUPS = [layout for layout in LAYOUTS if layout.name != "world"]


def simulated(layout, programs, backend, **options):
    ahead = 1 if backend == "gloo" else 3
    return Simulation(layout.groups, programs, backend, ahead).run(**options)


def judged(simulation, *, without=(), problems=(), **options):
    ranks = [rank for rank in simulation.devices if rank not in without]
    dumps = [parse_dump(simulation.dump(rank, **options), rank, f"dump_{rank}") for rank in ranks]
    answer = verdict(DumpFolder(tuple(dumps), tuple(problems)))
    assert sentence(answer).endswith(".")
    assert len(rows(answer)) >= len(dumps)
    assert all(evidence(answer))
    return answer


def named(answer):
    return answer.outcome, answer.kind, answer.culprits


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
class TestLayouts:
    """Each fault in each arrangement of groups."""

    @pytest.mark.parametrize("back", [1, 2, 3])
    def test_a_rank_that_never_comes(self, layout, backend, back):
        rank = len(layout.ranks) // 2
        program = layout.program(rank)
        answer = judged(simulated(layout, stopped(layout, rank, len(program) - back), backend))
        is_recorded = backend == "nccl" or not program[-back].parts
        assert named(answer) == ((CULPRIT, "absent", (rank,)) if is_recorded else (CANNOT_TELL, "several absent", ()))

    def test_a_rank_that_never_comes_where_rings_wrapped(self, layout, backend):
        rank = len(layout.ranks) // 2
        job = simulated(layout, stopped(layout, rank, len(layout.program(rank)) - 1), backend)
        assert named(judged(job, ring=5)) == (CULPRIT, "absent", (rank,))

    def test_a_rank_that_never_comes_while_an_innocent_one_left_no_dump(self, layout, backend):
        job = simulated(layout, stopped(layout, 0, len(layout.program(0)) - 1), backend)
        is_only_witness = layout.name == "pairs"
        answer = judged(job, without=[1])
        assert named(answer) == ((CANNOT_TELL, "nothing open", ()) if is_only_witness else (CULPRIT, "absent", (0,)))

    def test_a_rank_that_died(self, layout, backend):
        job = simulated(layout, stopped(layout, 1, len(layout.program(1)) - 1), backend)
        others_are_done = layout.name == "pairs"  # so that one of them may hold it up
        answer = judged(job, without=[1])
        assert named(answer) == (
            (CANNOT_TELL if others_are_done else CULPRIT),
            "no dump",
            (() if others_are_done else (1,)),
        )

    def test_a_rank_whose_dump_cannot_be_read_is_not_named(self, layout, backend):
        job = simulated(layout, stopped(layout, 1, len(layout.program(1)) - 1), backend)
        answer = judged(job, without=[1], problems=[Problem("dump_1", 1, "it ends too early")])
        assert named(answer) == (CANNOT_TELL, "no dump", ())
        assert answer.ranks == (1,)

    @pytest.mark.parametrize(
        ("aspect", "change"),
        [("operation", {"kind": "broadcast"}), ("dtype", {"dtype": "Double"}), ("size", {"elements": 7})],
    )
    def test_a_rank_that_calls_something_else(self, layout, backend, aspect, change):
        answer = judged(simulated(layout, changed(layout, [1], **change), backend))
        is_of_two = len(BY_NAME[layout.name].groups[layout.program(1)[-1].group]) == 2
        assert named(answer) == ((CANNOT_TELL, aspect, ()) if is_of_two else (CULPRIT, aspect, (1,)))

    def test_without_a_majority_nobody_is_named(self, layout, backend):
        group = layout.groups[layout.program(0)[-1].group]
        answer = judged(simulated(layout, changed(layout, group[: len(group) // 2], kind="barrier"), backend))
        assert named(answer) == (CANNOT_TELL, "operation", ())

    def test_a_healthy_job(self, layout, backend):
        answer = judged(simulated(layout, layout.programs(), backend))
        assert named(answer) == (NOTHING_OPEN, "nothing open", ())

    def test_a_slow_collective_in_which_all_are(self, layout, backend):
        answer = judged(simulated(layout, layout.programs(), backend, holds_last=True))
        assert (answer.outcome, answer.culprits) == (CANNOT_TELL, ())
        assert answer.kind in ("all there", "members")

    def test_a_dump_of_the_culprit_that_is_older_than_the_others(self, layout, backend):
        programs = stopped(layout, 1, len(layout.program(1)) - 1)
        late, early = simulated(layout, programs, backend), simulated(layout, programs, backend, rounds=3)
        dumps = [parse_dump((early if r == 1 else late).dump(r), r, "") for r in layout.ranks]
        assert named(verdict(DumpFolder(tuple(dumps)))) == (CANNOT_TELL, "no dump", ())

    def test_texts_of_json_and_numbers_of_pickles_give_the_same(self, layout, backend):
        job = simulated(layout, stopped(layout, 1, len(layout.program(1)) - 1), backend)
        assert sentence(judged(job)) == sentence(judged(job, text=True, version="2.4"))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("layout", OF_TWO_GROUPS, ids=lambda layout: layout.name)
def test_another_order_is_a_cycle(layout, backend):
    answer = judged(simulated(layout, swapped(layout, 1), backend))
    assert (answer.outcome, answer.kind) == (CULPRIT, "order")
    assert 1 in answer.culprits
    assert len(answer.culprits) == 2
    assert evidence(answer)[0].startswith("Rank 1 departs from the order in which it called them before")


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_a_device_that_begins_nothing_more(layout):
    answer = judged(simulated(layout, layout.programs(), "nccl", stuck=1))
    assert answer.culprits in ((1,), ())
    assert answer.kind == "not begun" or answer.outcome == CANNOT_TELL


@pytest.mark.parametrize("stop", [1, 2, 5, 7, 10, 15])
def test_a_stage_of_a_pipeline_that_stops_at_any_call(stop):
    layout = BY_NAME["pipeline"]
    for rank in layout.ranks:
        answer = judged(simulated(layout, stopped(layout, rank, min(stop, len(layout.program(rank)) - 1)), "nccl"))
        assert answer.culprits == (rank,)


@pytest.mark.parametrize("stop", [1, 2, 5, 7, 10, 15])
def test_a_stage_whose_sends_gloo_does_not_record_is_named_alone_or_not_at_all(stop):
    layout = BY_NAME["pipeline"]
    for rank in layout.ranks:
        answer = judged(simulated(layout, stopped(layout, rank, min(stop, len(layout.program(rank)) - 1)), "gloo"))
        assert answer.culprits in ((rank,), ())


def test_a_receive_without_a_send_and_a_send_without_a_receive():
    groups = {"0": (0, 1, 2, 3), "pp": (0, 1, 2, 3)}
    for own, others in (("recv", "send"), ("send", "recv")):
        ends = {0: [], 1: [Call("pp", "p2p", parts=((own, 0),))], 2: [Call("pp", "p2p", parts=((others, 3),))]}
        programs = {rank: [Call("0"), *calls] for rank, calls in {**ends, 3: []}.items()}
        programs[3].append(Call("pp", "p2p", parts=((own, 2),)))
        answer = judged(Simulation(groups, programs).run())
        assert named(answer) == (CULPRIT, "absent", (0,))
        assert sentence(answer).startswith(f"Rank 0 never came to the other end of {own} 1")


def test_a_batch_of_sends_and_receives_is_one_operation():
    groups = {"0": (0, 1), "pp": (0, 1)}
    programs = {r: [Call("pp", "p2p", parts=(("send", 1 - r), ("recv", 1 - r)))] * 3 for r in (0, 1)}
    assert judged(Simulation(groups, programs).run()).outcome == NOTHING_OPEN
    programs[1] = programs[1][:2]
    answer = judged(Simulation(groups, programs).run())
    assert answer.culprits == (1,)
    assert "batch 3 (send 0->1, recv 0<-1) of mesh_pp" in sentence(answer)


def test_groups_that_were_split_apart_under_one_name():
    groups = {"0": (0, 1, 2, 3), "half/0": (0, 1), "half/1": (2, 3)}
    programs = {rank: [Call("0"), *[Call(f"half/{rank // 2}")] * (5 if rank < 2 else 3)] for rank in range(4)}
    programs[3].pop()
    answer = judged(Simulation(groups, programs).run())
    assert named(answer) == (CULPRIT, "absent", (3,))
    assert "all_reduce 3 of mesh_half (ranks 2 and 3, 4 KiB)" in sentence(answer)


def test_groups_of_gloo_under_one_name_lead_to_no_wrong_name():
    groups = {"0": (0, 1, 2, 3), "half/0": (0, 1), "half/1": (2, 3)}
    for sizes in ((1024, 1024), (1024, 512)):
        calls = [[Call(f"half/{rank // 2}", elements=sizes[rank // 2])] * (5 if rank < 2 else 3) for rank in range(4)]
        programs = {rank: [Call("0"), *calls[rank]] for rank in range(4)}
        programs[3].pop()
        job = Simulation(groups, programs, "gloo", 1).run()
        values = [job.dump(rank) for rank in range(4)]
        for entry in (entry for value in values for entry in value["entries"]):
            entry["process_group"] = (entry["process_group"][0].split("/")[0], "undefined")
        answer = verdict(DumpFolder(tuple(parse_dump(value, rank, "") for rank, value in enumerate(values))))
        assert answer.culprits in ((), (3,))


def test_a_node_of_which_no_rank_left_a_dump():
    layout = BY_NAME["nested"]
    programs = {rank: layout.program(rank)[: 9 if rank in (2, 3) else None] for rank in layout.ranks}
    assert named(judged(simulated(layout, programs, "nccl"), without=[2, 3])) == (CULPRIT, "no dump", (2, 3))


def test_ranks_that_stop_in_the_same_collective_are_named_together():
    layout = BY_NAME["mesh"]
    programs = {rank: layout.program(rank)[: 11 if rank in (2, 5) else None] for rank in layout.ranks}
    assert judged(simulated(layout, programs, "nccl")).culprits == (2, 5)


def test_where_most_did_not_come_nobody_is_named():
    layout = BY_NAME["world"]
    programs = {rank: layout.program(rank)[: 7 if rank else None] for rank in layout.ranks}
    answer = judged(simulated(layout, programs, "nccl"))
    assert named(answer) == (CANNOT_TELL, "most absent", ())
    assert sentence(answer).startswith("Cannot tell: only rank 0 came to all_reduce 8 of default_pg")


def test_a_rank_behind_one_without_a_dump_may_hold_it_up():
    groups = {"0": (0, 1, 2), "a": (0, 1), "b": (1, 2)}
    programs = {0: [Call("0"), Call("a")], 1: [Call("0"), Call("b"), Call("a")], 2: [Call("0")]}
    answer = judged(Simulation(groups, programs, ahead=1).run(), without=[1])
    assert named(answer) == (CANNOT_TELL, "no dump", ())


def test_a_ring_that_lost_a_group_says_so():
    groups = {"0": (0, 1), "a": (1,), "b": (0, 1)}
    programs = {0: [Call("b"), Call("b")], 1: [Call("b"), *[Call("a")] * 9]}
    job = Simulation(groups, programs).run()
    answer = judged(job)
    assert answer.culprits == (1,)
    dumps = [job.dump(0), {**job.dump(1, ring=4), "pg_status": {}}]
    without_status = verdict(DumpFolder(tuple(parse_dump(value, rank, "") for rank, value in enumerate(dumps))))
    assert named(without_status) == (CANNOT_TELL, "no dump", ())
    assert "The ring of rank 1 wrapped" in " ".join(evidence(without_status))


def test_an_entry_that_cannot_be_read_is_not_taken_for_one_that_is_missing():
    layout = BY_NAME["world"]
    job = simulated(layout, layout.programs(), "nccl", holds_last=True)
    values = [job.dump(rank) for rank in layout.ranks]
    values[2]["entries"][-1]["collective_seq_id"] = "?"
    values[2]["pg_status"] = {}
    answer = verdict(DumpFolder(tuple(parse_dump(value, rank, "") for rank, value in enumerate(values))))
    assert answer.culprits == ()


def test_a_collective_that_ended_on_all_but_one_rank():
    layout = BY_NAME["world"]
    job = simulated(layout, layout.programs(), "nccl")
    values = [job.dump(rank) for rank in layout.ranks]
    for rank, value in enumerate(values):
        value["entries"][-1] |= {"state": "started", "time_discovered_completed_ns": None}
        if rank == 2:
            value["entries"][-2] |= {"state": "started", "time_discovered_completed_ns": None}
            value["entries"][-1] |= {"state": "scheduled", "time_discovered_started_ns": None}
    answer = verdict(DumpFolder(tuple(parse_dump(value, rank, "") for rank, value in enumerate(values))))
    assert named(answer) == (CULPRIT, "not finished", (2,))
    assert sentence(answer).startswith("Rank 2 did not finish all_reduce 7 of default_pg (4 KiB), as others did; ranks")


def test_what_gloo_gave_up_after_a_death_is_no_progress():
    layout = BY_NAME["world"]
    job = simulated(layout, stopped(layout, 1, 5), "gloo")
    values = {rank: job.dump(rank) for rank in layout.ranks}
    for rank in (0, 2, 3):
        values[rank]["entries"][-1]["retired"] = True
    for ranks, words in (
        ((0, 2, 3), "and there is none of rank 1."),
        ((0, 1, 2, 3), "which the dump of rank 1 lacks."),
    ):
        answer = verdict(DumpFolder(tuple(parse_dump(values[rank], rank, "") for rank in ranks)))
        assert named(answer) == (CANNOT_TELL, "nothing open", ())
        assert sentence(answer).endswith(words)


def test_cycles():
    assert short_cycle({}) == []
    assert short_cycle({1: {2}, 2: {3}}) == []
    assert short_cycle({3: {1}, 1: {2}, 2: {1}}) == [1, 2]
    assert short_cycle({5: {4}, 4: {3}, 3: {5}, 2: {5}}) == [3, 5, 4]
    assert short_cycle({n: {(n + 1) % 2000} for n in range(2000)}) == [*range(2000)]


def test_texts():
    assert [rank_ranges(ranks) for ranks in ([], [3], [2, 1], [5, 0, 1, 2])] == ["", "3", "1 and 2", "0–2 and 5"]
    assert rank_ranges(range(0, 40, 2)) == "0, 2, 4, 6, 8, 10, 12, 14 … (20 in all)"
    assert instant(1_795_650_573_505_792_720) == "2026-11-25 23:49:33 UTC"
    assert (instant(0), instant(-5), instant(1 << 63)) == ("", "", "")
