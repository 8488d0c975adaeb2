"""Runs of jobs that ended or live, as Tracers leave them: journals, and the last minutes of each rank."""

import os
import socket
import time

from kinetoscope.atomic_write import replace_file
from kinetoscope.journal.journal import JournalWriter
from kinetoscope.output.ring import MEMORY, PROCESSOR, STEP, Ring, ring_file

SECOND = 1_000_000_000
GONE = 2**22 + 1  # no process of Linux has such a number
KILLED, LOST = 1, "[gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:1929"
STEPS = 200


def journal_of(run, rank, world_size, until_ns, *, pid=GONE):
    """The journal of a rank whose steps took 15 ms or a little more, the last one until `until_ns`."""
    journal = JournalWriter({"version": "1", "listens": True}, list)
    facts = {"global_rank": rank, "world_size": world_size, "host": socket.gethostname(), "pid": pid}
    journal.open(run, rank, facts)
    for step in steps(rank, until_ns):
        journal.add("s", *step)
    return journal


def steps(rank, until_ns):
    """Number, start and end of each step; those of rank 1 grow at their end."""
    slower_ns = [2_000_000 * (rank == KILLED) * max(0, number - STEPS + 8) for number in range(STEPS)]
    durations_ns = [15_000_000 + 400_000 * rank + slower for slower in slower_ns]
    ends_ns = [until_ns - sum(durations_ns[number + 1 :]) for number in range(STEPS)]
    return [(n, end_ns - dur_ns, end_ns) for n, (dur_ns, end_ns) in enumerate(zip(durations_ns, ends_ns, strict=True))]


def write_dead_run(run, world_size=4):
    """Write a run of which rank 1 was killed for lack of memory; the others lost their connection to it."""
    now_ns = time.time_ns()
    for rank in range(world_size):
        journal = journal_of(run, rank, world_size, now_ns)
        if rank == KILLED:
            journal.note("ending", {"ns": now_ns, "signal": 9, "oom_kills": 1})
            journal.write()
        else:
            calls = [["/site-packages/torch/x.py", 1, "torch.distributed.f"], ["/job/train.py", 88, "__main__.main"]]
            error = {"type": "RuntimeError", "message": LOST}
            journal.note("ending", {"ns": now_ns + SECOND, "exception": error, "calls": calls})
            journal.close("exception: RuntimeError")
        replace_file(ring_file(run, rank), _minutes(rank, now_ns))


def _minutes(rank, until_ns):
    """The steps, some samples, and a checkpoint that began a second before the end."""
    ring = Ring()
    for number, start_ns, end_ns in steps(rank, until_ns):
        ring.add(STEP, number, start_ns, end_ns)
    for nth in range(3):
        now_ns = until_ns + 2 * nth * SECOND
        ring.add(MEMORY, now_ns, (1 + nth * (rank == KILLED)) << 33, (3 - nth) << 30)
        ring.add(PROCESSOR, now_ns, 3 * nth * SECOND, 400_000)
        if nth == 1:
            ring.add_marker(until_ns - SECOND, "checkpoint")
    content = ring.content()
    ring.close()
    return content


def write_living_run(run, world_size=4):
    """Write a run whose ranks live: their processes are this one. Returns their journals, which others go on with."""
    now_ns = time.time_ns()
    journals = [journal_of(run, rank, world_size, now_ns, pid=os.getpid()) for rank in range(world_size)]
    for journal in journals:
        journal.write()
    return journals
