"""The plugin inside a real TensorBoard process: docs/http_api.md, route by route."""

import gzip
import json
import urllib.request

import pytest

from contract.running import PLUGIN, a_trace, put, serving
from support.waiting import LIMIT_S, wait_for

TRACE = {"run": "job", "worker": "rank1", "span": "10"}


def test_the_tab_is_there_under_its_name(server):
    listed = server.ask("data/plugins_listing").json["pytorch_profiler"]
    assert listed["enabled"]
    assert listed["tab_name"] == "PYTORCH_PROFILER"
    assert listed["loading_mechanism"]["type"] == "IFRAME"
    assert listed["loading_mechanism"]["module_path"].endswith("/pytorch_profiler/static/index.js")


def test_the_page_is_one_script(server):
    entry = server.ask("data/plugin_entry.html", name="pytorch_profiler").body.decode()
    assert 'import("./static/index.js")' in entry
    script = server.plugin("static/index.js")
    assert script.status == 200
    assert script.headers["Content-Type"].startswith("text/javascript")
    assert script.headers["X-Content-Type-Options"] == "nosniff"


def test_runs_lists_what_lies_there_and_what_cannot_be_used(server):
    runs = server.plugin("runs").json
    assert runs["scanning"] is False
    assert [run["name"] for run in runs["runs"]] == ["broken", "job", "other"]
    job = runs["runs"][1]
    assert job["label"] == "job"
    assert [w["name"] for w in job["workers"]] == ["rank0", "rank1"]
    assert [s["name"] for s in job["workers"][0]["spans"]] == ["2", "10"]
    span = job["workers"][0]["spans"][0]
    assert span["label"] == "2"
    assert (span["file"], span["bytes"]) == ("job/rank0.2.pt.trace.json", len(a_trace().text()))
    assert [p["path"] for p in runs["problems"]] == ["broken/empty.pt.trace.json", "broken/left.pt.trace.json.tmp"]


def test_views_is_the_catalogue(server):
    views = server.plugin("views").json
    assert len({view["id"] for view in views}) == len(views) > 0
    for view in views:
        assert view["title"]
        assert view["doc"]
        assert all(column["doc"] and column["kind"] for column in view["columns"])


def test_state_says_what_is_known_of_a_trace(server):
    state = server.settled("state", **TRACE).json
    assert state["state"] == "ready"
    assert state["path"] == "job/rank1.10.pt.trace.json"
    assert state["rank"] == 3
    assert state["steps"] == ["5", "6"]
    assert state["events"] == len(a_trace().events)
    assert set(state["missing"]) <= {view["id"] for view in server.plugin("views").json}


def test_every_view_answers_by_its_catalogue_entry(server):
    for view in server.plugin("views").json:
        answer = server.settled("view", view=view["id"], **TRACE).json
        assert answer["view"] == view["id"]
        if answer["state"] == "missing":
            assert answer["hint"] == view["hint"]
            continue
        assert answer["state"] == "ready"
        assert answer["columns"] == view["columns"]
        assert list(answer["data"]) == [column["name"] for column in view["columns"]]
        assert len({len(values) for values in answer["data"].values()}) == 1


