"""Recordings that lack rows: what can't be known of them isn't said, and what is lost comes first."""

import pytest

from kinetoscope_tb.advice.advice import advice
from kinetoscope_tb.advice.facts import Facts
from kinetoscope_tb.answer.first_screen import blocks_of, text_lines
from kinetoscope_tb.answer.recording import recording_answer
from kinetoscope_tb.diagnostics.diagnose import diagnose
from kinetoscope_tb.engine.answers import cached_frames
from kinetoscope_tb.views import EVERY_VIEW, VIEWS
from support.build import read
from support.machine import MS, US, Machine

OF_QUEUES = ("queue", "waits for the host", "launches work", "launch latency", "steps would hardly be shorter")


def without_launches(machine, *, waits=False):
    """The recording without its runtime calls, or with those alone in which the host waits."""
    machine.builder.events = [
        event
        for event in machine.builder.events
        if event["cat"] != "cuda_runtime" or (waits and "Synchronize" in event["name"])
    ]
    return machine.builder.build()


def training(host=8 * MS, *, waits=True, lengths=(1, 1, 1, 1, 1, 1)):
    """Steps of 20 kernels of 1 ms; then the host waits for them, and does something else."""
    machine = Machine()

    def step(number):
        for _ in range(20):
            machine.kernel(1 * MS)
        if waits:
            machine.wait()
        machine.op("aten::sort", lambda: machine.work(host * lengths[number]))

    machine.steps(step, len(lengths))
    return machine


def said(trace):
    return advice(Facts(trace), diagnose(trace))


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("lengths", [(1,) * 6, (1, 3, 0, 2, 1, 4)])
def test_nothing_is_said_of_queues_where_no_launch_was_recorded(lengths, waits):
    trace = without_launches(training(lengths=lengths), waits=waits)
    rows = said(trace)
    words = " ".join(f"{row.title} {row.evidence} {row.action}" for row in rows)
    assert not [
        of_queue for of_queue in OF_QUEUES if of_queue in words.replace("whether the GPU waits for the host", "")
    ]
    assert rows[0].title.startswith("Why the GPU is idle for ")
    assert rows[0].title.endswith("isn't known: which calls launched its work isn't recorded.")
    assert rows[0].confidence == "cannot_tell"
    assert rows[0].action.startswith("Record the runtime calls that launch work, too")
    assert "synchronization" not in rows[-1].title
    assert "allocation" not in rows[-1].title
    assert "Unknown: whether the GPU waits for the host" in rows[-1].evidence


def test_where_calls_that_copy_alone_are_missing_it_is_copies_that_are_named():
    machine = Machine()

    def step(_):
        for _ in range(20):
            machine.copy(50 * US, "Memcpy HtoD (Pinned -> Device)")
        machine.kernel(1 * MS)
        machine.wait()
        machine.op("aten::sort", lambda: machine.work(8 * MS))

    machine.steps(step)
    machine.builder.events = [
        event for event in machine.builder.events if "Memcpy" not in event["name"] or event["cat"] != "cuda_runtime"
    ]
    first, *_ = said(machine.builder.build())
    assert first.title.endswith(" isn't known: which calls launched its copies isn't recorded.")
    assert first.action.startswith("Record the runtime calls that make copies, too: ")


def test_title_and_evidence_say_the_same_of_which_launches_are_missing():
    machine = Machine()

    def step(number):
        for copy in range(20):
            if copy in {2 + number, 3 * number, 19 - 2 * number}:
                machine.op(f"aten::sort{copy}", lambda: machine.work((2 + number) * MS))
            machine.copy(50 * US, "Memcpy HtoD (Pinned -> Device)")
        machine.kernel(1 * MS)
        machine.wait()

    machine.steps(step)
    machine.builder.events = [
        event for event in machine.builder.events if "Memcpy" not in event["name"] or event["cat"] != "cuda_runtime"
    ]
    first, *_ = said(machine.builder.build())
    assert first.rule == "unexplained_idle"
    assert first.title.endswith(" isn't known: which calls launched its copies isn't recorded.")
    assert "the work before or after is one of 80 copies without a recorded call." in first.evidence


def test_where_the_host_is_in_a_gap_is_said_without_launches_too():
    first, *_ = said(without_launches(training()))
    assert first.rule == "repeated_gap"
    assert (
        "Which call launched the work after the largest gap isn't recorded; the host is in `aten::sort` meanwhile."
        in (first.evidence)
    )


def test_kernels_without_launches_cannot_be_rated_however_busy_the_device_is():
    (row,) = said(without_launches(training(host=100 * US)))
    assert row.title.startswith("What costs most can't be said: for 99")
    assert row.confidence == "cannot_tell"
    assert row.action.startswith("Record the runtime calls that launch work, too")


def test_the_critical_path_is_unknown_where_no_launch_was_recorded():
    machine = training(host=100 * US)
    assert "critical path is `gemm" in VIEWS["critical_path_summary"].run(machine.builder.build())["title"][0].lower()
    (row,) = VIEWS["critical_path_summary"].run(without_launches(machine)).rows(named=True)
    assert row["title"].startswith("What the critical path is can't be said: ")
    assert row["confidence"] == "cannot_tell"


