"""Markers: what is written for whom, and when."""

import threading

import pytest

from kinetoscope.composer import Callback, Profiler, ProfilerAction, State, TraceHandler

SKIP, WARMUP, ACTIVE, SAVE = ProfilerAction
NOTHING_ELSE = {"sys_prof_cpu": False, "torch_prof_profile_memory": False, "torch_prof_with_flops": False}


class Notes(TraceHandler):
    def __init__(self):
        self.all = []

    def process_duration_event(self, name, categories, is_start, timestamp, wall_clock_time_ns):
        self.all.append(f"{name}{'+' if is_start else '-'}{int(timestamp.batch)}{''.join(categories)}")

    def process_instant_event(self, name, categories, timestamp, wall_clock_time_ns):
        self.all.append(f"{name}.{int(timestamp.batch)}")

    def process_counter_event(self, name, categories, timestamp, wall_clock_time_ns, values):
        self.all.append(f"{name}={values}")

    def process_chrome_json_trace_file(self, filepath):
        self.all.append(f"file {filepath.name}")


@pytest.fixture
def training():
    """A training with these actions, batch by batch, and what is noted of it."""

    def of(*actions):
        notes = Notes()
        profiler = Profiler(
            lambda state: actions[min(int(state.timestamp.batch), len(actions) - 1)], notes, **NOTHING_ELSE
        )
        state = State("run", profiler=profiler)
        state.__enter__()
        return profiler, state, notes.all

    return of


def own(notes):
    return [note for note in notes if not note.startswith("event/")]


def test_a_marker_needs_a_training():
    with pytest.raises(RuntimeError, match="bind_to_state"):
        Profiler(lambda state: ACTIVE, **NOTHING_ELSE).marker("m")


def test_all_recorded_actions_have_markers_the_saved_batch_too(training):
    profiler, state, notes = training(SKIP, WARMUP, ACTIVE, SAVE)
    for _ in range(4):
        with profiler.marker("m", categories=("c",)):
            pass
        state.step()
    assert own(notes) == ["m+1c", "m-1c", "m+2c", "m-2c", "m+3c", "m-3c"]
    assert [note for note in notes if note.startswith("event/batch+")] == [
        "event/batch+1",
        "event/batch+2",
        "event/batch+3",
    ]


def test_what_began_while_recording_is_ended_and_what_didn_t_has_no_end(training):
    profiler, state, notes = training(ACTIVE, SKIP, ACTIVE, SKIP)
    marker, other = profiler.marker("m"), profiler.marker("o")
    marker.start()
    state.step()
    marker.finish()
    other.start()
    state.step()
    other.finish()
    assert own(notes) == ["m+0", "m-1"]


def test_the_decorator_gives_what_the_function_does_and_nests_in_itself(training):
    profiler, _, notes = training(ACTIVE)

    @profiler.marker("f")
    def factorial(n):
        """Doc."""
        return 1 if n < 2 else n * factorial(n - 1)

    @profiler.marker("g")()
    def one():
        return 1

    assert (factorial(3), one(), factorial.__doc__) == (6, 1, "Doc.")
    assert own(notes) == ["f+0"] * 3 + ["f-0"] * 3 + ["g+0", "g-0"]


def test_starting_twice_and_ending_what_never_began_are_mistakes_of_the_program(training):
    profiler, _, _ = training(ACTIVE)
    marker = profiler.marker("m")
    with pytest.raises(RuntimeError, match="finished before"):
        marker.finish()
    marker.start()
    with pytest.raises(RuntimeError, match="twice"):
        marker.start()
    other = threading.Thread(target=lambda: (marker.start(), marker.finish()))
    other.start()
    other.join()
    marker.finish()
    marker.start()


def test_an_exception_ends_the_range(training):
    profiler, _, notes = training(ACTIVE)
    with pytest.raises(KeyError), profiler.marker("m"):
        raise KeyError
    assert own(notes) == ["m+0", "m-0"]


def test_there_is_one_marker_of_a_name_and_later_calls_change_what_they_say(training):
    profiler, state, notes = training(WARMUP, ACTIVE)
    marker = profiler.marker("m", categories=["a"])
    assert profiler.marker("m") is marker
    assert marker.categories == ("a",)
    assert profiler.marker("m", actions=[ACTIVE], categories=["b"]) is marker
    for _ in range(2):
        with marker:
            marker.instant()
            marker.counter({"x": 1})
        state.step()
    assert own(notes) == ["m+1b", "m.1", "m={'x': 1}", "m-1b"]


def test_instants_at_both_ends_if_requested(training):
    profiler, _, notes = training(ACTIVE)
    with profiler.marker("m", record_instant_on_start=True, record_instant_on_finish=True):
        pass
    assert own(notes) == ["m+0", "m.0", "m.0", "m-0"]


def test_files_of_other_profilers_go_to_all_handlers(training, tmp_path):
    profiler, _, notes = training(SKIP)
    more = Notes()
    profiler.trace_handlers = [*profiler.trace_handlers, more]
    profiler.record_chrome_json_trace_file(str(tmp_path / "other.json"))
    assert (notes[-1], more.all) == ("file other.json", ["file other.json"])


def test_callbacks_hear_what_composer_s_do_in_its_order():
    heard = []

    class Listener(Callback):
        def __getattribute__(self, name):
            return lambda state, logger: heard.append(
                f"{name} {int(state.timestamp.epoch)}.{int(state.timestamp.batch)}"
            )

    with State("run", callbacks=[Listener()]) as state:
        for _ in range(2):
            for batch in state.steps([1, 2], samples=lambda batch: 10 * batch):
                assert batch == int(state.timestamp.batch_in_epoch) + 1
    assert heard[-2:] == ["epoch_end 2.4", "close 2.4"]
    assert heard[:7] == [
        "init 0.0", "epoch_start 0.0", "batch_start 0.0", "batch_end 0.1", "batch_start 0.1", "batch_end 0.2", "epoch_end 1.2",
    ]  # fmt: skip
    assert (state.dataloader_len, int(state.timestamp.sample), int(state.timestamp.sample_in_epoch)) == (2, 60, 0)
    assert state.timestamp.batch.value == 4
    assert state.timestamp.total_wct >= state.timestamp.batch_wct
