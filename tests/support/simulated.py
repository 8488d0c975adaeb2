"""Made-up runs of many ranks of which the truth is known: clocks, delays, links, and what was lost.

The ranks do a step again and again: compute, then take part in the collectives of their groups. A collective begins on
a rank when the rank comes to it, moves data when the last one has come, and ends on all of them together, give or take
the jitter. All numbers come from one seed. `summaries` makes what is kept of each rank, directly; `write` makes traces.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from kinetoscope_tb.critical_path.classes import CLASSES
from kinetoscope_tb.critical_path.segments import SEGMENTS
from kinetoscope_tb.distributed.model import CALLS, GROUPS, STEPS, TRAFFIC, Summary
from kinetoscope_tb.distributed.process_groups import format_ranks
from kinetoscope_tb.distributed.run import Member, Ranks
from support.build import TraceBuilder

BASE_NS = 1_700_000_000_000_000_000
NONE = -1


@dataclass(frozen=True)
class Truth:
    """A run.

    Args:
        ranks: How many.
        steps: How many.
        compute_ns: A rank's own work in a step, before each of its collectives.
        noise: Of that work: standard deviation ÷ mean.
        shared: Standard deviation ÷ mean of the work that all ranks have in a step: long and short sequences.
        late: (rank, step) → how much longer its work takes; step None is every step.
        after: (rank, step) → how long it works after its last collective of a step.
        by: What takes longer: `slower kernels`, `more work`, `data loading` or `garbage collection`.
        offset_ns: By how much each rank's clock is ahead; drawn within `clocks_ns` if not given.
        drift: By how much each rank's clock runs fast; 0 if not given.
        jitter_ns: Standard deviation of the ends of a collective over its ranks.
        groups: (name, ranks) of the groups, in the order in which a rank uses those it is in.
        bytes: Of each all-reduce.
        slow: group → how many times longer its data takes.
        missing: Ranks without a recording.
        lost: (rank, step, number of its call in the step): calls of which nothing was recorded.
        is_numbered: Whether the metadata numbers the calls.
        hidden: How much of the communication other kernels hide.
    """

    ranks: int = 4
    steps: int = 6
    compute_ns: int = 10_000_000
    noise: float = 0.01
    shared: float = 0.0
    late: dict = field(default_factory=dict)
    after: dict = field(default_factory=dict)
    by: str = "slower kernels"
    offset_ns: tuple = ()
    clocks_ns: int = 3_000_000
    drift: tuple = ()
    jitter_ns: int = 2_000
    groups: tuple = ()
    bytes: int = 64 << 20
    bytes_per_ns: float = 40.0
    slow: dict = field(default_factory=dict)
    missing: tuple = ()
    lost: tuple = ()
    is_numbered: bool = True
    hidden: float = 0.0
    seed: int = 0


@dataclass
class Made:
    """What happened, on the true axis: arrays of [call, rank]; NaN for a rank that takes no part.

    Attributes:
        truth: What was asked for.
        offset: Of each clock, ns that it is ahead.
        begin: When each rank came to each call.
        end: When it left.
        group: Of each call the place of its group.
        step: Of each call.
        nth: Its number in its group.
        steps: Begin and end of each step of each rank: [step, rank, 2].
        transfer: How long data moves in each call.
    """

    truth: Truth
    offset: np.ndarray
    drift: np.ndarray
    groups: list
    begin: np.ndarray
    end: np.ndarray
    group: np.ndarray
    step: np.ndarray
    nth: np.ndarray
    steps: np.ndarray
    transfer: np.ndarray

    def local(self, rank, true_ns):
        """A true time on a rank's clock, which agrees with the true one at 0 but for its offset."""
        return np.round(true_ns * (1 + self.drift[rank]) + self.offset[rank]).astype(np.int64)

    def is_lost(self, rank, call):
        mine = np.flatnonzero((self.step == self.step[call]) & ~np.isnan(self.begin[:, rank]))
        return (rank, int(self.step[call]), int(np.searchsorted(mine, call))) in self.truth.lost


def late_ns(truth, rank, step):
    """How much longer a rank works before each collective of a step."""
    return truth.late.get((rank, step), 0) + truth.late.get((rank, None), 0)


