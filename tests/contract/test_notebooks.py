"""docs/notebooks.md runs in a real kernel, and its cells show what it says."""

import re
import shutil
from pathlib import Path

import pytest

import kinetoscope_tb

ROOT = Path(__file__).parents[2]
FAILS = "%%kinetoscope broken\nimport torch\n\ntorch.ones(3).sum()\n1 / 0"
WAITS = "%%kinetoscope\nimport asyncio\n\nawait asyncio.sleep(0)"
WITHOUT_VIEWER = "%%kinetoscope --run alone\nsys.modules['kinetoscope_tb'] = None\ntorch.ones(3).sum()"
REFUSES = "%%kinetoscope --color red\n1"


def cells_of_page():
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "notebooks.md").read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notebook")
    sample = ROOT / "samples" / "gloo_2ranks"
    shutil.copytree(sample, folder / "runs", ignore=shutil.ignore_patterns("*.py", "*.md"))
    return folder


@pytest.fixture(scope="module")
def outputs(folder, tmp_path_factory):
    """The outputs of each cell, by its first line."""
    import nbformat  # seconds, which each process of pytest would spend
    from nbclient import NotebookClient

    cells = [*cells_of_page(), FAILS, "broken.operators", WAITS, REFUSES, "import sys", WITHOUT_VIEWER]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HOME", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"):
            patch.setenv(name, str(tmp_path_factory.mktemp(name)))
        client = NotebookClient(notebook, timeout=120, kernel_name="python3", allow_errors=True)
        client.execute(cwd=str(folder))
    return {cell.source.split("\n")[0]: cell.outputs for cell in notebook.cells}


def shown(outputs, start):
    """The outputs of the cell that begins so."""
    return next(found for line, found in outputs.items() if line.startswith(start))


def bundles(outputs, start):
    """What the cell shows as HTML, and as text."""
    found = [
        output.data for output in shown(outputs, start) if output.output_type in ("display_data", "execute_result")
    ]
    return [data for data in found if "text/html" in data]


def errors(outputs, start):
    return [output for output in shown(outputs, start) if output.output_type == "error"]


def test_every_cell_of_the_page_runs(outputs):
    assert len(outputs) == len(cells_of_page()) + 6
    failed = {line for line in outputs if errors(outputs, line)}
    assert failed == {FAILS.split("\n")[0]}


def test_a_recording_and_a_view_show_themselves(outputs, folder):
    (first_screen,), (operators,) = bundles(outputs, "import kinetoscope_tb"), bundles(outputs, "profile.operators")
    profile = kinetoscope_tb.open(folder / "runs", run="ddp")
    assert first_screen["text/plain"] == profile.summary()
    assert operators == profile.operators._repr_mimebundle_()
    assert "<script" not in first_screen["text/html"] + operators["text/html"]


def test_the_report_is_in_a_frame(outputs):
    (report,) = bundles(outputs, "profile.report()")
    assert report["text/html"].startswith('<iframe sandbox="')
    assert re.search(r": [\d.]+ kB in this notebook\.$", report["text/plain"])


@pytest.mark.parametrize("call", ["profile.timeline(step=11)", "profile.page()"])
def test_the_page_is_a_widget_and_the_first_screen_where_there_are_none(outputs, folder, call):
    (page,) = bundles(outputs, call)
    assert page["application/vnd.jupyter.widget-view+json"].keys() >= {"model_id", "version_major"}
    profile = kinetoscope_tb.open(folder / "runs", run="ddp")
    assert {kind: page[kind] for kind in ("text/plain", "text/html")} == profile._repr_mimebundle_()


def test_a_recorded_cell_shows_its_recording(outputs, folder):
    (mine,), (steps,) = bundles(outputs, "%%kinetoscope mine"), bundles(outputs, "%%kinetoscope steps")
    assert "aten::mm" in mine["text/plain"]
    assert re.search(r"Average of \d steps", steps["text/plain"])
    assert len({path.parent for path in (folder / "runs").glob("*/*.pt.trace.json.gz")}) == 5


def test_a_cell_that_fails_is_recorded_until_then(outputs):
    (recording,) = bundles(outputs, "%%kinetoscope broken")
    assert "aten::sum" in recording["text/plain"]
    assert "aten::sum" in bundles(outputs, "broken.operators")[0]["text/plain"]
    assert [error.ename for error in errors(outputs, "%%kinetoscope broken")] == ["ZeroDivisionError", "CellError"]


def test_without_the_viewer_a_recorded_cell_says_where_its_recording_is(outputs, folder):
    text = "".join(
        output.text for output in shown(outputs, "%%kinetoscope --run alone") if output.output_type == "stream"
    )
    (path,) = (folder / "runs" / "alone").glob("*.pt.trace.json.gz")
    assert f"The recording is {path}" in text or f"The recording is {path.relative_to(folder)}" in text


def test_what_cannot_be_recorded_is_an_error_that_says_why(outputs):
    assert "UsageError: %%kinetoscope can't record a cell that uses `await`" in outputs[WAITS.split("\n")[0]][0].text
    assert "UsageError: unrecognized arguments: --color" in outputs[REFUSES.split("\n")[0]][0].text
