"""The one answer: certainty in two parts, who it is, what can't be said, and a run that begins with its slow rank."""

import threading
from dataclasses import replace

import polars as pl
import pytest

from kinetoscope_tb.advice.advice import advice
from kinetoscope_tb.advice.communication import RECORD_ALL
from kinetoscope_tb.advice.facts import Facts
from kinetoscope_tb.advice.model import Advice, Culprit, Exposure, KindOfCalls
from kinetoscope_tb.advice.witnesses import examine
from kinetoscope_tb.answer.pace_of_others import PaceOfOthers
from kinetoscope_tb.answer.recording import recording_answer, rows_of
from kinetoscope_tb.answer.run import late_workers, run_answer, with_ranks
from kinetoscope_tb.answer.step_work import StepWork, step_work
from kinetoscope_tb.critical_path import explanation
from kinetoscope_tb.engine import answers, meanwhile
from kinetoscope_tb.engine.answers import cached_frames
from kinetoscope_tb.trace import Diagnostic, meta
from kinetoscope_tb.trace.model import Fault
from kinetoscope_tb.trace.results import once_per_recording
from kinetoscope_tb.views import EVERY_VIEW, VIEWS
from kinetoscope_tb.views.overview.what_if import what_if
from support.build import TraceBuilder
from support.machine import MS, US, Machine
from support.simulated import Truth, run_of, simulated, trace_of
from support.waiting import LIMIT_S


def host_bound(name="train.py(12): log"):
    """Three steps of 10 ms; for 8 of them the host logs and nothing is queued."""
    builder, number = TraceBuilder(), 0
    for step in range(3):
        begin = step * 10 * MS
        builder.step(step, begin, 10 * MS).python(name, begin + 1 * MS, 8 * MS)
        for at in (begin + 1_000, begin + 9 * MS + 100_000):
            number += 1
            builder.op("aten::mm", at, 100_000).launch(at + 1_000, 5_000, number)
            builder.kernel("gemm", at + 10_000, 500_000, number)
    return builder.build()


def test_the_verdict_names_who_it_is():
    verdict = recording_answer(host_bound(), EVERY_VIEW, cached_frames).verdict
    assert (verdict.id, verdict.culprit) == ("host_bound", Culprit(function="train.py(12): log"))
    assert (verdict.measurement, verdict.cause, verdict.confidence) == ("high", "medium", "medium")


def test_another_thread_computes_the_graph_of_a_large_recording_before_views(monkeypatch):
    plain = recording_answer(host_bound(), EVERY_VIEW, cached_frames)
    threads, has_begun = {}, threading.Event()
    computed, explained = answers.answer, explanation.path_explanation.__wrapped__

    def answer(trace, view):
        threads[view.id] = threading.current_thread()
        return computed(trace, view)

    def graph(trace):
        threads["graph"] = threading.current_thread()
        has_begun.set()
        return explained(trace)

    monkeypatch.setattr(meta, "LARGE_EVENTS", 0)
    monkeypatch.setattr(answers, "answer", answer)
    for module in (explanation, meanwhile):
        monkeypatch.setattr(module, "path_explanation", once_per_recording(graph))
    trace, views = host_bound(), [VIEWS[view] for view in ("gpus", "top")]
    frames = cached_frames(trace, views)
    assert has_begun.wait(LIMIT_S)
    assert next(iter(threads)) == "graph"
    assert [frame.height for frame in frames] == [1, 2]
    assert threads["graph"] != threading.current_thread()
    assert recording_answer(host_bound(), EVERY_VIEW, cached_frames).values() == plain.values()


def test_another_thread_computes_what_a_view_of_advice_needs_late(monkeypatch):
    plain, threads = VIEWS["advice"].run(host_bound()), {}

    class OneByOne:
        def __init__(self, most):
            assert most == 1

        def submit(self, job):
            thread = threading.Thread(target=job)
            threads[getattr(job, "func", job).__name__] = thread
            thread.start()
            thread.join(LIMIT_S)

    monkeypatch.setattr(meta, "LARGE_EVENTS", 0)
    monkeypatch.setattr(meanwhile, "Workers", OneByOne)
    trace = host_bound()
    assert answers.compute(VIEWS["advice"], trace, {}).equals(plain)
    jobs = "diagnose", "release_free_memory", "path_explanation", "prepare_simulations", "share_on_device"
    assert tuple(threads) == jobs
    assert trace.results.get(explanation.path_explanation, compute=pytest.fail).done()


