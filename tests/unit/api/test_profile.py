"""Recordings as data frames, and the examples of docs/python-api.md."""

import re
import shutil
from pathlib import Path

import polars as pl
import pytest

import kinetoscope
import kinetoscope_tb
from kinetoscope_tb.errors import BadParameter, LogdirError, MissingData, NotFound
from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("KINETOSCOPE_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def logdir(tmp_path):
    for worker, dur in (("rank0", 10), ("rank1", 20)):
        trace = TraceBuilder().window(0, 9000).step(0, 0, 1000).op("aten::mm", 10, dur)
        path = tmp_path / "job" / f"{worker}.5.pt.trace.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(trace.text())
    return tmp_path


def test_a_view_is_a_call_or_an_attribute(logdir):
    profile = kinetoscope_tb.open(logdir)
    assert profile.view("operators").select("name", "host_total_ns").rows() == [("aten::mm", 10)]
    assert profile.operators.equals(profile.view("operators"))
    assert {"operators", "meta"} <= set(dir(profile))
    with pytest.raises(AttributeError, match="no view 'nonsense'"):
        profile.nonsense  # noqa: B018  # that it raises is what is tested


def test_names_choose_and_the_first_is_taken_without_them(logdir):
    assert kinetoscope_tb.open(logdir).worker == "rank0"
    profile = kinetoscope_tb.open(str(logdir), run="job", worker="rank1", span="5")
    assert repr(profile) == "Profile(run='job', worker='rank1', span='5', events=3)"
    with pytest.raises(NotFound, match="rank7"):
        kinetoscope_tb.open(logdir, worker="rank7")
    for error in (LogdirError, FileNotFoundError):
        with pytest.raises(error, match=r"There is no file or folder .*gone"):
            kinetoscope_tb.open(logdir / "gone")


def test_own_patterns_of_communication_count(logdir):
    profile = kinetoscope_tb.open(logdir, communication_patterns=["range: mm$"])
    steps = profile.steps
    assert (steps["communication_ns"][0], steps["cpu_exec_ns"][0]) == (10, 0)
    with pytest.raises(BadParameter, match=r"communication_patterns\[1\]: '\(' isn't a regular expression"):
        kinetoscope_tb.open(logdir, communication_patterns=["fine", "("])


def test_a_frame_goes_to_whoever_speaks_arrow(logdir):
    frame = kinetoscope_tb.open(logdir).steps
    assert pl.DataFrame(Borrowed(frame)).equals(frame)


class Borrowed:
    """Shows nothing of a frame but the protocol."""

    def __init__(self, frame):
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema=None):
        return self._frame.__arrow_c_stream__(requested_schema)


def test_what_was_not_recorded_is_an_error_that_says_how_to_record_it(logdir):
    profile = kinetoscope_tb.open(logdir)
    with pytest.raises(MissingData, match=r"'kernels'.*ProfilerActivity\.CUDA"):
        profile.view("kernels")
    with pytest.raises(MissingData, match="'kernels'"):
        profile.compare(profile, "kernels")
    shown = profile.views()
    assert shown["view"].to_list() == list(VIEWS)
    assert shown.filter(view="kernels").select("has_data", "hint").row(0) == (False, VIEWS["kernels"].hint)


def test_views_and_parameters_that_are_not_there_are_errors(logdir):
    profile = kinetoscope_tb.open(logdir)
    with pytest.raises(NotFound, match="no view 'nothing'"):
        profile.view("nothing")
    with pytest.raises(NotFound, match="no view 'nothing'"):
        profile.compare(profile, "nothing")
    with pytest.raises(NotFound, match=r"no view 'opertors'; did you mean 'operators'\?"):
        profile.view("opertors")
    with pytest.raises(AttributeError, match=r"to read traces: kinetoscope_tb\.open"):
        kinetoscope.open  # noqa: B018  # that it raises is what is tested
    with pytest.raises(BadParameter, match="no parameter 'color'"):
        profile.view("steps", color="red")


def test_a_recording_is_the_new_side_of_its_comparison(logdir):
    base, new = (kinetoscope_tb.open(logdir, worker=worker) for worker in ("rank0", "rank1"))
    frame = new.compare(base, "operators", columns=["host_total_ns"])
    assert frame.select("base_host_total_ns", "new_host_total_ns", "delta_host_total_ns").rows() == [(10, 20, 10)]


def test_what_a_file_says_of_itself_is_there(logdir):
    profile = kinetoscope_tb.open(logdir)
    assert (profile.meta.events, profile.complete_steps, profile.path.endswith("rank0.5.pt.trace.json")) == (
        3,
        ["0"],
        True,
    )
    assert [diagnostic.rule for diagnostic in profile.diagnostics] == profile.health["rule"].to_list()


def test_the_other_ranks_are_read_once(logdir, monkeypatch):
    monkeypatch.setenv("KINETOSCOPE_CACHE", "off")
    profile = kinetoscope_tb.open(logdir)
    summary, ranks = profile.summary(), profile.view("rank_steps")
    for path in logdir.rglob("rank1*"):
        path.write_text("no trace any more")
    assert (profile.summary(), profile.answer.ranks) == (summary, 2)
    assert profile.view("rank_steps").equals(ranks)


def test_traces_lists_what_there_is(logdir):
    listed = kinetoscope_tb.traces(logdir)
    assert listed.select("run", "worker", "span").rows() == [("job", "rank0", "5"), ("job", "rank1", "5")]


@pytest.mark.slow  # all of the API
def test_the_examples_run(tmp_path, monkeypatch, capsys):
    sample = next((ROOT / "samples").glob("gloo_2ranks"))
    shutil.copytree(sample, tmp_path / "runs", ignore=shutil.ignore_patterns("*.py", "*.md"))
    monkeypatch.chdir(tmp_path)
    names = {}
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python-api.md").read_text(), re.DOTALL)
    for block in blocks:
        exec(compile(block, "docs/python-api.md", "exec"), names)
    assert len(blocks) >= 6
    assert "ProfilerActivity.CUDA" in capsys.readouterr().out
    assert names["by_rank"].height == 2
