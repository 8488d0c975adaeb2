"""The training's side of saving, with real writer processes."""

import contextlib
import gzip
import json
import os
import signal
from pathlib import Path

import pytest
import torch

from kinetoscope import Tracer, UsageError, cyclic
from kinetoscope.error_log import ErrorLog
from kinetoscope.job.rank_info import RankInfo
from kinetoscope.output.destination import Destination
from kinetoscope.output.scratch import scratch_root, spool_folders
from kinetoscope.output.trace_writer import TraceWriter
from kinetoscope.output.writer_process import finish_spool
from kinetoscope.process_id import is_running
from support.processes import ENVIRON
from support.waiting import LIMIT_S, wait_for

TRACE = '{"baseTimeNanoseconds": 0, "traceEvents": []}'


class Run:
    """A run whose name is settled."""

    def __init__(self, logdir, name="run"):
        self.logdir, self.name, self.token, self.is_certain = logdir, name, "token", True
        self.has_begun, self.problem = True, ""

    def is_resolved(self, _timeout_s):
        return True


@pytest.fixture
def trace_writer(tmp_path, monkeypatch):
    writers = []

    def make(place=None, **destination):
        if place is not None:
            monkeypatch.setattr("kinetoscope.output.trace_writer.current_rank_info", lambda: place)
        writers.append(TraceWriter(Run(tmp_path), ErrorLog(), Destination(**destination), facts={"schedule": None}))
        return writers[-1]

    yield make
    for each in writers:
        each.close(LIMIT_S)


def write(path):
    Path(path).write_text(TRACE)


def save(trace_writer, steps, export=write, **more):
    trace_writer.begin_window(steps - 1, {})
    trace_writer.save(export, steps, is_whole=True, is_complete=True, **more)


def manifest_of(tmp_path, run="run"):
    return json.loads((tmp_path / run / "run.json").read_text())


def test_files_are_named_by_the_template_and_lie_in_folders_of_their_own(trace_writer, tmp_path):
    each = trace_writer(file="{run_name}/ep{epoch}-ba{batch:03d}-rank{rank}{{nothing}}.json")
    save(each, 4, values={"epoch": 2})
    each.close(LIMIT_S)
    (path,) = each.saved
    assert path == tmp_path / "run" / "run" / "ep2-ba004-rank0{nothing}.json"
    assert json.loads(path.read_text())["kinetoscope"]["steps_completed"] == 4


def test_where_pipes_can_not_be_polled_the_program_writes_its_traces_when_it_closes(
    trace_writer, tmp_path, monkeypatch
):
    monkeypatch.setattr("kinetoscope.output.writer_client.HAS_PIPES_WITHOUT_WAITING", False)
    monkeypatch.setattr("subprocess.Popen", None)  # no process is started
    each = trace_writer()
    for steps in (1, 2):
        save(each, steps)
    assert each.saved == []
    each.close(LIMIT_S)
    assert [path.name for path in each.saved] == ["rank0.1.pt.trace.json.gz", "rank0.2.pt.trace.json.gz"]
    assert [window["ranks"]["0"]["state"] for window in manifest_of(tmp_path)["windows"]] == ["saved", "saved"]


def test_ranks_never_share_a_name(trace_writer, tmp_path):
    each = trace_writer(RankInfo(3, 4), file="traces/step{batch}.pt.trace.json.gz")
    save(each, 4)
    each.close(LIMIT_S)
    assert each.saved == [tmp_path / "run" / "traces" / "rank3.step4.pt.trace.json.gz"]
    window = manifest_of(tmp_path)["windows"][0]["ranks"]
    assert (window["3"]["state"], window["0"]["state"]) == ("saved", "missing")


def test_templates_and_numbers_that_can_not_work_are_refused(tmp_path):
    with pytest.raises(UsageError, match="format string"):
        Destination(file="rank{rank")
    with pytest.raises(UsageError, match=r"has \{rnk\}, .*mean \{rank\}\? There are \{run_name\}, .*\{batch_wct\};"):
        Tracer(tmp_path, file="r{rnk}.{batch}.pt.trace.json.gz")
    with pytest.raises(UsageError, match=r"has \{bucket\}"):
        Tracer(tmp_path, remote="s3://{bucket}/runs")
    for name in ("", "traces/", ".trace.json", "a/.json"):
        with pytest.raises(UsageError, match="begin with a dot"):
            Tracer(tmp_path, file=name)
    with pytest.raises(UsageError, match="keep=-2"):
        Tracer(tmp_path, keep=-2)


def test_keep_0_without_another_place_keeps_one(trace_writer, log, tmp_path):
    each = trace_writer(keep=0)
    for steps in (1, 2):
        save(each, steps)
    each.close(LIMIT_S)
    assert "would lose every trace" in log()[0]
    assert [path.name for path in (tmp_path / "run").glob("rank*")] == ["rank0.2.pt.trace.json.gz"]


