"""What is said of recordings without a device: waits, contended cores, Python's own work, dominant operators."""

import numpy as np
import pytest
from hypothesis import given, settings

from kinetoscope_tb.advice.advice import advice
from kinetoscope_tb.advice.facts import Facts
from kinetoscope_tb.measures.python.whereabouts import location_at
from kinetoscope_tb.names.python_frames import describe_wait
from support.machine import MS, US, Machine
from support.strategies import builders

ACQUIRE = "<built-in method acquire of _thread.lock object at 0x7f00>"


def rows(trace):
    return {row.rule: row for row in advice(Facts(trace))}


def computing(machine, count=5):
    for _ in range(count):
        machine.op("aten::mm", lambda: machine.work(MS), **{"Input Dims": [[512, 512], [512, 512]]})


def calling(machine, frames, dur):
    """The host is in nested Python frames, the outermost first."""
    start = machine.now
    machine.work(dur)
    for frame in frames:
        machine.builder.python(frame, start, dur)


def counters(machine, cores, used):
    """The processor counters of all that was recorded so far."""
    for name, series, value in (("process cpu", "cores", cores), ("cpu", "used", used)):
        machine.builder.event("", name, 0, None, ph="C", **{series: value})


def training(extra, count=50):
    machine = Machine(None)

    def step(_):
        computing(machine)
        extra(machine)

    machine.steps(step, count)
    return machine


def test_the_main_thread_waits_for_a_queue_that_another_thread_fills():
    frames = ["train.py(12): next_batch", "queue.py(154): get", "threading.py(295): wait", ACQUIRE]
    by_rule = rows(training(lambda m: calling(m, frames, 5 * MS), 5).builder.build())
    row = by_rule["main_thread_waits"]
    assert row.title == (
        "The main thread waits for a lock or another thread for 50 % of every step, most of it in "
        "`next_batch (train.py:12)`."
    )
    assert "100 % in `queue.get` at `next_batch (train.py:12)`" in row.evidence
    assert (row.saving_ns, row.confidence) == (5 * MS, "high")
    assert next(iter(by_rule)) == "main_thread_waits"


def test_what_other_threads_wait_for_is_none_of_the_main_threads_business():
    def extra(machine):
        machine.builder.python(ACQUIRE, machine.now - 4 * MS, 4 * MS, thread=2)

    assert list(rows(training(extra, 5).builder.build())) == ["nothing_to_fix"]


def test_the_loader_and_a_collective_are_no_waits_of_their_own():
    def extra(machine):
        start = machine.now
        machine.load(5 * MS)
        machine.builder.python(ACQUIRE, start, 5 * MS)

    assert set(rows(training(extra, 5).builder.build())) == {"data_loading", "nothing_to_fix"}


@pytest.mark.parametrize(
    ("cores", "used", "rule", "confidence"),
    [
        (0.5, 0.4, "main_thread_waits", "medium"),  # off the processor, though others were free
        (0.5, 1.0, "unexplained_idle", "cannot_tell"),  # no core was free: it may have waited for one
        (None, None, "unexplained_idle", "cannot_tell"),
        (1.0, 0.6, "unexplained_idle", "cannot_tell"),
    ],
)
def test_of_time_in_which_nothing_was_recorded_only_the_counters_tell(cores, used, rule, confidence):
    machine = training(lambda m: m.work(5 * MS))
    if cores is not None:
        counters(machine, cores, used)
    first = advice(Facts(machine.builder.build()))[0]
    assert (first.rule, first.confidence, first.weight_ns) == (rule, confidence, 5 * MS)


def test_python_that_computes_between_operators_is_named_by_its_function():
    machine = training(lambda m: calling(m, ["train.py(30): augment"], 5 * MS))
    counters(machine, 1.0, 0.6)
    row = rows(machine.builder.build())["host_bound"]
    where = "most of it in `augment (train.py:30)`"
    assert row.title == f"Python code outside operators takes 50 % of every step, {where}."
    assert row.culprit.function == "train.py(30): augment"
    assert "100 % in `augment (train.py:30)`" in row.evidence
    assert (row.confidence, row.saving_ns) == ("medium", 5 * MS)


