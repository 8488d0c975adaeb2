"""Requests, plans and actions, without a profiler: ranks are simulated, step by step and poll by poll."""

import threading

import pytest
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.profiler import ProfilerAction

from kinetoscope import UsageError, cyclic, on_request
from kinetoscope.job import rank_info
from kinetoscope.job.selection import Selection
from kinetoscope.path_below import PathBelow
from kinetoscope.scheduling.consensus import FolderLog, Plan, StoreLog, first_step, plan_from
from kinetoscope.scheduling.request import Request
from kinetoscope.scheduling.trigger import COOLDOWN_S, Pace, Triggers
from kinetoscope.session import supervisor

NONE, WARMUP = ProfilerAction.NONE, ProfilerAction.WARMUP
RECORD, SAVE = ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE
MS = 1_000_000


class Shared:
    """A board in memory."""

    def __init__(self):
        self.texts = {}

    def read(self, number):
        return self.texts.get(number)

    def propose(self, number, text):
        return self.texts.setdefault(number, text)


class Rank:
    """One process: its triggers, its steps, and the profiler's action in each."""

    def __init__(self, rank=0, size=1, log=None, schedule=on_request, step_s=1.0, is_chosen_one=True):
        self.is_chosen_one = is_chosen_one
        self.rank_info, self.log, self.schedule, self.step_s = (rank, size), log, schedule, step_s
        self.waiting, self.news, self.actions = [], [], []
        self.triggers = Triggers(self, lambda kind, value: self.news.append((kind, value)))

    def rank_and_size(self):
        return self.rank_info

    def current_step(self):
        return len(self.actions) - 1

    def is_selected_rank(self):
        return self.is_chosen_one

    def logs(self):
        return [] if self.log is None else [self.log]

    def take_request(self):
        request = self.waiting.pop(0) if self.waiting else None
        if isinstance(request, Exception):
            raise request
        return request

    def step(self):
        number = len(self.actions)
        if number:
            self.triggers.add_duration(int(self.step_s * 1e9))
        self.actions.append(self.triggers.action(number, self.schedule(number)))


def recorded(actions):
    return [number for number, action in enumerate(actions) if action in (RECORD, SAVE)]


def test_a_process_alone_records_from_its_next_step_on():
    rank = Rank()
    for _ in range(5):
        rank.step()
    rank.triggers.request(Request(steps=3, warmup=1))
    for _ in range(6):
        rank.step()
    assert rank.actions == [NONE] * 5 + [WARMUP, RECORD, RECORD, SAVE, NONE, NONE]
    assert [kind for kind, _ in rank.news] == ["plan"]


@pytest.mark.parametrize(("ranks", "recording"), [(None, [1]), ((0, 2), [0, 2])])
def test_who_is_not_chosen_records_only_if_a_request_names_it(ranks, recording):
    log = Shared()
    job = [Rank(number, 3, log, is_chosen_one=number == 1) for number in range(3)]
    for rank in job:
        for _ in range(3):
            rank.step()
    job[1].waiting.append(Request(steps=2, ranks=ranks))
    for rank in (job[1], *job):
        rank.triggers.poll()
    for rank in job:
        for _ in range(12):
            rank.step()
    assert [rank.rank_info[0] for rank in job if recorded(rank.actions)] == recording
    assert not any(kind == "missed" for rank in job for kind, _ in rank.news)


def test_a_window_of_the_schedule_goes_first():
    rank = Rank(schedule=cyclic(wait=2, warmup=1, active=2))
    rank.step()
    rank.triggers.request(Request(steps=2, warmup=1, at=3))
    for _ in range(9):
        rank.step()
    assert rank.actions == [NONE, NONE, WARMUP, RECORD, SAVE, WARMUP, RECORD, SAVE, NONE, NONE]


def test_a_schedule_that_never_rests_gives_way_behind_a_window():
    rank = Rank(schedule=cyclic(wait=0, warmup=1, active=2, repeat=0))
    rank.step()
    rank.triggers.request(Request(steps=3, warmup=1))
    for _ in range(12):
        rank.step()
    window = [WARMUP, RECORD, SAVE]
    # Asked for in the first window, it takes the place of the second one, and of the third, which it cuts into.
    assert rank.actions == [*window, WARMUP, RECORD, RECORD, SAVE, NONE, NONE, *window, WARMUP]
    assert [kind for kind, _ in rank.news] == ["plan"]