def test_traces_are_copied_to_a_folder_that_is_like_the_logdir(trace_writer, tmp_path):
    remote = tmp_path / "elsewhere"
    each = trace_writer(remote=f"file://{remote}/{{run_name}}s/", keep=0)
    for steps in (1, 2):
        save(each, steps)
    each.close(LIMIT_S)
    assert sorted(path.name for path in (remote / "runs" / "run").iterdir()) == [
        "rank0.1.pt.trace.json.gz",
        "rank0.2.pt.trace.json.gz",
        "run.json",
    ]
    copied = json.loads((remote / "runs" / "run" / "run.json").read_text())
    assert [window["ranks"]["0"]["pruned"] for window in copied["windows"]] == [True, True]
    assert list((tmp_path / "run").glob("rank*")) == []


def test_a_window_that_was_not_exported_is_lost_with_its_reason_and_the_next_is_saved(trace_writer, log, tmp_path):
    each = trace_writer()
    save(each, 1, export=lambda path: None)
    save(each, 2)
    each.close(LIMIT_S)
    assert [w["ranks"]["0"]["state"] for w in manifest_of(tmp_path)["windows"]] == ["lost", "saved"]
    assert len(log()) == 1
    assert "rank0.1.pt.trace.json.gz wasn't written: the profiler wrote nothing" in log()[0]


def test_without_room_for_the_raw_file_nothing_is_exported(trace_writer, monkeypatch, tmp_path, log):
    full = {"scratch", "run"}
    monkeypatch.setattr(
        "kinetoscope.output.trace_writer.shutil.disk_usage",
        lambda path: type("Usage", (), {"free": 0 if any(name in str(path) for name in full) else 1 << 40}),
    )
    each = trace_writer()
    exported = []
    save(each, 1, export=exported.append)
    full.clear()
    full.add("scratch")
    monkeypatch.setattr(
        "kinetoscope.output.trace_writer.shutil.disk_usage",
        lambda path: type("Usage", (), {"free": 0 if ".work" not in str(path) else 1 << 40}),
    )
    save(each, 2)
    each.close(LIMIT_S)
    assert exported == []
    assert [w["ranks"]["0"]["state"] for w in manifest_of(tmp_path)["windows"]] == ["lost", "saved"]
    assert list((tmp_path / "run" / ".work" / "scratch").iterdir()) == []
    assert "has room for its 32 MiB" in log()[0]


def test_a_callback_hears_of_each_trace_and_may_fail(tmp_path, log):
    reports = []

    def on_saved(path, window):
        reports.append((path.name, window["state"], path.exists()))
        raise KeyError("callback")

    schedule = cyclic(warmup=0, active=1, repeat=2)
    with Tracer(tmp_path, run="run", schedule=schedule, on_saved=on_saved) as tracer:
        for _ in tracer.steps(range(2)):
            torch.ones(2)
    assert reports == [(f"rank0.{n}.pt.trace.json.gz", "saved", True) for n in (1, 2)]
    assert log() == ["on_saved failed: KeyError: 'callback'"]  # no recording was lost


def test_news_arrive_between_two_steps(tmp_path):
    reports = []
    schedule = cyclic(warmup=0, active=1, repeat=1)
    with Tracer(tmp_path, run="run", schedule=schedule, on_saved=lambda path, _: reports.append(path)) as tracer:
        tracer.step()

        def end_step():
            tracer.step()
            return reports

        wait_for(end_step)
    assert tracer.saved_traces == tuple(reports)


def test_a_second_recording_of_a_run_is_another_attempt_unless_it_overwrites(tmp_path):
    paths = []
    for overwrite in (False, False, True):
        with Tracer(tmp_path, run="run", overwrite=overwrite) as tracer:
            tracer.step()
        paths += tracer.saved_traces
    assert [path.relative_to(tmp_path).parts[0] for path in paths] == ["run", "run.1", "run"]
    assert manifest_of(tmp_path)["attempt"] != manifest_of(tmp_path, "run.1")["attempt"]
    assert [w["ranks"]["0"]["state"] for w in manifest_of(tmp_path)["windows"]] == ["saved"]


def writer_process_of(trace_writer):
    return trace_writer._client._process


def test_a_writer_process_that_is_killed_is_replaced(trace_writer, tmp_path):
    each = trace_writer()
    for steps in (1, 2):
        save(each, steps)
        os.kill(writer_process_of(each).pid, signal.SIGKILL)
    each.close(LIMIT_S)
    assert [path.name for path in each.saved] == [f"rank0.{n}.pt.trace.json.gz" for n in (1, 2)]
    assert manifest_of(tmp_path)["ranks"][0]["state"] == "ended"


def test_polite_signals_do_not_end_a_writer_process(trace_writer, scratch):
    each = trace_writer()
    save(each, 1)
    wait_for(lambda: each.poll() or each.saved)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(writer_process_of(each).pid, number)
    save(each, 2)
    each.close(LIMIT_S)
    assert len(each.saved) == 2
    assert each._client._starts == 1
    assert list(scratch.iterdir()) == []


