"""Nsight Systems' SQLite export gives the same frames as torch's JSON of the same recording."""

import gzip

import polars as pl
import pytest

from eras import ERAS
from kinetoscope_tb.discovery import list_path
from kinetoscope_tb.discovery.header_probe import Heads
from kinetoscope_tb.errors import LogdirError, NotATrace, TraceError
from kinetoscope_tb.export.repair import repair
from kinetoscope_tb.filesystem import entry_at
from kinetoscope_tb.names.processes import Process
from kinetoscope_tb.reader import read, read_each
from kinetoscope_tb.reader.event import EventTexts
from kinetoscope_tb.reader.nsight import scan
from kinetoscope_tb.reader.nsight.schema import SOURCES, is_export
from kinetoscope_tb.trace.model import COLLECTED
from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder, same
from support.nsight import Export, connected, damaged, export_json, thread_of

ERA = next(era for era in ERAS if era.name == "torch 2.13")
GZIP = b"\x1f\x8b"
FRAMES = (*COLLECTED, "collectives", "counters", "steps")
LACKING = {  # columns that the export has no place for
    "host_events": {"external_id", "input_types", "concrete_inputs", "fwd_thread", "call_stack"},
    "launches": {"external_id"},
    "device_events": {"external_id", "blocks_per_sm", "occupancy_frac", "occupancy_limiter", "collective"},
    "syncs": {"wait_on_stream"},
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rank0.sqlite"


def plain(name, trace):
    """A frame without what depends on the form of the file, and with places of threads in place of their rows."""
    frame = getattr(trace, name).drop("offset", "length", *LACKING.get(name, ()), strict=False)
    frame = frame.with_columns(pl.col(pl.Enum, pl.Categorical).cast(pl.String))
    if "thread" in frame.columns:
        places = trace.threads.select("pid", "tid").with_row_index("thread").cast({"thread": frame.schema["thread"]})
        frame = frame.join(places, "thread", maintain_order="left").drop("thread")
    return frame


def assert_same_recording(trace, expected, names=("host_events", "launches", "device_events", "syncs", "steps")):
    assert trace.origin_ns == expected.origin_ns
    for name in names:
        ours, theirs = plain(name, trace), plain(name, expected)
        assert ours.height == theirs.height, name
        for column in ours.columns:
            differs = ours[column].ne_missing(theirs[column])
            assert not differs.any(), (
                name,
                column,
                ours[column].filter(differs)[:3],
                theirs[column].filter(differs)[:3],
            )


def three_steps():
    """Steps with operators, copies, fills, waits, two streams and a graph of two nodes."""
    builder = TraceBuilder()
    for i in range(3):
        at, call = 100_000 * i, 10 * i
        builder.step(i, at, 95_000).annotation("forward", at + 1_000, 60_000)
        shapes = {"Input Dims": [[4, 8 + i], []], "Sequence number": i}
        builder.op("aten::linear", at + 2_000, 20_000, **shapes).op("aten::addmm", at + 3_001, 12_000, **shapes)
        builder.launch(at + 4_000, 3_003, call + 1)
        sizes = {"grid": [8, 2, 1], "block": [128, 1, 1], "registers per thread": 40, "shared memory": 1024}
        builder.kernel("void gemm<float, 128>(float*)", at + 9_000, 21_000, call + 1, **sizes)
        builder.launch(at + 25_000, 2_000, call + 2, name="cudaMemcpyAsync")
        builder.memcpy(at + 31_000, 4_000, call + 2, name="Memcpy DtoH (Device -> Pinned)", stream=20, bytes=4096)
        builder.launch(at + 30_000, 1_000, call + 3, name="cudaMemsetAsync")
        builder.device("gpu_memset", "Memset (Device)", at + 36_000, 500, call + 3, bytes=64)
        builder.launch(at + 40_000, 4_000, call + 4, name="cuGraphLaunch", cat="cuda_driver")
        for node in (1, 2):
            graph = {"graph id": 5, "graph node id": 5 << 32 | node, **sizes}
            builder.kernel("fused", at + 41_000 + 3_000 * node, 2_500, call + 4, **graph)
        builder.launch(at + 70_000, 20_000, call + 5, name="cudaStreamSynchronize")
        sync = {"cuda_sync_kind": "Stream Sync", "device": 0, "stream": 7, "correlation": call + 5}
        builder.event("cuda_sync", "Stream Sync", at + 70_000, 19_000, pid=0, tid=7, **sync)
    return builder


def test_a_recording_has_the_frames_of_its_json(path):
    builder = three_steps()
    trace = read(export_json(path, builder.text()))
    assert_same_recording(trace, builder.build())
    assert trace.diagnostics == ()
    assert trace.syncs["wait_on_event"].to_list() == [-1] * 3


def test_the_training_of_all_eras_has_its_numbers(path):
    trace, expected = read(export_json(path, ERA.writer.text())), ERA.trace
    assert trace.steps["device_rows"].to_list() == expected.steps["device_rows"].to_list()
    for name, columns in {
        "kernels": ["name", "calls", "total_ns", "uses_tensor_cores", "is_communication"],
        "steps": [name for name in VIEWS["steps"].run(expected).columns if name not in ("start_ns", "cpu_exec_ns")],
        "copies": ["name", "calls", "total_ns"],
    }.items():
        ours, theirs = (VIEWS[name].run(one).select(columns) for one in (trace, expected))
        if name == "steps":  # Nsight has no Python calls, which torch's steps are sure to contain
            ours, theirs = (frame.select("step", "total_ns", "kernel_ns", "memcpy_ns") for frame in (ours, theirs))
        assert ours.equals(theirs), name


@pytest.mark.parametrize(
    "name", ["single/ncompass_h100nvl_test_trace.pt.trace.json", "claims/tracelens_h100_qwen1.5-0.5b.json.gz"]
)
def test_real_recordings_have_the_device_work_of_their_json(path, name, traces):
    text = (traces / name).read_bytes()
    expected = read(traces / name)
    trace = read(export_json(path, gzip.decompress(text) if text[:2] == GZIP else text))
    assert trace.device_events.height > 100
    for column in ("name", "device", "stream", "dur_ns", "bytes", "grid", "block", "correlation"):
        ours, theirs = (plain("device_events", one)[column] for one in (trace, expected))
        assert ours.equals(theirs), column
    assert plain("launches", trace)["name"].equals(plain("launches", expected)["name"])


def test_batches_of_any_size_give_the_same(path, monkeypatch):
    export_json(path, three_steps().text())
    whole = read(path)
    monkeypatch.setattr(scan, "ROWS", 2)
    parts = read(path)
    assert all(plain(name, whole).equals(plain(name, parts)) for name in FRAMES)


def test_ranges_of_emit_nvtx_are_operators(path):
    export = Export(path)
    for i, name in enumerate(
        [
            "aten::mm",
            "aten::addmm, seq = 12, op_id = 31, sizes = [[16], [4, 8], []], input_op_ids = [(30,0), (2,1)]",
            "autograd::engine::evaluate_function: MmBackward0, op_id = 4",
            "MmBackward0, seq = 3",
            "record_param_comms, op_id = 9, sizes = [[144]]",
            "ProfilerStep#4, op_id = 8",
            "my::kernel",
            "loss, seq = many",
            "two\nlines",
        ]
    ):
        export.range(name, 1000 * i, 1000 * i + 500, by_number=i % 2 == 0)
    ranges = read(export.close()).host_events
    same(
        ranges.select("name", "kind", "sequence", "input_shapes"),
        """
        name                                              kind        sequence  input_shapes
        aten::mm                                          operator    -1        -
        aten::addmm                                       operator    12        [[16], [4, 8], []]
        autograd::engine::evaluate_function: MmBackward0  operator    -1        -
        MmBackward0                                       operator    3         -
        record_param_comms                                operator    -1        [[144]]
        ProfilerStep#4                                    annotation  -1        -
        my::kernel                                        annotation  -1        -
        loss, seq = many                                  annotation  -1        -
        two < lines                                       annotation  -1        -
        """,
    )


def test_other_rows_of_nvtx_are_no_ranges_of_a_thread(path):
    export = Export(path)
    export.range("open", 0, None).range("inner", 100, 300).range("started", 50, 450, kind=60).range(
        "mark", 70, None, kind=34
    )
    export.range("NCCL", 0, None, kind=75).range("compute", 0, None, kind=33)
    export.insert("ANALYSIS_DETAILS", globalVid=0, duration=900, startTime=0, stopTime=900)
    trace = read(export.close())
    same(
        trace.host_events.select("name", "start_ns", "dur_ns", "is_finished", "parent"),
        """
        name   start_ns  dur_ns  is_finished  parent
        open   0         900     False        -1
        inner  100       200     True         0
        """,
    )
    same(
        trace.others.select("name", "category", "phase", "dur_ns"),
        """
        name     category         phase  dur_ns
        started  nvtx_range       X      400
        mark     user_annotation  i      -1
        """,
    )
    assert trace.diagnostics == ()


def test_graphs_that_were_recorded_as_a_whole_keep_their_device_busy(path):
    export = Export(path).call("cudaGraphLaunch_v10000", 0, 10, 1).graph(20, 500, 1, 7)
    trace = read(export.close())
    (row,) = trace.device_events.select("name", "kind", "dur_ns", "launch", "graph_id").rows()
    assert row == ("CUDA graph 7 (recorded as a whole)", "kernel", 480, 0, -1)
    assert [d.rule for d in trace.diagnostics] == ["whole_graphs"]


def test_each_process_of_a_file_is_a_recording_with_the_devices_of_the_machine(path):
    export = Export(path)
    for pid, gpu in ((100, 3), (200, 1)):
        export.insert("TARGET_INFO_GPU", id=gpu, name=f"GPU {gpu}", smCount=132, threadsPerWarp=32, maxWarpsPerSm=64)
        export.insert("TARGET_INFO_CUDA_DEVICE", gpuId=gpu, cudaId=0, pid=pid)
        for nth in (1, 2):
            export.call("cudaLaunchKernel_v7000", 10 * nth, 10 * nth + 5, nth, pid=pid, tid=pid)
            export.kernel(f"kernel {nth} of {pid}", 30 * nth, 30 * nth + 10, nth, pid=pid)
    traces = list(read_each(export.close()))
    assert [trace.meta.process for trace in traces] == [Process("100", "process 100"), Process("200", "process 200")]
    for trace, pid, gpu in zip(traces, (100, 200), (3, 1), strict=True):
        rows = trace.device_events.select("name", "device", "launch").rows()
        assert rows == [(f"kernel 1 of {pid}", gpu, 0), (f"kernel 2 of {pid}", gpu, 1)]
        assert trace.threads["pid"].to_list() == [str(pid)]
        assert trace.diagnostics == ()
        facts = {device["id"]: (device["name"], device["maxThreadsPerMultiprocessor"]) for device in trace.meta.devices}
        assert facts == {3: ("GPU 3", 2048), 1: ("GPU 1", 2048)}


def test_one_process_has_the_devices_that_it_sees(path):
    export = Export(path).kernel("k", 0, 10, 1, device=0)
    for gpu in (0, 1, 2):
        export.insert("TARGET_INFO_GPU", id=gpu, name=f"GPU {gpu}", smCount=132)
    export.insert("TARGET_INFO_CUDA_DEVICE", gpuId=2, cudaId=0, pid=1000)
    devices = read(export.close()).meta.devices
    assert [(device["id"], device["name"], device["numSms"]) for device in devices] == [(0, "GPU 2", 132)]


def test_waits_know_the_call_that_recorded_their_event(path):
    export = Export(path).call("cudaEventRecord_v3020", 0, 5, 4).call("cudaStreamWaitEvent_v3020", 6, 9, 5)
    export.record(4, event=8, sync=77).wait("Stream Wait Event", 10, 20, 5, event=8, sync=77, stream=20)
    export.wait("Event Sync", 10, 20, 5, event=9, sync=78)
    syncs = read(export.close()).syncs
    same(
        syncs.select("sync_kind", "stream", "correlation", "wait_on_event", "wait_on_record"),
        """
        sync_kind          stream  correlation  wait_on_event  wait_on_record
        Stream Wait Event  20      5            8              4
        Event Sync         7       5            9              -1
        """,
    )


def test_copies_between_devices_know_both(path):
    export = Export(path).copy(0, 10, 1, 64, "PtoP", "Device", "Device", device=1, srcDeviceId=1, dstDeviceId=0)
    same(
        read(export.close()).device_events.select("name", "from_device", "to_device"),
        """
        name                            from_device  to_device
        Memcpy PtoP (Device -> Device)  1            0
        """,
    )


def test_processes_and_threads_have_their_names(path):
    export = Export(path).range("r", 0, 10, pid=7, tid=9)
    export.insert("PROCESSES", globalPid=thread_of(7), pid=7, name="python train.py")
    for name, priority in (("pt_main_thread", 100), ("python", 10)):
        export.insert("ThreadNames", nameId=export.text(name), priority=priority, globalTid=thread_of(7, 9))
    assert read(export.close()).threads.rows() == [("7", "9", "python train.py", "pt_main_thread")]


def test_details_show_the_whole_row(path):
    export = Export(path).kernel("void k<int>(int*)", 0, 10, 3, grid=(4, 2, 1)).range("mine", 0, 5)
    trace = read(export.close())
    events = EventTexts()
    row = events.event(str(path), None, trace.device_events["offset"][0], 1).value
    assert (row["name"], row["table"], row["row"]) == ("void k<int>(int*)", "CUPTI_ACTIVITY_KIND_KERNEL", 1)
    assert (row["args"]["gridX"], row["args"]["shortName"], row["args"]["contextId"]) == (4, "void k<int>", 1)
    assert events.event(str(path), None, trace.host_events["offset"][0], 1).value["name"] == "mine"
    with pytest.raises(TraceError, match="has no row 9"):
        events.event(str(path), None, trace.device_events["offset"][0] + 8, 1)


def test_cells_of_another_type_count_as_missing(path):
    export = Export(path).kernel("k", 0, 10, 1).kernel("j", 20, 30, 2).kernel("i", 40, 50, 3).range(None, 0, 5)
    export.db.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET gridX = 'many', correlationId = 1.5 WHERE rowid = 1")
    export.db.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = x'00', demangledName = 99 WHERE rowid = 2")
    export.db.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = 30 WHERE rowid = 3")
    export.db.execute("UPDATE StringIds SET value = CAST(x'ff6b' AS TEXT) WHERE value = 'k'")
    trace = read(export.close())
    same(
        trace.device_events.select("name", "grid", "correlation", "dur_ns"),
        """
        name    grid       correlation  dur_ns
        \N{REPLACEMENT CHARACTER}k  -          -1           10
        i       [1, 1, 1]  3            0
        """,
    )
    assert [d.rule for d in trace.diagnostics] == ["odd_name", "untimed", "negative_duration"]


def test_tables_and_columns_may_be_missing(path):
    with connected(path) as db:
        db.execute("CREATE TABLE StringIds (id, value)")
        db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, shortName INT)")
        db.execute("INSERT INTO StringIds VALUES (3, 'k')")
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5, 9, 0, 3)")
    row = read(path).device_events.row(0, named=True)
    assert (row["name"], row["dur_ns"], row["device"], row["registers_per_thread"], row["grid"]) == (
        "k",
        4,
        0,
        -1,
        None,
    )