def test_views_of_a_small_recording_are_computed_at_once():
    trace, view = host_bound(), VIEWS["top"]
    cached_frames(trace, [view])
    assert trace.results.get(answers.answer, view, compute=pytest.fail).result().height == 2


def test_the_claims_are_the_rows_of_the_view():
    trace = host_bound()
    rows = VIEWS["advice"].run(trace).rows(named=True)
    claims = recording_answer(trace, EVERY_VIEW, cached_frames).claims
    for name, column in (
        ("id", "rule"),
        ("title", "title"),
        ("saving_ns", "saving_ns"),
        ("saving_frac", "saving_frac"),
    ):
        assert [getattr(claim, name) for claim in claims] == [row[column] for row in rows]


def test_numbers_are_those_of_the_rows_that_they_name():
    trace = host_bound()
    numbers = recording_answer(trace, EVERY_VIEW, cached_frames).numbers
    assert {number.id for number in numbers} == {"step", "step_stdev", "utilization", "idle"}
    for number in numbers:
        rows = VIEWS[number.row.view].run(trace).rows(named=True)
        (row,) = (row for row in rows if all(row[name] == key for name, key in number.row.key.items()))
        assert row[number.column] == number.value
    idle = [number.value for number in numbers if number.id == "idle"]
    assert sum(idle) == VIEWS["idle"].run(trace)["idle_ns"][0]


def test_what_of_the_recording_is_gone_is_said_unless_a_claim_says_it():
    trace = host_bound()
    fault = Fault("The file is damaged", frozenset({"idle"}), "", trace.window[1] - trace.window[0])
    lost_end, lost_part = (Diagnostic(rule, 1, f"{rule} is lost.", level="loss") for rule in ("end", "part"))
    damage = replace(lost_part, consequence="Damage.", fault=fault)
    answers = (
        recording_answer(replace(trace, diagnostics=diagnostics), EVERY_VIEW, cached_frames)
        for diagnostics in ((), (lost_end, lost_part), (lost_end, damage))
    )
    without, of_both, of_damage = ((answer.sentences.get("losses"), answer.verdict.confidence) for answer in answers)
    assert without[0] is None
    assert of_both == ("Data of this recording is gone: end is lost. part is lost.", without[1])
    assert of_damage == ("Data of this recording is gone: end is lost.", "cannot_tell")


def test_a_claim_that_a_view_contradicts_is_uncertain_in_its_measurement():
    facts = Facts(host_bound())
    claim = Advice("copies", "Copies.", "", "", 1, "high", "copies", size_ns=2 * facts.step_ns)
    assert (claim.certainty, examine(facts, claim).certainty) == (("high", "high"), ("cannot_tell", "high"))


def test_what_is_unknown_besides_is_said_with_its_reason():
    trace = host_bound()
    unknown = advice(Facts(trace))[-1].open_questions
    said = {gap.topic: gap.reason for gap in recording_answer(trace, EVERY_VIEW, cached_frames).not_said}
    assert unknown
    assert {gap.topic: gap.reason for gap in unknown}.items() <= said.items()
    assert "MFU" in said


def slowed_by_recording():
    """Steps of 4 ms, of which the device computes for 800 µs; one takes 2 ms without the profiler."""
    machine = Machine(kinetoscope={"usual_step": {"median_ns": 2 * MS, "steps": 40}})

    def step(_):
        for _ in range(20):
            machine.kernel(40 * US)
            machine.work(160 * US)

    return machine.steps(step, allocations=200)


def test_a_saving_is_what_a_step_without_the_profiler_can_lose():
    trace = slowed_by_recording()
    answer = recording_answer(trace, EVERY_VIEW, cached_frames)
    assert answer.usual_step_ns == 2 * MS
    assert answer.verdict.saving_ns == pytest.approx(1_200_000, rel=0.001)
    assert answer.verdict.saving_frac == answer.verdict.saving_ns / answer.usual_step_ns
    half, whole = (what_if(trace, less=f"{answer.verdict.id}:{percent}")["saved_ns"][0] for percent in (50, 100))
    assert whole / 2 <= half <= whole <= answer.verdict.saving_ns  # the host would soon be as fast as the device
    assert whole == pytest.approx(answer.verdict.saving_ns, rel=0.1)