def test_what_copies_are_is_said_without_launches_too():
    machine = Machine()

    def step(_):
        machine.kernel(10 * MS)
        machine.copy(2 * MS, "Memcpy DtoH (Device -> Pageable)")
        machine.wait()

    machine.steps(step)
    row = next(row for row in said(without_launches(machine)) if row.rule == "copies")
    assert row.title == "Exposed copies from the device to the host take 16.7 % of every step."
    assert row.saving_ns is None


def test_waiting_for_data_is_why_a_device_is_idle_without_launches_too():
    machine = Machine()

    def step(_):
        machine.load(8 * MS)
        for _ in range(10):
            machine.kernel(1 * MS)
        machine.wait()

    machine.steps(step)
    first, rest = said(without_launches(machine))
    assert first.rule == "data_loading"
    assert first.saving_ns is None
    assert "steps would hardly be shorter" not in rest.evidence


@pytest.mark.parametrize("waits", [False, True])
def test_steps_end_too_early_where_no_launch_says_which_device_work_is_theirs(waits):
    trace = without_launches(training(host=100 * US, waits=waits))
    (problem,) = (problem for problem in diagnose(trace) if problem.rule == "launches_not_recorded")
    assert (problem.fault is None) == waits
    if problem.fault:
        assert problem.fault.undermines == {"steps"}
        assert problem.fault.affected_ns == pytest.approx(118 * MS, rel=0.02)


def without_some_launches(machine, numbers):
    """The recording without these launches of each step, by their numbers in it."""
    calls = [event for event in machine.builder.events if event["name"] == "cudaLaunchKernel"]
    gone = {id(event) for number, event in enumerate(calls) if number % 20 in numbers}
    machine.builder.events = [event for event in machine.builder.events if id(event) not in gone]
    return machine.builder.build()


def test_a_host_that_is_late_is_still_found_where_some_launches_are_missing():
    first, *_ = said(without_some_launches(training(), (5, 6, 12)))
    assert first.rule == "host_bound"
    assert first.saving_ns is None  # it isn't known what waits for what
    assert "17 kernels per step whose launches are recorded" in first.evidence


def test_what_the_host_may_have_done_around_a_missing_launch_is_not_said_to_cost_little():
    machine, costs = training(host=2 * MS), ("synchronizing calls", "cudaMalloc")
    *_, rest = said(machine.builder.build())
    assert [cost for cost in costs if cost in rest.evidence] == list(costs)
    *_, rest = said(without_some_launches(machine, (0,)))
    assert [cost for cost in costs if cost in rest.evidence] == []


@pytest.mark.parametrize("steps", [(1, 2, 3, 4), (0, 1, 2, 3)])
def test_steps_that_lost_their_launches_with_their_work_say_nothing_of_the_host(steps):
    machine = training(host=100 * US)
    trace = lose_work(machine, steps, launches=True)
    first, *others, _ = said(trace)
    assert first.rule == "lost_rows"
    assert first.title == "4 of 6 steps lack the launches that the others have, with their work."
    assert {row.confidence for row in others} == {"cannot_tell"}
    (problem,) = (problem for problem in diagnose(trace) if problem.rule == "launches_lost")
    assert (problem.count, problem.level) == (4, "loss")
    assert problem.fault.affected_ns == pytest.approx(4 * 20 * MS, rel=0.05)


def test_a_step_without_work_that_calls_other_operators_lost_nothing():
    machine = Machine()

    def step(number):
        for _ in range(30):
            if number % 2:
                machine.op("aten::sort", lambda: machine.work(100 * US))
            else:
                machine.kernel(1 * MS)
        machine.wait()

    assert "launches_lost" not in [problem.rule for problem in diagnose(machine.steps(step, 6))]


@pytest.mark.parametrize(("dur", "is_lost"), [(400 * US, False), (2 * US, False), (9 * US, True), (14 * US, True)])
def test_steps_whose_operators_run_on_the_processor_lost_nothing(dur, is_lost):
    """An evaluation on the CPU, of large or of small tensors; launching takes 10 µs."""
    machine = Machine()

    def step(number):
        for name in ("aten::mm", "aten::add") * 20:
            if number in (2, 5):
                machine.op(name, lambda: machine.work(dur))
            else:
                machine.kernel(100 * US, op=name)
        if number not in (2, 5):
            machine.wait()

    trace = machine.steps(step, 8)
    assert ("launches_lost" in [problem.rule for problem in diagnose(trace)]) == is_lost
    assert ("lost_rows" in [claim.rule for claim in said(trace)]) == is_lost


def test_a_last_step_on_the_processor_is_left_out_since_it_launched_nothing():
    machine = Machine()

    def step(number):
        for _ in range(40):
            if number == 5:
                machine.op("aten::mm", lambda: machine.work(400 * US))
            else:
                machine.kernel(100 * US)
        machine.work(1 * MS)

    trace = machine.steps(step, 6)
    assert "Left out: step 5, since it launched no device work that was recorded." in screen(trace)