def test_other_databases_are_named(path, tmp_path):
    with connected(path) as db:
        db.execute("CREATE TABLE rocpd_kernel (id INTEGER)")
    with pytest.raises(NotATrace, match="isn't Nsight Systems' export"):
        read(path)
    with connected(tmp_path / "b.sqlite") as db:
        db.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
        db.execute("CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT 1 AS start, 2 AS end")
        db.execute("CREATE TABLE NVTX_EVENTS (start INTEGER, end AS (start + 1))")
    with pytest.raises(NotATrace, match="neither CUDA nor NVTX"):
        read(tmp_path / "b.sqlite")
    (tmp_path / "c.sqlite.gz").write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(TraceError, match="Unpack the file first"):
        read(tmp_path / "c.sqlite.gz")
    with pytest.raises(NotATrace, match=r"SQLite database.*need JSON"):
        repair(str(path), str(tmp_path / "out.json"))
    (tmp_path / "report.nsys-rep").write_bytes(b"QUADD 1")
    with pytest.raises(NotATrace, match="nsys export --type sqlite"):
        read(tmp_path / "report.nsys-rep")


def test_nothing_is_written_beside_the_file(path):
    export_json(path, three_steps().text())
    with connected(path) as db:
        db.execute("PRAGMA journal_mode = wal")
    path.chmod(0o400)
    before = path.read_bytes()
    assert read(path).device_events.height == 15
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == before


