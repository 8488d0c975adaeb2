import polars as pl
import pytest

from kinetoscope_tb.measures.time.idle import Windows, gaps
from kinetoscope_tb.measures.time.idle_causes import CAUSES, gap_parts
from kinetoscope_tb.measures.time.idle_culprits import CulpritPieces, culprit_pieces
from kinetoscope_tb.reader import read
from kinetoscope_tb.views.device import gap_culprits as of_gap
from kinetoscope_tb.views.device.culprit_gaps import culprit_gaps
from kinetoscope_tb.views.device.gap_culprits import gap_culprits
from kinetoscope_tb.views.device.idle import idle
from kinetoscope_tb.views.device.idle_culprits import events_of_row, idle_culprits
from support.build import TraceBuilder, same
from support.real_traces import FOLDER, MISSING

ACTIVITIES = {
    "data loading": "late_data_loading_ns",
    "synchronizing": "late_synchronizing_ns",
    "runtime call": "late_runtime_ns",
    "operator": "late_operator_ns",
    "annotation": "late_annotation_ns",
    "python": "late_python_ns",
    "nothing recorded": "late_unrecorded_ns",
}


def loading(steps=3, work=100_000):
    """Steps that load a batch in Python for 60 of 100 µs, then launch a fill and a kernel."""
    builder = TraceBuilder()
    for step in range(steps):
        at = step * work
        builder.step(step, at, work).python("train.py(10): step", at, work).python("numpy/io.py(5): load", at, 60_000)
        builder.python("<built-in function imread>", at + 5_000, 50_000)
        builder.op("aten::zero_", at + 60_000, 5_000)
        builder.launch(at + 61_000, 2_000, 2 * step + 1).memset(at + 64_000, 1_000, 2 * step + 1)
        builder.launch(at + 64_000, 500, 2 * step + 2).kernel("k", at + 65_000, 35_000, 2 * step + 2)
    return builder


def test_one_row_says_what_the_host_did_in_every_step_and_what_always_follows():
    table = idle_culprits(loading().build())
    same(
        table,
        """
        cause           activity      host                          kind          source                total_ns  gaps  longest_ns  pattern
        host late       python        imread   function      numpy/io.py(5): load    150000    3     50000       in each of 3 steps, always before Memset (Device)
        host late       python        load                          function      numpy/io.py(5): load    30000     3     10000       in each of 3 steps, always before Memset (Device)
        launch latency  -             -                             -             -                     9000      3     3000        in each of 3 steps, always before Memset (Device)
        host late       operator      aten::zero_                   operator      train.py(10): step      3000      3     1000        in each of 3 steps, always before Memset (Device)
        """,
    )
    assert table["per_step_ns"].to_list() == [50_000, 10_000, 3_000, 1_000]
    assert table["mean_ns"].to_list() == [50_000, 10_000, 3_000, 1_000]
    assert table["steps"].to_list() == [3, 3, 3, 3]
    assert table["idle_frac"].sum() == pytest.approx(1)
    assert table["window_frac"].sum() == pytest.approx(192 / 300)


def test_while_its_thread_has_nothing_recorded_what_the_main_thread_did_counts():
    builder = TraceBuilder().step(1, 0, 100_000).op("aten::wait", 0, 50_000)
    builder.op("aten::mul", 40_000, 20_000, thread=2).launch(59_000, 500, 1, thread=2).kernel("k", 60_000, 40_000, 1)
    table = idle_culprits(builder.build()).filter(pl.col("cause") == "host late")
    assert dict(table.select("host", "total_ns").iter_rows()) == {"aten::wait": 40_000, "aten::mul": 19_000}


def test_a_copy_that_blocks_is_named_with_its_operator():
    builder = TraceBuilder().step(1, 0, 300_000).op("aten::copy_", 0, 200_000)
    builder.launch(0, 1_000, 1).kernel("k", 2_000, 8_000, 1)
    builder.launch(5_000, 190_000, 2, name="cudaMemcpyAsync").memcpy(150_000, 150_000, 2)
    (row,) = idle_culprits(builder.build()).filter(pl.col("cause") == "blocked copy").rows(named=True)
    assert (row["host"], row["kind"]) == ("cudaMemcpyAsync in aten::copy_", "runtime call")
    assert row["activity"] is None


