"""What people see in a terminal: the summary, chosen rows and columns, and suggestions."""

import json
import re
import shlex

import pytest

import kinetoscope_tb
from kinetoscope_tb.entries import ENTRIES
from kinetoscope_tb.views import EVERY_VIEW
from support.build import TraceBuilder

US = 1000  # nanoseconds
SGEMM = "ampere_sgemm_128x64_tn"


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("terminal") / "rank0.1.pt.trace.json"
    build = TraceBuilder().step(1, 0, US * 1000).step(2, US * 1000, US * 1000).step(3, US * 2000, US * 1000)
    for n, (op, kernel, dur) in enumerate(
        [
            ("aten::mm", SGEMM, 600),
            ("aten::relu", "relu_kernel", 100),
            ("aten::mm", SGEMM, 300),
            ("aten::add", "add", 50),
        ]
    ):
        build.op(op, US * (10 + 700 * n), US * 60).launch(US * (20 + 700 * n), US * 5, correlation=n + 1)
        build.kernel(kernel, US * (40 + 700 * n), US * dur, correlation=n + 1)
    path.write_text(build.text())
    return str(path)


def test_the_summary_is_the_first_screen_in_a_hundred_columns(kinetoscope, trace):
    status, out, _ = kinetoscope("summary", trace)
    assert status == 0
    assert max(map(len, out.splitlines())) <= 100
    advice = json.loads(kinetoscope("view", "advice", trace, "--format", "json")[1])["data"]
    assert advice["title"][0] in " ".join(out.split())
    overview = json.loads(kinetoscope("view", "overview", trace, "--format", "json")[1])["data"]
    for category, mean in zip(overview["category"][:-1], overview["mean_ns"], strict=False):
        assert (re.search(rf"^  {category}\b", out, re.MULTILINE) is not None) == (mean > 0)
    top = json.loads(kinetoscope("view", "top", trace, "--format", "json")[1])["data"]
    assert top["mean_ns"][0] == 300 * US
    assert re.search(r"GEMM cuBLAS ampere 128x64 fp32 +300 µs +85\.7 % +0\.7$", out, re.MULTILINE)
    assert re.search(r"aten::mm +300 µs", out)
    assert "per step" in out


def test_rows_are_filtered_sorted_and_counted(kinetoscope, trace):
    def names(*options):
        return json.loads(kinetoscope("view", "kernels", trace, "--format", "json", *options)[1])["data"]["name"]

    assert names() == [SGEMM, "relu_kernel", "add"]
    assert names("--filter", "gemm cublas") == names("--filter", "sgemm") == [SGEMM]
    assert names("--filter=-gemm") == ["relu_kernel", "add"]
    assert names("--sort", "total:asc") == ["add", "relu_kernel", SGEMM]
    assert names("--sort", "name") == ["add", SGEMM, "relu_kernel"]
    assert names("--sort", "name", "--top", "1") == ["add"]
    assert names("--top", "0") == []


def test_columns_are_chosen_with_and_without_their_units(kinetoscope, trace):
    _, out, _ = kinetoscope("view", "kernels", trace, "--columns", "calls,total,name", "--format", "csv")
    assert out.splitlines()[0] == "calls,total_ns,name"
    _, out, _ = kinetoscope("view", "kernels", trace, "--columns", "total_ns", "--format", "json")
    assert [column["name"] for column in json.loads(out)["columns"]] == ["total_ns"]


def test_a_name_that_several_columns_share_is_the_time(kinetoscope, cases):
    """As in the headings: host_self_ns, not host_self_bytes."""
    table = kinetoscope("view", "operators", str(cases / "sort_by_bytes.pt.trace.json"), "--sort", "host_self")[1]
    assert [line.split()[0] for line in table.splitlines()[1:3]] == ["aten::mm", "aten::empty"]
    options = ("--columns", "host_self", "--format", "csv")
    out = kinetoscope("view", "operators", str(cases / "sort_by_bytes.pt.trace.json"), *options)[1]
    assert out.splitlines()[0] == "host_self_ns"


def test_a_name_that_several_columns_share_without_a_time_is_refused(kinetoscope, trace):
    status, _, err = kinetoscope("view", "kernel_efficiency", trace, "--sort", "peak")
    assert status == 1
    assert "'peak' may be several columns; choose from peak_" in err


def test_columns_without_values_in_the_whole_trace_are_left_out_of_text(kinetoscope, cases):
    path = str(cases / "cpu_only.pt.trace.json.gz")
    header = kinetoscope("view", "operators", path)[1].splitlines()[0]
    assert re.split(r"  +", header.strip()) == ["calls", "host_self (ms)", "host_total (ms)", "name"]
    csv = kinetoscope("view", "operators", path, "--format", "csv")[1].splitlines()[0]
    assert "device_self_ns" in csv.split(",")
    chosen = kinetoscope("view", "operators", path, "--columns", "device_self,name")[1].splitlines()[0]
    assert chosen.split() == ["device_self", "name"]


@pytest.mark.parametrize("width", [80, 100, 130, 140])
def test_a_terminal_of_any_width_shows_the_time_of_a_cpu_trace(kinetoscope, cases, monkeypatch, width):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    out = kinetoscope("view", "operators", str(cases / "cpu_only.pt.trace.json.gz"))[1]
    assert "host_self (ms)" in out.splitlines()[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sort", "size"], "There is no column 'size'"),
        (["--columns", "calls,size"], "There is no column 'size'"),
        (["--sort", "calls:up"], "the direction is asc or desc"),
        (["--filter", "re:("], "isn't a pattern"),
    ],
)
def test_impossible_choices_are_refused(kinetoscope, trace, options, message):
    status, out, err = kinetoscope("view", "kernels", trace, *options)
    assert (status, out) == (1, "")
    assert message in err