@pytest.mark.parametrize("wait", [0, 1])
def test_ranks_whose_steps_are_all_profiled_agree_on_a_request_too(wait):
    log = Shared()
    job = [Rank(number, 2, log, schedule=cyclic(wait=0, warmup=wait, active=2, repeat=0)) for number in range(2)]
    for rank in job:
        rank.triggers.pace.profiled_ns = 10**9  # a step was profiled, and none wasn't
        rank.actions.append(rank.triggers.action(0, rank.schedule(0)))
    job[0].waiting.append(Request(steps=2, warmup=0))
    for rank in (*job, *job):
        rank.triggers.poll()
    for rank in job:
        for number in range(1, 14):
            rank.actions.append(rank.triggers.action(number, rank.schedule(number)))
    assert job[0].actions == job[1].actions
    assert [kind for rank in job for kind, _ in rank.news] == ["plan", "plan"]


def test_while_a_window_is_under_way_others_ask_in_vain():
    rank = Rank()
    rank.step()
    rank.triggers.request(Request(steps=3, warmup=0))
    for _ in range(2):
        rank.step()
        rank.triggers.request(Request(steps=3))
        rank.triggers.poll()
    for _ in range(4):
        rank.step()
    assert recorded(rank.actions) == [1, 2, 3]


def test_the_step_to_begin_with_can_be_chosen_and_rounded_up():
    assert first_step(Request(warmup=2), 10, None, is_alone=True) == 12
    assert first_step(Request(warmup=2, at=40), 10, None, is_alone=True) == 40
    assert first_step(Request(warmup=2, at=5, roundup=8), 10, None, is_alone=True) == 16
    assert first_step(Request(warmup=1), 10, 1.0, is_alone=False) == 10 + 2 + 3 + 1
    assert first_step(Request(warmup=1), 10, 0.001, is_alone=False) == 10 + 2 + 3000 + 1


@settings(deadline=None, max_examples=60)
@given(
    size=st.integers(2, 5),
    steps=st.integers(1, 4),
    warmup=st.integers(0, 2),
    asked_by=st.sets(st.integers(0, 4), min_size=1),
    asked_at=st.integers(4, 9),
    schedule=st.sampled_from([on_request, cyclic(wait=3, warmup=1, active=2, repeat=0)]),
    ahead=st.lists(st.integers(0, 1), min_size=5, max_size=5),
    order=st.permutations(range(5)),
)
def test_all_ranks_record_the_same_steps_for_any_requester(
    size, steps, warmup, asked_by, asked_at, schedule, ahead, order
):
    log = Shared()
    ranks = [Rank(rank, size, log, schedule) for rank in range(size)]
    for rank, more in zip(ranks, ahead, strict=False):
        for _ in range(more):
            rank.step()
    for turn in range(40):  # a step takes a second, and each looks once a second
        for rank in ranks:
            rank.step()
            if turn == asked_at and rank.rank_info[0] in asked_by:
                rank.waiting.append(Request(steps=steps, warmup=warmup))
        for index in order:
            if index < size:
                ranks[index].triggers.poll()
    plans = [[value["first"] for kind, value in rank.news if kind == "plan"] for rank in ranks]
    shown = [rank.actions[:39] for rank in ranks]
    assert all(one == shown[0] for one in shown)
    assert len(plans[0]) == (1 if asked_by & set(range(size)) else 0)
    assert all(one == plans[0] for one in plans)
    if plans[0] and schedule is on_request:
        assert recorded(shown[0]) == list(range(plans[0][0], plans[0][0] + steps))


def test_a_rank_that_learns_of_a_plan_in_its_midst_records_the_rest():
    rank = Rank(size=2, log=Shared())
    for _ in range(11):
        rank.step()
    rank.log.propose(0, Plan(10, Request(steps=4, warmup=1)).to_text())
    rank.triggers.poll()
    for _ in range(6):
        rank.step()
    assert recorded(rank.actions) == [11, 12, 13]
    assert rank.actions[13] is SAVE


def test_a_rank_that_learns_of_a_plan_too_late_says_so_and_takes_the_next_one():
    rank = Rank(size=2, log=Shared())
    for _ in range(20):
        rank.step()
    rank.log.propose(0, Plan(10, Request(id="late")).to_text())
    rank.triggers.poll()
    rank.step()
    assert ("missed", "late") in rank.news
    rank.log.propose(1, Plan(25, Request(steps=1)).to_text())
    rank.triggers.poll()
    for _ in range(8):
        rank.step()
    assert recorded(rank.actions) == [25]


