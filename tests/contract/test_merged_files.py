"""A file of several processes on the command line, in Python and over HTTP: the workers of a run."""

import gzip
import json

import pytest
from werkzeug.test import Client

import kinetoscope_tb
from kinetoscope_tb.discovery import Logdir
from kinetoscope_tb.engine.engine import Engine
from kinetoscope_tb.errors import NotFound
from kinetoscope_tb.web.app import Applications
from support.merged import by_combining, by_sglang, part

PARTS = [part(10, "first_kernel", 90_000), part(20, "second_kernel", 400_000)]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KINETOSCOPE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def merged(tmp_path):
    path = tmp_path / "job/merged-1.trace.json"
    path.parent.mkdir()
    path.write_text(json.dumps(by_sglang(PARTS)))
    return path


def test_a_view_is_of_the_first_worker_unless_another_one_is_named(kinetoscope, merged):
    status, out, err = kinetoscope("view", "kernels", str(merged))
    assert (status, "first_kernel" in out, "second_kernel" in out) == (0, True, False)
    assert "worker TP-0, one of 2; choose another with --worker: TP-1" in err
    status, out, _ = kinetoscope("view", "kernels", str(merged), "--worker", "TP-1")
    assert (status, "first_kernel" in out, "second_kernel" in out) == (0, False, True)


def test_the_views_of_a_run_are_of_all_workers(kinetoscope, merged):
    status, out, _ = kinetoscope("view", "rank_steps", str(merged), "--format", "json")
    assert (status, sorted(set(json.loads(out)["data"]["worker"]))) == (0, ["TP-0", "TP-1"])


@pytest.mark.parametrize("command", ["summary", "check"])
def test_nothing_false_is_said_of_a_worker(kinetoscope, merged, command):
    status, out, _ = kinetoscope(command, str(merged))
    assert status == 0
    assert not any(words in out for words in ("lost", "driver", "no GPU event"))


def test_the_number_of_a_process_is_no_rank(kinetoscope, merged):
    (merged.parent / "x").mkdir()
    path = merged.parent / "x/both.json"
    for documents, ranks in (([*PARTS], [0, 1]), ([PARTS[1], PARTS[0], part(30, "k", 5)], [0, 1, 2])):
        path.write_text(json.dumps(by_combining(documents)))
        answer = json.loads(kinetoscope("view", "rank_steps", str(path), "--format", "json")[1])
        assert sorted(set(answer["data"]["rank"])) == ranks


def test_check_names_each_worker(kinetoscope, merged):
    status, out, _ = kinetoscope("check", str(merged), "--format", "json")
    verdicts = json.loads(out)["traces"]
    assert (status, [one["worker"] for one in verdicts]) == (0, ["TP-0", "TP-1"])
    assert {one["run"] for one in verdicts} == {"job/merged-1"}
    assert "merged-1.trace.json · TP-1" in kinetoscope("check", str(merged))[1]


def test_a_folder_lists_the_workers_once_the_file_was_read(kinetoscope, merged):
    for nth, document in enumerate(PARTS):
        (merged.parent / f"rank{nth}.5.pt.trace.json").write_text(json.dumps(document))
    (merged.parent / "x.json").write_text(json.dumps(by_combining(PARTS)))
    folder = str(merged.parent)
    status, out, err = kinetoscope("view", "kernels", folder, "--worker", "x")
    assert (status, "first_kernel" in out) == (0, True)
    assert "x.json holds 2 workers, a run of their own: rank0, process 20. This is rank0." in err
    status, out, _ = kinetoscope("view", "kernels", folder, "--run", "job/x", "--worker", "process 20")
    assert (status, "second_kernel" in out) == (0, True)
    workers = kinetoscope_tb.traces(folder).filter(run="job")["worker"].to_list()
    assert workers == ["rank0", "rank1"]


def test_an_export_has_the_events_of_one_worker(kinetoscope, merged, tmp_path):
    out = tmp_path / "out.json.gz"
    assert kinetoscope("export", str(merged), str(out), "--worker", "TP-1")[0] == 0
    text = gzip.decompress(out.read_bytes()).decode()
    assert ("first_kernel" in text, "second_kernel" in text) == (False, True)


def test_a_profile_is_of_the_worker_that_is_named(merged):
    assert kinetoscope_tb.open(merged).worker == "TP-0"
    profile = kinetoscope_tb.open(merged, worker="TP-1")
    assert profile.view("kernels")["name"].to_list() == ["second_kernel"]
    assert sorted(set(profile.view("rank_steps")["worker"])) == ["TP-0", "TP-1"]
    with pytest.raises(NotFound, match="TP-0, TP-1"):
        kinetoscope_tb.open(merged, worker="rank0")


def test_a_merge_of_merged_files_is_refused(kinetoscope, merged, tmp_path):
    status, _, err = kinetoscope("merge", str(merged), str(tmp_path / "out.json"))
    assert (status, "holds several ranks already" in err) == (1, True)


def test_a_merged_file_is_published_once(kinetoscope, tmp_path):
    for nth, document in enumerate(PARTS):
        (tmp_path / f"rank{nth}.5.pt.trace.json").write_text(json.dumps(document))
    (tmp_path / "merged").mkdir()
    assert kinetoscope("merge", str(tmp_path), str(tmp_path / "merged/all.json"))[0] == 0
    assert kinetoscope("publish", str(tmp_path / "merged"), str(tmp_path / "logdir"))[0] == 0
    assert [path.name for path in (tmp_path / "logdir").rglob("*.json")] == ["all.pt.trace.json"]


def test_over_http_the_state_says_where_the_first_worker_is(merged):
    (merged.parent / "both.json").write_text(json.dumps(by_combining(PARTS)))
    engine = Engine([Logdir(str(merged.parent), "job")], patience_s=30)
    clients = {route: Client(app) for route, app in Applications(engine).items()}

    def ask(route, **query):
        return clients[f"/{route}"].get(f"/{route}", query_string=query).json

    before = {"run": "job", "worker": "both", "span": "default"}
    moved = ask("state", **before)["moved"]
    assert moved == {"run": "job/both", "worker": "rank0", "span": "default"}
    runs = {run["name"]: [worker["name"] for worker in run["workers"]] for run in ask("runs")["runs"]}
    assert runs == {"job/both": ["process 20", "rank0"], "job/merged-1": ["merged-1"]}
    other = {**moved, "worker": "process 20"}
    assert "moved" not in ask("state", **other)
    assert ask("view", view="kernels", **other)["data"]["name"] == ["second_kernel"]
    assert ask("view", view="kernels", **before)["data"]["name"] == ["first_kernel"]
