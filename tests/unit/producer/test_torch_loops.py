"""Programs that use torch.profiler record with only their imports changed, and see the same."""

import pytest

from kinetoscope import Tracer
from kinetoscope.profiler import continued_runs
from support.torch_loops import SHAPES, seen_with_torch, with_our_names

pytestmark = pytest.mark.filterwarnings("ignore")  # torch's own


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_a_program_sees_the_same_and_records(shape, tmp_path, monkeypatch, log):
    monkeypatch.setattr(continued_runs, "_runs", {})  # as in a process of its own
    theirs, ours = tmp_path / "torch", tmp_path / "ours"
    for folder in (theirs, ours):
        folder.mkdir()
    monkeypatch.chdir(theirs)
    seen, windows = seen_with_torch(shape, theirs, monkeypatch)
    monkeypatch.chdir(ours)
    assert with_our_names(shape)(ours) == seen
    if Tracer._live is not None:  # the program leaves it to the end of the process
        Tracer._live.close()
    saved = list(ours.glob("*/*/*.pt.trace.json*"))
    assert len(saved) >= windows
    assert len({path.parent for path in saved}) == 1
    assert log() == []


def test_there_are_enough_of_them():
    assert len(SHAPES) >= 50