def test_a_damaged_page_costs_its_rows_alone(path, tmp_path):
    export = Export(path)
    for i in range(4000):
        export.range(f"range {i}", 10 * i, 10 * i + 5)
    export.kernel("k", 0, 10, 1).close()
    with connected(path) as db:
        (pages,) = db.execute("PRAGMA page_count").fetchone()
    broken = damaged(path, tmp_path / "broken.sqlite", lambda data: _without_page(data, b"range 2000"))
    trace = read(broken)
    assert pages > 20
    assert [d.rule for d in trace.diagnostics] == ["damaged_table"]
    assert (trace.device_events.height, 3800 < trace.host_events.height < 4000) == (1, True)


def _without_page(data, text):
    at = data.index(text) // 4096 * 4096
    return data[:at] + bytes(4096) + data[at + 4096 :]


def test_a_cut_file_is_read_or_refused(path, tmp_path):
    data = export_json(path, three_steps().text()).read_bytes()
    for end in range(16, len(data), 4099):
        (tmp_path / "cut.sqlite").write_bytes(data[:end])
        try:
            rules = [d.rule for d in read(tmp_path / "cut.sqlite").diagnostics]
        except TraceError:
            continue
        assert rules == ["damaged_table"]


def test_only_exports_are_listed(path, tmp_path):
    export_json(path, three_steps().text())
    (tmp_path / "report.rank1.sqlite").write_bytes(path.read_bytes())
    with connected(tmp_path / "mlflow.sqlite") as db:
        db.execute("CREATE TABLE runs (id INTEGER)")
    files = [(file.worker, file.span, file.shown) for file in list_path(str(tmp_path)).files]
    assert files == [("rank0", "default", "rank0.sqlite"), ("rank1", "report", "report.rank1.sqlite")]
    path.unlink()
    (tmp_path / "report.rank1.sqlite").unlink()
    with pytest.raises(LogdirError, match="no trace"):
        list_path(str(tmp_path))


