"""The command line: every view in every format, and what goes where."""

import csv
import gzip
import io
import json
import re
import subprocess
import sys

import pytest

import kinetoscope_tb
from contract.running import a_trace, put
from kinetoscope_tb.discovery.filename_patterns import is_candidate
from kinetoscope_tb.views import EVERY_VIEW, VIEWS
from support.build import TraceBuilder
from support.foreign_files import VIZTRACER
from support.simulated import Truth, simulated, write
from support.waiting import LIMIT_S


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    put(folder, "job/rank0.5.pt.trace.json")
    return str(folder / "job/rank0.5.pt.trace.json")


@pytest.fixture(scope="module")
def logdir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    put(folder, *(f"{run}/rank{r}.{s}.pt.trace.json" for run in "ab" for r in (0, 1) for s in (2, 10)))
    put(folder, "broken/garbage.pt.trace.json", text="garbage")
    put(folder, "broken/zero.json", text="")
    (folder / "empty").mkdir()
    return str(folder)


@pytest.mark.usefixtures("shared_readings")
@pytest.mark.parametrize("name", VIEWS)
def test_json_is_the_answer_of_the_page(kinetoscope, trace, name):
    status, out, err = kinetoscope("view", name, trace, "--format", "json")
    answer = json.loads(out)
    assert (status, err, answer["view"]) == (0, "", name)
    if answer["state"] == "missing":
        assert answer == {"state": "missing", "view": name, "hint": VIEWS[name].hint}
        return
    assert set(answer) == {"state", "view", "columns", "data"}
    assert answer["columns"] == VIEWS[name].describe()["columns"]
    assert list(answer["data"]) == [column["name"] for column in answer["columns"]]
    assert len({len(values) for values in answer["data"].values()}) == 1


def test_csv_holds_no_formula_for_a_spreadsheet_to_run(kinetoscope, tmp_path):
    path = tmp_path / "rank0.1.pt.trace.json"
    path.write_text(TraceBuilder().op('=HYPERLINK("http://example.org")', 0, 10).op("aten::mm", 20, 10).text())
    table = kinetoscope("view", "operators", str(path), "--format", "csv")[1]
    names = [row["name"] for row in csv.DictReader(io.StringIO(table))]
    assert sorted(names) == ['\'=HYPERLINK("http://example.org")', "aten::mm"]
    assert '"=HYPERLINK' in kinetoscope("view", "operators", str(path), "--format", "json")[1]


@pytest.mark.usefixtures("shared_readings")
@pytest.mark.parametrize("name", VIEWS)
def test_text_and_csv_hold_the_rows_of_json(kinetoscope, trace, name):
    answer = json.loads(kinetoscope("view", name, trace, "--format", "json")[1])
    _, text, text_err = kinetoscope("view", name, trace)
    _, table, csv_err = kinetoscope("view", name, trace, "--format", "csv")
    if answer["state"] == "missing":
        assert text == table == ""
        assert answer["hint"] in text_err
        assert answer["hint"] in csv_err
        return
    columns = list(answer["data"])
    height = len(answer["data"][columns[0]])
    rows = list(csv.DictReader(io.StringIO(table)))
    has_sentences = any(column["kind"] == "prose" for column in answer["columns"])
    lines = (
        [line for line in text.splitlines() if re.match(r"\d+\. ", line)] if has_sentences else text.splitlines()[1:]
    )
    assert len(rows) == height == len(lines)
    for column in columns:
        for got, value in zip((row[column] for row in rows), answer["data"][column], strict=True):
            if value is None:
                assert got == ""
            elif isinstance(value, (bool, str)):
                assert got == (value if isinstance(value, str) else str(value).lower())
            else:
                assert float(got) == value


def test_an_event_is_printed_as_the_file_has_it(kinetoscope, trace):
    text = a_trace().text()
    offset = str(text.index('{"ph": "X", "cat": "kernel"'))
    status, out, err = kinetoscope("event", trace, "--offset", offset)
    assert (status, err) == (0, "")
    answer = json.loads(kinetoscope("event", trace, "--offset", offset, "--format", "json")[1])
    assert answer["state"] == "ready"
    assert json.loads(out) == answer["value"] == json.loads(answer["text"])


