"""Recordings as summaries: kept, read anew, broken, and read by processes that die."""

import json
import os
import signal
from concurrent.futures import BrokenExecutor, Future
from dataclasses import replace

import polars as pl
import pytest

from kinetoscope_tb.discovery import Logdir, list_traces
from kinetoscope_tb.engine.answers import compute
from kinetoscope_tb.engine.cache import Cache
from kinetoscope_tb.engine.cache.summary_entry import PackedSummary, pack_summary
from kinetoscope_tb.engine.cache.values import BrokenEntry
from kinetoscope_tb.engine.executors import local_executors
from kinetoscope_tb.engine.summary_loader import (
    ExecutorFactory,
    files_of,
    load_summaries,
    ranks_of,
    read_all,
    summary_of_file,
)
from kinetoscope_tb.errors import TraceError
from kinetoscope_tb.views import RUN_VIEWS
from support.simulated import Truth, simulated, write


@pytest.fixture(scope="module")
def logdir(tmp_path_factory):
    """Four ranks, of which one holds no trace."""
    folder = tmp_path_factory.mktemp("logdir")
    write(simulated(Truth(ranks=4, steps=3)), folder / "run")
    (folder / "run" / "rank2.1.pt.trace.json").write_text('{"traceEvents": 7}', encoding="utf-8")
    return folder


def listed(logdir):
    listing = list_traces([Logdir(str(logdir))])
    return listing, files_of(listing, listing.files[0], "span")


class FakeExecutor:
    """An executor that does each job at once, or breaks over a file as a process does that is killed."""

    def __init__(self, deadly=(), seen=None):
        self.deadly, self.seen, self.is_broken = deadly, seen if seen is not None else [], False

    def submit(self, job, path):
        future = Future()
        self.seen.append(path)
        if self.is_broken or any(name in path for name in self.deadly):
            self.is_broken = True
            future.set_exception(BrokenExecutor("a process ended"))
        else:
            try:
                future.set_result(job(path))
            except TraceError as error:
                future.set_exception(error)
        return future

    def shutdown(self, wait=True, *, cancel_futures=False):
        pass


def test_what_was_read_once_is_not_read_again(logdir, tmp_path):
    listing, files = listed(logdir)
    cache, seen = Cache(tmp_path), []
    progress = []
    first = ranks_of(
        listing,
        files[0],
        files,
        load_summaries(files, cache, ExecutorFactory(lambda: FakeExecutor(seen=seen), 2), progress.append),
    )
    again = ranks_of(
        listing, files[0], files, load_summaries(files, cache, ExecutorFactory(lambda: FakeExecutor(seen=seen), 2))
    )
    assert len(seen) == 4 + 1  # the broken one is tried again
    assert progress == [1, 2, 3, 4]
    assert [member.problem for member in again.members if member.problem] == [
        member.problem for member in first.members if member.problem
    ]
    assert first.calls.equals(again.calls)
    assert first.steps.equals(again.steps)
    assert [m.summary and m.summary.facts for m in first.members] == [
        m.summary and m.summary.facts for m in again.members
    ]
    assert [(member.worker, str(logdir) in member.problem) for member in first.members if member.problem] == [
        ("rank2", False)
    ]
    assert first.matches["members"].to_list() == [3, 3, 3]