def run_rows(**row):
    empty = {"evidence": "", "action": "Do.", "saving_frac": 0.1, "view": "stragglers", "filter": "rank2"}
    return pl.DataFrame([{**empty, **row}], schema=EVERY_VIEW["run_advice"].table.schema())


STRAGGLERS = pl.DataFrame(
    [{"worker": "rank2", "rank": 2, "verdict": "straggler"}],
    schema=EVERY_VIEW["stragglers"].table.schema(),
)


def of_rank(worker, *rules):
    answer = recording_answer(host_bound(), EVERY_VIEW, cached_frames)
    claims = tuple(replace(answer.verdict, id=rule, title=f"{rule}.", saving_ns=5 * MS) for rule in rules)
    return replace(answer, claims=claims, run="ddp", worker=worker, path="runs")


def test_a_run_begins_with_its_slow_rank_and_says_that_the_others_wait():
    late = run_rows(rule="straggler", title="Rank 2 is late.", saving_ns=4 * MS, confidence="high")
    communication, copies = of_rank("rank0", "communication", "copies").claims
    own = replace(of_rank("rank0"), claims=(communication, replace(copies, saving_ns=3 * MS)))
    answer = with_ranks(own, {"run_advice": late, "stragglers": STRAGGLERS}, EVERY_VIEW, 3)
    assert [claim.title for claim in answer.claims] == [
        *("Rank 2 is late.", "communication. 4 ms of it per step is waiting for rank2.", "copies.")
    ]
    assert answer.verdict.culprit == Culprit(rank=2, worker="rank2")
    assert answer.claims[1].action == "Make rank2 as fast as the other ranks first. On rank2: Do."
    assert answer.next[0].command == "kinetoscope view stragglers runs --run ddp --filter rank2"
    own = with_ranks(of_rank("rank2", "communication"), {"run_advice": late, "stragglers": STRAGGLERS}, EVERY_VIEW, 3)
    assert own.claims[1].title == "communication."
    more = run_rows(rule="straggler", title="Rank 2 is late.", saving_ns=9 * MS, confidence="high")
    answer = with_ranks(
        of_rank("rank0", "communication"), {"run_advice": more, "stragglers": STRAGGLERS}, EVERY_VIEW, 3
    )
    assert answer.claims[1].title == "communication. 5 ms of it per step is waiting for rank2."


def test_what_is_done_about_a_late_rank_alone_is_its_saving_and_what_is_left_is_communications():
    late = run_rows(rule="straggler", title="Rank 2 is late.", saving_ns=4 * MS, confidence="high")
    own = of_rank("rank0", "communication", "copies")
    communication, copies = (
        replace(claim, saving_frac=0.5, saving_low_ns=2 * MS, saving_high_ns=6 * MS) for claim in own.claims
    )
    copies = replace(copies, saving_ns=4_500_000)
    frames = {"run_advice": late, "stragglers": STRAGGLERS}
    answer = with_ranks(replace(own, claims=(communication, copies)), frames, EVERY_VIEW, 3)
    assert [(claim.id, claim.saving_ns) for claim in answer.claims[1:]] == [
        ("copies", 4_500_000),
        ("communication", None),
    ]
    claim = answer.claims[2]
    assert (claim.saving_frac, claim.saving_low_ns, claim.saving_high_ns) == (None, None, None)
    then = replace(communication, saving_ns=9 * MS, saving_frac=0.9, saving_high_ns=10 * MS)
    (_, both) = with_ranks(replace(own, claims=(then,)), frames, EVERY_VIEW, 3).claims
    assert " Then: " in both.action
    assert both.title.endswith(" Once rank2 is as fast as the others, about 5 ms is left.")
    assert (both.saving_ns, both.saving_low_ns, both.saving_high_ns) == (5 * MS, 0, 6 * MS)
    assert both.saving_frac == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("rule", "last", "confidence", "action"),
    [
        ("last_rank", "rank2", "low", "Begin with rank2, which comes last most often by *Ranks*. Then even out."),
        ("last_rank", "rank0", "low", "*Ranks* compares the 3 that are recorded: find the one that comes last."),
        ("no_last_rank", None, "low", "*Ranks* compares the 3 that are recorded: find the one that comes last."),
        ("unknown", None, "cannot_tell", RECORD_ALL),
    ],
)
def test_ranks_that_are_recorded_need_not_be_recorded(rule, last, confidence, action):
    rows = run_rows(rule=rule, title="Ranks.", saving_ns=None, confidence=confidence, filter=last)
    recording = of_rank("rank0", "communication")
    waiting = tuple(replace(claim, action=f"{RECORD_ALL} Then even out.") for claim in recording.claims)
    answer = with_ranks(replace(recording, claims=waiting), {"run_advice": rows}, EVERY_VIEW, 3)
    (own,) = (claim for claim in answer.claims if claim.about == "recording")
    assert own.action == f"{action.removesuffix(' Then even out.')} Then even out."