def test_without_counters_python_code_may_as_well_be_a_wait_for_a_lock():
    row = rows(training(lambda m: calling(m, ["train.py(30): augment"], 5 * MS)).builder.build())["host_bound"]
    assert row.confidence == "medium"
    assert "`with lock:`" in row.evidence


def test_the_training_loop_is_no_culprit():
    machine = Machine(None)

    def step(_):
        start = machine.now
        computing(machine)
        machine.work(5 * MS)
        machine.builder.python("train.py(3): main", start, 10 * MS)

    row = rows(machine.steps(step, 20))["host_bound"]
    assert (row.title, row.confidence) == ("Python code outside operators takes 50 % of every step.", "low")


def test_a_comprehension_is_told_by_the_function_around_it():
    frames = ["train.py(30): augment", "train.py(31): <listcomp>"]
    row = rows(training(lambda m: calling(m, frames, 5 * MS)).builder.build())["host_bound"]
    assert row.culprit.function == "train.py(30): augment"


def test_a_loader_in_the_training_process_is_told_by_its_function():
    def extra(machine):
        start = machine.now
        machine.load(5 * MS)
        machine.builder.python("data.py(8): augment", start + MS, 4 * MS)

    row = rows(training(extra, 5).builder.build())["data_loading"]
    assert row.title == "Half of every step waits for data, most of it in `augment (data.py:8)`."
    assert row.culprit.function == "data.py(8): augment"
    assert "pin_memory" not in row.action


def test_the_engine_of_autograd_is_no_python():
    frames = ["train.py(3): main", "<built-in method run_backward of torch._C._EngineBase object at 0x7f>"]
    assert "host_bound" not in rows(training(lambda m: calling(m, frames, 5 * MS), 5).builder.build())
    hook = [*frames, "train.py(9): hook"]
    assert "host_bound" in rows(training(lambda m: calling(m, hook, 5 * MS), 5).builder.build())


def test_a_measured_loss_comes_before_operators_that_take_more():
    def extra(machine):
        machine.op("aten::sin", lambda: machine.work(20 * MS))
        calling(machine, ["train.py(30): augment"], 5 * MS)

    assert list(rows(training(extra, 5).builder.build()))[:2] == ["host_bound", "host_operator"]


def test_operators_are_told_by_the_function_that_calls_them():
    def extra(machine):
        start = machine.now
        machine.op("aten::copy_", lambda: machine.work(15 * MS))
        machine.builder.python("train.py(30): to_channels", start, 15 * MS)

    row = rows(training(extra, 5).builder.build())["host_operator"]
    assert row.title == "Copies and casts take 75 % of every step, most of it in `to_channels (train.py:30)`."
    assert (row.culprit.function, row.culprit.operator) == ("train.py(30): to_channels", "aten::copy_")


def test_operators_of_an_optimizer_are_told_by_it():
    def extra(machine):
        def update():
            machine.op("aten::sqrt", lambda: machine.work(15 * MS))
            machine.work(US)

        machine.annotation("Optimizer.step#Adam.step", update)

    row = rows(training(extra, 5).builder.build())["host_operator"]
    assert row.title == "Elementwise operators take 75 % of every step, most of it in the optimizer's step (Adam)."
    assert row.action == "Let one kernel update each parameter: `Adam(…, fused=True)`."


@pytest.mark.parametrize(("kind", "is_told"), [("double", True), ("float", False), ("Scalar", False)])
def test_float64_is_told_whatever_the_operators_are(kind, is_told):
    machine = Machine(None)
    inputs = {"Input Dims": [[512, 512], [512, 512]], "Input type": [kind, kind]}

    def step(_):
        machine.op("aten::mm", lambda: machine.work(9 * MS), **inputs)
        machine.work(US)

    row = rows(machine.steps(step)).get("double_precision")
    assert (row is not None) == is_told
    if row:
        assert row.title.startswith("Operators on float64 tensors take 99.9 % of every step")
        assert row.saving_ns == pytest.approx(4.5 * MS, rel=0.01)