def test_answers_are_compressed_and_not_kept(server):
    request = urllib.request.Request(server.base + PLUGIN + "views", headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(request, timeout=LIMIT_S) as response:
        assert json.loads(gzip.decompress(response.read()))
        assert response.headers["Content-Type"] == "application/json; charset=utf-8"
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_an_event_is_given_as_the_file_has_it(server):
    text = a_trace().text()
    offset = text.index('{"ph": "X", "cat": "kernel"')
    event = server.settled("event", offset=str(offset), **TRACE).json
    assert set(event) == {"state", "offset", "length", "text", "value", "problem"}
    assert (event["state"], event["offset"], event["problem"]) == ("ready", offset, None)
    assert event["text"] == text[offset : offset + event["length"]]
    assert event["value"] == json.loads(event["text"])
    assert event["value"]["args"]["est. achieved occupancy %"] == 37


def test_long_numbers_of_an_event_survive_javascript(server, logdir):
    text = a_trace().memory(2**60 + 1, at=700_000, address=2**63 - 1).text()
    put(logdir, "long/rank0.1.pt.trace.json", text=text)
    names = {"run": "long", "worker": "rank0", "span": "1", "offset": str(text.rindex('{"ph": "i"'))}
    wait_for(lambda: server.plugin("event", **names), is_right=lambda answer: answer.status == 200)
    args = server.settled("event", **names).json["value"]["args"]
    assert (args["Bytes"], args["Addr"]) == (str(2**60 + 1), str(2**63 - 1))


NAMES = {"run": "job", "worker": "rank0", "span": "2"}


@pytest.mark.parametrize(
    ("path", "query", "status", "code"),
    [
        ("state", {}, 400, "bad_parameter"),
        ("state", {"run": "job", "worker": "rank0"}, 400, "bad_parameter"),
        ("state", {**NAMES, "speed": "high"}, 400, "bad_parameter"),
        ("runs", {"run": "job"}, 400, "bad_parameter"),
        ("view", NAMES, 400, "bad_parameter"),
        ("view", {**NAMES, "view": "operators", "color": "red"}, 400, "bad_parameter"),
        ("view?view=steps&view=steps&run=job&worker=rank0&span=2", {}, 400, "bad_parameter"),
        ("view", {**NAMES, "view": "nothing"}, 404, "not_found"),
        ("view", {**NAMES, "view": "__init__"}, 404, "not_found"),
        ("state", {**NAMES, "run": "gone"}, 404, "not_found"),
        ("state", {**NAMES, "run": ""}, 404, "not_found"),
        ("state", {**NAMES, "worker": "rank7"}, 404, "not_found"),
        ("state", {**NAMES, "span": "3"}, 404, "not_found"),
        ("state", {**NAMES, "run": "../.."}, 404, "not_found"),
        ("state", {**NAMES, "run": "job/../job"}, 404, "not_found"),
        ("state", {**NAMES, "worker": "../secret.txt"}, 404, "not_found"),
        ("state", {**NAMES, "worker": "rank0.2.pt.trace.json\0"}, 404, "not_found"),
        ("event", NAMES, 400, "bad_parameter"),
        ("event", {**NAMES, "offset": "-1"}, 400, "bad_parameter"),
        ("event", {**NAMES, "offset": "1e3"}, 400, "bad_parameter"),
        ("event", {**NAMES, "offset": "9" * 30}, 400, "bad_parameter"),
        ("event", {**NAMES, "offset": "0", "length": "10"}, 400, "bad_parameter"),
        ("event", {**NAMES, "offset": "0"}, 404, "not_found"),
        ("event", {**NAMES, "offset": "9" * 18}, 404, "not_found"),
        ("event", {**NAMES, "run": "gone", "offset": "0"}, 404, "not_found"),
        ("static/nothing.js", {}, 404, "not_found"),
        ("static/", {}, 404, "not_found"),
        ("anything/else", {}, 404, "not_found"),
        ("static/../../errors.py", {}, 404, "not_found"),
        ("static/%2e%2e/errors.py", {}, 404, "not_found"),
        ("static/..%2ferrors.py", {}, 404, "not_found"),
        ("static//etc/passwd", {}, 404, "not_found"),
        ("state", {"run": "broken", "worker": "garbage", "span": "default"}, 200, "not_a_trace"),
        ("view", {"view": "steps", "run": "broken", "worker": "garbage", "span": "default"}, 200, "not_a_trace"),
    ],
)
def test_every_failure_has_one_shape_and_tells_nothing_of_the_inside(server, logdir, path, query, status, code):
    answer = wait_for(lambda: server.plugin(path, **query), is_right=lambda a: a.json["state"] != "loading")
    assert (answer.status, answer.json["code"]) == (status, code)
    assert set(answer.json) - {"view"} == {"state", "code", "message"}
    assert answer.json["state"] == "failed"
    for inside in ("the secret", "Traceback", "class ", "KinetoscopeError", "root:"):
        assert inside not in answer.body.decode()


@pytest.mark.parametrize("path", ["runs", "views", "state", "view", "event", "static/index.js"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD"])
def test_only_get_is_possible(server, path, method):
    answer = server.plugin(path, method)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET")
    if method != "HEAD":
        assert answer.json["code"] == "method_not_allowed"


def test_a_file_that_is_cut_off_gives_what_it_holds_or_says_that_it_cannot(server, logdir):
    put(logdir, "cut/rank0.1.pt.trace.json", text=a_trace().text()[:1500])
    names = {"run": "cut", "worker": "rank0", "span": "1"}
    wait_for(lambda: server.plugin("state", **names), is_right=lambda answer: answer.status != 404)
    assert server.settled("state", **names).json["state"] in ("ready", "failed")
    assert server.settled("state", **TRACE).json["state"] == "ready"


def test_a_trace_that_appears_later_is_seen_and_one_that_grew_is_read_again(server, logdir):
    names = {"run": "later", "worker": "rank0", "span": "1"}
    assert server.plugin("state", **names).status == 404
    put(logdir, "later/rank0.1.pt.trace.json")
    wait_for(lambda: server.plugin("state", **names), is_right=lambda answer: answer.status == 200)
    before = server.settled("state", **names).json
    put(logdir, "later/rank0.1.pt.trace.json", text=a_trace().op("aten::add", 700_000, 1_000).text())
    wait_for(
        lambda: server.plugin("state", **names),
        is_right=lambda answer: answer.json.get("events") == before["events"] + 1,
    )


def test_a_file_that_was_rewritten_with_as_many_bytes_is_read_again_and_its_stamp_changes(server, logdir):
    def stamp():
        runs = {run["name"]: run for run in server.plugin("runs").json["runs"]}
        return runs["again"]["workers"][0]["spans"][0]["stamp"] if "again" in runs else None

    names = {"run": "again", "worker": "rank0", "span": "1"}
    put(logdir, "again/rank0.1.pt.trace.json")
    first = wait_for(stamp)
    assert server.settled("state", **names).json["steps"] == ["5", "6"]
    assert stamp() == first
    text = a_trace().text().replace("ProfilerStep#5", "ProfilerStep#4")
    assert len(text) == len(a_trace().text())
    put(logdir, "again/rank0.1.pt.trace.json", text=text)
    wait_for(stamp, is_right=lambda now: now != first)
    assert server.settled("state", **names).json["steps"] == ["4", "6"]


def test_under_a_path_prefix(logdir):
    with serving(f"--logdir={logdir}", "--path_prefix=/some/where") as server:
        assert server.settled("state", **TRACE).json["state"] == "ready"
        listed = server.ask("data/plugins_listing").json["pytorch_profiler"]
        assert listed["loading_mechanism"]["module_path"].startswith("/some/where/data/plugin/pytorch_profiler/")


def test_several_logdirs_have_names_before_their_runs(tmp_path):
    put(tmp_path, "x/job/rank0.1.pt.trace.json", "y/rank0.1.pt.trace.json")
    with serving(f"--logdir_spec=first:{tmp_path}/x,second:{tmp_path}/y") as server:
        runs = wait_for(lambda: server.plugin("runs").json, is_right=lambda runs: not runs["scanning"])
        assert [run["name"] for run in runs["runs"]] == ["first/job", "second"]


def test_without_traces_and_without_logdir_tensorboard_works_and_the_tab_is_inactive(tmp_path):
    with serving(f"--logdir={tmp_path}/empty") as server:
        assert server.plugin("runs").json["runs"] == []
    (tmp_path / "scalars").mkdir()
    with serving(f"--logdir={tmp_path}/scalars") as server:
        listed = wait_for(
            lambda: server.ask("data/plugins_listing").json["pytorch_profiler"],
            is_right=lambda plugin: not plugin["enabled"],
        )
        assert listed["tab_name"] == "PYTORCH_PROFILER"