def test_a_late_rank_is_explained_by_its_own_recording():
    late = run_rows(rule="straggler", title="Rank 2 is late.", saving_ns=4 * MS, confidence="high")
    answer = with_ranks(of_rank("rank2", "host_bound"), {"run_advice": late, "stragglers": STRAGGLERS}, EVERY_VIEW, 3)
    assert answer.verdict.culprit == Culprit(rank=2, worker="rank2", function="train.py(12): log")
    assert answer.verdict.evidence.endswith(" Its own recording says: host_bound.")


def test_a_late_rank_is_explained_by_its_recording_whichever_is_open():
    title = "Rank 2 spends 4 ms longer on the host in 3 of 8 steps: 3 ms of each step wait for it."
    late = run_rows(rule="straggler", title=title, saving_ns=4 * MS, confidence="high")
    own = of_rank("rank2", "main_thread_waits")
    answer = with_ranks(
        of_rank("rank0", "copies"), {"run_advice": late, "stragglers": STRAGGLERS}, EVERY_VIEW, 3, [own]
    )
    assert answer.verdict.title == f"{title} Most of what rank 2 takes longer is in `log (train.py:12)`."
    assert answer.verdict.action == own.claims[0].action
    assert [claim.id for claim in answer.claims] == ["straggler", "copies"]
    assert late_workers({"run_advice": late, "stragglers": STRAGGLERS}) == ["rank2"]
    assert late_workers({}) == []


def test_each_late_rank_is_explained_by_its_own_recording():
    titles = {rank: f"Rank {rank} spends 4 ms longer on the host in each step: it waits." for rank in (1, 2)}
    rows = {"rule": "straggler", "saving_ns": 4 * MS, "confidence": "high"}
    late = pl.concat([run_rows(**rows, title=title, filter=f"rank{rank}") for rank, title in titles.items()])
    slow = STRAGGLERS.with_columns(worker=pl.lit("rank1"), rank=pl.lit(1, pl.Int64))
    own = [of_rank(worker, "main_thread_waits") for worker in ("rank1", "rank2")]
    answer = with_ranks(
        of_rank("rank0", "copies"),
        {"run_advice": late, "stragglers": pl.concat([slow, STRAGGLERS])},
        EVERY_VIEW,
        3,
        own,
    )
    claims = [claim for claim in answer.claims if claim.about == "run"]
    assert [claim.culprit.function for claim in claims] == ["train.py(12): log"] * 2


@pytest.mark.parametrize(
    ("rule", "confidence"), [("no_straggler", "high"), ("no_last_rank", "low"), ("unknown", "cannot_tell")]
)
def test_what_costs_comes_before_that_no_rank_is_slow(rule, confidence):
    rows = run_rows(rule=rule, title="No rank.", saving_ns=None, confidence=confidence, filter=None)
    answer = with_ranks(of_rank("rank0", "copies"), {"run_advice": rows}, EVERY_VIEW, 2)
    assert [claim.id for claim in answer.claims] == ["copies", rule]
    assert ("No rank." in [gap.topic for gap in answer.not_said]) == (confidence == "cannot_tell")


