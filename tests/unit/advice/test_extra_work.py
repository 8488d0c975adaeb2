"""Activations that the backward pass computes again, and optimizers on the host."""

import pytest

from kinetoscope_tb.advice.advice import advice
from kinetoscope_tb.advice.facts import Facts
from kinetoscope_tb.trace import Diagnostic
from kinetoscope_tb.trace.model import Fault
from support.machine import MS, US, Machine

ENGINE = "autograd::engine::evaluate_function: "


def rows(trace):
    return {row.rule: row for row in advice(Facts(trace))}


def with_checkpoints(machine):
    """Forward, and a backward pass that computes 3 ms of the forward pass again before its own 8 ms."""

    def backward():
        machine.op(ENGINE + "MmBackward0", lambda: machine.kernel(8 * MS, op="aten::mm"))

    def checkpoint():
        machine.kernel(3 * MS, op="aten::linear")
        backward()

    def step(_):
        machine.kernel(4 * MS)
        machine.op(ENGINE + "CheckpointFunctionBackward", lambda: machine.op("CheckpointFunctionBackward", checkpoint))
        machine.kernel(2 * MS, op="aten::_fused_adamw_")

    return machine.steps(step, 6)


def test_forward_operators_in_the_backward_pass_are_recomputation():
    claim = rows(with_checkpoints(Machine()))["recomputation"]
    assert claim.title.startswith("Recomputing activations in the backward pass takes 17")
    assert claim.saving_ns == pytest.approx(3 * MS, rel=0.02)
    assert claim.confidence == "high"


def test_without_reentrance_stacks_show_it():
    machine = Machine()
    hook = "torch/utils/checkpoint.py(1115): unpack_hook"

    def backward():
        machine.function(hook, lambda: machine.kernel(3 * MS, op="aten::linear"))
        machine.kernel(8 * MS, op="aten::mm")

    def step(_):
        machine.kernel(4 * MS)
        machine.op(ENGINE + "MmBackward0", backward)

    assert rows(machine.steps(step, 6))["recomputation"].saving_ns == pytest.approx(3 * MS, rel=0.02)


@pytest.mark.parametrize("has_hook", [False, True])
def test_on_the_host_operators_run_again_too(has_hook):
    machine = Machine(None)

    def again():
        machine.op("aten::linear", lambda: machine.work(3 * MS))

    def backward():
        if has_hook:
            machine.function("torch/utils/checkpoint.py(1115): unpack_hook", again)
        else:
            machine.op("CheckpointFunctionBackward", again)
        machine.op(ENGINE + "MmBackward0", lambda: machine.work(8 * MS))

    def step(_):
        machine.op("aten::linear", lambda: machine.work(4 * MS))
        machine.op(ENGINE + "CheckpointFunctionBackward", backward)

    assert rows(machine.steps(step, 6))["recomputation"].saving_ns == pytest.approx(3 * MS, rel=0.02)


