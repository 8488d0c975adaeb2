"""Which views say that a fault of the recording makes their numbers doubtful."""

import json

import pytest

from kinetoscope_tb.engine.notes import doubt
from kinetoscope_tb.reader import read
from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder
from support.machine import MS, US

_EVENTS = 40


def recording(lost=()):
    """Launches of 1 ms each, some without their kernels."""
    builder = TraceBuilder()
    for number in range(1, _EVENTS + 1):
        begin = number * MS
        builder.op("aten::mm", begin, 30 * US).launch(begin + 5 * US, 5 * US, number)
        if number not in lost:
            builder.kernel("gemm", begin + 15 * US, 900 * US, number)
    return builder


def notes(trace):
    return {name: note for name, view in VIEWS.items() if (note := doubt(trace, view))}


def test_a_sound_recording_raises_no_doubt():
    assert notes(recording().build()) == {}


def test_every_view_of_what_was_recorded_says_that_the_file_is_cut(tmp_path):
    file = tmp_path / "rank0.pt.trace.json"
    file.write_text(recording().text()[:-200])
    found = notes(read(str(file)))
    assert {VIEWS[name].entry for name in found} == {view.entry for view in VIEWS.values()} - {"Trace health"}
    assert "advice" not in found  # which withholds verdicts itself
    assert set(found.values()) == {
        "All of the recording is doubtful: the file ends amid its events, and an unknown number of later ones is missing."
    }


def test_lost_kernels_make_idle_time_and_totals_of_kernels_doubtful_but_not_memory():
    found = notes(recording(lost=range(10, 20)).build())
    assert {"idle", "critical_path", "kernels", "operators", "steps"} <= set(found)
    assert not {"memory_curve", "memory_events", "health", "environment"} & set(found)
    assert found["idle"].startswith("Up to ")
    assert "10 of 40 launches" in found["idle"]


def test_a_fault_that_is_small_for_the_steps_is_for_trace_health_alone():
    found = recording(lost=[20]).build()
    assert notes(found) == {}


def test_views_of_idle_time_say_how_much_of_it_is_not_in_the_recording_and_keep_their_numbers():
    trace = TraceBuilder().step(1, 0, 100).launch(0, 5, 1).kernel("a", 5, 15, 1).kernel("k", 40, 30).build()
    found = {name: note for name, note in notes(trace).items() if "ran nothing" in note}
    assert set(found) == {"overview", "steps", "idle", "exposed_time"}
    assert found["idle"].endswith(
        "For 50 % of step 1 it isn't known why the GPU ran nothing: which calls launched the work isn't recorded."
    )
    assert VIEWS["idle"].frame(trace, {})["idle_frac"][0] == 0.55


def test_work_from_before_the_recording_is_said_in_one_sentence_which_a_page_has_once():
    trace = TraceBuilder().step(1, 0, 100 * MS).launch(2 * MS, 5 * US, 1).kernel("a", 60 * MS, 40 * MS, 1).build()
    found = notes(trace)
    assert {"idle", "idle_culprits", "gaps", "critical_path", "overview"} <= set(found)
    assert set(found.values()) == {
        "60 % of step 1 isn't in the recording: the GPU may have been busy then. The first GPU event begins 58 ms after "
        "its launch, though no earlier one was recorded."
    }


def test_before_work_that_was_queued_behind_something_the_device_may_have_been_busy():
    trace = TraceBuilder().step(1, 0, 100 * US).launch(10 * US, 5 * US, 1).kernel("a", 50 * US, 50 * US, 1).build()
    assert notes(trace)["idle"] == "50 % of step 1 isn't in the recording: the GPU may have been busy then."


def test_a_device_none_of_whose_launches_are_recorded_may_have_been_busy_as_idle_says():
    trace = TraceBuilder().step(1, 0, 100).kernel("a", 5, 15).kernel("k", 40, 30).build()
    assert VIEWS["idle"].frame(trace, {})["not_shown_ns"][0] == 55
    assert notes(trace)["idle"] == (
        "For 55 % of step 1 it isn't known why the device ran nothing: which calls launched the work isn't recorded."
    )


def test_what_is_not_in_the_recording_is_said_of_all_its_steps_in_their_own_words():
    marked = TraceBuilder().step(1, 0, 100).step(2, 100, 100).kernel("a", 5, 15).kernel("k", 140, 30).build()
    assert " of the steps it isn't known why the device ran nothing" in notes(marked)["idle"]
    whole = TraceBuilder().kernel("a", 5, 15).kernel("k", 40, 30).build()
    assert " of the time it isn't known why the device ran nothing" in notes(whole)["idle"]


@pytest.mark.parametrize("form", ["text", "json", "csv"])
def test_the_command_prints_the_note_above_the_rows(tmp_path, capsys, form):
    from kinetoscope_tb.cli import main

    file = tmp_path / "rank0.pt.trace.json"
    file.write_text(recording().text()[:-200])
    with pytest.raises(SystemExit):
        main(["view", "idle", str(file), "--format", form])
    printed = capsys.readouterr()
    note = "All of the recording is doubtful"
    if form == "json":
        assert json.loads(printed.out)["note"].startswith(note)
    else:
        assert (printed.err if form == "csv" else printed.out).startswith(note)


def test_what_recording_costs_is_doubtful_as_a_whole_as_trace_health_says():
    """4 of 8 ms are idle, 2 of 6 without the profiler: a share that is 17 % smaller, but 25 % of the time is recording."""
    builder = TraceBuilder(kinetoscope={"usual_step": {"median_ns": 6 * MS, "steps": 40}}).step(1, 0, 8 * MS)
    builder.allocations(200, 0, 8 * MS)
    trace = builder.launch(0, 5 * US, 1).kernel("k", 10 * US, 4 * MS, 1).build()
    assert {note[:47] for note in notes(trace).values()} == {"Up to 25 % of recorded step 1 is doubtful: the "}


def capturing(of_step):
    """A step of 10 ms that captures a graph for some of it, and launches its only kernel after that."""
    begin = (
        TraceBuilder()
        .step(1, 0, 10 * MS)
        .op("aten::mm", 0, 9 * MS)
        .launch(10 * US, US, 8, name="hipStreamBeginCapture")
    )
    begin.launch(of_step - US, US, 9, name="hipStreamEndCapture")
    return begin.launch(9 * MS, 5 * US, 1).kernel("gemm", 9 * MS + 10 * US, 900 * US, 1).build()


def test_a_recording_of_a_capture_says_so_on_every_page_about_devices():
    found = notes(capturing(8 * MS))
    pages = {"Overview", "Idle", "Critical path", "Operators", "Modules", "Python", "Annotations", "Kernels"}
    assert {VIEWS[name].entry for name in found} == pages
    assert set(found.values()) == {
        "Up to 79.9 % of step 1 is doubtful: graphs are captured for 79.9 % of the steps, and nothing that is captured "
        "runs then."
    }
    assert notes(capturing(4 * MS)) == {}
