"""What `prune` removes from a logdir and what it leaves: by age and size, and of folders that others may write to."""

import gzip
import json
import os
import shutil
import socket
import time
from pathlib import Path

import pytest

from kinetoscope import Tracer, cyclic
from kinetoscope.byte_sizes import bytes_in, size_text
from kinetoscope.errors import UsageError
from kinetoscope.journal import prune as module
from kinetoscope.journal.prune import plan_to_prune, prune

DAY_NS = 86_400 * 10**9
NOW_NS = time.time_ns()


def trace(size):
    """The content of a trace of the recorder's, of so many bytes."""
    head = b'{"kinetoscope": {"version": "1"}, "traceEvents": ['
    return head + b" " * (size - len(head) - 2) + b"]}"


def add_run(logdir, name, ages, size=1000, ranks=2, **rank_facts):
    """A run with a window for each age in days, each with a trace of every rank."""
    run = logdir / name
    status = run / ".work/status"
    status.mkdir(parents=True)
    for rank in range(ranks):
        windows = []
        for span, age in enumerate(ages, start=1):
            file = f"rank{rank}.{span}.pt.trace.json"
            (run / file).write_bytes(trace(size))
            saved_ns = NOW_NS - int(age * DAY_NS)
            windows.append({"span": span, "state": "saved", "file": file, "bytes": size, "saved_ns": saved_ns})
        facts = {"global_rank": rank, "world_size": ranks, "attempt": "x", "state": "ended", "windows": windows}
        (status / f"rank{rank}.json").write_text(json.dumps({**facts, **rank_facts}))
    module.compile_run(run)
    return run


def files(logdir):
    return sorted(str(path.relative_to(logdir)) for path in logdir.rglob("rank*.pt.trace.json*"))


def spans(plan):
    return [(window.run.name, window.span) for window in plan.windows]


def test_windows_that_are_too_old_go_but_the_newest_of_each_run(tmp_path):
    add_run(tmp_path, "a", [50, 40, 5])
    add_run(tmp_path, "nested/b", [90, 60])
    plan = plan_to_prune(tmp_path, most_days=30)
    assert spans(plan) == [("b", 1), ("a", 1), ("a", 2)]
    prune(plan)
    assert files(tmp_path) == [
        *(f"a/rank{rank}.3.pt.trace.json" for rank in range(2)),
        *(f"nested/b/rank{rank}.2.pt.trace.json" for rank in range(2)),
    ]
    windows = json.loads((tmp_path / "a/run.json").read_text())["windows"]
    assert [window["ranks"]["1"].get("pruned") for window in windows] == [True, True, None]
    assert spans(plan_to_prune(tmp_path, most_days=30)) == []


def test_the_oldest_windows_of_all_runs_go_until_the_rest_fits(tmp_path):
    add_run(tmp_path, "a", [4, 2, 1])
    add_run(tmp_path, "b", [3, 0.5])
    assert spans(plan_to_prune(tmp_path, most_bytes=10_000)) == []
    assert spans(plan_to_prune(tmp_path, most_bytes=6000)) == [("a", 1), ("b", 1)]
    plan = plan_to_prune(tmp_path, most_bytes=0)
    assert (plan.size, plan.removed_size) == (10_000, 6000)


def test_snapshots_go_with_their_window(tmp_path):
    run = add_run(tmp_path, "a", [9, 1], ranks=1)
    (run / "rank0.1.memory.pickle").write_bytes(b"\x80\x04x")
    status = json.loads((run / ".work/status/rank0.json").read_text())
    snapshot = {"span": 1, "state": "saved", "file": "rank0.1.memory.pickle", "bytes": 3, "saved_ns": 1}
    (run / ".work/status/rank0.json").write_text(json.dumps({**status, "snapshots": [snapshot]}))
    module.compile_run(run)
    prune(plan_to_prune(tmp_path, most_days=5))
    assert not (run / "rank0.1.memory.pickle").exists()
    assert json.loads((run / "run.json").read_text())["snapshots"][0]["pruned"]


@pytest.mark.parametrize(
    "change",
    [
        {"state": "saving"},
        {"state": "kept", "raw": "/x"},
        {"upload": {"state": "waiting", "url": "s3://x"}},
    ],
)
def test_windows_that_are_not_finished_stay(tmp_path, change):
    run = add_run(tmp_path, "a", [9, 1], ranks=2)
    file = run / ".work/status/rank1.json"
    status = json.loads(file.read_text())
    status["windows"][0].update(change)
    file.write_text(json.dumps(status))
    module.compile_run(run)
    assert spans(plan_to_prune(tmp_path, most_days=5)) == []


def test_a_run_that_is_written_stays(tmp_path):
    run = add_run(tmp_path, "a", [9, 1], state="recording")
    plan = plan_to_prune(tmp_path, most_days=5)
    assert (spans(plan), plan.active) == ([], (run,))
    assert spans(plan_to_prune(tmp_path, most_days=5, now_s=time.time() + 2 * 86_400)) == [("a", 1)]


