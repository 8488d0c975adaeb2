"""Comparing two recordings: the same answer on the command line and over HTTP, and an exit status for CI."""

import csv
import io
import json
import re

import pytest

import kinetoscope_tb
from contract.running import put
from kinetoscope_tb.views import EVERY_VIEW, VIEWS
from support.build import TraceBuilder
from support.snapshots import GIB, MIB, Allocator, trained


def slower():
    """Twice as long kernels, with an operator of its own; three steps."""
    trace = TraceBuilder()
    for step in range(3):
        at = step * 1_000_000
        trace.step(step, at, 900_000).op("aten::mm", at + 10_000, 200_000).launch(at + 20_000, 5_000, step + 1)
        trace.kernel("ampere_sgemm_128x64_tn", at + 50_000, 600_000, step + 1)
        trace.op("aten::fill_", at + 300_000, 50_000)
    return trace.window(0, 9_000_000)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compared")
    put(folder, "base/rank0.5.pt.trace.json")
    put(folder, "new/rank0.5.pt.trace.json", text=slower().text())
    return str(folder)


@pytest.fixture
def compared(kinetoscope, runs):
    def run(*arguments):
        return kinetoscope("compare", runs, "--base-run", "base", "--new-run", "new", *arguments)

    return run


def test_json_holds_both_sides_the_difference_and_what_it_is_of(compared):
    status, out, err = compared("--view", "operators", "--format", "json")
    answer = json.loads(out)
    assert (status, err, answer["state"], answer["view"]) == (0, "", "ready", "operators")
    assert (answer["compared"], answer["weight"]) == (["device_self_ns", "calls"], "delta_device_self_ns")
    assert (answer["basis"]["base_steps"], answer["basis"]["new_steps"]) == (2, 3)
    row = answer["data"]["name"].index("aten::mm")
    row_values = {name: values[row] for name, values in answer["data"].items()}
    assert (row_values["base_device_self_ns"], row_values["new_device_self_ns"]) == (300_000, 600_000)
    assert (
        row_values["delta_device_self_ns"],
        row_values["device_self_ns_ratio"],
        row_values["device_self_ns_verdict"],
    ) == (
        300_000,
        2,
        "beyond noise",
    )
    assert sorted(zip(answer["data"]["name"], answer["data"]["only_in"], strict=True), key=str) == [
        ("aten::copy_", "base"),
        ("aten::fill_", "new"),
        ("aten::mm", None),
    ]
    assert [column["name"] for column in answer["columns"]] == list(answer["data"])


@pytest.mark.usefixtures("shared_readings")
@pytest.mark.parametrize("view", [name for name, view in VIEWS.items() if view.comparable_columns])
def test_every_view_compares_in_every_format(compared, view):
    status, out, _ = compared("--view", view, "--format", "json")
    answer = json.loads(out)
    assert status == 0
    if answer["state"] == "missing":
        return
    height = len(next(iter(answer["data"].values())))
    assert len(list(csv.DictReader(io.StringIO(compared("--view", view, "--format", "csv")[1])))) == height
    assert len(compared("--view", view)[1].splitlines()) == 1 + 1 + height  # basis, headings, rows
    columns = ",".join(VIEWS[view].comparable_columns)
    assert compared("--view", view, "--columns", columns, "--format", "json")[0] == 0


def test_what_changed_most_is_compared_by_default(compared):
    status, out, err = compared()
    headline, basis, *lines = out.splitlines()
    assert (status, err) == (0, "")
    assert lines[0].split() == ["kind", "base", "(µs)", "new", "(µs)", "change", "verdict", "delta", "(µs)", "name"]
    assert {"step part", "kernel", "operator"} <= {re.split(r"  +", line)[0] for line in lines[1:]}
    assert headline.startswith("The average step: ")
    answer = json.loads(compared("--format", "json")[1])
    assert (answer["view"], answer["headline"], answer["basis"]["words"]) == ("changes", headline, basis)
    assert len(list(csv.DictReader(io.StringIO(compared("--format", "csv")[1])))) == len(lines) - 1


def test_why_a_step_takes_longer_is_the_same_in_every_format_and_adds_up(compared):
    status, out, err = compared("--view", "step_difference")
    headline, coverage, _, *lines = out.splitlines()
    assert (status, err) == (0, "")
    assert headline.startswith("The typical step (5 of the base, 1 of the new): 900 → 900 µs, 0 %, of which ")
    answer = json.loads(compared("--view", "step_difference", "--format", "json")[1])
    assert (answer["view"], answer["headline"], answer["coverage"]) == ("step_difference", headline, coverage)
    assert {side: sum(answer["data"][f"{side}_ns"]) for side in ("base", "new")} == {
        side: step["ns"] for side, step in answer["steps"].items()
    }
    assert len(list(csv.DictReader(io.StringIO(compared("--view", "step_difference", "--format", "csv")[1])))) == len(
        lines
    )