def test_where_no_event_begins_there_is_none(kinetoscope, trace):
    status, out, _ = kinetoscope("event", trace, "--offset", "5", "--format", "json")
    assert (status, json.loads(out)["code"]) == (1, "not_found")


def test_a_pattern_of_the_command_counts_as_communication(kinetoscope, trace):
    pattern = ("--communication-pattern", "sgemm", "--format", "json")
    status, out, _ = kinetoscope("view", "kernels", trace, *pattern)
    assert (status, json.loads(out)["data"]["communication_rule"][0]) == (0, "pattern sgemm")
    status, out, _ = kinetoscope("view", "kernels", trace, "--communication-pattern", "(", "--format", "json")
    assert (status, json.loads(out)["code"]) == (1, "bad_parameter")
    assert "number 1: '(' isn't a regular expression: unclosed group" in json.loads(out)["message"]


def test_a_wrong_line_of_a_file_of_patterns_is_reported(kinetoscope, tmp_path):
    (tmp_path / "rank0.1.pt.trace.json").write_text(a_trace().text())
    (tmp_path / "communication_patterns.txt").write_text("sgemm\n(\n")
    status, out, err = kinetoscope("view", "kernels", str(tmp_path), "--format", "json")
    assert (status, json.loads(out)["data"]["communication_rule"][0]) == (0, "pattern sgemm")
    assert "communication_patterns.txt: Line 2: '(' isn't a regular expression" in err


def test_text_names_one_unit_per_column(kinetoscope, trace):
    _, out, _ = kinetoscope("view", "kernels", trace)
    header, row = out.splitlines()[:2]
    assert "total (µs)" in header
    assert "600" in row
    assert "GEMM cuBLAS ampere 128x64 fp32" in row


def test_files_have_the_full_names_of_kernels(kinetoscope, trace):
    for form in ("csv", "json"):
        assert "ampere_sgemm_128x64_tn" in kinetoscope("view", "kernels", trace, "--format", form)[1]


def test_views_lists_the_catalogue(kinetoscope):
    assert [view["id"] for view in json.loads(kinetoscope("views", "--format", "json")[1])] == list(EVERY_VIEW)
    assert [row["id"] for row in csv.DictReader(io.StringIO(kinetoscope("views", "--format", "csv")[1]))] == list(
        EVERY_VIEW
    )
    text, page = kinetoscope("views")[1], kinetoscope("views", "--format", "markdown")[1]
    for view in VIEWS.values():
        assert view.id in text
        for column in view.table.columns:
            assert f"`{column.name}`" in page


@pytest.mark.parametrize("name", VIEWS)
def test_help_of_a_view_explains_its_columns_and_parameters(kinetoscope, name):
    status, out, _ = kinetoscope("view", name, "--help")
    assert status == 0
    for column in VIEWS[name].table.columns:
        assert f"{column.name} ({column.kind.name})" in out
    for parameter in VIEWS[name].parameters:
        assert f"--{parameter.name.replace('_', '-')}" in out


def test_of_several_traces_the_newest_is_shown_and_it_says_so(kinetoscope, tmp_path):
    put(
        tmp_path,
        *(f"run-202611{day}/rank{r}.{s}.pt.trace.json" for day in (22, 24, 23) for r in (0, 1) for s in (2, 10)),
    )
    _, out, err = kinetoscope("view", "steps", str(tmp_path), "--format", "json")
    assert json.loads(out)["state"] == "ready"
    assert "run run-20261124, the newest of 3; choose another with --run: run-20261123, run-20261122" in err
    assert "worker rank0, one of 2; choose another with --worker: rank1" in err
    assert "span 10, the newest of 2; choose another with --span: 2" in err


@pytest.mark.parametrize("words", [("view", "advice"), ("summary",)])
def test_what_one_rank_says_points_to_what_all_say(kinetoscope, tmp_path, words):
    put(tmp_path, *(f"run/rank{rank}.2.pt.trace.json" for rank in (0, 1)))
    note = "rank1 alone, one of 2 ranks: `kinetoscope summary` without --worker compares all."
    assert note in kinetoscope(*words, str(tmp_path), "--worker", "rank1")[1]
    file = str(tmp_path / "run/rank1.2.pt.trace.json")
    assert note not in kinetoscope(*words, file)[1]


