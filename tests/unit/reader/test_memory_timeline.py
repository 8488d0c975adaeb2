"""torch's memory timelines open under Memory, with the levels and the categories of their file."""

import gzip
import json

import numpy as np
import pytest

from kinetoscope_tb.discovery import list_path
from kinetoscope_tb.errors import NotATrace
from kinetoscope_tb.export.repair import repair
from kinetoscope_tb.measures.memory.categories import CategoryLevels
from kinetoscope_tb.measures.memory.levels import device_memories
from kinetoscope_tb.names.memory_categories import CATEGORIES, CATEGORY_OF_TORCH
from kinetoscope_tb.reader import read, read_blocks
from kinetoscope_tb.views import VIEWS
from support.build import same

FORMS = ("train_all.memory_timeline.json.gz", "train_all.memory_timeline.raw.json.gz")


def reading(content):
    return read_blocks([json.dumps(content).encode()], path="m.json")


@pytest.mark.parametrize("form", FORMS)
def test_levels_and_categories_are_those_of_the_file(torch_2_15, form):
    times, sizes = json.loads(gzip.decompress((torch_2_15 / "cpu" / FORMS[0]).read_bytes()))
    trace = read(torch_2_15 / "cpu" / form)
    (memory,) = device_memories(trace)
    assert (memory.name, memory.before_bytes, memory.is_relative) == ("device", 0, False)
    after = np.searchsorted((memory.time_ns + trace.origin_ns) // 1000, times, side="right") - 1
    assert memory.allocated_bytes[after][2:].tolist() == [sum(row) for row in sizes][2:]
    expected = np.zeros((len(times), len(CATEGORIES)), np.int64)
    for i, number in enumerate(CATEGORY_OF_TORCH.values()):
        expected[:, number] += np.array(sizes)[:, i + 1]
    assert (CategoryLevels.of(trace, memory).levels[after][2:] == expected[2:]).all()


@pytest.mark.parametrize("form", FORMS)
def test_every_view_of_memory_shows_it(torch_2_15, form):
    trace = read(torch_2_15 / "cpu" / form)
    _, sizes = json.loads(gzip.decompress((torch_2_15 / "cpu" / FORMS[0]).read_bytes()))
    (peak,) = VIEWS["memory_devices"].run(trace)["peak_allocated_bytes"].to_list()
    assert VIEWS["memory_peak_categories"].run(trace)["alive_bytes"].sum() == peak == max(map(sum, sizes))
    for name, view in VIEWS.items():
        if view.entry == "Memory" and not view.id.startswith("snapshot_"):  # of another kind of file
            assert view.run(trace).height > 0, name
    assert "Device" not in VIEWS["environment"].run(trace)["fact"]
    assert {d.level for d in trace.diagnostics} <= {"note"}


def test_memory_from_before_the_recording_is_there_from_its_start():
    trace = reading([[-1, 1, 800, 0], [5_000, 2, 64, 4], [9_000, 4, -64, 4]])
    same(
        VIEWS["memory_categories"].run(trace),
        """
        device  time_ns  parameters_bytes  activations_bytes  unknown_bytes
        device  0        800               64                 0
        device  4000     800               0                  0
        device  4001     800               0                  0
        """,
    )
    assert trace.origin_ns == 5_000


def test_a_category_of_a_later_torch_is_unknown():
    trace = reading([[7, 1, 10, 99]])
    assert trace.memory["name"].to_list() == ["Unknown"]


@pytest.mark.parametrize(
    "content",
    [
        [[-1, 1, 2], [3]],
        [[1, 2], [[0, 1]]],
        [[1, 2], [["a"], [1]]],
        [[2**70, 1, 1, 1]],
        [[2**62, 1, 1, 1]],
        [[-1, 1, 1.5, "x"]],
        [[1], [[]]],
    ],
)
def test_damaged_timelines_are_refused(content):
    with pytest.raises(NotATrace, match="memory timeline"):
        reading(content)


def test_it_is_opened_by_path_and_never_listed_as_a_rank(torch_2_15, tmp_path):
    path = tmp_path / "rank0.memory_timeline.json.gz"
    path.write_bytes((torch_2_15 / "cpu" / FORMS[0]).read_bytes())
    (tmp_path / "rank0.1.pt.trace.json").write_text('{"traceEvents": []}')
    assert [file.worker for file in list_path(str(tmp_path)).files] == ["rank0"]
    assert len(list_path(str(path)).files) == 1
    with pytest.raises(NotATrace, match="memory timeline"):
        repair(str(path), str(tmp_path / "out.json"))