def test_a_rule_that_is_broken_is_exit_status_2(compared):
    status, out, _ = compared("--view", "operators", "--fail-if", "aten::mm>50%", "--within-recording")
    assert status == 2
    assert "aten::mm" in out
    assert "BROKEN: aten::mm>50%\n  aten::mm: 300 → 600 (µs) (300, +100 %; noise ±0)" in out


def test_a_term_is_opened_in_every_format(compared):
    chosen = ("--view", "step_difference_rows", "--set", "kind=same work", "--set", "base_work=aten::mm")
    status, out, err = compared(*chosen)
    assert (status, err) == (0, "")
    assert {"repeats", "base_kernels", "new_kernels"} <= set(out.splitlines()[1].split())
    data = json.loads(compared(*chosen, "--format", "json")[1])["data"]
    assert set(data["base_work"]) == {"aten::mm"}
    assert len(list(csv.DictReader(io.StringIO(compared(*chosen, "--format", "csv")[1])))) == len(data["kind"])
    status, _, err = compared("--view", "step_difference_rows", "--set", "kind=idl")
    assert (status, "choose one of same work" in err) == (1, True)


def test_a_time_of_one_recording_a_side_is_not_judged(compared):
    status, out, _ = compared("--fail-if", "aten::mm>50%")
    assert (status, "real" in out) == (0, False)
    assert "not judged: aten::mm>50%: one row exceeds it, but one recording a side doesn't tell a change" in out
    rule = json.loads(compared("--fail-if", "aten::mm>50%", "--format", "json")[1])["rules"][0]
    assert (rule["is_broken"], rule["rows"], rule["unjudged"][0]["name"]) == (False, [], "aten::mm")


def test_a_count_breaks_a_rule_with_one_recording_a_side(compared):
    assert compared("--fail-if", "operators.calls[aten::fill_]>0")[0] == 2


@pytest.mark.parametrize("form", ["text", "json", "csv"])
def test_the_same_script_recorded_twice_is_never_called_slower(kinetoscope, cases, form):
    pair = [str(cases / "same_script_twice" / f"a{number}.pt.trace.json.gz") for number in (1, 2)]
    for base, new in (pair, pair[::-1]):
        status, out, err = kinetoscope("compare", base, new, "--fail-if", "step>5%", "--format", form)
        assert status == 0, err
        assert not re.search(r"\breal\b", out)


def test_rules_that_hold_are_exit_status_0(compared):
    status, out, _ = compared("--fail-if", "aten::mm>100%", "--fail-if", "step>50%")
    assert status == 0
    assert out.endswith("holds: aten::mm>100%\nholds: step>50%\n")


def test_in_csv_the_rules_go_to_standard_error(compared):
    _, out, err = compared("--fail-if", "step>50%", "--format", "csv")
    assert "holds" not in out
    assert "holds: step>50%" in err


def test_json_tells_what_came_of_the_rules(compared):
    rules = ("--fail-if", "aten::mm>50%", "--fail-if", "step>50%")
    status, out, _ = compared(*rules, "--within-recording", "--format", "json")
    broken, held = json.loads(out)["rules"]
    assert (status, broken["is_broken"], held["is_broken"]) == (2, True, False)
    assert broken["rows"][0]["delta_device_self_ns"] == 300_000


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--fail-if", "nonsense"], "bad_parameter"),
        (["--fail-if", "aten::mn>5%"], "not_found"),
        (["--view", "nothing"], "not_found"),
        (["--view", "operators", "--columns", "name"], "bad_parameter"),
        (["--columns", "calls"], "bad_parameter"),
        (["--set", "x=1"], "bad_parameter"),
        (["--view", "operators", "--set", "x"], "bad_parameter"),
        (["--new-run", "gone"], "not_found"),
    ],
)
def test_what_fails_is_exit_status_1(compared, arguments, code):
    status, out, _ = compared(*arguments, "--format", "json")
    assert (status, json.loads(out)["code"]) == (1, code)


def test_two_paths_are_compared_and_the_choice_of_each_side_is_said(kinetoscope, runs):
    _, out, err = kinetoscope("compare", f"{runs}/base", runs, "--format", "json")
    assert json.loads(out)["state"] == "ready"
    assert "run new, the newest of 2; choose another with --new-run: base" in err


SIDES = {"run": "job", "worker": "rank0", "span": "2", "base_run": "job", "base_worker": "rank1", "base_span": "10"}