def test_long_texts_come_after_the_numbers(kinetoscope, trace):
    header = kinetoscope("view", "kernels", trace)[1].splitlines()[0].split()
    assert header[0] == "calls"
    assert header[-1] == "name"


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        (["kernels", "runs"], "kinetoscope view kernels runs"),
        (["sumary", "a b"], "kinetoscope summary 'a b'"),
        (["oprators", "runs"], "kinetoscope view operators runs"),
        (["view", "kernls", "runs"], "did you mean 'kernels'?"),
        (["quux"], "kinetoscope --help"),
    ],
)
def test_mistakes_lead_to_what_was_meant(kinetoscope, arguments, suggestion):
    status, out, err = kinetoscope(*arguments)
    assert (status, out) == (1, "")
    assert suggestion in err


def test_a_path_alone_is_summarized(kinetoscope, trace):
    assert kinetoscope(trace) == kinetoscope("summary", trace)


def test_help_groups_commands_and_views(kinetoscope):
    _, out, _ = kinetoscope("--help")
    assert [line for line in out.splitlines() if re.fullmatch(r"\w+:", line)] == [
        "Options:",
        "Read:",
        "Record:",
        "Files:",
        "Shell:",
        "Examples:",
    ]
    assert "…" not in out
    assert "..." not in out.replace("[ARGS]...", "")
    assert "Check that the traces in PATH are complete: readable, without losses, from every rank, with" in " ".join(
        out.split()
    )
    _, out, _ = kinetoscope("view", "--help")
    assert all(re.search(rf"^  {view} +\S", out, re.MULTILINE) for view in EVERY_VIEW)
    titles = [line.split(":")[0] for line in out.splitlines() if line.endswith("?")]
    assert titles == [title for title in ENTRIES if title in {view.entry for view in EVERY_VIEW.values()}]


def test_a_recording_is_not_compared_with_itself(kinetoscope, trace):
    status, out, err = kinetoscope("compare", trace)
    assert (status, out) == (1, "")
    assert "A comparison needs two recordings" in err


@pytest.mark.usefixtures("shared_readings")
@pytest.mark.parametrize("run", ["slower", "slowjob"])
def test_the_summary_of_a_run_says_first_which_rank_is_slow(kinetoscope, cases, run):
    folder = str(cases / "20_slow_rank_two_gloo")
    _, out, err = kinetoscope("summary", folder, "--run", run)
    assert err == ""
    verdict, others = (
        out.index("Rank 1 (on vm) spends "),
        out.index("Exposed communication"),
    )
    assert verdict < out.index("rank0 alone") < others
    assert "ms longer on the host in each step: " in out
    assert " of it per step is waiting for rank1." in " ".join(out.split())
    assert "Make rank1 as fast as the other ranks first" in out
    assert "no_sync" not in out
    assert "no operator runs" in " ".join(out.split())
    assert "Most of what rank 1 takes longer is in `tokenize`." in " ".join(out.split())
    shown = kinetoscope_tb.open(folder, run=run).summary()
    verdicts = [" ".join(text.split()).partition("Rank 1 ")[2].partition("Ranks, per")[0] for text in (shown, out)]
    assert verdicts[0] == verdicts[1] != ""
    alone = kinetoscope("summary", folder, "--run", run, "--worker", "rank1")[1]
    assert "is slow" not in alone


@pytest.mark.usefixtures("shared_readings")
def test_the_summary_as_json_is_the_answer(kinetoscope, cases):
    folder = str(cases / "20_slow_rank_two_gloo")
    summary = json.loads(kinetoscope("summary", folder, "--format", "json")[1])
    assert (summary["run"], summary["worker"], summary["span"], summary["ranks"]) == ("slower", "rank0", "8", 2)
    assert (summary["verdict"]["about"], summary["verdict"]["culprit"]["rank"]) == ("run", 1)
    for view, rows in summary["rows"].items():
        answer = json.loads(kinetoscope("view", view, folder, "--format", "json")[1])["data"]
        for name, values in answer.items():
            assert all(value in values for value in (row[name] for row in rows))
    for number in summary["numbers"]:
        row, column = number["row"], number["column"]
        rows = json.loads(kinetoscope("view", row["view"], folder, "--format", "json")[1])["data"]
        at = [all(rows[name][n] == key for name, key in row["key"].items()) for n in range(len(rows[column]))].index(
            True
        )
        assert rows[column][at] == number["value"]
    for question in summary["next"]:
        assert kinetoscope(*shlex.split(question["command"])[1:])[0] == 0


def test_a_server_says_its_tokens_per_second(kinetoscope, traces):
    folder = traces.parent / "inference" / "vllm_prefilldecode_piecewise"
    out = kinetoscope("summary", str(folder / "graph_execution.json.gz"))[1]
    assert (
        "mixed at least 26\u202f624 tokens/s, at most 37.6 µs per token (49.1 % of the time is not in the recording)."
        in (" ".join(out.split("\n")))
    )
    phases = kinetoscope("view", "phases", str(folder / "graph_execution.json.gz"), "--columns", "tokens_per_s")[1]
    assert phases.splitlines()[-2].strip() == "26624"


def test_calls_are_per_step_like_the_times_and_wrappers_are_no_calls(kinetoscope, cases):
    out = kinetoscope("summary", str(cases / "cpu_only.pt.trace.json.gz"))[1]
    assert re.search(r"aten::convolution_backward +128 ms +59\.1 % +2$", out, re.MULTILINE)
    assert "4 calls per step in all" in " ".join(out.split())
