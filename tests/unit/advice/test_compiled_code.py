"""torch.compile in real recordings made here: frames that compile again, and frames that fall apart."""

import time

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, schedule

from kinetoscope_tb.advice.advice import advice
from kinetoscope_tb.advice.facts import Facts
from kinetoscope_tb.reader import read
from support.machine import MS, US, Machine
from support.real_traces import CASES, MISSING


def whole(x, weight):
    return torch.relu(x @ weight).sin()


def not_traced(y):
    until = time.perf_counter() + 0.02
    while time.perf_counter() < until:
        pass
    return y.sin()


def broken_function():
    """A function that torch.compile compiles in two parts; the compiler takes seconds to import."""
    between = torch.compiler.disable(not_traced)

    def broken(x, weight):
        return between(x @ weight).cos()

    return broken


TRIES = 3


@pytest.fixture
def recorded(tmp_path):
    """Record a compiled function on inputs of these sizes, after two calls of the first size; give the advice.

    Of a few recordings the one with the most even steps: others' work on the machine hides what is planted.
    """

    def record(function, sizes):
        traces = [once(function, sizes, tmp_path / f"compiled{i}.pt.trace.json") for i in range(TRIES)]
        steadiest = min(traces, key=lambda trace: (trace.steps["end_ns"] - trace.steps["start_ns"]).std())
        return {row.rule: row for row in advice(Facts(steadiest))}

    yield record
    torch._dynamo.reset()


def once(function, sizes, path):
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="aot_eager", dynamic=False)
    weight = torch.randn(64, 64, requires_grad=True)
    plan = schedule(wait=1, warmup=1, active=len(sizes), repeat=1)
    ready = {"on_trace_ready": lambda p: p.export_chrome_trace(str(path))}
    with profile(activities=[ProfilerActivity.CPU], schedule=plan, **ready) as recording:
        for size in [sizes[0], sizes[0], *sizes]:
            compiled(torch.randn(size, 64), weight).sum().backward()
            recording.step()
    return read(path)


def test_a_size_that_changes_in_every_step_compiles_again(recorded):
    by_rule = recorded(whole, [8, 9, 10, 11, 12])
    row = by_rule["recompiles"]
    assert next(iter(by_rule)) == "recompiles"
    assert row.title.startswith("torch.compile recompiles in 4 of 5 steps")
    assert "frame 0 (5 versions so far) again" in row.evidence
    assert row.saving_ns > 0


def test_an_attempt_beyond_torch_s_limit_is_no_compilation(recorded):
    with torch._dynamo.config.patch(cache_size_limit=4):
        row = recorded(whole, [8, 9, 10, 11, 12, 13])["recompiles"]
    assert row.title.startswith("torch.compile recompiles in 3 of 6 steps")
    assert "frame 0 (4 versions so far) again" in row.evidence
    assert "Torch gave frame 0 up after 4 versions, and ran it uncompiled then" in row.evidence


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # Dynamo looks at what the break left behind
def test_a_graph_break_in_every_step(recorded):
    by_rule = recorded(broken_function(), [8] * 6)
    row = by_rule["graph_breaks"]
    assert next(iter(by_rule)) == "graph_breaks"
    assert row.saving_ns >= 20 * MS
    assert row.title.startswith("Graph breaks cut compiled code into pieces: 1 per step")
    assert "`Torch-Compiled Region: 0/0` evaluates 1 more region" in row.evidence


def test_a_compiled_function_in_one_piece_has_no_breaks_and_doesnt_compile(recorded):
    assert not {"recompiles", "graph_breaks"} & set(recorded(whole, [8] * 5))


def test_a_first_compilation_is_warm_up():
    machine = Machine(None)

    def step(number):
        if number == 2:
            machine.op("_compile.compile_inner (dynamo_timed)", lambda: machine.work(30 * MS))
        machine.op("aten::mm", lambda: machine.work(5 * MS))

    by_rule = {row.rule: row for row in advice(Facts(machine.steps(step, 5)))}
    assert "recompiles" not in by_rule
    assert (
        by_rule["warm_up"].title
        == "The recording holds warm-up: torch.compile compiles for 54.5 % of the average step."
    )


