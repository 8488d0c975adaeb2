"""What a server's iterations wait for on the host: a function, a graph that some don't have, or requests."""

from __future__ import annotations

import pytest

from kinetoscope_tb.advice import server_host
from kinetoscope_tb.arrays.intervals import merge
from kinetoscope_tb.measures.serving import costs
from kinetoscope_tb.measures.serving.iterations import server_iterations
from kinetoscope_tb.measures.serving.request_waits import request_waits, waiting_times
from kinetoscope_tb.measures.serving.steps import with_iterations_as_steps
from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder

US = 1_000
POLL = "<built-in method poll of select.epoll object at 0x7f10>"
GENERAL = {"serving_phase", "host_bound", "launch_bound", "longer_host_steps", "synchronizing"}


def advice(trace):
    return {row["rule"]: row for row in VIEWS["advice"].run(trace).to_dicts()}


class Loop:
    """A server's loop: what the host does before an iteration, in µs, and the iteration, a graph unless it is eager."""

    def __init__(self):
        self.builder, self.now, self.number = TraceBuilder(), 0, 0

    def call(self, frames, us, thread=1):
        """Python functions, each called by the one before, for so long."""
        for depth, frame in enumerate(frames):
            self.builder.python(frame, self.now * US + 100 * depth, us * US - 200 * depth, thread=thread)
        return self

    def spend(self, us):
        self.now += us
        return self

    def iteration(self, mark="step[DECODE bs=8]", busy=200, kernels=0):
        """An iteration whose device work takes `busy` µs: a graph, or so many kernels, each launched in 60 µs."""
        start, self.number = self.now, self.number + 1000
        launches = (
            [(self.now + 5, busy)] if not kernels else [(self.now + 60 * n, busy / kernels) for n in range(kernels)]
        )
        name = "cudaLaunchKernel" if kernels else "cudaGraphLaunch"
        for row, (at, length) in enumerate(launches):
            self.builder.launch(at * US, 5 * US, self.number + row, name=name)
            kernel = "kernel_unified_attention_3d" if row == len(launches) - 1 else "nvjet_tst_64x8"
            graph = {} if kernels else {"graph_node_id": 1}
            self.builder.kernel(kernel, (at + 7) * US, int(length * US), self.number + row, **graph)
        self.now = int(launches[-1][0] + 7 + launches[-1][1]) + 1
        if mark:
            self.builder.annotation(mark, start * US, (launches[-1][0] + 6 - start) * US)
        return self

    def trace(self):
        return self.builder.build()


def allocating(count=24, usual=20, long=3_000, frames=("engine.py(9): plan", "pool.py(31): reserve")):
    """Each fourth iteration waits for long for a function that runs in all of them."""
    loop = Loop()
    for number in range(count):
        us = long if number % 4 == 2 else usual
        loop.call(frames, us).spend(us).iteration()
    return loop.trace()


def test_a_function_that_takes_long_in_some_iterations_is_named_with_these():
    rows = advice(allocating())
    row = rows["server_function"]
    assert row["title"].startswith("The GPU waits for `reserve (pool.py:31)` for ")
    assert row["title"].endswith(" of the average iteration: 3 ms in 6 of 24 iterations.")
    assert "`plan (engine.py:9)` calls it." in row["evidence"]
    assert "It takes 3 ms there, 18.7 µs in the others on average." in row["evidence"]
    assert row["saving_ns"] == pytest.approx(6 * 3_000 * US / 24, rel=0.05)
    assert "in each of them" in row["action"]
    assert not rows.keys() & GENERAL


def test_what_devices_wait_for_is_worked_out_once_for_all_rules(monkeypatch):
    dominant, searches = server_host._dominant, []
    monkeypatch.setattr(server_host, "_dominant", lambda *arguments: searches.append(1) or dominant(*arguments))
    assert "server_function" in advice(allocating())
    assert len(searches) == 1