def top(*operators):
    """Rows of the view Top: (name, calls in 4 steps, time per step in ms)."""
    fields = {"kind": "operator", "is_communication": False, "owner": None, "label": ""}
    return tuple({**fields, "name": name, "calls": calls, "mean_ns": ms * MS} for name, calls, ms in operators)


@pytest.mark.parametrize(
    ("late", "other", "words"),
    [
        (
            [("aten::lerp_", 40, 4), ("aten::mm", 8, 9)],
            [("aten::mm", 8, 9)],
            "10 calls of `aten::lerp_` take 4 ms, on rank0 none runs.",
        ),
        ([("aten::mm", 16, 9)], [("aten::mm", 8, 5)], "4 calls of `aten::mm` take 9 ms, on rank0 2 calls 5 ms."),
        ([("x", 4, 4)], [(name, 4, 1) for name in "abcde"], "1 call of `x` takes 4 ms, on rank0 less than 1 ms."),
        ([("aten::mm", 8, 9)], [("aten::mm", 8, 5)], ""),  # as often, but slower
        ([("x", 4, 4)], [(name, 4, 3) for name in "abcde"], ""),  # it may take nearly as long there
        ([("x", 4, 1)], [], ""),  # less than half of what the rank is late by
    ],
    ids=["alone", "more often", "beyond the first ones", "slower", "unknown", "small"],
)
@pytest.mark.slow  # reads runs
def test_the_operator_that_a_late_rank_calls_more_often_is_named(late, other, words):
    title = "Rank 2 computes 4 ms longer in each step: 4 ms of each step wait for it."
    row = run_rows(rule="straggler", title=title, saving_ns=4 * MS, confidence="high")
    own, recording = (
        replace(of_rank(worker, "copies"), rows={"top": top(*operators)}, steps=4)
        for worker, operators in (("rank2", late), ("rank0", other))
    )
    waiting = STRAGGLERS.with_columns(worker=pl.lit("rank0"), rank=pl.lit(0, pl.Int64), verdict=pl.lit("waits"))
    frames = {"run_advice": row, "stragglers": pl.concat([STRAGGLERS, waiting])}
    verdict = with_ranks(recording, frames, EVERY_VIEW, 3, [own]).verdict
    assert words in verdict.evidence
    assert (verdict.title != title) == bool(words)
    assert (verdict.culprit.operator is not None) == bool(words)


def in_run(truth):
    """The claim about communication of the first rank of a run, without and with the recordings of the others."""
    made = simulated(truth)
    own = recording_answer(trace_of(made, 0).build(), EVERY_VIEW, cached_frames)
    recording = replace(own, worker="rank0")
    both = recording, run_answer(recording, run_of(made), EVERY_VIEW, truth.ranks, lambda _: None)
    return [next(claim for claim in answer.claims if claim.id == "communication") for answer in both]


LATE = {"late": {(2, None): 5_000_000}, "noise": 0.0, "jitter_ns": 0}


def test_what_communication_waits_and_moves_is_said_where_all_ranks_are_recorded():
    alone, claim = in_run(Truth(**LATE))
    assert "whose fastest large call takes 6.68 ms for 67.1 MB (10 GB/s). It may include waiting" in alone.evidence
    assert claim.evidence.endswith(
        "(1 call per step), which moves 67.1 MB in 1.68 ms once all ranks have come (40 GB/s). Waiting for other ranks "
        "takes 5 ms of it, moving data 1.68 ms."
    )


def test_waits_that_one_recording_bounds_are_measured_by_all():
    late = {(1, step): 30_000_000 for step in (1, 3, 4)}
    alone, claim = in_run(Truth(ranks=2, late=late, bytes=256 << 20, noise=0.0))
    assert " At least " in alone.evidence
    assert " At least " not in claim.evidence
    assert claim.evidence.endswith(" Waiting for other ranks takes 15 ms of it, moving data 6.71 ms.")