def search_for_nan(machine, *names):
    """An operator of the forward pass; its function of the backward pass, and the operators below it that follow."""

    def function():
        machine.op("MmBackward0", lambda: machine.op("aten::mm", lambda: machine.work(6 * MS)))
        for name in names:
            machine.op(name, lambda: machine.work(MS // 2))

    machine.op("aten::mm", lambda: machine.work(2 * MS))
    machine.op(ENGINE + "MmBackward0", function)


CHECK = ("aten::isnan", "aten::_is_any_true", "aten::item")


def test_anomaly_detection_is_named_with_its_checks():
    machine = Machine(None)
    claim = rows(machine.steps(lambda _: search_for_nan(machine, *CHECK), 6))["anomaly_detection"]
    assert claim.title == "Anomaly detection is on, and takes at least 15.8 % of every step."
    assert claim.saving_ns == pytest.approx(1.5 * MS, rel=0.02)
    assert "Autograd looks for NaN in 1 gradient per step; it also stores" in claim.evidence
    assert claim.evidence.endswith("which only a recording with stacks shows.")


def doubtful(machine, step):
    """The advice where 4.75 ms of each of 6 steps are doubtful, by rule."""
    trace = machine.steps(step, 6)
    fault = Fault("Recording takes half of the steps", frozenset({"host_times"}), "Record less.", 6 * 4_750 * US)
    return {row.rule: row for row in advice(Facts(trace), [Diagnostic("slow", 1, "", fault=fault)])}


def test_that_anomaly_detection_is_on_is_said_where_no_time_can_be_told():
    machine = Machine(None)
    claims = doubtful(machine, lambda _: search_for_nan(machine, *CHECK))
    assert [*claims][:2] == ["anomaly_detection", "recording_faults"]
    claim = claims["anomaly_detection"]
    assert (claim.title, claim.confidence, claim.saving_ns) == ("Anomaly detection is on.", "high", None)
    assert "What that takes can't be said: 50 % of the average step is doubtful." in claim.evidence
    assert "what anomaly detection takes" in claims["recording_faults"].evidence


def test_that_the_program_collects_garbage_itself_is_said_where_no_time_can_be_told():
    machine = Machine(None)

    def step(_):
        machine.op("aten::mm", lambda: machine.work(2 * MS))
        machine.function("<built-in function collect>", lambda: machine.work(4 * MS))

    claim = doubtful(machine, step)["garbage_collection"]
    assert (claim.title, claim.saving_ns) == ("The program calls `gc.collect()` itself.", None)
    assert claim.evidence.startswith("It does so 1 time per step. What that takes can't be said:")


def test_stacks_of_forward_operators_are_part_of_anomaly_detection():
    machine = Machine(None)

    def step(_):
        machine.op("aten::mm", lambda: machine.function("torch/fx/traceback.py(497): format_stack", store))
        search_for_nan(machine, *CHECK)

    def store():
        machine.work(2 * MS)

    claim = rows(machine.steps(step, 6))["anomaly_detection"]
    assert claim.saving_ns == pytest.approx(3.5 * MS, rel=0.02)
    assert claim.evidence.endswith("that needs a gradient, for 2 ms per step.")


def test_without_stacks_anomaly_detection_may_take_all_that_forward_operators_run_by_themselves():
    machine = Machine(None)

    def step(_):
        for _ in range(20):
            machine.op("aten::mul", lambda: machine.work(MS // 4))
        search_for_nan(machine, *CHECK)

    claim = rows(machine.steps(step, 6))["anomaly_detection"]
    low, high = claim.saving_range
    assert (low < 1.5 * MS, claim.certainty) == (True, ("medium", "high"))
    # 20 of 0.25 ms, and 1 ms of the operator of 2 ms that search_for_nan begins with
    assert high == pytest.approx((1.5 + 5 + 1) * MS + 0.06 * 14.5 * MS, rel=0.02)


def test_anomaly_detection_comes_before_small_operators_that_it_makes_slower():
    machine = Machine(None)

    def step(_):
        for _ in range(300):
            machine.op("aten::mul", lambda: machine.work(15 * US))
        for _ in range(60):
            machine.op(ENGINE + "MulBackward0", check)

    def check():
        machine.op("aten::mul", lambda: machine.work(5 * US))
        for name in CHECK:
            machine.op(name, lambda: machine.work(4 * US))

    claims = rows(machine.steps(step, 6))
    assert [*claims][:2] == ["anomaly_detection", "small_operators"]
    assert claims["small_operators"].saving_ns == pytest.approx((300 * 15 + 60 * 5) * US, rel=0.01)
    assert claims["small_operators"].evidence.endswith("isn't recorded: judge this without it.")


def test_with_stacks_what_is_stored_is_known():
    machine = Machine(None)

    def step(_):
        machine.op("aten::mm", lambda: machine.function("torch/fx/traceback.py(497): format_stack", store))
        search_for_nan(machine, *CHECK)

    def store():
        machine.work(2 * MS)

    claim = rows(machine.steps(step, 6))["anomaly_detection"]
    assert (claim.confidence, claim.candidate.more_ns) == ("high", 0)


@pytest.mark.parametrize("names", [("aten::isnan", "aten::any", "aten::item"), ("aten::item",)])
def test_a_hook_that_reads_a_gradient_is_no_anomaly_detection(names):
    machine = Machine(None)
    assert "anomaly_detection" not in rows(machine.steps(lambda _: search_for_nan(machine, *names), 6))


def test_a_check_outside_of_the_backward_pass_is_no_anomaly_detection():
    machine = Machine(None)

    def step(_):
        machine.op("aten::mm", lambda: machine.work(6 * MS))
        machine.op("aten::_is_any_true", lambda: machine.work(MS))

    assert "anomaly_detection" not in rows(machine.steps(step, 6))


def test_anomaly_detection_waits_for_the_device():
    machine = Machine()

    def step(_):
        machine.kernel(4 * MS, op="aten::mm")
        machine.op(ENGINE + "MmBackward0", check)
        machine.kernel(2 * MS, op="aten::mm")

    def check():
        machine.kernel(MS, op="aten::isnan")
        machine.kernel(MS, op="aten::_is_any_true")
        machine.op("aten::item", lambda: machine.work(MS))

    claim = rows(machine.steps(step, 6))["anomaly_detection"]
    assert "and waits for the GPU to say so" in claim.evidence
    assert claim.saving_ns >= 2 * MS


def test_a_backward_pass_without_checkpoints_recomputes_nothing():
    machine = Machine()
    trace = machine.steps(lambda _: machine.op(ENGINE + "MmBackward0", lambda: machine.kernel(8 * MS)), 6)
    assert "recomputation" not in rows(trace)


def training(update, name="Optimizer.step#DeepSpeedCPUAdam.step"):
    machine = Machine()

    def step(_):
        machine.kernel(10 * MS)
        machine.annotation(name, lambda: update(machine))
        machine.wait()

    return machine.steps(step, 6)


def on_the_host(machine):
    machine.copy(2 * MS, "Memcpy DtoH (Device -> Pageable)")
    machine.wait(op="aten::copy_")
    machine.op("aten::_fused_adamw_", lambda: machine.work(6 * MS))
    machine.copy(2 * MS, "Memcpy HtoD (Pinned -> Device)")
    machine.wait(op="aten::copy_")


def test_an_optimizer_on_the_host_costs_its_copies_and_its_update():
    claim = advice(Facts(training(on_the_host)))[0]
    assert claim.rule == "host_optimizer"
    assert claim.title.startswith("The optimizer (DeepSpeedCPUAdam) runs on the host for ")
    assert claim.saving_ns == pytest.approx(10 * MS, rel=0.05)


@pytest.mark.parametrize("operator", ["aten::_fused_adamw_", ""])
def test_an_optimizer_that_launches_kernels_is_on_the_device(operator):
    def update(machine):
        machine.work(20 * MS)
        machine.kernel(2 * MS, op=operator)

    trace = training(update, "Optimizer.step#AdamW.step")
    assert "host_optimizer" not in rows(trace)


def updating(*, fused=False):
    """Adam's step in eight operators on groups of parameters, or in one."""
    passes = {"mul_": 2, "lerp_": 3, "addcmul_": 3, "sqrt": 2, "div_": 2, "add_": 2, "addcdiv_": 4}
    machine = Machine()

    def update():
        if fused:
            machine.kernel(7 * 200 * US, "multi_tensor_apply_kernel<fused_adam>", "aten::_fused_adamw_")
            return
        for name, count in passes.items():
            machine.kernel(count * 200 * US, "multi_tensor_apply_kernel", f"aten::_foreach_{name}")

    def step(_):
        for _ in range(10):
            machine.kernel(MS)
        machine.annotation("Optimizer.step#AdamW.step", update)
        machine.wait()

    return {row.rule: row for row in advice(Facts(machine.steps(step)))}


def test_adam_in_one_operator_after_the_other_could_be_fused():
    claim = updating()["grouped_optimizer"]
    assert claim.title.startswith("AdamW moves all parameters in one operator after the other, which takes 26.")
    assert claim.saving_ns == pytest.approx((18 - 7) * 200 * US, rel=0.02)
    assert "`AdamW(…, fused=True)`" in claim.action
    assert "grouped_optimizer" not in updating(fused=True)
