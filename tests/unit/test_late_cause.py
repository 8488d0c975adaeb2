"""Why a rank is late: what takes it longer than a rank that is on time, not what takes it longest."""

from dataclasses import replace

import pytest

from kinetoscope_tb.advice.model import Culprit
from kinetoscope_tb.answer.device_work import device_work
from kinetoscope_tb.answer.host_pace import OperatorPace, operator_paces, slowness
from kinetoscope_tb.answer.late_cause import Lateness, less_there, with_cause
from kinetoscope_tb.answer.model import Answer, Claim
from kinetoscope_tb.answer.recording import recording_answer
from kinetoscope_tb.answer.step_work import step_work
from kinetoscope_tb.engine.answers import cached_frames
from kinetoscope_tb.measures.calls.recursion import without_recursion
from kinetoscope_tb.views import EVERY_VIEW
from support.build import TraceBuilder
from support.machine import MS, US

COLLATE, CHECK, FORWARD, HOOK = (
    *("data.py(44): collate", "checks.py(11): verify"),
    *("model.py(80): forward", "debug.py(8): log_activations"),
)
STEPS = 3


def claim(**fields):
    empty = {"evidence": "", "action": "Check.", "confidence": "high", "measurement": "high", "cause": "high"}
    empty |= {"culprit": Culprit(rank=1, worker="rank1"), "view": "stragglers", "filter": "rank1", "about": "run"}
    return Claim(**{**empty, "title": "Rank 1 is late.", "saving_frac": None, "saving_ns": 2 * MS, **fields})


def answer_of(trace, worker, *claims):
    answer = Answer(rows={}, environment="", steps=STEPS, step_noun="step", events=0, window_ns=0, claims=claims)
    found = {"step_work": step_work(trace), "operators": operator_paces(trace), "device_work": device_work(trace)}
    return replace(answer, worker=worker, **found)


def host_steps(*functions, pace=1.0):
    """Steps of 20 ms in which the host calls three operators, and functions for so many ms each."""
    builder = TraceBuilder()
    for step in range(STEPS):
        at = step * 20 * MS
        builder.step(step, at, 20 * MS)
        for number, name in enumerate(("aten::mm", "aten::add", "aten::gelu")):
            builder.op(name, at + number * 100 * US, round(50 * US * pace))
        at += 1 * MS
        for name, ms in functions:
            builder.python(name, at, round(ms * MS))
            at += round(ms * MS)
    return builder.build()


def lateness(late, on_time, cause="the host", *claims, part_ms=2):
    row = {"worker": "rank1", "cause": cause, "part_in_slow_steps_ns": part_ms * MS, "slow_steps": STEPS}
    row |= {"steps": STEPS, "mean_without_waiting_ns": 10 * MS}
    rank_steps = tuple(
        {"worker": worker, "step": str(step), "is_complete": True, "without_waiting_ns": ms * MS}
        for step in range(STEPS)
        for worker, ms in (("rank0", 8), ("rank1", 8 + part_ms))
    )
    other = None if on_time is None else answer_of(on_time, "rank0")
    return Lateness(claim(id="straggler"), answer_of(late, "rank1", *claims), other, row, rank_steps)


def own_claim(function, rule="host_bound"):
    return claim(id=rule, title=f"It waits for `{function}`.", action="Shorten it.", culprit=Culprit(function=function))


def test_the_function_named_is_one_that_takes_the_late_rank_longer_than_others():
    both = host_steps((COLLATE, 6), (CHECK, 2)), host_steps((COLLATE, 6))
    named = with_cause(lateness(*both, "the host", own_claim(COLLATE)))
    assert named.culprit == Culprit(rank=1, worker="rank1", function=CHECK)
    assert named.title == "Rank 1 is late. Most of what rank 1 takes longer is in `verify (checks.py:11)`."
    assert named.evidence == " In each step `verify (checks.py:11)` takes 2 ms, on rank0 less than 2 % of any step."
    assert named.action == less_there("verify (checks.py:11)")


def test_a_function_that_all_ranks_run_is_named_where_the_late_rank_takes_longer():
    both = host_steps((COLLATE, 6)), host_steps((COLLATE, 4))
    named = with_cause(lateness(*both, "the host", own_claim(COLLATE)))
    assert (named.culprit.function, named.action) == (COLLATE, "Shorten it.")
    named = with_cause(lateness(*both))
    assert (named.culprit.function, named.action) == (COLLATE, less_there("collate (data.py:44)"))
    assert named.evidence == " In each step `collate (data.py:44)` takes 6 ms, on rank0 4 ms."


def test_the_one_step_in_which_a_rank_is_late_is_compared_with_that_of_others():
    late = lateness(host_steps((COLLATE, 6), (CHECK, 2)), host_steps((COLLATE, 6)))
    rank_steps = [
        row if row["worker"] == "rank0" or row["step"] == "1" else {**row, "without_waiting_ns": 8 * MS}
        for row in late.rank_steps
    ]
    named = with_cause(replace(late, rank_steps=tuple(rank_steps)))
    assert named.evidence == " In this step `verify (checks.py:11)` takes 2 ms, on rank0 less than 2 % of any step."


