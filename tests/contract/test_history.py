"""`kinetoscope history`: planted changes, run by run, from summaries and run.json alone."""

import csv
import io
import json

import pytest

from contract.opening import opening
from contract.running import put
from support.build import TraceBuilder

STEP_NS, BASE_NS, DAY_NS = 1_000_000, 1_790_000_000_000_000_000, 86_400 * 10**9
H100 = "NVIDIA H100 80GB HBM3"
SLOWER_AT, RUNS = 12, 18
OF_COMMUNICATION, OF_COMPUTATION = 50_000, 10_000


def recording(nth, computation, communication, device=H100, **top):
    """Three steps with a kernel and an all-reduce, and a tenth of idle time."""
    origin = BASE_NS + nth * DAY_NS
    trace = TraceBuilder(
        base_ns=origin,
        distributedInfo={"rank": 0, "world_size": 1, "backend": "nccl"},
        deviceProperties=[{"id": 0, "name": device}],
        cuda_driver_version=13000,
        **top,
    )
    at = 0
    for number in range(3):
        length = computation + communication + 100_000
        trace.step(number, at, length)
        trace.kernel("gemm", at, computation, 2 * number)
        trace.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + computation, communication, 2 * number + 1)
        at += length
    return trace.window(0, 2 * at).text()


def manifest(nth, **facts):
    versions = {"torch_version": "2.13.0" if nth < SLOWER_AT else "2.15.0", "cuda_version": "13.0"}
    return json.dumps({"schema": 1, "argv": ["train.py", "--lr", "1"], "world_size": 1, **versions, **facts})


def write_run(folder, nth, device=H100, host="node1", **facts):
    """A run, longer from SLOWER_AT on; runs differ by 0.1 % without any order."""
    jitter, is_slow = (nth * 7 % 11 - 5) * 200, nth >= SLOWER_AT
    parts = 600_000 + jitter + is_slow * OF_COMPUTATION, 300_000 + is_slow * OF_COMMUNICATION
    text = recording(nth, *parts, device, kinetoscope={"host": host})
    put(folder, f"nightly-{nth}/rank0.9.pt.trace.json", text=text)
    (folder / f"nightly-{nth}" / "run.json").write_text(manifest(nth, **facts))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for nth in range(RUNS):
        write_run(folder, nth)
    return folder


@pytest.fixture
def history(kinetoscope, runs, tmp_path_factory, monkeypatch):
    """Runs the command after `index`."""
    monkeypatch.setenv("KINETOSCOPE_CACHE", str(tmp_path_factory.getbasetemp() / "history-cache"))
    assert kinetoscope("index", str(runs))[0] == 0
    return lambda *arguments: kinetoscope("history", *(arguments or (str(runs),)))


def test_the_sentence_names_the_run_the_parts_and_what_changed_with_it(history):
    status, out, _ = history()
    assert status == 2
    assert out.splitlines()[0] == (
        "Since run 13 (nightly-12, 2026-10-03 14:13): +6 %, 1 → 1.06 ms a step, of which +5 points all_reduce, "
        "+1 computation; torch 2.13.0 → 2.15.0."
    )


def test_shares_of_the_change_add_up_to_it(history, runs):
    _, out, _ = history(str(runs), "--format", "json")
    answer = json.loads(out)
    (change,) = answer["changes"]
    assert (change["run"], answer["exit_status"], answer["compared"]) == ("nightly-12", 2, RUNS)
    assert sum(part["growth_frac"] for part in change["parts"]) == pytest.approx(change["growth_frac"], abs=1e-15)
    data = answer["data"]
    parts = (
        "computation",
        "exposed_communication",
        "exposed_copies",
        "data_loading",
        "garbage_collection",
        "other_idle",
    )
    for row in range(RUNS):
        assert sum(data[f"{part}_ns"][row] for part in parts) == data["step_ns"][row]


