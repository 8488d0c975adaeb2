"""Composer's profiler on two ranks that share a folder, and never wait for each other but at the beginning."""

import json

from support.processes import ENVIRON, without_gloo_s_lines

RANK = """
import os
import sys
import torch
import torch.distributed as dist
from kinetoscope.composer import JSONTraceHandler, Profiler, State, cyclic_schedule

rank, folder = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method="file://" + folder + "/store", rank=rank, world_size=2)

def train():
    handler = JSONTraceHandler()
    profiler = Profiler(cyclic_schedule(warmup=1, active=2), handler, sys_prof_cpu=False)
    with State(profiler=profiler) as state:
        for _ in state.steps([1] * 4):
            dist.all_reduce(torch.ones(8))
    return [os.path.relpath(path) for _, paths in profiler.torch_profiler.saved_traces + handler.saved_traces for path in paths]

first = train()
dist.barrier()
try:
    train()
    second = "nothing"
except FileExistsError as error:
    second = type(error).__name__
print(first, second, sep="|")
dist.barrier()
dist.destroy_process_group()
"""


def test_two_ranks_fill_one_folder_and_refuse_it_the_next_time(tmp_path, forks):
    environ = ENVIRON | {"RUN_NAME": "run", "LOCAL_WORLD_SIZE": "2", "WORLD_SIZE": "2"}
    processes = [
        forks.start(
            *("-c", RANK, rank, tmp_path),
            environ=environ | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            folder=tmp_path,
        )
        for rank in range(2)
    ]
    out = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0], out
    traces = [f"run/torch_traces/rank{rank}.3.pt.trace.json" for rank in range(2)]
    windows = [f"run/traces/ep0-ba3-rank{rank}.json" for rank in range(2)]
    assert [without_gloo_s_lines(output).strip() for output, _ in out] == [f"{traces + windows}|FileExistsError"] * 2
    merged = json.loads((tmp_path / "run/traces/node0.json").read_text())
    for rank in range(2):
        assert json.loads((tmp_path / traces[rank]).read_text())["global_rank"] == rank
        assert sum(e["pid"] == rank and e["name"] == "event/batch" and e["ph"] == "B" for e in merged) == 3
        assert sum(e["pid"] == rank and e["name"] == "c10d::allreduce_" for e in merged) == 2
