"""Who is named: what the host does after a wait, or the wait; the function, the operator, and the steps."""

import re

import pytest

from kinetoscope_tb.advice.advice import advice
from kinetoscope_tb.advice.facts import Facts
from support.machine import MS, US, Machine

PRODUCTS = 8
ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::MulFunctor<float>>"


def rows(trace):
    return {row.rule: row for row in advice(Facts(trace))}


def first(trace):
    return advice(Facts(trace))[0]


def compute(machine, count=PRODUCTS):
    for _ in range(count):
        machine.kernel(MS)


def logging(function=None, steps=10, logs=lambda number: True):
    """The loss is read in each step; then in some steps the host writes for 6 ms, in a function if stacks are recorded."""
    machine = Machine()

    def write():
        machine.work(6 * MS)

    def step(number):
        compute(machine)
        machine.wait()
        if logs(number):
            machine.function(function, write) if function else write()

    return machine.steps(step, steps)


def test_a_function_of_a_library_is_named_if_the_loop_itself_calls_it():
    claim = first(logging("/usr/lib/python3.11/site-packages/wandb/run.py(9): log"))
    assert claim.title.endswith("most of it in `log (/usr/lib/python3.11/site-packages/wandb/run.py:9)`.")


def test_what_the_host_does_after_a_wait_is_not_the_waits():
    claim = first(logging("logger.py(31): write_scalars"))
    assert claim.rule == "host_bound"
    assert claim.title.endswith("of every step, most of it in `write_scalars (logger.py:31)`.")
    assert claim.saving_ns == pytest.approx(6 * MS, rel=0.05)
    assert "synchronizing" not in rows(logging("logger.py(31): write_scalars"))


def test_what_the_host_does_for_long_after_a_wait_saves_nothing_of_what_other_waits_cost():
    machine = Machine()

    def step(_):
        for pause in [*[800 * US] * 10, 7 * MS]:
            compute(machine, 4)
            machine.wait()
            machine.work(pause)

    by_rule = rows(machine.steps(step))
    assert list(by_rule)[:2] == ["synchronizing", "host_bound"]
    assert by_rule["host_bound"].title.startswith(
        "The GPU waits for the host for 11.8 % of every step, most of it in code after"
    )
    assert by_rule["host_bound"].saving_ns == pytest.approx(7 * MS, rel=0.05)
    assert by_rule["synchronizing"].saving_ns >= 10 * 800 * US


def test_code_that_was_not_recorded_is_named_by_what_it_follows():
    claim = first(logging())
    assert claim.title.endswith("most of it in code after `aten::_local_scalar_dense` that wasn't recorded.")


def test_a_function_of_few_steps_is_named_with_them():
    claim = first(logging("logger.py(31): write_scalars", 12, lambda number: number in (3, 7)))
    assert claim.rule == "longer_host_steps"
    assert claim.title == (
        "Steps 3 and 7 take 1.75 times as long as the median step: `write_scalars (logger.py:31)` runs in them alone."
    )
    assert claim.saving_ns == pytest.approx(MS, rel=0.05)


def test_the_function_around_the_whole_step_is_no_culprit():
    machine = Machine()

    def work():
        compute(machine)
        machine.wait()
        machine.function("metrics.py(8): update", lambda: machine.work(6 * MS))

    claim = first(machine.steps(lambda _: machine.function("train.py(5): train_step", work)))
    assert claim.title.endswith("most of it in `update (metrics.py:8)`.")


def test_an_operator_is_named_before_a_shorter_range_around_some_of_its_calls():
    machine = Machine()

    def sort():
        machine.op("mylib::sort", lambda: machine.work(6 * MS))

    def step(_):
        machine.annotation("forward", lambda: (machine.kernel(MS), sort(), machine.wait(), sort()))
        machine.annotation("backward", lambda: (machine.kernel(MS), machine.wait(), sort()))

    claim = first(machine.steps(step))
    assert claim.title.endswith("most of it in `mylib::sort`.")
    assert claim.culprit.operator == "mylib::sort"


def test_a_function_is_gone_with_what_of_it_is_hidden():
    """Half of it runs while the device still works: the host could launch that much earlier in the next step."""
    machine = Machine()

    def step(_):
        compute(machine)
        machine.function("tokenizer.py(3): encode", lambda: machine.work(12 * MS))

    assert first(machine.steps(step, 20)).saving_ns == pytest.approx(4 * MS, rel=0.1)


@pytest.mark.parametrize("operator", ["aten::_local_scalar_dense", "aten::nonzero"])
def test_reads_in_a_loop_save_what_the_host_could_launch_meanwhile(operator):
    """60 kernels of 12 µs, each of which the host waits for; an operator takes it 10 µs, and the read 20 µs."""
    machine = Machine()

    def read():
        machine.work(10 * US)
        machine.call("cudaStreamSynchronize", max(machine.free - machine.now, 0) + 2 * US)
        machine.work(10 * US)

    def step(_):
        compute(machine, 2)
        for _ in range(60):
            machine.kernel(12 * US, op="aten::mean")
            machine.op(operator, read)

    claim = first(machine.steps(step, 8))
    assert claim.rule == "synchronizing"
    assert f"`{operator}`" in claim.evidence
    assert claim.saving_ns == pytest.approx(60 * 20 * US, rel=0.25)


