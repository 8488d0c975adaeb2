"""The simulator's own laws: each recording agrees with the schedule that it is written from."""

from __future__ import annotations

import itertools
from dataclasses import replace
from random import Random

import pytest

from blind import activities as act
from blind import programs
from blind.cases import healthy_ns, large, small
from blind.machine import KERNEL_GAP_NS, LATENCY_NS, QUEUE_DEPTH, Deadlock, Kernel, Pace, Process, run
from blind.recording import document, events_of
from blind.training import Training, all_reduce, simulate, step_ns

JOBS = {
    "one rank": large(Random(1), layers=2, steps=3),
    "two ranks": large(Random(2), layers=2, steps=3, ranks=2),
    "loader": large(Random(3), layers=2, steps=4).with_hook("data", act.Loader(act.always(40_000_000))),
    "stages": large(Random(4), layers=1, steps=2, ranks=3, program=programs.pipeline(3, lambda link: 50)),
    "experts": large(Random(5), layers=1, steps=2, ranks=2, program=programs.experts(lambda rank: 1)),
    "two devices": small(Random(6), devices=2, steps=2, program=programs.two_devices(take_turns=True)),
    "graphs": small(Random(7), steps=3, program=programs.decode(has_graphs=True)),
}


@pytest.fixture(params=JOBS.values(), ids=JOBS.keys(), scope="module")
def job(request: pytest.FixtureRequest) -> Training:
    return request.param


@pytest.fixture(scope="module")
def processes(job: Training) -> list[Process]:
    return simulate(job)


def test_a_lane_does_one_thing_at_a_time(processes: list[Process]):
    for process in processes:
        for node in process.nodes:
            assert 0 <= node.start <= node.end
            assert node.before is None or node.before.end <= node.start


def test_nothing_runs_before_what_it_waits_for(processes: list[Process]):
    for process in processes:
        for node in process.nodes:
            assert all(other.end <= node.start for other in node.after)
            assert all(other.end <= node.end for other in node.until)
            assert node.launch is None or node.launch.start + LATENCY_NS <= node.start
            assert node.room is None or node.room.start <= node.end


def test_a_collective_ends_for_all_ranks_when_the_last_has_joined(processes: list[Process]):
    meetings = {id(node.meeting): node.meeting for process in processes for node in process.nodes if node.meeting}
    for meeting in meetings.values():
        assert len(meeting.parts) == meeting.size
        assert {part.end for part in meeting.parts} == {max(part.start for part in meeting.parts) + meeting.length}


def test_the_file_has_the_times_of_the_schedule(job: Training, processes: list[Process]):
    for process in processes:
        rows = events_of(process, has_stacks=True)
        work = sorted((node.start, node.end, node.name) for node in process.nodes if node.category)
        written = [
            (row["ts"], row["ts"] + row["dur"], row["name"])
            for row in rows
            if row["ph"] == "X" and row["cat"] in ("kernel", "gpu_memcpy", "cuda_runtime")
        ]
        assert [name for _, _, name in work] == [name for _, _, name in sorted(written)]
        for (start, end, _), (first, last, _) in zip(work, sorted(written), strict=True):
            assert (first, last) == pytest.approx((start / 1000, end / 1000), abs=2e-3)
        steps = [row for row in rows if row["name"].startswith("ProfilerStep")]
        assert len(steps) == job.steps
        assert all(one["ts"] + one["dur"] <= other["ts"] for one, other in itertools.pairwise(steps))


def test_ranges_of_a_thread_nest(processes: list[Process]):
    for process in processes:
        for thread in (process.main, process.autograd):
            ends: list[int] = []
            for opened in sorted(
                (item for item in process.ranges if item.begin.lane == thread.lane), key=lambda item: item.begin.end
            ):
                while ends and ends[-1] <= opened.begin.end:
                    ends.pop()
                assert not ends or opened.finish.end <= ends[-1]
                ends.append(opened.finish.end)


def test_the_same_seed_gives_the_same_file(job: Training):
    first, second = ([document(process, job.device, 1, job.ranks) for process in simulate(job)] for _ in range(2))
    assert first == second


@pytest.mark.parametrize(("loading_ms", "computing_ms"), [(22, 16), (10, 16), (40, 16)])
def test_a_step_takes_as_long_as_loader_or_device(loading_ms: int, computing_ms: int):
    """With a host that is ahead, a step takes as long as the loader or the device: the shorter one is hidden."""
    kernel = Kernel("k", computing_ms * 1_000_000)
    loader = act.Loader(act.always(loading_ms * 1_000_000), workers=1, prefetch=2)

    def step(place: act.Place) -> None:
        loader(place)
        place.host.launch(kernel)

    job = Training(steps=40, program=step, noise=0)
    assert step_ns(simulate(job), job.steps) == pytest.approx(max(loading_ms, computing_ms) * 1e6, rel=0.03)


def test_a_full_queue_stops_the_host():
    process = Process(0, Pace(launch=100))
    for _ in range(QUEUE_DEPTH + 50):
        process.main.launch(Kernel("k", 1_000_000))
    run([process], start=0)
    launches = [node for node in process.nodes if node.category == "cuda_runtime"]
    kernels = [node for node in process.nodes if node.category == "kernel"]
    assert launches[QUEUE_DEPTH - 1].end == QUEUE_DEPTH * 100
    assert launches[-1].end == kernels[49].start + 100
    assert kernels[49].start == LATENCY_NS + 49 * (1_000_000 + KERNEL_GAP_NS)


def test_a_late_rank_delays_all_by_as_much():
    job = large(Random(8), layers=2, steps=6, ranks=3, noise=0)
    late = 0.5 * healthy_ns(job)
    slow = job.with_hook("end", act.python("a.py(1): f", act.on_rank(1, act.always(late))))
    assert step_ns(simulate(slow), 6) - step_ns(simulate(job), 6) == pytest.approx(late, rel=0.02)


def test_a_bubble_has_the_length_of_the_textbook():
    """GPipe: p stages and m microbatches take (m + p - 1) / m of the ideal time."""
    stages, job = 4, large(Random(9), layers=1, hidden=4096, noise=0, steps=2)
    times = {}
    for count in (4, 12):
        program = programs.pipeline(count, lambda link: 1e9)
        times[count] = step_ns(simulate(replace(job, ranks=stages, tokens=98_304 // count, program=program)), job.steps)
    assert times[4] / times[12] == pytest.approx((7 / 4) / (15 / 12), rel=0.05)


def test_a_collective_that_a_rank_never_joins_is_an_error():
    def step(place: act.Place) -> None:
        if place.rank == 0:
            all_reduce(place, 1_000)
            place.host.synchronize("cudaDeviceSynchronize")

    with pytest.raises(Deadlock):
        simulate(Training(ranks=2, steps=1, program=step))