@pytest.mark.parametrize(
    ("regions", "rule"), [(("0/3", "0/4"), "recompiles"), (("0/4", "0/4"), "warm_up"), ((), "warm_up")]
)
def test_a_region_that_runs_for_the_first_time_after_a_compilation_says_what_was_compiled(regions, rule):
    machine = Machine(None)

    def step(number):
        for place, region in enumerate(regions or ("", "")):
            if number == 2 and place:
                machine.op("_compile.compile_inner (dynamo_timed)", lambda: machine.work(30 * MS))
            name = f"Torch-Compiled Region: {region}" if region else "aten::mm"
            if number == 2 or not place:
                machine.op(name, lambda: machine.work(5 * MS))

    by_rule = {row.rule: row for row in advice(Facts(machine.steps(step, 5)))}
    assert rule in by_rule
    assert ("frame 0 (5 versions so far)" in by_rule[rule].evidence) == (rule == "recompiles")


def test_idle_time_in_which_the_host_compiles_is_no_other_rules():
    machine = Machine()

    def step(_):
        for _ in range(20):
            machine.kernel(100_000)
        machine.wait()
        machine.op("compile_inner (dynamo_timed)", lambda: machine.work(4 * MS))

    by_rule = {row.rule: row for row in advice(Facts(machine.steps(step, 5)))}
    assert by_rule["recompiles"].saving_ns == pytest.approx(4 * MS, rel=0.02)
    assert "host_bound" not in by_rule


def test_a_device_that_waits_between_the_graphs_of_a_cut_frame():
    machine = Machine()

    def step(_):
        def piece(region):
            machine.op("CompiledFunction", lambda: [machine.kernel(200_000) for _ in range(10)])
            if region < 2:
                machine.wait()
                machine.work(3 * MS)
                machine.op(f"Torch-Compiled Region: {region + 1}/0", lambda: piece(region + 1))

        machine.op("Torch-Compiled Region: 0/0", lambda: piece(0))

    by_rule = {row.rule: row for row in advice(Facts(machine.steps(step, 5)))}
    assert by_rule["graph_breaks"].title.startswith("Graph breaks cut compiled code into pieces: 2 per step")
    assert by_rule["graph_breaks"].saving_ns == pytest.approx(6 * MS, rel=0.02)
    assert "host_bound" not in by_rule


@pytest.mark.parametrize("first_steps", [(2,), range(5)])
def test_a_first_compilation_is_unavoidable_unless_each_step_has_one(first_steps):
    """A frame is compiled again in each step; another one for the first time, in a single step or, a new one, in each."""
    machine = Machine(None)

    def compile_frame(frame, number, ns):
        def phases():
            machine.work(US)
            machine.op(f"_compile_data: compile_id={frame}/{number}", lambda: machine.work(ns))

        machine.op("_compile.compile_inner (dynamo_timed)", phases)

    def step(number):
        compile_frame(0, number + 1, 4 * MS)
        if number in first_steps:
            compile_frame(number + 1, 0, 10 * MS)
        machine.op("aten::mm", lambda: machine.work(5 * MS))

    row = {row.rule: row for row in advice(Facts(machine.steps(step, 5)))}["recompiles"]
    is_single = len(first_steps) == 1
    assert row.saving_ns == pytest.approx((4 if is_single else 14) * MS, rel=0.02)
    assert ("Not counted are first compilations, which take 10 ms in all." in row.evidence) == is_single


@pytest.mark.skipif(not CASES.is_dir(), reason=MISSING)
def test_of_two_compilations_of_a_function_the_second_can_be_saved():
    row = {row.rule: row for row in advice(Facts(read(CASES / "two_compilations.json.gz")))}["recompiles"]
    assert row.title == "torch.compile recompiles, which takes 29.3 % of the recording."
    assert 4.3e9 < row.saving_ns < 4.5e9