def test_a_forked_process_that_outlives_the_training_does_not_keep_the_writer_process(trace_writer, log):
    each = trace_writer()
    save(each, 1)
    writer, (reading, writing) = writer_process_of(each).pid, os.pipe()
    pid = os.fork()
    if not pid:  # like a worker of a DataLoader
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    each.close(10)
    assert not is_running(writer)
    os.close(writing)
    assert os.waitpid(pid, 0)[1] == 0
    assert log() == []


def test_a_close_that_may_not_wait_leaves_the_rest_to_the_writer_process(trace_writer, tmp_path, scratch, log):
    each = trace_writer()
    save(each, 1)
    each.close(0)
    wait_for(lambda: (tmp_path / "run" / "rank0.1.pt.trace.json.gz").exists())
    assert log() == ["1 trace is still being written, by a process that outlives this one."]
    wait_for(lambda: not list(scratch.iterdir()))


PROGRAM = """
import os, signal, sys, time
import torch
from kinetoscope import Tracer, cyclic

folder, how = sys.argv[1:]
torch.set_num_threads(1)
if how == "full":
    import resource
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
losses = []
with Tracer(folder, run="run", schedule=cyclic(warmup=0, active=2, repeat=2)) as tracer:
    for step in tracer.steps(range(6)):
        losses.append(float(torch.ones(8).sum()))
        if step == 3 and how == "kill":
            while not tracer.saved_traces:
                time.sleep(0.02)
            os.kill(os.getpid(), signal.SIGKILL)
        if step == 3 and how == "group":
            os.killpg(0, signal.SIGINT)
print(sum(losses))
"""


@pytest.fixture
def run(tmp_path, scratch, forks):
    """Runs the program as a process group of its own."""
    environ = {**ENVIRON, "TMPDIR": str(scratch)}
    return lambda how, folder="logdir": forks.run("-c", PROGRAM, tmp_path / folder, how, environ=environ)


def test_a_kill_loses_only_what_was_being_recorded_and_is_named(run, tmp_path, scratch):
    code, *_ = run("kill")
    assert code == -signal.SIGKILL

    def is_settled(manifest):
        windows = [window["ranks"]["0"]["state"] for window in manifest["windows"]]
        return manifest["ranks"][0]["state"] == "killed" and windows == ["saved"]

    manifest = wait_for(lambda: manifest_of(tmp_path / "logdir"), is_right=is_settled)
    assert "since step 2" in manifest["ranks"][0]["problem"]
    wait_for(lambda: not scratch_root().exists())  # torch may leave its own folder next to it


def test_the_manifest_has_a_process_before_its_first_window(tmp_path):
    with Tracer(tmp_path, run="run", schedule=cyclic(wait=10, active=1)) as tracer:
        tracer.step()
        wait_for((tmp_path / "run" / "run.json").exists)
        (rank,) = wait_for(lambda: manifest_of(tmp_path)["ranks"])
        assert rank["state"] == "recording"
        assert Path(rank["queue"]).is_dir()  # the run's status names the spool with the remaining jobs


def test_a_signal_to_the_whole_group_saves_what_was_recorded_and_marks_it(run, tmp_path):
    code, _, err = run("group")
    assert code in (-signal.SIGINT, 130), err
    first, second = json.loads((tmp_path / "logdir" / "run" / "run.json").read_text())["windows"]
    assert (first["ranks"]["0"]["state"], second["ranks"]["0"]["state"]) == ("saved", "partial")
    assert second["ranks"]["0"]["reason"] == "exception: KeyboardInterrupt"
    trace = tmp_path / "logdir" / "run" / second["ranks"]["0"]["file"]
    assert json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]


def test_a_full_disk_costs_the_recordings_and_nothing_else(run, tmp_path):
    code, out, err = run("full")
    assert (code, out) == (0, "48.0\n"), err
    assert err.count("rank0.2.pt.trace.json.gz wasn't written") == 1
    with contextlib.suppress(FileNotFoundError):
        assert list((tmp_path / "logdir" / "run").glob("rank*")) == []


def test_a_folder_that_may_not_be_written_costs_nothing_but_the_recordings(run, tmp_path):
    (tmp_path / "logdir").mkdir(mode=0o500)
    # root may write everywhere but among the kernel's own files
    code, out, err = run("", "/proc/self/fdinfo" if os.geteuid() == 0 else "logdir")
    assert (code, out) == (0, "48.0\n"), err
    assert err.count("wasn't written") == 1


def test_what_could_not_be_written_is_finished_later(run, tmp_path, scratch):
    (tmp_path / "logdir").touch()
    code, out, err = run("")
    assert (code, out) == (0, "48.0\n"), err
    assert "The raw recording stays in" in err
    (spool,) = spool_folders()
    (tmp_path / "logdir").unlink()
    assert [window["state"] for window in finish_spool(spool)] == ["saved", "saved"]
    assert list(scratch.iterdir()) == []
    assert [w["ranks"]["0"]["state"] for w in manifest_of(tmp_path / "logdir")["windows"]] == ["saved", "saved"]