def test_launch_latency_names_the_operator_of_the_gap_that_is_most_of_it():
    builder = TraceBuilder().op("aten::add", 0, 600).launch(0, 500, 1).kernel("k", 510, 90, 1)
    builder.op("aten::mm", 600, 100).launch(600, 5, 2).kernel("k", 610, 50, 2)
    table = idle_culprits(builder.op("aten::mm", 690, 50).launch(690, 5, 3).kernel("k", 700, 50, 3).build())
    (row,) = table.filter(pl.col("cause") == "launch latency").rows(named=True)
    assert (row["gaps"], row["longest_ns"], row["host"]) == (3, 510, None)
    assert row["pattern"] == "always before k, most of it before the work of aten::add"


def test_a_call_that_takes_long_to_launch_is_named_with_its_operator():
    builder = TraceBuilder().step(1, 0, 2_000_000).python("utils.py(121): alloc", 0, 700_000)
    builder.op("aten::arange", 0, 600_000).launch(100_000, 500_000, 1).kernel("k", 610_000, 90_000, 1)
    builder.op("aten::mm", 700_000, 100_000).launch(700_000, 5_000, 2).kernel("k", 712_000, 50_000, 2)
    rows = idle_culprits(builder.build()).filter(pl.col("cause") == "launch latency").rows(named=True)
    slow, short = rows[0], next(row for row in rows if row["host"] is None)
    assert (slow["host"], slow["source"]) == ("cudaLaunchKernel in aten::arange", "utils.py(121): alloc")
    assert slow["total_ns"] == pytest.approx(500_000, abs=10_000)
    assert (short["total_ns"], short["source"]) == (12_000, None)
    assert sum(row["total_ns"] for row in rows) == idle(builder.build())["launch_latency_ns"].max()


def test_steps_that_the_recording_cut_off_count_neither_as_time_nor_as_steps():
    table = idle_culprits(loading(3).window(0, 301_000).step(3, 300_000, 1_000).build())
    assert table["per_step_ns"].to_list() == [50_000, 10_000, 3_000, 1_000, None]
    assert table["steps"].to_list() == [3, 3, 3, 3, None]
    assert table["pattern"][0].startswith("in each of 3 steps")


def test_where_work_was_queued_the_host_is_not_to_blame():
    builder = TraceBuilder().step(1, 0, 100_000).op("aten::mm", 0, 90_000).launch(0, 1_000, 1)
    builder.kernel("k", 0, 10_000, 1).launch(9_000, 1_000, 2).kernel("k", 80_000, 20_000, 2)
    table = idle_culprits(builder.build())
    assert set(table["host"].to_list()) == {None}
    assert "unexplained" in table["cause"].to_list()


def test_a_time_range_explains_one_gap():
    table = idle_culprits(loading().build(), from_ns=100_000, to_ns=164_000)
    assert (table["total_ns"].sum(), table["gaps"].max()) == (64_000, 1)
    assert idle_culprits(loading().build(), device=1).is_empty()


def test_a_row_opens_to_its_gaps_and_to_the_calls_that_are_to_blame():
    trace = loading().build()
    row = idle_culprits(trace).row(0, named=True)
    opened = culprit_gaps(trace, device=0, culprit=row["culprit"])
    assert opened.select("start_ns", "dur_ns", "culprit_ns", "step").rows() == [
        (0, 64_000, 50_000, "0"),
        (100_000, 64_000, 50_000, "1"),
        (200_000, 64_000, 50_000, "2"),
    ]
    events = events_of_row(trace, row)
    called = trace.python_calls[events["python_calls"]]["name"].cast(pl.String).to_list()
    assert called == ["<built-in function imread>"] * 3
    assert not events["device_events"].size


def test_a_gap_opens_to_its_culprits_which_add_up_to_it():
    trace = loading().build()
    opened = gap_culprits(trace, device=0, start_ns=100_000)
    same(
        opened,
        """
        culprit_ns  cause           activity      host                          source
        50000       host late       python        imread   numpy/io.py(5): load
        10000       host late       python        load                          numpy/io.py(5): load
        3000        launch latency  -             -                             -
        1000        host late       operator      aten::zero_                   train.py(10): step
        """,
    )
    assert opened["gap_frac"].sum() == pytest.approx(1)
    events = of_gap.events_of_row(trace, opened.row(0, named=True))
    assert trace.python_calls[events["python_calls"]]["start_ns"].to_list() == [105_000]
    assert gap_culprits(trace, device=0, start_ns=7).is_empty()
    every = gap_culprits(trace)
    assert every["culprit_ns"].sum() == idle_culprits(trace)["total_ns"].sum()


