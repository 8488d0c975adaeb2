"""Markers, counters, steps and operators of two ranks are on one clock, to within the error in the files."""

import gzip
import json

import pytest

from support.processes import without_gloo_s_lines

RANK = """
import sys, time
from pathlib import Path
import torch
import torch.distributed as dist
import kinetoscope.sampling.clock_sync
from kinetoscope import Tracer, cyclic

rank, folder = int(sys.argv[1]), Path(sys.argv[2])
torch.set_num_threads(1)
kinetoscope.sampling.clock_sync.boot_id = lambda: f"machine {rank}"  # both run here, but must measure
port = folder / "port"
if rank == 0:
    store = dist.TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False)
    (folder / "unfinished").write_text(str(store.port))
    (folder / "unfinished").rename(port)
else:
    while not port.exists():
        time.sleep(0.01)
    store = dist.TCPStore("127.0.0.1", int(port.read_text()), None, False, wait_for_workers=False)
dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
del store
with Tracer(folder / "logdir", run="run", schedule=cyclic(wait=0, warmup=1, active=2)) as tracer:
    while tracer._probe._clock.offset is None:
        time.sleep(0.01)
    for step in tracer.steps(range(3)):
        with tracer.marker("forward"):
            loss = torch.ones(64, 64).mm(torch.ones(64, 64)).sum()
        tracer.counter("train", step=step)
        dist.all_reduce(loss)
    dist.barrier()
    dist.destroy_process_group()
print(len(tracer.saved_traces))
"""


@pytest.fixture(scope="module")
def ranks(tmp_path_factory, forks):
    """Each rank's trace."""
    folder = tmp_path_factory.mktemp("job")
    jobs = [forks.start("-c", RANK, rank, folder) for rank in range(2)]
    for job in jobs:
        out, err = job.communicate()
        problems = [line for line in err.splitlines() if not line.startswith("kinetoscope: ")]  # the next command
        assert (job.returncode, without_gloo_s_lines(out), problems) == (0, "1\n", [])
    files = [folder / "logdir" / "run" / f"rank{rank}.3.pt.trace.json.gz" for rank in range(2)]
    return [json.loads(gzip.decompress(file.read_bytes())) for file in files]


def times(trace, name, phase="X"):
    """Start and end of all events of a name, by rank 0's clock."""
    shift = trace["baseTimeNanoseconds"] - trace["kinetoscope"]["clock"]["offset_ns"]
    rows = [e for e in trace["traceEvents"] if e.get("name") == name and e["ph"] == phase]
    assert rows
    return sorted((round(e["ts"] * 1000) + shift, round((e["ts"] + e.get("dur", 0)) * 1000) + shift) for e in rows)


def test_the_offset_is_measured_and_its_error_is_honest(ranks):
    reference, other = (trace["kinetoscope"]["clock"] for trace in ranks)
    assert (reference["method"], reference["offset_ns"], reference["error_ns"]) == ("reference", 0, 0)
    assert other["method"] == "store ping-pong"
    # In truth it is one clock.
    assert abs(other["offset_ns"]) <= other["error_ns"] < 10**9


def test_no_rank_leaves_a_collective_before_all_have_entered_it(ranks):
    error = max(trace["kinetoscope"]["clock"]["error_ns"] for trace in ranks)
    for mine, theirs in zip(*(times(trace, "gloo:all_reduce") for trace in ranks), strict=True):
        assert min(mine[1], theirs[1]) >= max(mine[0], theirs[0]) - error


def test_markers_counters_and_operators_lie_in_their_steps(ranks):
    for trace in ranks:
        for number in (1, 2):
            ((begin, end),) = times(trace, f"ProfilerStep#{number}")
            inside = [
                t for name in ("forward", "aten::mm") for t in times(trace, name) if begin <= t[0] and t[1] <= end
            ]
            assert len(inside) == 2
            row_of_step = next(row for row in trace["kinetoscope"]["step_times_ns"] if row[0] == number)
            offset = trace["kinetoscope"]["clock"]["offset_ns"]
            # The program's own clock brackets what the profiler recorded, to what a range's own start and end cost.
            assert row_of_step[1] - offset <= begin + 1_000_000
            assert row_of_step[2] - offset >= begin
            counter = [e for e in trace["traceEvents"] if e.get("name") == "train" and e["args"]["step"] == number]
            at = round(counter[0]["ts"] * 1000) + trace["baseTimeNanoseconds"] - offset
            assert begin <= at <= end