def test_a_span_that_is_a_time_is_shown_as_one(kinetoscope, tmp_path):
    put(tmp_path, *(f"host_1.{ns}.pt.trace.json" for ns in (1733769848514071115, 1733770537022695153)))
    _, _, err = kinetoscope("view", "steps", str(tmp_path))
    assert "span 1733770537022695153 (2024-12-09 18:55:37 UTC), the newest of 2" in err
    assert "--span: 1733769848514071115 (2024-12-09 18:44:08 UTC)" in err


def test_names_choose_and_then_nothing_is_said(kinetoscope, logdir):
    status, _, err = kinetoscope("view", "steps", logdir, "--run", "b", "--worker", "rank1", "--span", "10")
    assert (status, err) == (0, "")


FAILURES = [
    (["view", "nothing", "LOGDIR"], "not_found"),
    (["view", "LOGDIR", "steps"], "bad_parameter"),
    (["view", "steps", "LOGDIR/gone"], "missing_path"),
    (["view", "steps", "-"], "bad_parameter"),
    (["view", "steps", "LOGDIR/empty"], "logdir_error"),
    (["view", "steps", "LOGDIR", "--run", "gone"], "not_found"),
    (["view", "steps", "LOGDIR", "--run", "a", "--worker", "rank9"], "not_found"),
    (["view", "steps", "LOGDIR", "--color", "red"], "bad_parameter"),
    (["view", "steps"], "bad_parameter"),
    (["view", "steps", "LOGDIR/broken"], "not_a_trace"),
    (["view", "steps", "LOGDIR/broken/zero.json"], "not_a_trace"),
    (["view", "steps", "LOGDIR/broken/garbage.pt.trace.json"], "not_a_trace"),
]


@pytest.mark.parametrize(("arguments", "code"), FAILURES)
def test_a_failure_is_one_object_and_exit_status_1(kinetoscope, logdir, arguments, code):
    arguments = [a.replace("LOGDIR", logdir) for a in arguments]
    status, out, _ = kinetoscope(*arguments, "--format", "json")
    failure = json.loads(out)
    assert (status, failure["state"], failure["code"]) == (1, "failed", code)
    assert set(failure) == {"state", "view", "code", "message"}


@pytest.mark.parametrize(("arguments", "code"), FAILURES)
def test_as_text_a_failure_goes_to_standard_error_without_traceback(kinetoscope, logdir, arguments, code):
    status, out, err = kinetoscope(*[a.replace("LOGDIR", logdir) for a in arguments])
    assert (status, out) == (1, "")
    assert "Error: " in err
    assert "Traceback" not in err


def test_a_missing_path_is_said_with_what_was_probably_meant(kinetoscope, trace, tmp_path):
    _, _, err = kinetoscope("summary", trace.replace("rank0", "rank7"))
    assert err.startswith("Error: There is no file or folder ")
    assert err.endswith("Did you mean rank0.5.pt.trace.json?\n")
    assert kinetoscope("summary", str(tmp_path / "gone" / "x.json"))[2].endswith("x.json.\n")
    (tmp_path / "link").symlink_to("nowhere")
    assert "There is no file or folder" in kinetoscope("summary", str(tmp_path / "link"))[2]


def test_what_a_folder_without_traces_is_told_is_true(kinetoscope, tmp_path):
    _, _, err = kinetoscope("summary", str(tmp_path))
    for ending in (
        ".json",
        ".json.gz",
        ".json.zst",
        ".pftrace",
        ".perfetto-trace.gz",
        ".sqlite",
        ".pickle.gz",
        ".html",
    ):
        assert is_candidate(f"any{ending}")
    assert ".json, .pftrace, .perfetto-trace, .pickle, .pkl (also with .gz or .zst), .sqlite or .html" in err
    put(tmp_path, "t.json")
    assert kinetoscope("summary", str(tmp_path))[0] == 0


def test_an_address_that_cannot_be_opened_is_not_called_a_folder(kinetoscope):
    _, _, err = kinetoscope("summary", "http://127.0.0.1:9/x.json")
    assert "http://127.0.0.1:9/x.json: It can't be opened: " in err


def test_standard_input_says_what_to_do(kinetoscope):
    assert "Write it to a file first" in kinetoscope("summary", "-")[2]


def test_a_pattern_that_is_none_is_explained_without_the_expression(kinetoscope, trace):
    _, _, err = kinetoscope("view", "operators", trace, "--filter", "re:(")
    assert err == "Error: re:( isn't a pattern: unclosed group.\n"