def test_a_training_of_now_keeps_all_its_windows(tmp_path):
    with Tracer(tmp_path, run="a", schedule=cyclic(wait=0, warmup=1, active=1, repeat=2), scalars=False) as tracer:
        for _ in range(6):
            tracer.step()
        while len(tracer.saved_traces) < 2:
            tracer.step()
        assert plan_to_prune(tmp_path, most_bytes=0).active == (tmp_path / "a",)
    plan = plan_to_prune(tmp_path, most_bytes=0)
    assert (spans(plan), plan.foreign, plan.active) == ([("a", 2)], (), ())
    prune(plan)
    assert len(files(tmp_path)) == 1


def elsewhere(run):
    """A file of somebody else, outside of the logdir."""
    file = run.parent.parent / "elsewhere.json"
    file.write_bytes(trace(1000))
    return file


def replace_by_link(run):
    (run / "rank0.1.pt.trace.json").unlink()
    (run / "rank0.1.pt.trace.json").symlink_to(elsewhere(run))


def replace_by_folder_link(run):
    outside = run.parent.parent / "outside"
    shutil.copytree(run, outside)
    shutil.rmtree(run)
    run.symlink_to(outside)


def grow(run):
    with (run / "rank0.1.pt.trace.json").open("ab") as file:
        file.write(b" ")


def overwrite(run):
    (run / "rank0.1.pt.trace.json").write_bytes(b'{"notes": "mine"}'.ljust(1000))


def compress_other(run):
    content = gzip.compress(b'{"notes": "mine"}')
    (run / "rank0.1.pt.trace.json").write_bytes(content + b"\0" * (1000 - len(content)))


def cut_gzip(run):
    (run / "rank0.1.pt.trace.json").write_bytes(b"\x1f\x8b\x08\x00".ljust(1000, b"\xff"))


def replace_by_pipe(run):
    (run / "rank0.1.pt.trace.json").unlink()
    os.mkfifo(run / "rank0.1.pt.trace.json")


def replace_by_socket(run):
    (run / "rank0.1.pt.trace.json").unlink()
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(run)
        server.bind("rank0.1.pt.trace.json")
        os.chdir(here)


def replace_by_folder(run):
    (run / "rank0.1.pt.trace.json").unlink()
    (run / "rank0.1.pt.trace.json").mkdir()


def name(path):
    """A change of run.json that names another file for rank 0."""

    def change(run):
        elsewhere(run)
        manifest = json.loads((run / "run.json").read_text())
        manifest["windows"][0]["ranks"]["0"]["file"] = path
        (run / "run.json").write_text(json.dumps(manifest))

    return change


@pytest.mark.parametrize(
    "change",
    [
        replace_by_link,
        replace_by_folder_link,
        grow,
        overwrite,
        compress_other,
        cut_gzip,
        replace_by_pipe,
        replace_by_socket,
        replace_by_folder,
        name("../../elsewhere.json"),
        name("/etc/passwd"),
        name(".."),
        name("."),
        name("a\0b"),
        name(["x"]),
    ],
)
def test_what_the_recorder_did_not_write_stays(tmp_path, change):
    run = add_run(tmp_path / "logdir", "a", [9, 8, 1], ranks=1)
    change(run)
    before = {path for path in tmp_path.rglob("*") if not path.is_dir()}
    prune(plan_to_prune(tmp_path / "logdir", most_days=8.5))
    gone = before - set(tmp_path.rglob("*"))
    assert {path.name for path in gone} <= set()


def test_folders_without_the_recorder_s_manifest_stay(tmp_path):
    for place, content in {"x/run.json": "[]", "y/run.json": '{"windows": 3}', "z/run.json": "{" * 9999}.items():
        (tmp_path / place).parent.mkdir()
        (tmp_path / place).write_text(content)
    (tmp_path / "x/rank0.1.pt.trace.json").write_bytes(trace(100))
    plan = plan_to_prune(tmp_path, most_bytes=0, most_days=0)
    assert (plan.windows, plan.size) == ((), 0)


def test_links_in_the_logdir_are_not_followed(tmp_path):
    add_run(tmp_path / "other", "a", [9, 1])
    (tmp_path / "logdir").mkdir()
    (tmp_path / "logdir/a").symlink_to(tmp_path / "other/a")
    (tmp_path / "logdir/all").symlink_to(tmp_path / "other")
    assert plan_to_prune(tmp_path / "logdir", most_bytes=0).size == 0


@pytest.mark.parametrize(
    ("text", "size"),
    [("50GB", 50 * 10**9), ("1.5 GiB", 3 << 29), ("7", 7), ("2 kb", 2000), ("3m", 3 * 10**6), ("1 TB", 10**12)],
)
def test_sizes_are_read(text, size):
    assert bytes_in(text) == size


@pytest.mark.parametrize("text", ["", "GB", "-1 GB", "1 XB", "1e3", "nan", "9" * 5000])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(UsageError, match="isn't a size"):
        bytes_in(text)


def test_sizes_are_shown_with_their_unit():
    assert [size_text(size) for size in (5, 1500, 2 * 10**9)] == ["5 B", "1.5 KB", "2 GB"]
