"""The scenarios of `hanging.py` as one job of torchrun: which ranks report that they hang, and how soon."""

import json
import sys
from contextlib import contextmanager
from pathlib import Path

from kinetoscope.journal.status import rank_statuses
from support.processes import Started, ended
from support.waiting import wait_for

JOBS = Path(__file__).with_name("hanging.py")
STEP = 5
"""The step that hangs."""
SLOW = "goes_on"
"""The scenario whose ranks go on when all have written."""
NAMES = (
    *("sleeps", "spins", "locks", "absent_in_group", "recv", "file", "worker", "spawns", "wrapped", "pipeline"),
    *("split", "mesh", "broadcasts", "orders", "receives", "unsent", "evaluates", "saves"),
    *("holds", "stops", "leaves", "node", "writes", SLOW),
)
WORLD_SIZES = {"pipeline": 4, "split": 4, "mesh": 8, "node": 8}
"""The number of ranks, by scenario that hasn't three."""
SILENT_RANKS = {"holds": [1], "stops": [1], "leaves": [1], "node": [4, 5, 6, 7]}
"""The ranks that don't write, by scenario."""
LIMIT_S = 600  # eighty processes may have two cores, next to other tests


def ranks_of(name):
    return range(WORLD_SIZES.get(name, 3))


def is_silent(name, rank):
    return rank in SILENT_RANKS.get(name, [])


def report(folder, name, rank):
    """The file that a rank writes while it hangs."""
    return folder / name / "hang" / f"rank{rank}.{STEP}.json"


def reports(folder):
    """All of these files."""
    return [report(folder, name, rank) for name in NAMES for rank in ranks_of(name) if not is_silent(name, rank)]


def step_of(file):
    """What a report says of the step."""
    return json.loads(file.read_text())["kinetoscope_hang"]["step"]


def delay_s(file):
    """From when a step had lasted too long to when the whole report was there."""
    step = step_of(file)
    return file.stat().st_mtime - step["start_ns"] / 1e9 - step["limit_s"]


def has_gone_on(run):
    """Whether all ranks completed the slow step."""
    return [(status.completed or 0) > STEP for status in rank_statuses(run)] == [True] * 3


@contextmanager
def hanging_jobs(folder):
    """Run all scenarios in a folder; the block begins once all of them stand still and the slow one goes on."""
    torchrun = ("-m", "torch.distributed.run", "--nproc_per_node=8", "--master_port=0")
    process = Started(*torchrun, str(JOBS), str(folder), *NAMES)
    try:
        wait_for(lambda: all(path.exists() for path in reports(folder)) or process.poll() is not None, LIMIT_S)
        wait_for(lambda: has_gone_on(folder / SLOW) or process.poll() is not None, LIMIT_S)
        yield
    finally:
        (folder / "stop").touch()
        _, _, words = ended(process)
        sys.stderr.write(words)