def test_a_loop_of_tiny_kernels_names_its_operator():
    """400 kernels of 3 µs, each of which takes the host 10 µs, and the device 1 µs to begin."""
    machine = Machine()

    def step(_):
        compute(machine, 2)
        machine.wait()
        for _ in range(400):
            machine.kernel(3 * US, op="aten::roll")

    claim = first(machine.steps(step, 6))
    assert claim.rule == "launch_bound"
    assert claim.title.endswith("most of it before kernels of `aten::roll` (399 times per step).")
    assert claim.saving_ns == pytest.approx(400 * 6 * US, rel=0.05)


def after_wait(kernel, work, wait=None):
    """Steps whose host waits for a kernel, and then does something else."""
    machine = Machine()

    def step(_):
        machine.kernel(kernel)
        if wait:
            machine.wait(*wait)
        machine.function("metrics.py(8): update", lambda: machine.work(work))

    return first(machine.steps(step, 8))


def test_a_wait_that_empties_the_queue_before_is_told_with_what_its_end_saves():
    claim = after_wait(20 * MS, 5 * MS, ("cudaStreamSynchronize", "aten::_local_scalar_dense"))
    assert claim.title.endswith("most of it in `update (metrics.py:8)`.")
    assert "the host waited for the GPU in `aten::_local_scalar_dense` (.item()" in claim.evidence
    assert claim.evidence.endswith(" the host would run ahead, which would save 5.01 ms.")
    assert "Or let it run ahead: don't wait for results on the host within the step" in claim.action


def test_a_barrier_is_told_to_go():
    claim = after_wait(20 * MS, 5 * MS, ("cudaDeviceSynchronize", "profile"))
    assert "torch.cuda.Event" in claim.action


@pytest.mark.parametrize("wait", [None, ("cudaStreamSynchronize", "aten::_local_scalar_dense")])
def test_where_the_host_is_the_slower_one_no_wait_is_why(wait):
    claim = after_wait(MS, 20 * MS, wait)
    assert "most of it in `update (metrics.py:8)`" in claim.title
    assert "run ahead" not in claim.evidence
    assert claim.action.startswith("Shorten what the host does")


def test_an_optimizer_that_goes_by_parameter_counts_with_its_kernels():
    machine = Machine()

    def update():
        for _ in range(300):
            machine.kernel(20 * US, ELEMENTWISE, "aten::mul_", 5 * US)

    def step(_):
        machine.kernel(20 * MS)
        machine.annotation("Optimizer.step#AdamW.step", update)

    by_rule = rows(machine.steps(step))
    assert by_rule["optimizer"].title.startswith("AdamW updates one parameter after the other, which costs 22.8 %")
    assert "300 operators and 300 kernels per step" in by_rule["optimizer"].evidence
    assert ", and 6 ms of kernels" in by_rule["optimizer"].evidence
    assert "elementwise" not in by_rule


def launching(body, steps=4):
    """Steps in which a device waits for many short kernels, those of `body(machine)` among them."""
    machine = Machine()

    def step(_):
        for _ in range(150):
            machine.kernel(5 * US, host=20 * US)
        body(machine)

    return machine.steps(step, steps)


def small_kernels(machine, count):
    for _ in range(count):
        machine.kernel(5 * US, host=20 * US)


def test_a_function_in_which_most_of_launching_lies_is_named():
    trace = launching(lambda machine: machine.function("nms.py(9): suppress", lambda: small_kernels(machine, 300)))
    claim = first(trace)
    assert claim.rule == "launch_bound"
    assert claim.title.endswith(", most of it in `suppress (nms.py:9)`.")
    assert claim.culprit.function == "nms.py(9): suppress"


def test_a_function_that_takes_much_of_the_time_and_launches_hardly_anything_is_named_with_its_part():
    def add_noise(machine):
        machine.work(1_500 * US)
        small_kernels(machine, 2)

    claim = first(launching(lambda machine: machine.function("noise.py(9): add_noise", lambda: add_noise(machine))))
    assert claim.rule == "launch_bound"
    assert " % of that time in `add_noise (noise.py:9)`." in claim.title


def test_a_part_of_the_program_that_takes_its_share_is_not_named():
    trace = launching(lambda machine: machine.function("model.py(9): forward", lambda: small_kernels(machine, 75)))
    assert "model.py" not in first(trace).title


def test_the_machinery_of_torch_is_no_culprit():
    claim = first(logging("torch/nn/modules/module.py(1783): _call_impl"))
    assert "most of it in code after `aten::_local_scalar_dense`" in claim.title