def simulated(truth: Truth) -> Made:
    """Let the ranks run."""
    rng = np.random.default_rng(truth.seed)
    ranks = truth.ranks
    groups = list(truth.groups) or [("0", tuple(range(ranks)))]
    offset = (
        np.array(truth.offset_ns) if truth.offset_ns else rng.integers(-truth.clocks_ns, truth.clocks_ns + 1, ranks)
    )
    drift = np.array(truth.drift) if truth.drift else np.zeros(ranks)
    now, used = np.full(ranks, 1_000_000.0), dict.fromkeys(range(len(groups)), 0)
    begins, ends, of, steps_of, nths, transfers = [], [], [], [], [], []
    marks = np.zeros((truth.steps, ranks, 2))
    for step in range(truth.steps):
        marks[step, :, 0] = now
        shared = 1 + truth.shared * rng.standard_normal() if truth.shared else 1
        for number, (_, members) in enumerate(groups):
            members = np.array(members)
            work = truth.compute_ns * np.maximum(0.1, shared + truth.noise * rng.standard_normal(members.size))
            work += [late_ns(truth, int(r), step) for r in members]
            begin = now[members] + work
            transfer = truth.bytes / truth.bytes_per_ns * truth.slow.get(number, 1)
            end = begin.max() + transfer + truth.jitter_ns * rng.standard_normal(members.size)
            row = np.full((2, ranks), np.nan)
            row[0, members], row[1, members] = begin, np.maximum(end, begin + 1)
            now[members] = row[1, members]
            begins.append(row[0])
            ends.append(row[1])
            of.append(number)
            steps_of.append(step)
            nths.append(used[number])
            transfers.append(transfer)
            used[number] += 1
        now = now + [truth.after.get((rank, step), 0) for rank in range(ranks)]
        marks[step, :, 1] = now
    arrays = [np.array(a) for a in (begins, ends, of, steps_of, nths)]
    return Made(truth, offset, drift, groups, *arrays, marks, np.array(transfers))


def summary_of(made: Made, rank: int) -> Summary:
    """What would be kept of a rank's trace."""
    truth = made.truth
    mine = [call for call in np.flatnonzero(~np.isnan(made.begin[:, rank])) if not made.is_lost(rank, call)]
    begin, end = made.local(rank, made.begin[mine, rank]), made.local(rank, made.end[mine, rank])
    first, last = (made.local(rank, made.steps[:, rank, side]) for side in (0, 1))
    origin = int(first[0])
    inside = np.array([int(call) for call in made.step[mine]], np.int64)
    communication = np.bincount(inside, end - begin, truth.steps).astype(np.int64)
    exposed = np.bincount(inside, np.round((end - begin) * (1 - truth.hidden)), truth.steps).astype(np.int64)
    own = [number for number, (_, members) in enumerate(made.groups) if rank in members]
    longer = np.array([late_ns(truth, rank, step) for step in range(truth.steps)]) * len(own)
    host = {name: longer * (truth.by == name) for name in ("data loading", "garbage collection")}
    steps = pl.DataFrame(
        {
            "step": [str(step) for step in range(truth.steps)],
            "start_ns": first - origin,
            "total_ns": last - first,
            "computation_ns": (last - first) - exposed - sum(host.values()),
            "exposed_communication_ns": exposed,
            "exposed_copies_ns": np.zeros(truth.steps, np.int64),
            "idle_ns": sum(host.values()),
            "communication_ns": communication,
            "dataloader_ns": host["data loading"],
            "collecting_ns": host["garbage collection"],
            "launches": np.full(truth.steps, 100),
            "threads": 10**6 + (truth.by == "more work") * longer,
            "elements": np.full(truth.steps, 1 << 20),
            "copied_bytes": np.zeros(truth.steps, np.int64),
            "pageable_ns": np.zeros(truth.steps, np.int64),
            "is_complete": [True] * truth.steps,
        },
        schema=STEPS,
    )
    calls = pl.DataFrame(
        {
            "kind": ["all_reduce"] * len(mine),
            "group": [own.index(number) for number in made.group[mine]],
            "nth": made.nth[mine] if truth.is_numbered else [NONE] * len(mine),
            "bytes": [truth.bytes] * len(mine),
            "dtype": ["Float"] * len(mine),
            "peer": [NONE] * len(mine),
            "start_ns": begin - origin,
            "dur_ns": end - begin,
            "exposed_ns": np.round((end - begin) * (1 - truth.hidden)).astype(np.int64),
            "step": inside,
            "offset": range(len(mine)),
        },
        schema=CALLS,
    )
    groups = pl.DataFrame(
        [(made.groups[n][0], None, len(made.groups[n][1]), format_ranks(made.groups[n][1])) for n in own],
        schema=GROUPS,
        orient="row",
    )
    facts = {"rank": rank, "world_size": truth.ranks, "origin_ns": BASE_NS + origin, "devices": [[0, "GPU"]]}
    return Summary(facts, steps, calls, groups, pl.DataFrame(schema=TRAFFIC), legs_of(steps, calls))