def test_steps_that_no_sentence_names_are_counted():
    """A rank that is late in each step may be so for most of its lateness in some."""
    late = lateness(host_steps((COLLATE, 6), (CHECK, 2)), host_steps((COLLATE, 6)))
    rank_steps = [
        {**row, "without_waiting_ns": 8 * MS} if row["worker"] == "rank1" and row["step"] == "1" else row
        for row in late.rank_steps
    ]
    words = " `verify (checks.py:11)` takes 2 ms, on rank0 less than 2 % of any step."
    named = with_cause(replace(late, rank_steps=tuple(rank_steps)))
    assert named.evidence == f" In 2 of 3 steps{words}"
    in_some = replace(late, rank_steps=tuple(rank_steps), row={**late.row, "slow_steps": 2})
    assert with_cause(in_some).evidence == f" In these steps{words}"


def test_an_annotation_that_only_the_late_rank_has_is_named_though_nothing_else_takes_the_others_time():
    """Annotations are recorded without any option, so a rank that has none ran none."""
    late, on_time = TraceBuilder(), TraceBuilder()
    for step in range(STEPS):
        late.step(step, step * 20 * MS, 20 * MS).annotation("tokenize", step * 20 * MS + MS, 3 * MS)
        on_time.step(step, step * 20 * MS, 20 * MS)
    named = with_cause(lateness(late.build(), on_time.build()))
    assert named.culprit == Culprit(rank=1, worker="rank1", range="tokenize")
    assert named.evidence == " In each step `tokenize` takes 3 ms, on rank0 less than 2 % of any step."
    without_stacks = with_cause(lateness(host_steps((CHECK, 2)), on_time.build()))
    assert without_stacks.culprit.function is None  # the other rank may have run it, too


@pytest.mark.parametrize("rule", ["host_bound", "launch_bound"])
def test_no_function_is_named_if_none_takes_the_late_rank_longer(rule):
    both = host_steps((COLLATE, 6)), host_steps((COLLATE, 5.9))
    late = lateness(*both, "the host", own_claim(COLLATE, rule))
    assert with_cause(late) == late.claim


def test_launches_explain_a_late_rank_that_has_more_of_them():
    own, other = host_steps(), host_steps()
    launches = claim(id="launch_bound", title="It launches.", action="Launch less.", culprit=Culprit())
    loads = replace(launches, id="data_loading", title="It waits for data.", action="Load faster.")
    equal = lateness(own, other, "the host", launches)
    assert with_cause(equal) == equal.claim
    more = replace(equal, late=replace(equal.late, operators={**equal.late.operators, "x": OperatorPace(9, 1000)}))
    assert with_cause(more).action == "Launch less."
    assert with_cause(replace(equal, on_time=None)).action == "Launch less."
    waits = lateness(host_steps((COLLATE, 3)), other, "data loading", loads)
    assert with_cause(waits).action == "Load faster."


def test_what_its_own_recording_says_of_the_host_does_not_explain_a_slow_device():
    both = host_steps((COLLATE, 6)), host_steps((COLLATE, 6))
    late = lateness(*both, "computation", own_claim(COLLATE))
    assert with_cause(late) == late.claim


def test_waits_for_the_device_are_no_work_of_a_function():
    builder = TraceBuilder()
    for step in range(STEPS):
        at = step * 20 * MS
        builder.step(step, at, 20 * MS).python(COLLATE, at, 10 * MS).op("aten::mm", at, 50 * US)
        builder.launch(at, 5 * US, 2 * step + 1).kernel("gemm", at + 10 * US, 9 * MS, 2 * step + 1)
        builder.launch(at + 1 * MS, 8 * MS, 2 * step + 2, name="cudaStreamSynchronize")
    (work,) = step_work(builder.build())
    assert work.typical_ns(["0", "1", "2"]) == 2 * MS


def test_a_slower_host_is_told_from_one_that_has_more_to_do():
    functions = (COLLATE, 3), (FORWARD, 2)
    slower = [(name, 1.7 * ms) for name, ms in functions]
    late = lateness(host_steps(*slower, pace=1.7), host_steps(*functions), "the host", own_claim(FORWARD))
    named = with_cause(late)
    assert named.title == "Rank 1 is late. Its host is slower: equal operators take 1.7 times as long there."
    assert named.action.startswith("Compare its host with the others'")
    assert named.culprit.function is None
    more = lateness(host_steps(*slower, (CHECK, 2), pace=1.7), host_steps(*functions))
    assert with_cause(more).culprit.function == CHECK
    small = lateness(host_steps(*slower, pace=1.7), host_steps(*functions), part_ms=9)
    assert with_cause(small) == small.claim


@pytest.mark.parametrize("uses_device", [False, True])
def test_without_a_device_computation_is_slower_on_a_slower_host(uses_device):
    late = lateness(host_steps((FORWARD, 5), pace=1.7), host_steps((FORWARD, 3)), "computation")
    named = with_cause(replace(late, late=replace(late.late, uses_device=uses_device)))
    is_named = named.title.startswith("Rank 1 is late. Its host is slower: equal operators take 1.7 times")
    assert is_named != uses_device