def stalls(function=None):
    """Steps of 10 ms, of which every fifth one saves a checkpoint for 30 ms."""
    machine = Machine()

    def save():
        machine.work(30 * MS)

    def step(number):
        compute(machine)
        machine.wait()
        if number % 5 == 1:
            machine.function(function, save) if function else save()

    return machine.steps(step, 10)


@pytest.mark.parametrize("function", ["save.py(7): save_checkpoint", None])
def test_steps_for_which_a_device_waits_are_told_with_what_runs_in_them_alone(function):
    claim = first(stalls(function))
    assert claim.rule == "longer_host_steps"
    assert claim.title.startswith("Steps 1 and 6 take 4.")
    assert claim.title.endswith(
        "`save_checkpoint (save.py:7)` runs in them alone." if function else "the GPU waits for the host."
    )
    assert claim.saving_ns == pytest.approx(6 * MS, rel=0.05)
    assert "host_bound" not in rows(stalls(function))


@pytest.mark.parametrize("write_ms", [20, 0])
def test_a_function_that_mostly_copies_in_one_step_is_told_and_not_its_copies(write_ms):
    machine = Machine()

    def save():
        machine.copy(60 * MS, "Memcpy DtoH (Device -> Pageable)")
        machine.wait(op="aten::copy_")
        machine.work(write_ms * MS)

    def step(number):
        compute(machine)
        machine.wait()
        if number == 5:
            machine.function("train.py(90): save_state", save)

    claims = advice(Facts(machine.steps(step, 10)))
    assert claims[0].title.startswith("Step 5 takes ")
    assert claims[0].title.endswith("as the median step: `save_state (train.py:90)` runs in it alone.")
    waits = " and waits 20 ms longer for the host" if write_ms else ""
    assert claims[0].evidence.startswith(f"The GPU copies 60 ms longer{waits} there than in the others, in 1 of 10")
    assert claims[0].saving_ns == pytest.approx((60 + write_ms) / 10 * MS, rel=0.02)
    assert "copies" not in [claim.rule for claim in claims]
    assert "copies" not in claims[-1].title
    assert " Part of the above: " in claims[-1].evidence


def test_an_operator_of_copies_is_no_reason_for_a_longer_step():
    machine = Machine()

    def step(number):
        compute(machine)
        if number == 5:
            machine.copy(60 * MS, "Memcpy DtoH (Device -> Pageable)")
        machine.wait()

    assert first(machine.steps(step, 10)).title.startswith("Exposed copies from the device to the host take ")


def test_a_wait_that_is_the_smaller_part_of_a_longer_step_is_not_its_reason():
    machine = Machine()

    def step(number):
        for _ in range(70 if number == 5 else 10):
            machine.kernel(MS)
        machine.wait()
        machine.work(40 * MS if number == 5 else 0)

    titles = [claim.title for claim in advice(Facts(machine.steps(step, 10)))]
    assert any(
        title.startswith("The GPU waits for the host for 3") and "of step 5, longer" in title for title in titles
    )


@pytest.mark.parametrize("stacks", [True, False])
def test_where_nothing_runs_in_longer_steps_alone_it_is_told_how_to_see_it(stacks):
    machine = Machine()

    def forward(number):
        compute(machine)
        machine.wait()
        machine.work(60 * MS if number == 6 else 0)
        compute(machine)

    def step(number):
        if stacks:
            machine.function("model.py(50): forward", lambda: forward(number))
        else:
            forward(number)
        machine.wait()

    claim = first(machine.steps(step, 10))
    assert claim.title.endswith("as the median step: the GPU waits for the host.")
    where = ", with the host in `forward (model.py:50)`." if stacks else "."
    assert f" The longest wait takes 60 ms{where}" in claim.evidence
    assert claim.action.startswith("The trace doesn't say what the host does there")
    assert ("`with_stack=True`" in claim.action, "py-spy" in claim.action) == (not stacks, True)


def test_a_cause_on_the_host_comes_before_the_host_in_general():
    machine = Machine()

    def step(_):
        machine.load(6 * MS)
        small_kernels(machine, 500)

    claims = advice(Facts(machine.steps(step)))
    assert [claim.rule for claim in claims[:2]] == ["data_loading", "launch_bound"]
    assert claims[0].saving_ns < claims[1].saving_ns


def test_how_much_of_the_time_a_function_takes_is_of_all_that_the_title_names():
    """While the profiler itself works, for 3 ms, nothing can be saved; but the host is late then, too."""

    def add_noise(machine):
        machine.function("noise.py(9): add_noise", lambda: (machine.work(1_500 * US), small_kernels(machine, 2)))
        start = machine.now
        machine.work(3 * MS)
        machine.builder.event("overhead", "Activity Buffer Request", start, 3 * MS, pid=-1, tid=0)

    claim = first(launching(add_noise))
    (part,) = re.findall(r", ([\d.]+) % of that time in `add_noise \(noise.py:9\)`", claim.title)
    assert float(part) / 100 * claim.size_ns == pytest.approx(1_520 * US, rel=0.02)