def test_what_a_stage_waits_for_others_is_the_bubble_of_its_pipeline():
    exposure = Exposure("", KindOfCalls("recv", "97 %", "1 call per step", "", None), None, "")
    row = {"rule": "pipeline", "action": "Use more micro-batches.", "confidence": "medium", "filter": None}
    own = of_rank("rank1", "communication")
    claims = tuple(replace(claim, exposure=exposure, saving_ns=6 * MS) for claim in own.claims)
    actions, savings = [], []
    for saving_ns, wait_ns in ((5 * MS, 4 * MS), (5 * MS, 2 * MS), (None, 4 * MS)):
        frames = {
            "run_advice": run_rows(**row, title="Stage 1 waits.", saving_ns=saving_ns),
            "rank_steps": steps_of_ranks([10] * 4).with_columns(exposed_wait_ns=pl.lit(wait_ns, pl.Int64)),
        }
        answer = with_ranks(replace(own, claims=claims), frames, EVERY_VIEW, 3)
        claim = next(claim for claim in answer.claims if claim.id == "communication")
        actions.append(claim.action)
        savings.append(claim.saving_ns)
    assert savings == [4 * MS, 6 * MS, 6 * MS]
    assert actions == ["Use more micro-batches.", own.claims[0].action, own.claims[0].action]


def test_a_late_stage_is_named_by_its_rank_and_the_wait_for_it_is_no_bubble():
    """No rank of another stage is compared with it in the view `stragglers`."""
    exposure = Exposure("", KindOfCalls("recv", "97 %", "1 call per step", "", None), None, "")
    rows = [
        {"rule": "straggler", "title": "Rank 2 (stage 1) is late.", "saving_ns": 4 * MS, "filter": "rank2"},
        {"rule": "pipeline", "title": "Stage 0 waits.", "saving_ns": 5 * MS, "filter": None},
    ]
    advice = pl.concat([run_rows(**row, view="pipeline", confidence="medium") for row in rows])
    steps = steps_of_ranks([10] * 4).with_columns(
        rank=pl.col("worker").str.tail(1).cast(pl.Int64), exposed_wait_ns=pl.lit(5 * MS, pl.Int64)
    )
    waiting, own = of_rank("rank1", "communication"), of_rank("rank2", "host_bound")
    waiting = replace(waiting, claims=tuple(replace(claim, exposure=exposure) for claim in waiting.claims))
    code = replace(own.verdict, culprit=Culprit(function=AUGMENT))
    late = [replace(own, claims=(code,))]
    claims = with_ranks(waiting, {"run_advice": advice, "rank_steps": steps}, EVERY_VIEW, 3, late).claims
    assert claims[0].title.endswith(" Most of what rank 2 takes longer is in `augment (data.py:30)`.")
    assert (claims[0].culprit.rank, claims[0].rows) == (2, ())
    assert claims[2].title == "communication. 4 ms of it per step is waiting for rank2."
    read = replace(
        own.verdict, culprit=Culprit(), evidence="The host waited in `aten::item`, at `check (checks.py:5)`."
    )
    late = [replace(own, claims=(read,))]
    first, *_ = with_ranks(waiting, {"run_advice": advice, "rank_steps": steps}, EVERY_VIEW, 3, late).claims
    assert first.evidence.endswith(f" Its own recording says: {read.title} {read.evidence}")


@pytest.mark.parametrize(("wait_ms", "saving_ms"), [(4, 1), (2, 5)])
def test_what_the_host_of_a_rank_saves_is_bounded_by_ranks_that_it_waits_for(wait_ms, saving_ms):
    times = {"total_ns": pl.lit(11 * MS, pl.Int64), "exposed_wait_ns": pl.lit(wait_ms * MS, pl.Int64)}
    frames = {"rank_steps": steps_of_ranks([11 - wait_ms] * 4).with_columns(**times)}
    own = of_rank("rank2", "host_bound", "copies")
    ranges = replace(own.claims[0], saving_low_ns=0, saving_high_ns=7 * MS), replace(own.claims[1], saving_ns=2 * MS)
    answer = with_ranks(replace(own, claims=ranges), frames, EVERY_VIEW, 3)
    (of_host,) = (claim for claim in answer.claims if claim.id == "host_bound")
    assert (of_host.saving_low_ns, of_host.saving_high_ns) == (0, MS if wait_ms == 4 else 7 * MS)
    assert {claim.id: claim.saving_ns for claim in answer.claims} == {"host_bound": saving_ms * MS, "copies": 2 * MS}
    assert answer.verdict.id == ("host_bound" if wait_ms == 2 else "copies")
    said = "waits 4 ms per step for others, the slowest of which takes 10 ms without waiting: unless that one gets "
    evidence = " ".join(claim.evidence for claim in answer.claims)
    assert (f"{said}faster, too, at most 1 ms of the 5 ms is saved." in evidence) == (wait_ms == 4)


