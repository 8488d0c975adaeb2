"""Programs that use torch.profiler record with only their imports changed, and see the same."""

import inspect
import textwrap

import pytest
import torch

from kinetoscope import Tracer
from kinetoscope.profiler import continued_runs
from support import torch_loops

pytestmark = pytest.mark.filterwarnings("ignore")  # torch's own


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder of its own for a run of a shape."""
    monkeypatch.setattr(continued_runs, "_runs", {})

    def go(name):
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.chdir(folder)
        return folder

    return go


def changed(shape):
    """A shape with its imports from `kinetoscope.profiler`."""
    lines = textwrap.dedent(inspect.getsource(shape)).splitlines()
    code = "\n".join(
        line.replace("torch.profiler", "kinetoscope.profiler")
        if line.strip().startswith(("from torch.profiler", "import torch.profiler as"))
        else line
        for line in lines
    )
    assert "kinetoscope.profiler" in code
    names = dict(vars(torch_loops))
    exec(compile(code, shape.__name__, "exec"), names)
    return names[shape.__name__]


def seen_with_torch(shape, folder, monkeypatch):
    """What a shape sees with torch, and how many windows torch completes for it."""
    windows = []
    ready = torch.profiler.profile._trace_ready
    with monkeypatch.context() as patch:
        patch.setattr(torch.profiler.profile, "_trace_ready", lambda p: (windows.append(p), ready(p))[1])
        seen = shape(folder)
    return seen, len(windows) or 1  # torch doesn't report a window that the program itself begins and ends


@pytest.mark.parametrize("shape", torch_loops.SHAPES, ids=lambda shape: shape.__name__)
def test_a_program_sees_the_same_and_records(shape, place, monkeypatch, log):
    seen, windows = seen_with_torch(shape, place("torch"), monkeypatch)
    folder = place("ours")
    assert changed(shape)(folder) == seen
    if Tracer._live is not None:  # the program leaves it to the end of the process
        Tracer._live.close()
    saved = [path for path in folder.rglob("*.pt.trace.json*") if path.parent.name[:2] == "20"]
    assert len(saved) >= windows
    assert len({path.parent for path in saved}) == 1
    assert log() == []
