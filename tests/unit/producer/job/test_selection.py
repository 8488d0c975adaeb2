"""Which ranks record, without processes and with torch's backend without communication."""

import pytest

from kinetoscope import Tracer, UsageError
from kinetoscope.job.rank_info import RankInfo
from kinetoscope.job.selection import Selection

LAUNCHER = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK")


@pytest.fixture
def launched(monkeypatch):
    """Be one process of two machines with four each, as torchrun numbers them."""

    def launch(rank):
        for name, value in zip(LAUNCHER, (rank, 8, rank % 4, 4, rank // 4), strict=True):
            monkeypatch.setenv(name, str(value))
        return RankInfo(rank, 8, rank % 4, rank // 4)

    return launch


@pytest.mark.parametrize(
    ("ranks", "chosen"),
    [
        (None, [0, 1, 2, 3, 4, 5, 6, 7]),
        (3, [3]),
        ({1, 6}, [1, 6]),
        (range(2, 4), [2, 3]),
        ("0", [0]),
        ("0, 5-7", [0, 5, 6, 7]),
        ("per-node", [0, 4]),
        (lambda rank: rank % 3 == 0, [0, 3, 6]),
        ((2, 100), [2]),
    ],
    ids=["all", "number", "set", "range", "text", "texts", "per node", "function", "too many"],
)
def test_ranks_are_chosen_by_number_text_or_function(launched, ranks, chosen):
    places = [launched(rank) for rank in range(8)]
    assert [
        place.global_rank for place in places if launched(place.global_rank) and Selection(ranks).is_selected
    ] == chosen
    known = Selection(ranks).selected_ranks(places[1])
    assert known == (None if ranks is None else chosen)


@pytest.mark.parametrize("ranks", [[], -1, [0, -1], ["0"], True, 1.5, "", "x", "3-1", "0,", "-2"], ids=repr)
def test_what_names_no_ranks_is_refused(tmp_path, ranks):
    with pytest.raises(UsageError, match="ranks"):
        Tracer(tmp_path, ranks=ranks)


@pytest.mark.parametrize(("ranks", "readers"), [(None, [0, 4]), ("2-3,6", [0, 2, 4, 6]), ("0,5", [0, 4, 5])], ids=repr)
def test_a_machine_s_own_counters_are_read_by_its_first_rank_that_records(launched, ranks, readers):
    # The first of all reads them too, for a window that is requested of it.
    assert [rank for rank in range(8) if Selection(ranks).is_first_of_node(launched(rank))] == readers


def test_machines_with_interleaved_ranks_report_only_themselves(launched, monkeypatch):
    launched(1)
    dealt = RankInfo(1, 8, 0, 1)  # the first of the second machine
    for name, value in zip(LAUNCHER, (1, 8, 0, 4, 1), strict=True):
        monkeypatch.setenv(name, str(value))
    assert Selection("per-node").selected_ranks(dealt) == [1]


def test_an_empty_selection_is_reported(tmp_path, log):
    with Tracer(tmp_path, run="run", ranks="8-15") as tracer:
        tracer.step()
    assert log() == ["0 windows: ranks='8-15', and the job has no such rank."]
    assert tracer.saved_traces == ()


LATE = """
import sys
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore
from kinetoscope import Tracer

def train(run, ranks, *after):
    with Tracer(sys.argv[1], run=run, ranks=ranks) as tracer:
        for do in after:
            do()
            torch.ones(4).relu()
            tracer.step()
    names = [path.name for path in tracer.saved_traces]
    print(run, tracer._selection.is_selected, names, tracer._trace_writer._client._spool is None)

def group():
    dist.init_process_group("fake", rank=6, world_size=8, store=FakeStore())

def mesh():
    init_device_mesh("cpu", (4, 2), mesh_dim_names=("dp", "tp"))

nothing = lambda: None
train("late", "0", group, nothing, nothing)  # until it is in a group, it takes itself for rank 0
train("unchosen", [0, 1], nothing, nothing)
train("tp", "per-group:tp", mesh, nothing, nothing)
train("dp", "per-group:dp", nothing, nothing)
"""


def test_a_rank_may_become_known_late_and_its_group_still_later(tmp_path, forks):
    status, out, err = forks.run("-c", LATE, tmp_path)
    assert out.splitlines() == [
        "late False [] False",
        "unchosen False [] True",  # no process was started for it, and nothing written
        "tp True ['rank6.3.pt.trace.json.gz'] False",
        "dp False [] True",
    ]
    assert (status, err) == (0, "")
