"""Recordings of our own recorder on the CPU with one planted cause each, large enough to stand out on a busy machine."""

import gc
import threading
import time

import pytest
import torch

from kinetoscope import Tracer, cyclic
from kinetoscope_tb.advice.advice import advice
from kinetoscope_tb.advice.facts import Facts
from kinetoscope_tb.reader import read


def compute(count=3):
    weight = torch.ones(256, 256)
    for _ in range(count):
        torch.mm(weight, weight)


@pytest.fixture
def recorded(tmp_path):
    """Record six steps and give the advice by rule, in order."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)

    def record(step, **options):
        plan = cyclic(wait=0, warmup=1, active=6, repeat=1)
        with Tracer(tmp_path, run="run", schedule=plan, system_interval_s=0.05, **options) as tracer:
            for number in range(7):
                step(number)
                tracer.step()
        return {row.rule: row for row in advice(Facts(read(tracer.saved_traces[0])))}

    yield record
    torch.set_num_threads(threads)


def test_the_main_thread_joins_another_one(recorded):
    def step(_):
        thread = threading.Thread(target=time.sleep, args=(0.05,))
        thread.start()
        thread.join()
        compute()

    by_rule = recorded(step, with_stack=True)
    row = by_rule["main_thread_waits"]
    assert next(iter(by_rule)) == "main_thread_waits"
    assert row.title.startswith("The main thread waits for a lock or another thread")
    assert "`threading.join` at `" in row.evidence
    assert "test_planted_on_cpu.py" in row.evidence
    assert row.saving_ns >= 40_000_000


def test_a_pause_without_stacks_is_a_wait_only_if_the_counters_say_so(recorded):
    by_rule = recorded(lambda _: (compute(), time.sleep(0.08)))
    first = next(iter(by_rule.values()))
    assert (first.rule, first.confidence) in {("main_thread_waits", "medium"), ("unexplained_idle", "cannot_tell")}
    assert first.weight_ns >= 60_000_000


def test_garbage_collection_in_each_step(recorded):
    objects = [[number] for number in range(200_000)]
    by_rule = recorded(lambda _: (gc.collect(), compute()), with_stack=True)
    assert next(iter(by_rule)) == "garbage_collection"
    assert len(objects) == 200_000


def test_elementwise_operators_that_dominate(recorded):
    data = torch.ones(2000, 2000)
    by_rule = recorded(lambda _: [data.sin() for _ in range(5)], record_shapes=True)
    assert "Elementwise operators take" in by_rule["host_operator"].title
    assert "`aten::sin` with shapes [[2000, 2000]]: 5 calls per step" in by_rule["host_operator"].evidence


def test_a_cold_first_step(recorded):
    def step(number):
        until = time.perf_counter() + (1.5 if number == 1 else 0.02)
        while time.perf_counter() < until:
            compute(1)

    assert "warm_up" in recorded(step)
