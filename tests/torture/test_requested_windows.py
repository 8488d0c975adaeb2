"""A real job of four ranks under torchrun: windows on request, and one of the ranks dies."""

import os
import signal
from contextlib import contextmanager
from pathlib import Path

from kinetoscope.journal.recover import recover_journals
from kinetoscope.journal.status import rank_statuses
from kinetoscope.scheduling.request import Request, write_request
from support.processes import Started, ended, steps_of, traces_in
from support.waiting import wait_for

JOB = Path(__file__).with_name("listening.py")


def wait_for_job(ask, process):
    """Wait for something that a running job does; return it."""
    return wait_for(ask, unless=lambda: process.poll() is not None, context=lambda: ended(process))


@contextmanager
def torchrun(folder, ranks):
    launcher = ("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}")
    process = Started(*launcher, str(JOB), str(folder))
    try:
        run = folder / "logdir" / "job"
        wait_for_job(
            lambda: [s.completed for s in rank_statuses(run) if s.completed and s.completed > 20][ranks - 1 :], process
        )
        yield process, run
    finally:
        if process.poll() is None:
            process.terminate()
            ended(process)


def window(process, run, ranks, earlier):
    """The traces of one more window, when each rank has one."""
    fresh = wait_for_job(lambda: paths if len(paths := set(run.glob("*.gz")) - earlier) == ranks else None, process)
    earlier |= fresh
    names = {path.name for path in fresh}
    return {
        worker: trace
        for (worker, span), trace in traces_in(run).items()
        if f"{worker}.{span}.pt.trace.json.gz" in names
    }


def recording(run, request, ranks):
    """Whether this many ranks are in the window of a request; a status may still have an earlier window."""
    return lambda: len([s for s in rank_statuses(run) if s.is_recording and request.id in requests_of(s)]) == ranks


def requests_of(status):
    return [value["request"] for kind, value, _ in status.news if kind == "recording"]


def test_all_ranks_record_the_same_steps_on_request_and_what_they_have_when_one_is_killed(tmp_path):
    with torchrun(tmp_path, 4) as (process, run):
        earlier = set()
        write_request(run, Request(steps=3, options={"with_stack": True}))
        first = window(process, run, 4, earlier)
        pid = rank_statuses(run)[2].pid
        os.kill(pid, signal.SIGUSR2)
        second = window(process, run, 4, earlier)
        request = Request(steps=10_000, ranks=(0, 3))
        write_request(run, request)
        wait_for_job(recording(run, request, 2), process)
        last = rank_statuses(run)[3]
        os.kill(last.pid, signal.SIGKILL)
        code, _, _ = ended(process)
    assert code != 0
    for traces, reason, has_stacks in ((first, "file", True), (second, "signal", False)):
        metadata = {worker: trace["kinetoscope"] for worker, trace in traces.items()}
        assert set(metadata) == {"rank0", "rank1", "rank2", "rank3"}
        assert {(t["reason"], t["is_complete"], t["options"]["with_stack"]) for t in metadata.values()} == {
            (reason, True, has_stacks)
        }
        ((steps, count),) = {(tuple(steps_of(trace)), len(steps_of(trace))) for trace in traces.values()}
        assert count == 3
        assert steps == tuple(range(steps[0], steps[0] + 3))
        assert any(event["name"] == "exchange" for event in traces["rank1"]["traceEvents"])
    (partial,) = wait_for(lambda: set(run.glob("*.gz")) - earlier)
    assert partial.name.startswith("rank0.")
    ((_, trace),) = [item for item in traces_in(run).items() if item[1]["kinetoscope"]["is_complete"] is False]
    assert trace["kinetoscope"]["reason"] in ("sigterm", "exception: RuntimeError", "exception: DistBackendError")
    assert steps_of(trace)
    (result,) = recover_journals(run)
    assert (result.trace.name.split(".")[0], result.problem) == ("rank3", "")
    saved = second["rank3"]["kinetoscope"]["steps_completed"]
    assert last.completed - saved - 20 <= result.steps <= last.completed - saved + 100
    assert [status.state for status in rank_statuses(run)] == ["ended", "ended", "ended", "dead"]