def attention(machine, product):
    """Attention of 2 heads over 512 tokens in separate operators."""
    scores, heads = [2, 512, 512], [2, 512, 16]
    machine.op(product, lambda: machine.work(2 * MS), **{"Input Dims": [heads, [2, 16, 512]]})
    machine.op("aten::_softmax", lambda: machine.work(3 * MS), **{"Input Dims": [scores]})
    machine.op(product, lambda: machine.work(2 * MS), **{"Input Dims": [scores, heads]})


def test_attention_in_separate_operators_is_told():
    by_rule = rows(training(lambda machine: attention(machine, "aten::bmm"), 5).builder.build())
    row = by_rule["unfused_attention"]
    assert row.title == "Attention that isn't fused takes 58.3 % of every step."
    assert "scores of 2 × 512 × 512" in row.evidence
    assert row.saving_ns == 7 * MS
    assert "unfused_attention" not in rows(training(lambda m: attention(m, "aten::sort"), 5).builder.build())


def test_other_processes_take_the_cores():
    machine = training(lambda _: None)
    counters(machine, 0.4, 1.0)
    row = rows(machine.builder.build())["host_threads"]
    assert row.title == "Other processes take the cores: the process doesn't run for 60 % of every step."
    assert row.confidence == "medium"


def test_a_process_that_is_held_back_though_cores_are_free():
    machine = training(lambda _: None)
    counters(machine, 0.4, 0.2)
    row = rows(machine.builder.build())["host_threads"]
    assert "though cores are free" in row.title
    assert "cpu.max" in row.action


@pytest.mark.parametrize(("cores", "used"), [(1.0, 0.5), (2.0, 1.0), (1.9, 0.12)])
def test_a_process_that_has_its_cores_needs_nothing(cores, used):
    machine = training(lambda _: None)
    counters(machine, cores, used)
    assert list(rows(machine.builder.build())) == ["nothing_to_fix"]


def test_counters_of_less_than_twenty_ticks_say_nothing():
    machine = training(lambda _: None, 20)
    counters(machine, 0.4, 1.0)
    assert list(rows(machine.builder.build())) == ["nothing_to_fix"]


def test_one_thread_on_a_machine_that_is_mostly_free():
    machine = training(lambda _: None)
    counters(machine, 1.0, 0.06)
    row = rows(machine.builder.build())["host_threads"]
    assert row.title == "Operators run on one core, while 94 % of the machine's cores are free."
    assert (row.confidence, row.saving_ns) == ("low", None)


def test_a_family_of_operators_that_dominates():
    def extra(machine):
        for name in ("aten::sin", "aten::mul", "aten::add_"):
            machine.op(name, lambda: machine.work(4 * MS), **{"Input Dims": [[1000, 1000]]})

    row = rows(training(extra, 5).builder.build())["host_operator"]
    assert row.title == "Elementwise operators take 70.6 % of every step."
    assert "`aten::add_` with shapes [[1000, 1000]]: 1 call" in row.evidence
    assert row.saving_ns == 12 * MS


@pytest.mark.parametrize(
    ("name", "title", "confidence"),
    [
        ("aten::sort", "Sorting and indexing take", "medium"),
        ("aten::cdist", "`aten::cdist` takes", "medium"),
        ("aten::_slow_conv2d_forward", "Convolutions without oneDNN take", "medium"),
    ],
)
def test_a_dominant_operator_is_named_with_its_calls(name, title, confidence):
    row = rows(training(lambda m: m.op(name, lambda: m.work(15 * MS)), 5).builder.build())["host_operator"]
    assert row.title == f"{title} 75 % of every step."
    assert f"most in `{name}`: 1 call per step of 15 ms each" in row.evidence
    assert row.confidence == confidence
    assert row.saving_ns == 15 * MS


def test_the_dense_gradient_of_an_embedding_is_named_for_what_fills_it():
    def extra(machine):
        machine.op(
            "aten::embedding_dense_backward",
            lambda: machine.op("aten::fill_", lambda: machine.work(15 * MS)),
        )

    row = rows(training(extra, 5).builder.build())["host_operator"]
    assert row.title == "Dense gradients of embeddings take 75 % of every step."
    assert "SparseAdam" in row.action


