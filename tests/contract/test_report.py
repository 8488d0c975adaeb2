"""Writing a report: what is in the file, and what happens when it can't be written."""

import base64
import gzip
import json
import re

import pytest

from contract.running import put
from kinetoscope_tb.views import EVERY_VIEW, VIEWS
from support.simulated import Truth, simulated, write


def content(path):
    """What the page will show."""
    packed = re.search(r'id="kinetoscope-report">([^<]*)</script>', path.read_text())[1]
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def test_a_report_holds_the_answers_of_the_page(kinetoscope, tmp_path):
    put(tmp_path, "job/rank0.5.pt.trace.json", "job/rank1.5.pt.trace.json")
    out = tmp_path / "out.html"
    status, output, _ = kinetoscope("report", str(tmp_path / "job"), str(out), "--worker", "rank1")
    assert (status, output.startswith(f"{out}: 1 recording, ")) == (0, True)
    held = content(out)
    (trace,) = held["traces"]
    assert (trace["worker"], trace["state"]["state"]) == ("rank1", "ready")
    assert {one["view"] for one in trace["answers"]} == {
        name for name, view in VIEWS.items() if view.place.kind != "detail"
    }
    file = str(tmp_path / "job" / "rank1.5.pt.trace.json")
    alone = json.loads(kinetoscope("summary", file, "--format", "json")[1])
    assert trace["answer"]["verdict"] == alone["verdict"]
    assert trace["answer"]["rows"] == alone["rows"]
    for one in trace["answers"]:
        if not one["parameters"] and one["view"] != "environment":
            shown = json.loads(kinetoscope("view", one["view"], file, "--format", "json")[1])
            assert one["answer"] == shown


def test_all_recordings_of_a_run_are_in_it_also_one_that_cannot_be_read(kinetoscope, tmp_path):
    put(tmp_path, "job/rank0.5.pt.trace.json", "job/rank1.5.pt.trace.json")
    put(tmp_path, "job/rank2.5.pt.trace.json", text="garbage")
    out = tmp_path / "out.html"
    assert kinetoscope("report", str(tmp_path), str(out), "--all")[0] == 0
    states = {trace["worker"]: trace["state"]["state"] for trace in content(out)["traces"]}
    assert states == {"rank0": "ready", "rank1": "ready", "rank2": "failed"}


def test_the_report_of_a_run_says_which_rank_is_slow(kinetoscope, tmp_path):
    write(simulated(Truth(ranks=3, steps=4, late={(1, None): 4_000_000})), tmp_path / "run")
    out = tmp_path / "out.html"
    assert kinetoscope("report", str(tmp_path), str(out), "--all")[0] == 0
    report = content(out)
    assert {view["id"] for view in report["views"]} == set(EVERY_VIEW)
    for trace in report["traces"]:
        assert set(trace["state"]["missing"]) <= set(VIEWS)
        answers = {one["view"]: one["answer"] for one in trace["answers"] if not one["parameters"]}
        assert answers["run_advice"]["data"]["title"][0].startswith("Rank 1 ")
        assert len(answers["rank_steps"]["data"]["step"]) == 3 * 4


@pytest.mark.usefixtures("shared_readings")
def test_the_report_of_a_run_begins_as_its_summary_also_with_one_recording_alone(kinetoscope, tmp_path):
    write(simulated(Truth(ranks=3, steps=4, late={(1, None): 4_000_000})), tmp_path / "run")
    out = tmp_path / "out.html"
    summary = json.loads(kinetoscope("summary", str(tmp_path), "--format", "json")[1])
    assert summary["verdict"]["about"] == "run"
    for options, count in (((), 1), (("--all",), 3), (("--anonymous",), 1)):
        assert kinetoscope("report", str(tmp_path), str(out), *options)[0] == 0
        first, *others = content(out)["traces"]
        assert len(others) == count - 1
        for name in ("title", "evidence", "saving_ns") if "--anonymous" not in options else ("saving_ns",):
            assert first["answer"]["verdict"][name] == summary["verdict"][name]
    assert kinetoscope("report", str(tmp_path), str(out), "--worker", "rank0")[0] == 0
    assert content(out)["traces"][0]["answer"]["verdict"]["about"] == "recording"


def test_long_tables_are_cut_and_say_from_how_many_rows(kinetoscope, tmp_path):
    put(tmp_path, "job/rank0.5.pt.trace.json")
    out = tmp_path / "out.html"
    kinetoscope("report", str(tmp_path), str(out), "--rows", "1")
    answers = {one["view"]: one["answer"] for one in content(out)["traces"][0]["answers"] if not one["parameters"]}
    assert answers["operators"]["data"]["name"] == ["aten::mm"]
    assert answers["operators"]["note"] == "This report holds the first 1 of 2 rows; sums and charts cover only these."
    assert "note" not in answers["kernels"]


def test_what_cannot_be_written_is_an_error_and_leaves_nothing(kinetoscope, tmp_path):
    put(tmp_path, "job/rank0.5.pt.trace.json")
    status, _, err = kinetoscope("report", str(tmp_path), str(tmp_path / "gone" / "out.html"))
    assert (status, "can't be written" in err) == (1, True)
    put(tmp_path, "bad/rank0.5.pt.trace.json", text="garbage")
    assert kinetoscope("report", str(tmp_path / "bad"), str(tmp_path / "out.html"))[0] == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad", "job"]