PACES = {name: OperatorPace(10, 1000) for name in "abcd"}


@pytest.mark.parametrize(
    ("own", "ratio"),
    [
        ({name: OperatorPace(10, 1500) for name in "abcd"}, 1.5),
        ({name: OperatorPace(10, 1100) for name in "abcd"}, 1.0),
        ({name: OperatorPace(20, 1500) for name in "abcd"}, 1.0),  # more work
        ({"a": OperatorPace(10, 9000), **{name: OperatorPace(10, 1000) for name in "bcd"}}, 1.0),  # one operator waits
        ({"a": OperatorPace(10, 1500)}, 1.0),
    ],
    ids=["slower", "as fast", "more calls", "one", "few"],
)
def test_a_host_is_slower_if_nearly_all_equal_operators_take_longer(own, ratio):
    assert slowness(own, PACES) == ratio


def test_the_function_that_launches_more_on_a_late_rank_is_named():
    def steps(is_late):
        builder, number = TraceBuilder(), 0
        for step in range(STEPS):
            at = step * 20 * MS
            builder.step(step, at, 20 * MS).python("train.py(5): step", at, 19 * MS)
            for name, ms in ((FORWARD, 4), *([("aux.py(12): contrastive_loss", 2)] if is_late else [])):
                number += 1
                builder.python(name, at, 1 * MS).op("aten::mm", at, 50 * US, **{"Sequence number": number})
                builder.launch(at + 1 * US, 5 * US, number).kernel("gemm", at + 10 * US, ms * MS // 2, number)
                back = at + 10 * MS
                builder.op("MmBackward0", back, 50 * US, thread=2, **{"Sequence number": number, "Fwd thread id": 1})
                builder.launch(back + 1 * US, 5 * US, 100 + number, thread=2)
                builder.kernel("gemm", back + 10 * US, ms * MS // 2, 100 + number)
                at += 5 * MS
        return builder.build()

    late = lateness(steps(True), steps(False), "computation")
    named = with_cause(late)
    assert named.culprit.function == "aux.py(12): contrastive_loss"
    assert named.evidence == (
        " In its average step `contrastive_loss (aux.py:12)` launches 2 ms of device work in 1 call; on rank0 it isn't "
        "called."
    )
    assert named.action == "Check."
    equal = lateness(steps(False), steps(False), "computation")
    assert with_cause(equal) == equal.claim


def recursive():
    """Three steps of 10 ms, 8 of them in a function that is nested in one of the same name."""
    builder, number = TraceBuilder(), 0
    for step in range(3):
        begin = step * 10 * MS
        builder.step(step, begin, 10 * MS).python(FORWARD, begin + 1 * MS - 20 * US, 8 * MS + 20 * US)
        builder.python(HOOK, begin + 1 * MS, 8 * MS).python(HOOK, begin + 1 * MS + 10 * US, 8 * MS - 10 * US)
        for at in (begin + 1_000, begin + 9 * MS + 100_000):
            number += 1
            builder.op("aten::mm", at, 100_000).launch(at + 1_000, 5_000, number)
            builder.kernel("gemm", at + 10_000, 500_000, number)
    return builder.build()


def test_a_function_that_is_nested_in_one_of_the_same_name_is_named():
    trace = recursive()
    assert recording_answer(trace, EVERY_VIEW, cached_frames).verdict.culprit.function == HOOK
    assert [work.name for work in step_work(trace)] == [HOOK, FORWARD]
    assert step_work(trace)[0].typical_ns(["0", "1", "2"]) == 8 * MS
    assert without_recursion(trace.python_calls).height == 6


@pytest.mark.parametrize(
    ("elsewhere_ms", "cause", "uses_device", "is_named"),
    [
        (0, "the host", True, True),
        (1, "the host", True, True),
        (2, "the host", True, False),  # hardly less
        (0, "computation", False, True),
        (0, "computation", True, False),  # no core makes a device faster
    ],
)
def test_a_rank_whose_main_thread_waits_longer_for_a_core_is_late_for_that(elsewhere_ms, cause, uses_device, is_named):
    def waits(ms):
        words = {"title": f"It waits for a core for {ms} ms.", "evidence": "Others had it.", "action": "Give it one."}
        return claim(id="core_waits", saving_ns=ms * MS, **words)

    both = host_steps((COLLATE, 8)), host_steps((COLLATE, 6))
    late = lateness(*both, cause, waits(2.5))
    late = replace(late, late=replace(late.late, uses_device=uses_device))
    late = replace(late, on_time=replace(late.on_time, claims=(waits(elsewhere_ms),)))
    named = with_cause(late)
    assert named.title.startswith("Rank 1 is late. Its main thread waits for a core.") == is_named
    if is_named:
        assert named.evidence == " Its own recording says: It waits for a core for 2.5 ms. Others had it."
        assert named.action == "Give it one."