def legs_of(steps, calls):
    """A rank does one thing after the other: it computes from the end of a call, or the step's begin, to the next."""
    ended = {step: (NONE, start) for step, start in enumerate(steps["start_ns"])}
    segments = []
    for call, (step, start, dur) in enumerate(calls.select("step", "start_ns", "dur_ns").rows()):
        since, at = ended[step]
        segments.append((step, call, since, 0, [start - at] + [0] * (len(CLASSES) - 1)))
        ended[step] = call, start + dur
    last = [
        (step, NONE, ended[step][0], 0, [start + total - ended[step][1]] + [0] * (len(CLASSES) - 1))
        for step, (start, total) in enumerate(steps.select("start_ns", "total_ns").rows())
    ]
    return pl.DataFrame([*last, *segments], schema=SEGMENTS, orient="row")


def run_of(made: Made) -> Ranks:
    """The run as views see it."""
    there = [rank for rank in range(made.truth.ranks) if rank not in made.truth.missing]
    return Ranks("simulated", tuple(Member(f"rank{rank}", "1", 0, summary_of(made, rank)) for rank in there))


def trace_of(made: Made, rank: int) -> TraceBuilder:
    """The rank's trace, as torch 2.12 writes it on GPUs."""
    truth = made.truth
    first = made.local(rank, made.steps[0, rank, 0])
    config = [
        {"pg_name": name, "pg_desc": "", "pg_size": len(members), "ranks": list(members)}
        for name, members in made.groups
        if rank in members
    ]
    trace = TraceBuilder(
        base_ns=BASE_NS + int(first),
        deviceProperties=[{"id": 0, "name": "GPU"}],
        distributedInfo={"backend": "nccl", "rank": rank, "world_size": truth.ranks, "pg_config": config},
    )

    def at(true_ns):
        return int(made.local(rank, true_ns) - first)

    correlation = 1
    for step in range(truth.steps):
        begin, end = (at(made.steps[step, rank, side]) for side in (0, 1))
        trace.step(step, begin, end - begin)
        now = begin
        for call in np.flatnonzero((made.step == step) & ~np.isnan(made.begin[:, rank])):
            start, stop = at(made.begin[call, rank]), at(made.end[call, rank])
            trace.op("aten::mm", now + 1000, 4000).launch(now + 2000, 1000, correlation)
            trace.kernel("gemm", now + 4000, start - now - 4000, correlation)
            name, members = made.groups[made.group[call]]
            arguments = {
                "Collective name": "allreduce",
                "dtype": "Float",
                "In msg nelems": truth.bytes // 4,
                "Out msg nelems": truth.bytes // 4,
                "Group size": len(members),
                "Process Group Name": name,
                **({"Seq": int(made.nth[call])} if truth.is_numbered else {}),
            }
            if not made.is_lost(rank, call):
                trace.op("record_param_comms", now + 10_000, 9000, **arguments)
                trace.launch(now + 12_000, 1000, correlation + 1)
                kernel = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
                trace.kernel(kernel, start, stop - start, correlation + 1, stream=20)
                trace.launch(now + 14_000, stop - now - 14_000, 10**6 + correlation, name="cudaDeviceSynchronize")
            correlation += 2
            now = stop
    return trace


def write(made: Made, folder) -> None:
    """Write the run's traces."""
    folder.mkdir(parents=True, exist_ok=True)
    for rank in range(made.truth.ranks):
        if rank not in made.truth.missing:
            (folder / f"rank{rank}.1.pt.trace.json").write_text(trace_of(made, rank).text(), encoding="utf-8")