def test_without_a_gap_or_a_culprit_the_largest_are_listed_up_to_a_limit(monkeypatch):
    trace = loading().build()
    every, of_gaps = culprit_gaps(trace), gap_culprits(trace)
    monkeypatch.setattr("kinetoscope_tb.views.device.culprit_gaps.MOST_ROWS", 4)
    assert culprit_gaps(trace).equals(every.head(4))
    monkeypatch.setattr("kinetoscope_tb.views.device.gap_culprits.MOST_GAPS", 2)
    longest = gaps(trace, "device", Windows.of(trace, per_step=False))
    longest = longest.sort(pl.col("end_ns") - pl.col("start_ns"), "gap", descending=[True, False]).head(2)
    assert gap_culprits(trace).equals(of_gaps.filter(pl.col("start_ns").is_in(longest["start_ns"].implode())))


def test_the_pieces_of_a_span_are_those_of_all_clipped_to_it():
    trace = loading().build()
    whole = culprit_pieces(trace)
    halves = [CulpritPieces.within(trace, 0, *span) for span in ((None, 130_000), (130_000, None))]
    length = (pl.col("end_ns") - pl.col("start_ns")).sum()
    sums, expected = (
        pieces.group_by("culprit", "gap").agg(length).sort("culprit", "gap")
        for pieces in (pl.concat([half.pieces for half in halves]), whole.pieces)
    )
    assert sums.equals(expected)


def test_rows_without_a_duration_behind_the_last_step_belong_to_no_gap():
    builder = TraceBuilder().step(0, 0, 1_000).launch(0, 100, 1).kernel("k", 0, 1_000, 1)
    builder.kernel("k", 2_000, 0).kernel("k", 1_000, 0, device=1)
    trace = builder.build()
    windows = Windows.of(trace, per_step=False)
    parts, whole = gap_parts(trace, "device", windows), gaps(trace, "device", windows)
    assert parts.select("device", "gap").rows() == whole.select("device", "gap").rows() == [(1, 0)]


def test_the_culprit_of_a_row_is_the_same_in_every_trace():
    one, other = (idle_culprits(loading(steps).build())["culprit"].to_list() for steps in (2, 5))
    assert one == other


on_real_traces = pytest.mark.skipif(not FOLDER.exists(), reason=MISSING)


@on_real_traces
@pytest.mark.parametrize(
    "path",
    [
        "claims/tracelens_h100_owlv2.json.gz",
        "claims/hta_mtia_rank_0.json.gz",
        "claims/param_resnet_kineto_rtx2080ti.json.gz",
    ],
)
def test_causes_and_activities_of_real_traces_add_up_to_the_idle_view(path):
    trace = read(str(FOLDER / path))
    table = idle_culprits(trace)
    for row in idle(trace).filter(pl.col("scope") == "device").rows(named=True):
        own = table.filter(pl.col("device") == row["device"])
        causes = dict(own.group_by("cause").agg(pl.col("total_ns").sum()).iter_rows())
        assert own["total_ns"].sum() == row["idle_ns"]
        assert causes == {name: ns for name in CAUSES if (ns := row[f"{name.replace(' ', '_')}_ns"])}
        late = dict(own.drop_nulls("activity").group_by("activity").agg(pl.col("total_ns").sum()).iter_rows())
        assert late == {name: ns for name, column in ACTIVITIES.items() if (ns := row[column])}


@on_real_traces
def test_the_largest_culprit_of_the_h100_is_the_resizing_of_images():
    row = idle_culprits(read(str(FOLDER / "claims/tracelens_h100_owlv2.json.gz"))).row(0, named=True)
    assert (row["host"], row["total_ns"], row["gaps"]) == ("zoom_shift", 528_679_836, 5)
    assert row["source"].startswith("scipy/ndimage/_interpolation.py(")