def test_a_view_without_rows_says_why(kinetoscope, logdir, trace):
    _, out, err = kinetoscope("view", "stragglers", logdir, "--run", "a", "--span", "2")
    assert len(out.splitlines()) == 1
    assert "no rows. Telling a slow rank from a one-off takes three complete steps" in err
    assert "No row matches the filter." in kinetoscope("view", "operators", trace, "--filter", "nothing like it")[2]


@pytest.mark.parametrize("module", ["kinetoscope", "kinetoscope_tb"])
def test_the_packages_run_as_commands(module):
    done = subprocess.run([sys.executable, "-m", module, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"kinetoscope, version {kinetoscope_tb.__version__}\n"


def test_a_reader_that_has_seen_enough_is_no_error(trace):
    code = "from kinetoscope_tb.cli import main; main()"
    command = [sys.executable, "-c", code, "view", "operators", trace, "--format", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(LIMIT_S) == 0


def test_a_name_from_a_trace_cannot_steer_the_terminal(kinetoscope, tmp_path):
    evil = "evil\x1b[31m\nname"
    path = tmp_path / "x.json"
    path.write_text(a_trace().op(evil, 700_000, 1_000).text())
    _, out, _ = kinetoscope("view", "operators", str(path))
    assert "\x1b" not in out
    assert r"evil\x1b[31m\nname" in out
    data = json.loads(kinetoscope("view", "operators", str(path), "--format", "json")[1])["data"]
    assert evil in data["name"]


def test_a_name_of_a_file_cannot_steer_the_terminal(kinetoscope, tmp_path):
    put(tmp_path, "evil\x1b[31m/rank0.pt.trace.json", "evil\x1b[32m/rank0.pt.trace.json")
    for arguments in ([], ["--run", "gone"]):
        _, _, err = kinetoscope("view", "steps", str(tmp_path), *arguments)
        assert r"evil\x1b[32m" in err
        assert "\x1b" not in err


def test_repair_writes_a_strict_copy_and_says_what_was_repaired(kinetoscope, tmp_path):
    path, copy = tmp_path / "damaged.json", tmp_path / "fixed.json.gz"
    path.write_text(a_trace().text().replace("aten::mm", 'a "b" c', 1))
    status, out, err = kinetoscope("repair", str(path), str(copy))
    assert (status, err) == (0, "")
    assert "unescaped_quote (1)" in out
    assert 'a "b" c' in [event["name"] for event in json.loads(gzip.decompress(copy.read_bytes()))["traceEvents"]]
    status, _, err = kinetoscope("repair", str(path), str(path))
    assert (status, "Error: " in err, "nothing is overwritten" in err) == (1, True, True)


def test_the_demo_says_how_to_get_what_it_needs(kinetoscope, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    status, _, err = kinetoscope("demo", "--record-only")
    assert status == 1
    assert "pip install 'kinetoscope[demo]'" in err


def test_a_view_of_a_run_is_of_all_its_workers(kinetoscope, tmp_path):
    write(simulated(Truth(ranks=3, steps=4, late={(1, None): 4_000_000})), tmp_path / "run")
    status, out, _ = kinetoscope("view", "stragglers", str(tmp_path), "--format", "json")
    answer = json.loads(out)
    assert (status, answer["state"]) == (0, "ready")
    assert answer["data"]["worker"][0] == "rank1"
    assert answer["data"]["verdict"] == ["straggler", "waits", "waits"]
    status, out, _ = kinetoscope("view", "rank_steps", str(tmp_path), "--format", "csv")
    assert (status, len(out.splitlines())) == (0, 1 + 3 * 4)


def test_a_file_of_another_program_says_whose_it_is(kinetoscope, tmp_path):
    put(tmp_path, "result.json", text=VIZTRACER)
    status, out, _ = kinetoscope("check", str(tmp_path))
    assert status == 1
    assert "foreign     result.json" in out
    assert "written by VizTracer, not by torch.profiler" in out
    _, out, _ = kinetoscope("summary", str(tmp_path))
    assert "written by VizTracer" in out
    assert "Busy time by lane: 5 events in 73.9 µs" in out
    assert "MainProcess (6553) · MainThread (6553)" in out
    assert "CPU" not in out
    assert "0 ns" not in out
