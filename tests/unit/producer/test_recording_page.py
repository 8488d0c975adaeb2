"""The examples of docs/recording.md and docs/composer.md work, and docs/tracer.md lists every argument."""

import inspect
import re
from pathlib import Path

import pytest
import torch

DOCS = Path(__file__).parents[3] / "docs"
RECORDING, COMPOSER = DOCS / "recording.md", DOCS / "composer.md"


def block(words, page=RECORDING):
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    (match,) = [block for block in blocks if words in block]
    return match


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.set_num_threads(1)
    weight = torch.ones(4, requires_grad=True)

    def execute(code, **more):
        names = {
            "loader": [torch.ones(4)] * 12,
            "model": lambda batch: (batch * weight).sum(),
            "optimizer": torch.optim.SGD([weight], lr=0.1),
            "epochs": 20,
            "train": lambda batch: None,
            **more,
        }
        exec(code, names)
        return names

    return execute


def files():
    return sorted(path.as_posix() for path in Path().rglob("*.json*") if not any(p[0] == "." for p in path.parts))


def test_the_first_loop_leaves_one_trace(run):
    run(block("cyclic(wait=5, warmup=1, active=3)) as tracer:"))
    assert [path.rpartition("/")[2] for path in files()] == ["rank0.9.pt.trace.json.gz", "run.json"]


def test_the_loop_of_one_s_own_leaves_its_windows(run):
    from kinetoscope import Tracer, cyclic

    names = run(block("tracer.epoch()"), Tracer=Tracer, cyclic=cyclic)
    assert [path.name for path in names["tracer"].saved_traces] == [
        f"rank0.{step}.pt.trace.json.gz" for step in (54, 108, 162, 216)
    ]
    assert names["tracer"].progress.token == 20 * 12 * 4


def test_names_for_what_happens_work(run):
    from kinetoscope import Tracer

    with Tracer("runs", run="run") as tracer:
        run(block('tracer.instant("checkpoint"'), tracer=tracer, batch=torch.ones(4))
        tracer.step()
    assert len(tracer.saved_traces) == 1


def test_composer_s_profiler_writes_what_the_page_says(run):
    code = block("from kinetoscope.composer import", COMPOSER)
    run(code.replace("                ...", "                model(batch)"))
    page = COMPOSER.read_text(encoding="utf-8")
    for path in (
        "my-run/torch_traces/rank0.5.pt.trace.json.gz",
        "my-run/traces/ep0-ba5-rank0.json",
        "my-run/traces/node0.json",
    ):
        assert path in files()
        assert f"`{path}`" in page


def test_the_page_of_arguments_lists_each_of_them_once():
    from kinetoscope import Tracer

    rows = re.findall(r"^\| (`.+?) \|", (DOCS / "tracer.md").read_text(encoding="utf-8"), re.MULTILINE)
    names = [name for row in rows for name in re.findall(r"`(\w+)", row)]
    assert sorted(names) == sorted(inspect.signature(Tracer).parameters)