def test_an_operator_that_dominates_one_step_alone_is_no_finding():
    machine = Machine(None)

    def step(number):
        computing(machine)
        if number == 1:
            machine.op("aten::random_", lambda: machine.work(20 * MS))

    assert "host_operator" not in rows(machine.steps(step, 2))


def test_some_small_operators_are_enough_where_calling_them_is_all():
    machine = Machine(None)

    def step(_):
        for _ in range(20):
            machine.op("aten::add", lambda: machine.work(8 * US))
            machine.work(12 * US)

    assert "small_operators" in rows(machine.steps(step))


@pytest.mark.parametrize("name", ["aten::mm", "aten::mkldnn_convolution", "aten::convolution_backward"])
def test_matmuls_and_convolutions_that_dominate_are_what_a_training_is_for(name):
    by_rule = rows(training(lambda m: m.op(name, lambda: m.work(15 * MS)), 5).builder.build())
    assert list(by_rule) == ["nothing_to_fix"]
    assert by_rule["nothing_to_fix"].confidence == "medium"
    assert by_rule["nothing_to_fix"].evidence.endswith(" could be on this processor isn't known.")


def test_a_pause_between_small_operators_is_not_the_cost_of_calling_them():
    machine = Machine(None)

    def step(_):
        for _ in range(300):
            machine.op("aten::add", lambda: machine.work(3 * US))
            machine.work(2 * US)
        machine.work(5 * MS)

    by_rule = rows(machine.steps(step))
    assert by_rule["small_operators"].saving_ns == 1_498 * US
    assert by_rule["unexplained_idle"].size_ns == 5 * MS + 2 * US


def looping(name, times, *, parts=(), frame="train.py(40): confusion", dur=5 * US):
    """Each step calls a function that calls an operator again and again, through other functions of the program."""

    def extra(machine):
        start = machine.now
        for _ in range(times):
            begin = machine.now
            machine.op(name, lambda: machine.work(dur))
            machine.work(4 * US)
            for part in parts:
                machine.builder.python(part, begin, machine.now - begin)
        machine.builder.python(frame, start, machine.now - start)

    return rows(training(extra, 5).builder.build())


@pytest.mark.parametrize("parts", [(), ("train.py(60): one_sample",)])
def test_a_function_that_calls_small_operators_in_a_loop_is_told_with_all_its_time(parts):
    row = looping("aten::item", 600, parts=parts)["operator_loop"]
    assert row.title == "`confusion (train.py:40)` calls small operators in a loop, which takes 51.9 % of every step."
    assert row.evidence.startswith("5.4 ms of 10.4 ms, in 5 of 5 steps: with Python between them, 600 operators per ")
    assert row.evidence.endswith("it calls `aten::item` most often, 600 times.")
    assert ".tolist()" in row.action
    assert row.saving_ns == 600 * 9 * US
    assert (row.culprit.function, row.culprit.operator) == ("train.py(40): confusion", "aten::item")


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("aten::add", "aten::std"), "`aten::std` and `aten::add` most often, 300 times each."),
        (
            ("aten::add", "aten::div", "aten::mean", "aten::std", "aten::sub"),
            "`aten::sub`, `aten::std`, `aten::mean` and 2 others most often, 300 times each.",
        ),
    ],
)
def test_operators_that_a_loop_calls_equally_often_are_named_by_their_time(names, words):
    machine = Machine(None)

    def step(_):
        computing(machine)
        start = machine.now
        for _ in range(300):
            for number, name in enumerate(names):
                machine.op(name, lambda number=number: machine.work((3 + number) * US))
        machine.builder.python("data.py(7): normalize", start, machine.now - start)

    row = rows(machine.steps(step))["operator_loop"]
    assert row.evidence.endswith(f"it calls {words}")
    assert row.culprit.operator == names[-1]


def test_a_loop_over_a_batch_is_told_to_batch():
    by_rule = looping("aten::linear", 600)
    assert "`torch.vmap`" in by_rule["operator_loop"].action
    assert not {"small_operators", "host_bound"} & set(by_rule)