def test_an_entry_that_was_damaged_is_made_anew(logdir, tmp_path):
    _, files = listed(logdir)
    cache = Cache(tmp_path)
    list(load_summaries(files[:1], cache, ExecutorFactory(FakeExecutor, 1)))
    entry = next(tmp_path.glob("*.ranks"))
    whole = entry.read_bytes()
    for damaged in (whole[:50], whole[: len(whole) // 2] + b"\x00\xff" + whole[len(whole) // 2 + 2 :], b""):
        entry.write_bytes(damaged)
        assert cache.open_summary(files[0].path, files[0].stamp) is None
    list(load_summaries(files[:1], cache, ExecutorFactory(FakeExecutor, 1)))
    assert cache.open_summary(files[0].path, files[0].stamp) is not None
    assert cache.open_summary(files[0].path, "another time") is None
    assert {one.path for one in cache.entries()} == {files[0].path}


def test_what_others_made_up_is_no_summary(logdir):
    _, files = listed(logdir)
    made = summary_of_file(files[0].path).summary
    assert pack_summary(made).summary.calls.equals(made.calls)

    def altered(**frames):
        return pack_summary(replace(made, **frames))

    wrong = [
        altered(calls=made.calls.with_columns(group=pl.lit(9, pl.Int32))),
        altered(calls=made.calls.with_columns(step=pl.lit(-2, pl.Int32))),
        altered(calls=made.calls.with_columns(dur_ns=pl.lit(2**63 - 1, pl.Int64))),
        altered(calls=made.calls.with_columns(kind=pl.lit(None, pl.String))),
        altered(segments=made.segments.with_columns(since=pl.lit(made.calls.height, pl.Int32))),
        altered(groups=made.groups.with_columns(ranks=pl.lit("0-9999999"))),
        altered(steps=made.steps.rename({"idle_ns": "other_ns"})),
        altered(facts={**made.facts, "origin_ns": "0"}),
        altered(facts={**made.facts, "rank": 2**70}),
        altered(facts={**made.facts, "devices": [[1, 2, 3]]}),
        altered(facts={}),
        PackedSummary(b""),
        PackedSummary(b"\xff" * 100),
        PackedSummary(pack_summary(made).data[: len(pack_summary(made).data) // 2]),
    ]
    for one in wrong:
        with pytest.raises(BrokenEntry):
            _ = one.summary


def test_a_recording_of_an_impossible_time_is_left_out_and_named(tmp_path):
    write(simulated(Truth(ranks=3, steps=2)), tmp_path / "run")
    path = tmp_path / "run" / "rank1.1.pt.trace.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, "baseTimeNanoseconds": 9 * 10**18}), encoding="utf-8")
    listing, files = listed(tmp_path)
    ranks = ranks_of(listing, files[0], files, load_summaries(files, None, ExecutorFactory(FakeExecutor, 1)))
    assert [bool(member.problem) for member in ranks.members] == [False, True, False]
    assert "9000000000000000000" in ranks.members[1].problem
    for view in RUN_VIEWS.values():
        compute(view, ranks, {})
    health = RUN_VIEWS["run_health"].run(ranks)
    (text,) = health.filter(health["rule"] == "broken_recordings")["consequence"]
    assert "rank1" in text


def test_the_largest_are_read_first(logdir):
    _, files = listed(logdir)
    seen = []
    list(read_all(files, ExecutorFactory(lambda: FakeExecutor(seen=seen), 1)))
    sizes = {file.path: file.bytes for file in files}
    assert [sizes[path] for path in seen] == sorted(sizes.values(), reverse=True)


def test_who_takes_its_process_down_is_found_and_stops_nobody(logdir):
    _, files = listed(logdir)
    outcomes = dict(read_all(files, ExecutorFactory(lambda: FakeExecutor(deadly=("rank1",)), 3)))
    outcome = {file.worker: type(one).__name__ for file, one in outcomes.items()}
    assert outcome == {"rank0": "PackedSummary", "rank1": "TraceError", "rank2": "NotATrace", "rank3": "PackedSummary"}
    died = next(one for file, one in outcomes.items() if file.worker == "rank1")
    assert "process" in str(died)


def killing(path, patterns):
    """Read a recording; that of rank 1 takes the process down."""
    if "rank1" in path:
        os.kill(os.getpid(), signal.SIGKILL)
    return summary_of_file(path, patterns)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no such signal here")
def test_real_processes_read_and_one_may_be_killed(logdir, monkeypatch):
    _, files = listed(logdir)
    monkeypatch.setattr("kinetoscope_tb.engine.summary_loader.summary_of_file", killing)
    outcomes = {file.worker: one for file, one in read_all(files, local_executors(len(files), 2))}
    assert sorted(outcomes) == ["rank0", "rank1", "rank2", "rank3"]
    assert isinstance(outcomes["rank1"], TraceError)
    assert "rank2" in str(outcomes["rank2"])
    assert outcomes["rank3"].summary.calls.height == 3


def test_a_run_has_the_recordings_of_a_span_or_all(tmp_path):
    for span in (1, 2):
        write(simulated(Truth(ranks=2, steps=3, seed=span)), tmp_path / "run")
        for rank in range(2):
            file = tmp_path / "run" / f"rank{rank}.1.pt.trace.json"
            file.rename(tmp_path / "run" / f"rank{rank}.{span * 10}.pt.trace.json")
    listing, files = listed(tmp_path)
    assert [(file.worker, file.span) for file in files] == [("rank0", "10"), ("rank1", "10")]
    last = listing.files[-1]
    assert [(f.worker, f.span) for f in files_of(listing, last, "span")] == [("rank0", "20"), ("rank1", "20")]
    assert len(files_of(listing, last, "run")) == 4


def test_a_server_s_frontend_is_no_rank(tmp_path):
    write(simulated(Truth(ranks=2, steps=3, seed=1)), tmp_path / "run")
    text = (tmp_path / "run" / "rank0.1.pt.trace.json").read_text()
    (tmp_path / "run" / "vm_8107.async_llm.1.pt.trace.json").write_text(text)
    listing, files = listed(tmp_path)
    assert list(listing.runs["run"]) == ["rank0", "rank1", "vm_8107.async_llm"]
    assert [file.worker for file in files] == ["rank0", "rank1"]
    frontend = listing.files[-1]
    assert [file.worker for file in files_of(listing, frontend, "span")] == ["rank0", "rank1"]
