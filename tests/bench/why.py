"""`kinetoscope why` and torchfrtrace on the same dumps: who is named, and how long that takes.

The dumps are of simulated NCCL jobs whose culprit is known, and of gloo jobs that torch wrote, where these are at hand.
torchfrtrace comes with torch; it unpickles the dumps, so it gets these alone. Then jobs of torchrun that stand still: how
soon after the threshold each rank had written its report.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from kinetoscope_tb.distributed.why import answer_why
from kinetoscope_tb.reader.flight_recorder.files import read_folder
from support.flight_recorder import LAYOUTS, Layout, Simulation, changed, stopped, swapped
from torture.hang_runs import NAMES, delay_s, hanging_jobs, reports

_LIMIT_S = 900
_MOST_DELAY_S = 10.0  # of a report, after its step has lasted too long
_GLOO = Path(__file__).parents[3] / "shared" / "flight-recorder"
_GLOO_CULPRITS = {
    "absent": {2},
    "absent_in_group": {3},
    "other_operation": {1},
    "other_order": {0, 1},
    "healthy": set(),
    "p2p": set(),
}
_PEER_NAMES = re.compile(r"missing ranks: \{([\d, ]*)\}|Culprit rank (\d+)")


@dataclass(frozen=True)
class Case:
    """Dumps whose culprits are known: none where the dumps don't tell who it is."""

    name: str
    folder: Path
    prefix: str
    culprits: frozenset[int]


def cases(folder: Path) -> Iterator[Case]:
    """Write dumps of each kind of culprit in each layout, and yield them with those that torch wrote."""
    for layout in LAYOUTS:
        rank, is_tie = layout.ranks[-1] - 1, layout.name == "pairs"  # of two ranks that differ, none is right
        programs = {
            "stops": (stopped(layout, rank, 3), {rank}),
            "operation": (changed(layout, [rank], kind="broadcast"), set() if is_tie else {rank}),
            "size": (changed(layout, [0], elements=7), set() if is_tie else {0}),
            "healthy": (layout.programs(), set()),
        }
        if is_tie:
            programs["order"] = (swapped(layout, 0), {0, 1})
        for name, (calls, culprits) in programs.items():
            yield _simulation(layout, name, calls, culprits, folder)
    for name, culprits in _GLOO_CULPRITS.items():
        if (_GLOO / name).is_dir():
            yield Case(f"gloo: {name}", _GLOO / name, "comm_lib_trace_rank_", frozenset(culprits))


def _simulation(layout: Layout, name: str, calls: dict, culprits: set[int], folder: Path) -> Case:
    case = folder / f"{layout.name}-{name}"
    Simulation(layout.groups, calls).run().write(case)
    return Case(f"{layout.name}: {name}", case, "nccl_trace_rank_", frozenset(culprits))


def own_names(case: Case) -> set[int]:
    """Who `why` names."""
    return set(answer_why(read_folder(str(case.folder))).culprits)


def peer_names(case: Case) -> set[int] | None:
    """Who torchfrtrace names; None if it fails."""
    command = [sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace", str(case.folder), "-p", case.prefix]
    result = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    if result.returncode:
        return None
    matches = _PEER_NAMES.findall(result.stdout + result.stderr)
    return {int(rank) for ranks in matches for rank in ",".join(ranks).split(",") if rank.strip()}


def outcome(names: set[int] | None, culprits: frozenset[int]) -> str:
    """Right: exactly the culprits; silent: nobody, though there is one; wrong: another rank, too or alone."""
    if names is None:
        return "fails"
    return "right" if names == culprits else "wrong" if names - culprits else "silent"


def report_why(folder: Path) -> None:
    """Print a line per case, how often either is right, wrong, silent, or fails, and how soon reports are there."""
    counts: dict[str, dict[str, int]] = {"kinetoscope why": {}, "torchfrtrace": {}}
    for case in cases(folder):
        lines = []
        for tool, name in (("kinetoscope why", own_names), ("torchfrtrace", peer_names)):
            start = time.perf_counter()
            names = name(case)
            seconds, result = time.perf_counter() - start, outcome(names, case.culprits)
            counts[tool][result] = counts[tool].get(result, 0) + 1
            lines.append(f"{tool} {result:6} {sorted(names or ())!s:16} {seconds:6.2f} s")
        print(f"{case.name:24} culprits {sorted(case.culprits)!s:10} {'   '.join(lines)}", flush=True)
    for tool, results in counts.items():
        print(f"{tool}: {', '.join(f'{count} {result}' for result, count in sorted(results.items()))}")
    report_delays(folder / "hanging")


def report_delays(folder: Path) -> None:
    """Print how soon after the threshold each rank of jobs that stand still had written its report."""
    folder.mkdir()
    with hanging_jobs(folder):
        delays = sorted(delay_s(file) for file in reports(folder))
    within = sum(delay <= _MOST_DELAY_S for delay in delays)
    print(
        f"{len(NAMES)} jobs of torchrun that stand still: {within} of {len(delays)} ranks had written their report "
        f"within {_MOST_DELAY_S:.0f} s after the threshold; median {statistics.median(delays):.2f} s, "
        f"last {delays[-1]:.2f} s"
    )
