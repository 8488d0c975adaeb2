"""What only whole processes show: several ranks, a program that dies, torch's crash at exit."""

import gzip
import json

from kinetoscope.naming import parse
from support.processes import Started, ended

RANK = """
import sys
import torch
import torch.distributed as dist
from kinetoscope import Tracer, cyclic

rank, folder = int(sys.argv[1]), sys.argv[2]
with Tracer(folder + "/logdir", schedule=cyclic(wait=1, warmup=1, active=2)) as tracer:
    dist.init_process_group("gloo", init_method="file://" + folder + "/store", rank=rank, world_size=2)
    for _ in tracer.steps(range(3)):
        dist.all_reduce(torch.ones(8))
    dist.barrier()
    dist.destroy_process_group()
"""

DIES = """
import sys
import torch
from kinetoscope import Tracer

tracer = Tracer(sys.argv[1], run="run")
tracer.__enter__()
torch.ones(2).relu()
tracer.step()
raise KeyError("uncaught")
"""


def traces(logdir):
    """Content of each trace by its run, worker and span."""
    traces_by_key = {}
    for path in logdir.rglob("*"):
        name = parse(path.name)
        if name is not None:
            traces_by_key[path.parent.name, name.worker, name.span] = json.loads(gzip.decompress(path.read_bytes()))
    return traces_by_key


def problems(err):
    """Standard error without what rank 0 says to do next, and without that a busy machine's traces are waited for."""
    waits = "Ctrl-C ends the wait, not the writing."
    return [line for line in err.splitlines() if not (line.startswith("kinetoscope: ") or line.endswith(waits))]


def test_two_ranks_record_into_one_unnamed_run(tmp_path, forks):
    processes = [forks.start("-c", RANK, rank, tmp_path) for rank in range(2)]
    for process in processes:
        code, out, err = ended(process)
        assert (code, out, problems(err)) == (0, "", [])
    traces_by_key = traces(tmp_path / "logdir")
    (run,) = {run for run, _, _ in traces_by_key}
    # They were cut short by the end of the loop, after the process group was gone.
    assert set(traces_by_key) == {(run, "rank0", 3), (run, "rank1", 3)}
    for (_, worker, _), trace in traces_by_key.items():
        metadata = trace["kinetoscope"]
        assert (f"rank{metadata['global_rank']}", metadata["world_size"], metadata["run"]) == (worker, 2, run)
        assert any(event["name"] == "gloo:all_reduce" for event in trace["traceEvents"])


def test_a_program_that_dies_inside_an_open_recording_saves_it_and_does_not_crash(tmp_path):
    code, _, err = ended(Started("-c", DIES, str(tmp_path / "logdir")))
    assert code == 1
    assert "KeyError: 'uncaught'" in err
    ((_, trace),) = traces(tmp_path / "logdir").items()
    assert trace["kinetoscope"]["reason"] == "exit"


def test_the_demo_records_all_its_processes_and_ends(tmp_path):
    code, out, err = ended(Started("-m", "kinetoscope.demo", str(tmp_path), "--steps", "3", "--processes", "2"))
    assert (code, problems(err)) == (0, [])
    traces_by_key = traces(tmp_path)
    assert {(worker, span) for _, worker, span in traces_by_key} == {("rank0", 6), ("rank1", 6)}
    assert len(out.split()) == 2
    for trace in traces_by_key.values():
        recorded = {event["name"] for event in trace["traceEvents"]}
        assert recorded >= {
            "forward",
            "backward",
            "optimizer",
            "c10d::allreduce_",
            "aten::convolution",
            "ProfilerStep#5",
        }


def test_importing_the_package_is_cheap_and_complete():
    code = (
        "import sys, kinetoscope; before = 'torch' in sys.modules; "
        "print(before, all(getattr(kinetoscope, name) for name in kinetoscope.__all__))"
    )
    assert ended(Started("-c", code)) == (0, "False True\n", "")