@pytest.mark.parametrize(
    ("times", "frame", "dur"),
    [(150, "train.py(40): confusion", 20 * US), (600, "/venv/site-packages/a.py(4): each", 5 * US)],
)
def test_a_few_calls_and_a_library_s_loop_are_no_loop_of_the_program(times, frame, dur):
    assert "operator_loop" not in looping("aten::item", times, frame=frame, dur=dur)


def test_copying_a_model_with_deepcopy_is_told_as_such():
    row = looping("aten::clone", 600, parts=("/usr/lib/python3.11/copy.py(128): deepcopy",))["operator_loop"]
    assert row.title.startswith("`confusion (train.py:40)` copies objects with `copy.deepcopy`, which takes 51.9 % ")
    assert "AveragedModel" in row.action


@pytest.mark.parametrize(("operators", "dur", "words"), [(400, 5 * US, "one parameter after"), (100, MS, "reads and")])
def test_an_optimizer_of_few_large_parameters_is_told_otherwise_than_one_of_many_small_ones(operators, dur, words):
    def extra(machine):
        def update():
            for _ in range(operators):
                machine.op("aten::mul_", lambda: machine.work(dur))
                machine.work(max(5 * US, dur // 3))

        machine.op("aten::embedding_dense_backward", lambda: machine.work(MS))
        machine.annotation("Optimizer.step#Adam.step", update)

    row = rows(training(extra, 5).builder.build())["optimizer"]
    assert words in row.title
    assert ("SparseAdam" in row.action) == (dur == MS)


def test_what_recurs_in_every_step_is_told_however_much_the_steps_differ():
    """On a machine that others use, operators take five times as long in one step as in the next."""
    machine = Machine(None)
    others, own = (140, 10, 15, 9, 93, 260), (13, 30, 43, 86, 12, 55)

    def step(number):
        machine.op("aten::mm", lambda: machine.work(others[number] * MS))
        start = machine.now
        machine.work(own[number] * MS)
        machine.builder.python("train.py(8): report", start, machine.now - start)

    row = rows(machine.steps(step, 6))["host_bound"]
    assert row.title.endswith(", most of it in `report (train.py:8)`.")
    assert row.culprit.function == "train.py(8): report"


@pytest.mark.parametrize("has_operators", [False, True])
def test_a_function_that_takes_nearly_all_of_each_step_is_named_unless_it_runs_the_operators(has_operators):
    machine = Machine(None)

    def step(_):
        start = machine.now
        if has_operators:
            computing(machine)
        machine.work(400 * MS)
        machine.builder.python("train.py(7): free_memory", start, machine.now - start)
        if not has_operators:
            computing(machine)

    row = rows(machine.steps(step, 5))["host_bound"]
    assert ("free_memory" in row.title) != has_operators


def test_a_loop_of_large_operators_is_none():
    assert "operator_loop" not in looping("aten::item", 600, dur=40 * US)


def test_operators_that_compute_beside_small_ones_are_no_cost_of_the_loop():
    """As `aten::addmm`, which computes itself and calls `aten::expand`."""

    def extra(machine):
        def compute():
            machine.op("aten::expand", lambda: machine.work(2 * US))
            machine.work(MS)

        start = machine.now
        for _ in range(300):
            machine.op("aten::addmm", compute)
        machine.builder.python("train.py(40): validate", start, machine.now - start)

    assert "operator_loop" not in rows(training(extra, 5).builder.build())


def test_an_operator_that_calls_many_itself_is_no_loop_of_its_function():
    """As `aten::gru`, which runs an operator for each time step."""

    def extra(machine):
        def unroll():
            for _ in range(600):
                machine.op("aten::addmm", lambda: machine.op("aten::expand", lambda: machine.work(5 * US)))
                machine.work(4 * US)

        start = machine.now
        machine.op("aten::gru", unroll)
        machine.builder.python("model.py(9): forward", start, machine.now - start)

    assert "operator_loop" not in rows(training(extra, 5).builder.build())


def test_a_loop_inside_an_operator_is_told():
    def extra(machine):
        def loop():
            machine.work(US)
            start = machine.now
            for _ in range(600):
                machine.op("aten::mul", lambda: machine.work(5 * US))
                machine.work(4 * US)
            machine.builder.python("model.py(9): forward", start, machine.now - start)

        machine.op("Custom", loop)

    row = rows(training(extra, 5).builder.build())["operator_loop"]
    assert row.culprit.operator == "aten::mul"


def test_the_optimizer_and_the_small_operators_share_the_time_of_calling():
    machine = Machine(None)

    def small(count):
        for _ in range(count):
            machine.op("aten::add", lambda: machine.work(5 * US))

    def step(_):
        small(300)
        machine.annotation("Optimizer.step#Adam.step", lambda: small(200))

    by_rule = rows(machine.steps(step))
    assert (by_rule["small_operators"].saving_ns, by_rule["optimizer"].saving_ns) == (1_500 * US, 1_000 * US)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (ACQUIRE, "waits for a lock or another thread"),
        ("<built-in method acquire of _thread.RLock object at 0x1>", "waits for a lock or another thread"),
        ("<built-in method get of _queue.SimpleQueue object at 0x1>", "waits for a lock or another thread"),
        ("<built-in function sleep>", "sleeps"),
        ("<built-in function waitpid>", "waits for another process"),
        ("<built-in method poll of select.poll object at 0x1>", "waits for a file or a socket"),
        ("<built-in method read of _io.BufferedReader object at 0x1>", "waits for a file or a socket"),
        ("<built-in method mm of type object at 0x1>", ""),
        ("train.py(3): wait", ""),
    ],
)
def test_frames_that_wait(frame, words):
    assert describe_wait(frame) == words