def test_what_the_host_does_is_worked_out_once_for_all_causes(monkeypatch):
    host_work, searches = costs._host_work, []
    monkeypatch.setattr(costs, "_host_work", lambda *arguments: searches.append(1) or host_work(*arguments))
    trace = allocating()
    assert sum(costs.gap_causes(trace, server_iterations(trace))["other"]) > 0
    assert len(searches) == 1


def test_a_function_of_each_iteration_is_said_of_each():
    loop = Loop()
    for _ in range(12):
        loop.call(["engine.py(9): plan"], 500).spend(500).iteration()
    row = advice(loop.trace())["server_function"]
    assert row["title"].endswith(" of every iteration: 500 µs in each.")
    assert "in each of them" not in row["action"]


def test_two_iterations_show_nothing_that_recurs():
    loop = Loop()
    for _ in range(2):
        loop.call(["engine.py(9): plan"], 500).spend(500).iteration()
    assert "server_function" not in advice(loop.trace())


def test_a_function_that_launches_the_work_is_no_such_function():
    loop = Loop()
    for _ in range(12):
        loop.call(["engine.py(9): run"], 900).iteration(kernels=12).spend(20)
    assert "server_function" not in advice(loop.trace())


def test_without_stacks_an_annotation_is_named():
    loop = Loop()
    for _ in range(12):
        loop.builder.annotation("scheduler: make room", loop.now * US, 480 * US)
        loop.spend(500).iteration()
    row = advice(loop.trace())["server_function"]
    assert "`scheduler: make room`" in row["title"]
    assert row["confidence"] == "high"


def waiting(mark, frames=("engine.py(40): next_message", "selectors.py(468): select", POLL)):
    """Before each fourth iteration the server waits."""
    loop = Loop()
    for number in range(24):
        if number % 4 == 2:
            loop.call(frames, 3_000).spend(3_000)
        loop.spend(20).iteration(mark if number % 4 == 2 else "step[DECODE bs=8]")
    return loop.trace()


def test_a_server_without_requests_is_no_slow_host():
    rows = advice(waiting("execute_context_1(64)_generation_8(8)"))
    row = rows["server_load"]
    assert row["title"].startswith("The load limits tokens per second: the GPU is idle for ")
    assert row["title"].endswith(" while the server waits for requests.")
    assert row["action"].startswith("Nothing in the engine")
    assert row["saving_ns"] is None
    assert not rows.keys() & {*GENERAL, "server_function"}


def test_a_worker_that_takes_work_from_its_scheduler_may_wait_for_that():
    frames = ["vllm/distributed/device_communicators/shm_broadcast.py(470): dequeue"]
    row = advice(waiting("execute_context_1(64)_generation_8(8)", frames))["server_load"]
    assert row["title"].startswith("The server waits for requests or another process: ")


def test_where_most_iterations_have_a_prompt_it_does_not_show_what_was_waited_for():
    loop = Loop()
    for _ in range(12):
        loop.call(["queue.py(171): get"], 3_000).spend(3_020).iteration("execute_context_1(64)_generation_8(8)")
    assert "or another process" in advice(loop.trace())["server_load"]["title"]


def test_a_server_that_decodes_after_it_waited_may_wait_for_another_process():
    row = advice(waiting("step[DECODE bs=8]"))["server_load"]
    assert row["title"].startswith("The server waits for requests or another process: the GPU is idle for 7")
    assert "Without that wait the GPU is busy for 86.1 % of the time." in row["evidence"]
    assert row["confidence"] == "medium"