def test_csv_has_a_row_per_run(history, runs):
    _, out, _ = history(str(runs), "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["run"] for row in rows] == [f"nightly-{nth}" for nth in range(RUNS)]
    assert [row["change"] for row in rows if row["change"]] == ["'+6 %"]
    assert {(row["torch"], row["driver"], row["device"], row["ranks"]) for row in rows} == {
        ("2.13.0", "13.0", H100, "1"),
        ("2.15.0", "13.0", H100, "1"),
    }
    assert rows[0]["utilization_frac"][:6] == "0.8998"


def test_before_the_change_nothing_is_longer_and_too_few_runs_cannot_tell(history, runs):
    status, out, _ = history(str(runs), "--run", "nightly-?")
    assert (status, out.splitlines()[0]) == (3, "10 comparable runs can't show a change: it takes 12.")
    assert history(str(runs), "--last", "6")[0] == 3
    status, _, err = history(str(runs), "--run", "weekly-*")
    assert (status, "no run 'weekly-*'" in err) == (1, True)


def test_runs_without_a_summary_are_named_and_no_recording_is_read(kinetoscope, runs, tmp_path, monkeypatch):
    monkeypatch.setenv("KINETOSCOPE_CACHE", str(tmp_path))
    for module in ("engine.summary_loader.read_traces", "engine.files.read_traces"):
        monkeypatch.setattr(f"kinetoscope_tb.{module}", lambda *_, **__: 1 / 0)
    status, out, _ = kinetoscope("history", str(runs))
    lines = out.splitlines()
    names = ", ".join(f"nightly-{nth}" for nth in range(5))
    assert status == 3
    assert lines[:3] == [
        "0 comparable runs can't show a change: it takes 12.",
        f"Not compared, no summary: {names} and 13 more.",
        f"kinetoscope index {runs} makes the summaries that are missing, or says why it can't.",
    ]
    assert "2.15.0" in out  # what run.json says is there


def test_other_devices_programs_and_ranks_are_not_compared_and_other_machines_are_mentioned(
    kinetoscope, tmp_path, monkeypatch
):
    monkeypatch.setenv("KINETOSCOPE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "runs"
    for nth in range(SLOWER_AT):
        write_run(folder, nth, host="node2" if nth > 5 else "node1")
    put(
        folder,
        "plain/host_1.1789999990000.pt.trace.json",
        text=TraceBuilder(BASE_NS - DAY_NS).op("aten::mm", 0, 9).text(),
    )
    write_run(folder, 20, device="NVIDIA A100-SXM4-40GB")
    write_run(folder, 21, argv=["evaluate.py"])
    write_run(folder, 22)
    (folder / "nightly-20").rename(folder / "a100")
    (folder / "nightly-21").rename(folder / "evaluation")
    write_run(folder, 3, world_size=1)
    assert kinetoscope("index", str(folder))[0] == 0
    status, out, _ = kinetoscope("history", str(folder))
    assert status in (0, 2)
    assert "Not compared, other device: NVIDIA A100-SXM4-40GB: a100." in out
    assert "Not compared, other program: evaluate.py: evaluation." in out
    assert "Not compared, marks no steps: plain." in out
    assert "They ran on 2 different machines (node1, node2): a machine may be what changed." in out


def test_the_server_answers_the_same(runs, history):
    printed = json.loads(history(str(runs), "--format", "json")[1])
    with opening(runs) as served:
        answer = served.settled("history", run="nightly-3").json
        assert {**answer, "exit_status": 2} == printed
        unknown = served.settled("history", run="gone")
        assert (unknown.status, unknown.json["code"]) == (404, "not_found")


def test_without_summaries_the_server_says_what_makes_them_and_sees_them_then(kinetoscope, runs, tmp_path, monkeypatch):
    monkeypatch.setenv("KINETOSCOPE_CACHE", str(tmp_path))
    with opening(runs) as served:
        answer = served.settled("history", run="nightly-3").json
        assert answer["answers"][-1].startswith("kinetoscope index LOGDIR makes the summaries")
        kinetoscope("index", str(runs))
        assert served.settled("history", run="nightly-3").json["compared"] == RUNS