def test_a_place_of_the_program_is_outside_the_libraries():
    machine = Machine(None)
    frames = ["train.py(3): main", "/usr/lib/python3.11/json/__init__.py(5): dumps", "<built-in function len>"]
    calling(machine, frames, MS)
    trace = machine.steps(lambda _: machine.op("aten::mm", lambda: machine.work(MS)), 1)
    place = location_at(trace, 0, MS // 2)
    assert place is not None
    assert (place.frame, place.caller) == ("<built-in function len>", "train.py(3): main")
    assert place.words == "`len` at `main (train.py:3)`"
    assert location_at(trace, 0, MS + MS // 2) is None


@settings(max_examples=60, deadline=None)
@given(builders())
def test_the_parts_of_the_host_add_up_to_each_step_and_no_two_rules_claim_the_same_time(builder):
    facts = Facts(builder.build())
    parts = facts.host_time.lengths
    assert (np.sum(list(parts.values()), axis=0) == facts.length).all()
    assert min(int(part.min(initial=0)) for part in parts.values()) >= 0
    assert (facts.calling_in_optimizer <= parts["calling"]).all()
    if not facts.has_device:
        assert sum(row.weight_ns for row in advice(facts) if row.rule != "profiler_overhead") <= facts.step_ns + 10


def test_python_inside_an_operator_is_named():
    def backward(machine):
        def body():
            machine.op("aten::mul", lambda: machine.work(50 * US))
            machine.function("quant.py(77): backward", lambda: machine.work(2 * MS))

        machine.op("QuantBackward", body)

    claim = rows(training(backward).builder.build())["python_operator"]
    assert claim.title == (
        "Python inside the operator `QuantBackward` takes 28.4 % of every step, most of it in `backward (quant.py:77)`."
    )
    assert claim.saving_ns == pytest.approx(2 * MS, rel=0.01)
    in_cpp = training(lambda m: m.op("my::op", lambda: m.work(2 * MS)))
    assert "python_operator" not in rows(in_cpp.builder.build())


def test_copies_are_named_where_matmuls_take_more():
    def copying(machine):
        for _ in range(20):
            machine.op("aten::copy_", lambda: machine.work(100 * US))

    claim = rows(training(copying).builder.build())["host_operator"]
    assert claim.title.startswith("Copies and casts take 28.6 % of every step")
    little = training(lambda m: m.op("aten::copy_", lambda: m.work(500 * US)))
    assert "host_operator" not in rows(little.builder.build())