@pytest.mark.parametrize(
    ("view", "difference"),
    [("kernels", "delta_total_ns"), ("step_difference", "delta_ns"), ("step_difference_rows", "delta_ns")],
)
def test_the_server_compares_two_traces(server, kinetoscope, logdir, view, difference):
    answer = server.settled("compare", view=view, **SIDES).json
    options = [
        "--run",
        "job",
        "--new-worker",
        "rank0",
        "--new-span",
        "2",
        "--base-worker",
        "rank1",
        "--base-span",
        "10",
    ]
    _, out, _ = kinetoscope("compare", str(logdir), "--view", view, *options, "--format", "json")
    assert answer.pop("labels") == {"ampere_sgemm_128x64_tn": "GEMM cuBLAS ampere 128x64 fp32"}
    assert answer.pop("state") == "ready"
    assert answer == {name: value for name, value in json.loads(out).items() if name != "state"}
    assert set(answer["data"][difference]) == {0}


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"base_run": "gone"}, 404, "not_found"),
        ({"base_span": None}, 400, "bad_parameter"),
        ({"view": "nothing"}, 404, "not_found"),
        ({"columns": "name"}, 400, "bad_parameter"),
        ({"color": "red"}, 400, "bad_parameter"),
        ({"base_run": "broken", "base_worker": "garbage", "base_span": "default"}, 200, "not_a_trace"),
    ],
)
def test_a_question_that_cannot_be_answered_says_why(server, change, status, code):
    query = {name: value for name, value in ({"view": "kernels"} | SIDES | change).items() if value is not None}
    answer = server.settled("compare", **query)
    assert (answer.status, answer.json["code"]) == (status, code)


@pytest.mark.usefixtures("shared_readings")
def test_ranks_are_compared_with_those_of_another_run(kinetoscope, cases):
    runs = (str(cases / "20_slow_rank_two_gloo"), "--base-run", "slowjob", "--new-run", "slower")
    columns = ("--view", "rank_steps", "--columns", "without_waiting_ns", "--format", "json")
    status, out, err = kinetoscope("compare", *runs, *columns)
    answer = json.loads(out)
    assert (status, err, answer["key"]) == (0, "", ["worker"])
    assert answer["data"]["worker"] == ["rank1", "rank0"]
    steps = json.loads(kinetoscope("view", "rank_steps", runs[0], "--run", "slower", "--format", "json")[1])["data"]
    own = [own for own, worker in zip(steps["without_waiting_ns"], steps["worker"], strict=True) if worker == "rank1"]
    assert answer["data"]["new_without_waiting_ns"][0] == sum(own) // len(own)
    # The base's steps grow from 36 to 69 ms, so that five of them are worth fewer.
    assert answer["data"]["without_waiting_ns_verdict"] == ["not certain", "not certain"]
    rule = ("--fail-if", "rank_steps.total_ns>5%")
    assert kinetoscope("compare", *runs, "--view", "stragglers", *rule)[0] == 0
    status, out, _ = kinetoscope("compare", *runs, "--view", "stragglers", *rule, "--ignore-noise")
    assert status == 2
    assert "BROKEN: rank_steps.total_ns>5%" in out
    step = ("--fail-if", "step>5%", "--within-recording")
    assert kinetoscope("compare", *runs, *step)[0] == 0  # of rank0 alone it isn't certain


@pytest.mark.usefixtures("shared_readings")
@pytest.mark.parametrize("view", [name for name, view in EVERY_VIEW.items() if view.scope != "recording"])
def test_every_view_of_a_run_is_compared_with_itself_or_refused(kinetoscope, cases, view):
    runs = (str(cases / "20_slow_rank_two_gloo"), "--base-run", "slowjob", "--new-run", "slower")
    status, out, _ = kinetoscope("compare", *runs, "--view", view, "--format", "json")
    assert (status, json.loads(out).get("code")) in [(0, None), (1, "bad_parameter")]


def test_a_profile_compares_its_run(cases):
    base, new = (kinetoscope_tb.open(cases / "20_slow_rank_two_gloo", run=run) for run in ("slowjob", "slower"))
    frame = new.compare(base, "rank_steps")
    assert frame.select("worker", "without_waiting_ns_verdict").row(0) == ("rank1", "not certain")


def test_two_memory_snapshots_are_compared_by_what_they_hold(kinetoscope, tmp_path):
    paths = [tmp_path / name for name in ("before.pickle", "after.pickle")]
    for path, steps in zip(paths, (1, 3), strict=True):
        allocator = Allocator(2 * GIB)
        trained(allocator, steps, activation=64 * MIB, leak_bytes=16 * MIB)
        path.write_bytes(allocator.dumped())
    _, said, _ = kinetoscope("compare", *map(str, paths))
    assert said.startswith("Alive: 16 MiB → 48 MiB. The new snapshot holds 32 MiB that the base doesn't.")
    assert "log_outputs (job/train.py:44)" in said
    _, table, _ = kinetoscope("compare", *map(str, paths), "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(table)))
    assert [(row["place"], row["delta_alive_bytes"]) for row in rows] == [
        ("job/train.py(44): log_outputs", str(32 * MIB))
    ]
    _, peaks, _ = kinetoscope("compare", *map(str, paths), "--set", "at=peak", "--set", "by=stack")
    assert "forward (/job/model.py:20)" in peaks