def test_what_a_rank_alone_can_not_save_is_no_claim():
    times = {"total_ns": pl.lit(10 * MS, pl.Int64), "exposed_wait_ns": pl.lit(4 * MS, pl.Int64)}
    frames = {"rank_steps": steps_of_ranks([6] * 4).with_columns(**times)}
    own = of_rank("rank2", "host_bound", "copies", "nothing_to_fix")
    answer = with_ranks(own, frames, EVERY_VIEW, 3)
    assert [claim.id for claim in answer.claims] == ["copies", "nothing_to_fix"]
    assert " Hidden by waiting for other ranks: host_bound. " in answer.claims[-1].evidence
    assert answer.claims[-1].evidence.endswith("unless that one gets faster, too, none of the 5 ms is saved.")


def test_the_slowest_of_other_ranks_is_named_if_it_is_the_same_in_all_steps():
    frame = steps_of_ranks([7] * 2)
    is_second = pl.col("step") == frame["step"].unique(maintain_order=True)[1]
    by_worker = {"rank0": (10, 9), "rank1": (6, 6), "rank2": (8, 10)}

    def slowest(second):
        first = pl.col("worker").replace_strict({who: both[0] * MS for who, both in by_worker.items()}, default=MS)
        later = pl.col("worker").replace_strict({who: both[second] * MS for who, both in by_worker.items()}, default=MS)
        without = pl.when(is_second).then(later).otherwise(first)
        times = {"total_ns": pl.lit(11 * MS, pl.Int64), "exposed_wait_ns": pl.lit(MS, pl.Int64)}
        rank_steps = frame.with_columns(without_waiting_ns=without, **times)
        return PaceOfOthers.of(rows_of(rank_steps), "rank1").slowest

    assert slowest(second=0) == "rank0"
    assert slowest(second=1) is None


def test_what_other_ranks_bound_is_the_difference_of_the_times_that_are_said():
    """A step that another rank ends later begins the next one later, too: it doesn't make what can be saved more."""
    times = {"total_ns": pl.Series([10, 14, 10, 14]) * MS, "without_waiting_ns": pl.Series([11, 9, 11, 9]) * MS}
    steps = pl.DataFrame({"worker": ["rank0"] * 2 + ["rank1"] * 2, "step": ["0", "1"] * 2, "is_complete": [True] * 4})
    pace = PaceOfOthers.of(rows_of(steps.with_columns(exposed_wait_ns=pl.lit(4 * MS), **times)), "rank0")
    assert (pace.slowest_ns, pace.most_ns) == (10 * MS, 2 * MS)


def test_a_single_other_rank_that_a_rank_waits_for_is_called_so():
    times = {"total_ns": pl.lit(11 * MS, pl.Int64), "exposed_wait_ns": pl.lit(4 * MS, pl.Int64)}
    rank_steps = steps_of_ranks([7] * 2).with_columns(**times).filter(pl.col("worker") != "rank0")
    pace = PaceOfOthers.of(rows_of(rank_steps), "rank1")
    assert pace.words(5 * MS, "step").startswith("This rank waits 4 ms per step for the other rank, which takes 7 ms ")


def test_what_other_checks_say_of_communication_stays_behind_what_all_ranks_know():
    made = simulated(Truth(**LATE))
    own = recording_answer(trace_of(made, 0).build(), EVERY_VIEW, cached_frames)
    claims = tuple(
        replace(claim, exposure=replace(claim.exposure, more=" Or it may not.")) if claim.exposure else claim
        for claim in own.claims
    )
    answer = run_answer(replace(own, claims=claims, worker="rank0"), run_of(made), EVERY_VIEW, 4, lambda _: None)
    claim = next(claim for claim in answer.claims if claim.id == "communication")
    assert claim.evidence.endswith(" Waiting for other ranks takes 5 ms of it, moving data 1.68 ms. Or it may not.")
    assert "exposure" not in answer.values()["also"][0]