def test_what_a_server_does_where_it_takes_requests_in_is_no_wait():
    frames = (
        "vllm/v1/engine/core.py(700): _process_input_queue",
        "vllm/v1/engine/core.py(88): add",
        "text.py(7): split",
    )
    row = advice(waiting("step[DECODE bs=8]", frames))["server_function"]
    assert row["title"].startswith("The GPU waits for `split (text.py:7)` for ")
    assert "server_load" in advice(waiting("step[DECODE bs=8]", [*frames[:1], "queue.py(171): get"]))
    assert "server_load" in advice(waiting("step[DECODE bs=8]", [*frames[:2], "queue.py(171): get"]))
    assert "server_load" in advice(waiting("step[DECODE bs=8]", frames[:1]))
    inside_loop = ["vllm/v1/engine/core.py(302): run_busy_loop", *frames]
    assert "`split (text.py:7)`" in advice(waiting("step[DECODE bs=8]", inside_loop))["server_function"]["title"]


@pytest.mark.parametrize("frame", ["<built-in function sleep>", "<built-in method read of _io.BufferedReader object>"])
def test_a_function_that_sleeps_or_reads_a_file_does_not_wait_for_requests(frame):
    rows = advice(waiting("step[DECODE bs=8]", ["engine.py(40): reload", frame]))
    assert "`reload (engine.py:40)`" in rows["server_function"]["title"]
    assert "server_load" not in rows


def test_the_thread_that_a_server_waits_for_is_named_by_its_function():
    loop = Loop()
    for _ in range(12):
        loop.call(["engine.py(40): next_message", "queue.py(171): get"], 600)
        loop.call(["text.py(7): split"], 600, thread=2).spend(600).iteration()
    rows = advice(loop.trace())
    row = rows["server_function"]
    assert row["title"].startswith("The GPU waits for `split (text.py:7)` for ")
    assert (
        "Another thread runs it, for which the server's thread waits in `next_message (engine.py:40)`."
        in row["evidence"]
    )
    assert "server_load" not in rows


def test_only_waits_for_messages_with_no_thread_at_work_are_for_requests():
    loop = Loop()
    for frames in (["queue.py(171): get"], [POLL], ["<built-in function sleep>"]):
        loop.call(["engine.py(1): run", *frames], 100).spend(100).iteration()
    loop.call(["queue.py(171): get"], 100)
    loop.call(["text.py(7): split"], 50, thread=2)
    trace = with_iterations_as_steps(loop.trace())
    start, end = request_waits(trace)
    assert (end - start).tolist() == [99_800, 99_800, 50_000]
    window = merge([(trace.steps["start_ns"].to_numpy(), trace.steps["end_ns"].to_numpy())])
    assert waiting_times(trace, *window).sum() == 99_800  # the first is before the first iteration, the last behind all


def missing(marks=("step[DECODE bs=8]", "step[DECODE bs=33]"), busy=(200, 240)):
    """Each third iteration launches each of its kernels."""
    loop = Loop()
    for number in range(24):
        is_eager = number % 3 == 1
        loop.spend(20).iteration(marks[is_eager], busy[is_eager], kernels=20 if is_eager else 0)
    return advice(loop.trace())


def test_iterations_without_a_graph_are_counted_with_their_sizes():
    rows = missing()
    row = rows["missing_graphs"]
    assert row["title"].startswith("8 of 24 decode iterations run without a graph, of 33 requests: they take ")
    assert "The others have 8 requests: no larger batch replays a graph." in row["evidence"]
    assert row["action"].startswith("Let the server capture graphs for 33 requests, too")
    assert row["saving_ns"] == pytest.approx(8 * (20 * 60 - 220) * US / 24, rel=0.15)
    assert not rows.keys() & GENERAL


def test_iterations_of_prompts_have_no_graph_and_miss_none():
    assert "missing_graphs" not in missing(("step[DECODE bs=8]", "step[EXTEND bs=1 toks=99]"))


def test_of_unknown_phase_those_that_compute_longer_may_be_prompts():
    marks = ("execute_new_0_cached_8", "execute_new_0_cached_8")
    assert "missing_graphs" in missing(marks)
    assert "missing_graphs" not in missing(("step[OTHER bs=8]", "step[OTHER bs=9]"), busy=(200, 500))
    assert "missing_graphs" in missing(("step[OTHER bs=8]", "step[OTHER bs=9]"))