def test_steps_whose_work_is_there_without_its_launches_lost_no_work():
    machine = training(host=100 * US)
    begin = sorted(event["ts"] for event in machine.builder.events if event["name"].startswith("ProfilerStep"))[2]
    machine.builder.events = [
        event for event in machine.builder.events if event["cat"] != "cuda_runtime" or event["ts"] < begin
    ]
    first, *_ = said(machine.builder.build())
    assert first.title == "4 of 6 steps don't count, since which device work is theirs isn't recorded."


def test_a_file_that_ends_early_says_so_before_what_is_left():
    text = training(host=100 * US, waits=False).builder.text()
    trace = read(text[: int(len(text) * 0.6)])
    first, *_ = said(trace)
    assert first.rule == "lost_rows"
    assert first.title == "The file ends amid its events, and an unknown number of later ones is missing."
    assert first.evidence.startswith("It holds ")
    assert first.action.startswith("Copy the file again")


def test_what_is_lost_is_said_once_where_advice_is_withheld_for_it():
    text = training().builder.text()
    first, *rest = said(read(text[: int(len(text) * 0.6)]))
    withheld = next(row for row in rest if row.rule == "recording_faults")
    assert first.title.startswith("The file ends amid its events")
    assert "The file ends" not in withheld.evidence
    assert withheld.evidence.startswith("Part of the recording is missing. ")
    assert withheld.action == "Look again when all of the recording is there."


def test_a_file_that_ends_before_the_first_row_of_a_device_does_not_say_that_none_was_recorded():
    builder = training().builder
    builder.events.sort(key=lambda event: event["cat"] == "kernel")
    text = builder.text()
    rows = said(read(text[: text.index('"kernel"') - 200]))
    assert [row.rule for row in rows] == ["recording_faults"]
    assert "The file ends amid its events" in rows[0].evidence
    assert "ProfilerActivity" not in rows[0].action


def lose_work(machine, steps, part=1.0, *, launches=False):
    """The recording without the device rows that some steps launched, or a part of these; with their launches."""
    of_step = [
        (event["ts"], event["ts"] + event["dur"])
        for event in machine.builder.events
        if event["name"].startswith("ProfilerStep")
    ]
    calls = {
        event["args"]["correlation"]: event["ts"] for event in machine.builder.events if event["cat"] == "cuda_runtime"
    }
    spans = [of_step[step] for step in steps]
    rows = [event for event in machine.builder.events if event["cat"] == "kernel"]
    rows = [row for row in rows if any(a <= calls[row["args"]["correlation"]] < b for a, b in spans)]
    gone = {id(row) for number, row in enumerate(rows) if number % 10 < 10 * part}
    lost = {row["args"]["correlation"] for row in rows if id(row) in gone} if launches else set()
    machine.builder.events = [
        event
        for event in machine.builder.events
        if id(event) not in gone and not (event["cat"] == "cuda_runtime" and event["args"]["correlation"] in lost)
    ]
    return machine.builder.build()


def screen(trace):
    return "\n".join(text_lines(blocks_of(recording_answer(trace, EVERY_VIEW, cached_frames), "--worker"), 1000))


def test_that_most_device_work_is_lost_comes_first_with_the_steps_that_are_left():
    trace = lose_work(training(), [2, 3, 4, 5])
    first, second, *_ = said(trace)
    assert (first.rule, first.confidence) == ("lost_rows", "cannot_tell")
    assert first.title == (
        "4 of 6 steps don't count, since device work of them isn't in the recording, or not all of it."
    )
    assert first.evidence == "What follows is about steps 0 and 1."
    assert "in 2 of 2 complete steps" in second.evidence
    answer = recording_answer(trace, EVERY_VIEW, cached_frames)
    assert answer.verdict.id == "lost_rows"
    assert (answer.steps, answer.steps_left_out) == (2, 4)
    assert "Average of 2 of 6 steps: " in screen(trace)


def test_steps_that_averages_leave_out_are_among_what_cannot_be_said():
    trace = lose_work(training(), [5])
    rows = said(trace)
    assert rows[0].rule == "host_bound"
    assert "in 5 of 5 complete steps" in rows[0].evidence
    (gap,) = (gap for gap in recording_answer(trace, EVERY_VIEW, cached_frames).not_said if "step 5" in gap.topic)
    assert gap.topic == "What step 5 took."
    assert gap.reason == "Averages leave it out, since device work of it isn't in the recording, or not all of it."
    shown = screen(trace)
    assert "Average of 5 of 6 steps: " in shown
    assert "Left out: step 5, since device work of it isn't in the recording, or not all of it." in shown


def test_that_most_launches_have_no_row_comes_first_wherever_they_are():
    first, *_ = said(lose_work(training(host=100 * US), range(6), part=0.6))
    assert first.rule == "lost_rows"
    assert first.title == "72 of 120 launches (60 %) have no GPU event: much device work is lost."


def test_a_whole_recording_has_lost_nothing():
    trace = training().builder.build()
    assert "lost_rows" not in [row.rule for row in said(trace)]
    answer = recording_answer(trace, EVERY_VIEW, cached_frames)
    assert answer.steps_left_out == 0
    assert "complete steps" not in screen(trace)