def test_what_communication_waits_stays_open_where_a_rank_is_missing():
    alone, claim = in_run(Truth(**LATE, missing=(3,)))
    assert claim.evidence == alone.evidence


AUGMENT = "data.py(30): augment"


def steps_of_ranks(own_ms):
    """The view of ranks and steps: rank2 takes so many ms, two others 10 ms."""
    schema = EVERY_VIEW["rank_steps"].table.schema()
    rows = [
        {"worker": worker, "step": str(step), "is_complete": True, "without_waiting_ns": ms * MS}
        for worker in ("rank0", "rank1", "rank2")
        for step, ms in enumerate(own_ms if worker == "rank2" else [10] * len(own_ms))
    ]
    return pl.DataFrame(rows, schema=schema)


@pytest.mark.parametrize(("longer", "is_named"), [({"1": 9, "3": 8}, True), ({"0": 9}, False), ({"1": 3}, False)])
@pytest.mark.slow  # reads runs
def test_a_rank_that_is_late_in_some_steps_is_explained_by_what_takes_longer_in_them(longer, is_named):
    title = "Rank 2 spends 8 ms longer on the host in 2 of 4 steps: 4 ms of each step wait for it."
    frames = {
        "run_advice": run_rows(rule="slow_at_times", title=title, saving_ns=4 * MS, confidence="high"),
        "stragglers": STRAGGLERS.with_columns(cause=pl.lit("the host"), part_in_slow_steps_ns=pl.lit(8 * MS)),
        "rank_steps": steps_of_ranks([10, 18, 10, 18]),
    }
    work = StepWork(AUGMENT, Culprit(function=AUGMENT), {step: ms * MS for step, ms in longer.items()})
    own = replace(of_rank("rank2", "copies"), step_work=(work,))
    verdict = with_ranks(of_rank("rank0", "copies"), frames, EVERY_VIEW, 3, [own]).verdict
    assert (verdict.culprit.function == AUGMENT) == is_named
    assert (" Most of what rank 2 takes longer is in `augment (data.py:30)`." in verdict.title) == is_named
    assert verdict.evidence.endswith("In these steps `augment (data.py:30)` takes 8.5 ms, else 0 ns.") == is_named
    assert (verdict.action == "Do.") != is_named


def test_what_takes_some_time_in_any_step_is_found_without_libraries_and_loops():
    builder = TraceBuilder().python("train.py(1): main", 0, 40 * MS)
    for step in range(4):
        begin = step * 10 * MS
        builder.step(step, begin, 10 * MS).python("train.py(5): train_step", begin, 9 * MS)
        if step % 2:
            builder.python(AUGMENT, begin, 2 * MS).python("torch/functional.py(9): pad", begin, 1 * MS)
        builder.python("log.py(3): write", begin + 5 * MS, 10_000 * step)
    work, outer = step_work(builder.build())
    assert (work.name, work.ns) == (AUGMENT, {"1": 2 * MS, "3": 2 * MS})
    assert (outer.name, outer.typical_ns(["0", "1"])) == ("train.py(5): train_step", 9 * MS)


def test_a_function_that_only_a_late_rank_runs_is_named_with_its_own_remedy():
    title = "Rank 2 computes 80 ms longer in step 5, one of 10: 8 ms of each step wait for it."
    late = run_rows(rule="slow_at_times", title=title, saving_ns=8 * MS, confidence="low")
    own = of_rank("rank2", "longer_steps")
    culprit = Culprit(function="train.py(140): evaluate", operator="aten::addmm")
    own = replace(own, claims=(replace(own.claims[0], action="Less often.", culprit=culprit),))
    frames = {"run_advice": late, "stragglers": STRAGGLERS}
    verdict = with_ranks(of_rank("rank0", "copies"), frames, EVERY_VIEW, 3, [own]).verdict
    assert verdict.title == f"{title} Most of what rank 2 takes longer is in `evaluate (train.py:140)`."
    assert verdict.action == "Less often."
