"""Which recordings may be exchanged, and what a reader should know about them."""

from dataclasses import replace

import polars as pl
import pytest

from kinetoscope_tb.compare.gate.comment import comment, plain
from kinetoscope_tb.compare.gate.conditions import Conditions, conditions_of, parse_conditions, problems
from kinetoscope_tb.compare.gate.decision import Question, Sample, decide
from kinetoscope_tb.compare.gate.explanation import changed_rows, explaining_rows
from kinetoscope_tb.compare.gate.numbers import parse_number
from kinetoscope_tb.compare.gate.picture import picture
from kinetoscope_tb.compare.gate.recordings import Recording, by_process, notes, why_uncertain
from kinetoscope_tb.compare.workload import Workload
from kinetoscope_tb.errors import BadParameter, NotFound
from kinetoscope_tb.views import EVERY_VIEW
from support.compare_traces import steps


def recording(process, value=100.0, host="a", started_ns=0, rows=(("kernel", "k", 10.0),)):
    frame = pl.DataFrame(rows, schema={"kind": pl.String, "name": pl.String, "value": pl.Float64}, orient="row")
    work = replace(Workload.of(steps(10, 20)), host=host)
    return Recording(process, process, (value,), frame, work, started_ns, marks_steps=True)


def test_windows_of_one_process_count_once():
    windows = [recording("p", 100.0), recording("p", 400.0), recording("q", 300.0)]
    processes = by_process(windows)
    assert [process.values[0] for process in processes] == pytest.approx([200.0, 300.0])
    assert [process.windows for process in processes] == [2, 1]
    assert notes(processes, [recording("r")])[0].startswith("Base: 3 windows of 2 processes.")


def test_machines_of_one_side_alone_leave_doubt_unless_each_recording_had_its_own():
    def side(*hosts):
        return [recording(f"{host}{nth}", host=host) for nth, host in enumerate(hosts)]

    assert "the sides ran on different machines (a; b)" in why_uncertain(side("a", "a"), side("b", "b"))
    assert why_uncertain(side("a", "b"), side("a", "b")) == ""
    assert why_uncertain(side("a", "b"), side("c", "d")) == ""
    assert why_uncertain(side("", ""), side("b", "b")) == ""


def test_other_devices_and_unmarked_steps_leave_doubt():
    other = replace(recording("q"), work=replace(recording("q").work, devices=("A100",)))
    first = replace(recording("p"), work=replace(recording("p").work, devices=("H100",)))
    assert why_uncertain([first], [other]) == "the sides are of different devices (H100; A100)"
    assert "only some of the recordings mark steps" in why_uncertain(
        [recording("p")], [replace(recording("q"), marks_steps=False)]
    )


def test_sides_recorded_one_after_the_other_are_noted():
    base, new = (
        [recording(f"{side}{at}", started_ns=at) for at in times] for side, times in (("a", (1, 2)), ("b", (3, 4)))
    )
    assert any("One side was recorded before the other" in note for note in notes(base, new))
    assert notes([base[0], new[0]], [base[1], new[1]]) == []


def test_a_number_is_the_step_or_a_row_of_a_view():
    trace = steps(10, 20)
    values = {
        name: parse_number(name, EVERY_VIEW).value(EVERY_VIEW, trace)
        for name in ("step", "overview[Kernel]", "aten::mm")
    }
    assert values == {"step": 1000.0, "overview[Kernel]": 15.0, "aten::mm": 15.0}
    with pytest.raises(NotFound):
        parse_number("aten::mn", EVERY_VIEW).value(EVERY_VIEW, trace)
    with pytest.raises(BadParameter, match="name one row"):
        parse_number("operators", EVERY_VIEW)
    with pytest.raises(BadParameter, match="above 0"):
        parse_number("overview[Communication]", EVERY_VIEW).value(EVERY_VIEW, trace)


@pytest.mark.slow  # many recordings
def test_rows_explain_and_only_those_that_changed_are_real():
    def frames(length):
        return [explaining_rows(EVERY_VIEW, steps(length + nth, length + nth + 1)) for nth in range(6)]

    rows = changed_rows(frames(10), frames(300))
    assert set(rows["verdict"]) == {"real"}
    assert ("kernel", "k_aten::mm", 290) in rows.select("kind", "name", "delta_ns").rows()
    assert changed_rows(frames(10), frames(10)).is_empty()


CONDITIONS = Conditions("base", 1, "python a.py", 5, 2.0, others_frac=0.02, cpu_mhz=3000.0)


def test_contended_and_throttled_recordings_are_named():
    others = [
        replace(CONDITIONS, others_frac=0.4),
        replace(CONDITIONS, cpu_mhz=1500.0),
        replace(CONDITIONS, cpu_limits=3),
    ]
    assert problems([CONDITIONS, CONDITIONS, *others, None]) == [
        [],
        [],
        ["contended, other processes used 40 % of the CPUs"],
        ["throttled, the CPUs ran at 1500 MHz instead of 3000"],
        ["throttled, the CPUs lowered their clock for heat 3 times"],
        [],
    ]


def test_conditions_are_read_as_they_were_written_and_nonsense_is_ignored(tmp_path):
    (tmp_path / "gate-recording.json").write_text(CONDITIONS.text())
    (tmp_path / "run").mkdir()
    assert conditions_of(str(tmp_path / "run" / "t.json")) == CONDITIONS
    for text in ("", "[]", "{", "[" * 100_000, '{"side": 1}', '{"side": "base", "nth": true}'):
        assert parse_conditions(text) is None
    assert conditions_of("s3://bucket/t.json") is None


def test_names_of_a_trace_stay_text_in_comment_and_picture():
    evil = "<script>[x](http://evil)|@team"
    decision = decide([Sample(evil, steps_of(6), steps_of(6))], Question())[0]
    svg = picture(decision, evil, "duration")
    assert "<script>" not in svg
    assert svg.count("<circle") == 12
    text = comment("cannot tell", [plain(evil)], changed_rows([recording("p").rows], [recording("q").rows]), "gate.svg")
    assert "<script>" not in text.replace("\\<", "")
    assert "![A dot per recording](gate.svg)" in text


def steps_of(count):
    return pl.Series(range(100, 100 + count)).cast(pl.Float64).to_numpy()