@pytest.mark.parametrize("table", [source.table for source in SOURCES])
def test_the_listing_knows_the_tables_of_the_reader(table, path):
    with connected(path) as db:
        db.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
        db.execute(f"CREATE TABLE {table} (start INTEGER)")
    assert bool(Heads().head(entry_at(str(path))).is_trace) == is_export(frozenset({"StringIds", table}))


def test_environment_and_health_speak_of_nsight(path):
    export = Export(path).call("cudaLaunchKernel_v7000", 0, 5, 1).kernel("k", 10, 20, 1)
    trace = read(export.close())
    facts = dict(VIEWS["environment"].run(trace).select("fact", "value").rows())
    assert facts["Written by"] == "Nsight Systems"
    assert "torch" not in facts
    notes = {note["rule"]: note["consequence"] for note in VIEWS["health"].run(trace).rows(named=True)}
    assert "emit_nvtx" in notes["operators_off"]
    assert not notes.keys() & {"memory_off", "stacks_off", "shapes_off"}


def test_a_table_with_a_damaged_definition_is_named(path, tmp_path):
    export_json(path, three_steps().text())
    odd = damaged(
        path, tmp_path / "odd.sqlite", lambda data: data.replace(b"CREATE TABLE NVTX", b"CREATE \xd5\xffBLE NVTX")
    )
    trace = read(odd)
    assert (trace.host_events.filter(kind="operator").height, trace.device_events.height) == (0, 15)
    (finding,) = [d for d in trace.diagnostics if d.rule == "unreadable_tables"]
    assert "NVTX_EVENTS: its definition is damaged" in finding.consequence