def test_ranks_that_a_request_does_not_name_record_nothing():
    log = Shared()
    ranks = [Rank(rank, 2, log) for rank in range(2)]
    log.propose(0, Plan(5, Request(steps=2, ranks=(1,))).to_text())
    for rank in ranks:
        rank.triggers.poll()
        for _ in range(10):
            rank.step()
    assert [recorded(rank.actions) for rank in ranks] == [[], [5, 6]]


def test_what_is_no_plan_is_left_out():
    rank = Rank(size=2, log=Shared())
    rank.log.propose(0, "{}")
    rank.log.propose(1, '{"first": -1, "request": {}}')
    rank.log.propose(2, Plan(4, Request(steps=1)).to_text())
    for _ in range(3):
        rank.triggers.poll()
    for _ in range(6):
        rank.step()
    assert recorded(rank.actions) == [4]


def test_an_invalid_request_is_in_the_news():
    rank = Rank()
    rank.waiting.append(UsageError("no steps"))
    rank.triggers.poll()
    assert rank.news == [("refused", "no steps")]


def test_slow_steps_ask_once_in_a_while():
    pace = Pace(3.0)
    usual = [100 * MS] * 30
    assert not any(pace.is_slow(dur, 0.0) for dur in usual)
    assert not pace.is_slow(299 * MS, 0.0)
    assert pace.is_slow(301 * MS, 1.0)
    assert not pace.is_slow(900 * MS, 2.0)
    assert pace.is_slow(900 * MS, 2.0 + COOLDOWN_S)
    assert pace.median_ns() == 100 * MS


def test_a_few_fast_steps_and_the_scheduler_s_whims_are_no_slow_steps():
    pace = Pace(3.0)
    assert not any(pace.is_slow(dur, 0.0) for dur in [MS, 900 * MS] * 5)
    pace = Pace(3.0)
    assert not any(pace.is_slow(dur, 0.0) for dur in [MS] * 50 + [40 * MS])
    assert not any(Pace().is_slow(dur, 0.0) for dur in [MS] * 50 + [9000 * MS])
    with pytest.raises(UsageError, match="slow_step"):
        Pace(1.0)


@pytest.mark.parametrize("kind", ["folder", "store", "file store"])
def test_of_many_proposals_for_a_number_the_first_one_is_the_plan(tmp_path, kind):
    def log():
        if kind == "folder":
            return FolderLog(PathBelow(tmp_path, "plans"), "0")
        return StoreLog(store, "plan")

    store = dist.HashStore() if kind == "store" else dist.FileStore(str(tmp_path / "store"), 1)
    assert log().read(0) is None
    texts, start = [], threading.Barrier(6)

    def propose(index):
        start.wait()
        texts.append(log().propose(0, f"text {index}"))

    threads = [threading.Thread(target=propose, args=(index,)) for index in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(texts) == 6
    assert set(texts) == {log().read(0)}
    assert log().read(1) is None


class RankInfo:
    """What a process knows of itself before it has seen anybody: its rank, its run's folder, and its attempt."""

    def __init__(self, rank, folder, attempt):
        self.rank, self.folder, self.attempt, self.selection = rank, folder, attempt, Selection()

    @property
    def known_rank_and_folder(self):
        return rank_info.RankInfo(self.rank, 2, self.rank), self.folder


@pytest.mark.parametrize("has_store", [True, False])
def test_a_plan_of_an_earlier_attempt_is_no_plan_of_this_one_however_soon_it_begins(tmp_path, monkeypatch, has_store):
    store = dist.HashStore()  # torchrun's outlives an attempt, and the folder may be used again
    monkeypatch.setattr(supervisor, "is_distributed", lambda: has_store)
    monkeypatch.setattr(supervisor, "default_store", lambda: store)

    def started(rank, attempt):
        monkeypatch.setattr(supervisor, "_count", iter([0]))  # each process makes its first recorder
        job = supervisor._JobView(RankInfo(rank, tmp_path / "run", attempt), lambda: (0, 0))
        triggers = Triggers(job, lambda *_: None)
        triggers.action(0, NONE)
        triggers.add_duration(10**9)
        return triggers

    take_request, other = started(0, "first"), started(1, "first")
    take_request.request(Request(steps=2, warmup=0))
    for triggers in (take_request, other):
        triggers.poll()
    later = [started(rank, "second") for rank in range(2)]
    for triggers in later:
        triggers.poll()
    actions = [
        [NONE, *(triggers.action(step, NONE) for step in range(1, 9))] for triggers in (take_request, other, *later)
    ]
    assert [recorded(each) for each in actions] == [[5, 6], [5, 6], [], []]


@given(st.text(max_size=80))
def test_any_text_is_a_plan_or_refused(text):
    with pytest.raises(UsageError):
        plan_from(text)
