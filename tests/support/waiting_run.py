"""A run whose first rank loads data while it would wait for the others anyway, which two functions hold up in turn."""

from __future__ import annotations

from pathlib import Path

from support.build import TraceBuilder

MS = 1_000_000
LOADING, TRANSFER = 5 * MS, 1 * MS
LATE = {1: "train.py(9): log_images", 2: "train.py(40): check_values"}
"""The function that takes each late rank 4 ms longer before its own collective of a step."""
_LONGER, _STEPS = 4 * MS, 6


def write_waiting_run(folder: Path) -> None:
    """Write the traces of four ranks; two collectives in each step, before each of which another rank is late."""
    folder.mkdir(parents=True)
    for rank in range(4):
        (folder / f"rank{rank}.1.pt.trace.json").write_text(_trace(rank).text(), encoding="utf-8")


def _trace(rank: int) -> TraceBuilder:
    ranks = {"pg_name": "0", "pg_desc": "", "pg_size": 4, "ranks": [0, 1, 2, 3]}
    trace = TraceBuilder(
        base_ns=1_700_000_000_000_000_000,
        deviceProperties=[{"id": 0, "name": "GPU"}],
        distributedInfo={"backend": "nccl", "rank": rank, "world_size": 4, "pg_config": [ranks]},
    )
    now = 0
    for step in range(_STEPS):
        begin = now
        for half in range(2):
            now = _half(trace, rank, step, half, now)
        trace.step(step, begin, now - begin)
    return trace


def _half(trace: TraceBuilder, rank: int, step: int, half: int, now: int) -> int:
    """Work until a collective, which ends on all ranks at once; return when."""
    end = now + 10 * MS + _LONGER + TRANSFER
    start, launch = now, 100 * (2 * step + half) + 1
    if rank == 0 and half == 0:
        trace.op("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", now, LOADING)
        start += LOADING
    if rank == half + 1:
        trace.python(LATE[rank], now, _LONGER)
        start += _LONGER
    arrival = now + 10 * MS + (_LONGER if rank == half + 1 else 0)
    trace.python("train.py(20): forward", start, 3 * MS).op("aten::mm", start, 6000).launch(start + 2000, 1000, launch)
    trace.kernel("gemm", start + 4000, arrival - start - 4000, launch)
    count = {"In msg nelems": 10 * MS, "Out msg nelems": 10 * MS, "Group size": 4, "dtype": "Float"}
    names = {"Collective name": "allreduce", "Process Group Name": "0", "Seq": 2 * step + half}
    trace.op("record_param_comms", start + 10_000, 9000, **count, **names).launch(start + 12_000, 1000, launch + 1)
    trace.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", arrival, end - arrival, launch + 1, stream=20)
    trace.launch(start + 20_000, end - start - 20_000, launch + 2, name="cudaDeviceSynchronize")
    return end
