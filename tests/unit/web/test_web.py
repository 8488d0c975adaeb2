"""Requests to answers, without a server."""

import csv
import io
import json
import math
import os
import threading
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from tensorboard.backend.event_processing import io_wrapper
from werkzeug.test import Client

from contract.running import put
from kinetoscope_tb.discovery import Logdir
from kinetoscope_tb.engine.answers import LoadingProgress, NotReady, compute
from kinetoscope_tb.engine.engine import Engine
from kinetoscope_tb.errors import NotFound
from kinetoscope_tb.table import COUNT, FRACTION, TEXT, Column, Table
from kinetoscope_tb.view import View
from kinetoscope_tb.views import EVERY_VIEW, RUN_VIEWS, VIEWS
from kinetoscope_tb.web import app, encode, encode_state
from kinetoscope_tb.web.app import Applications, Site
from kinetoscope_tb.web.assets import asset, compressed_asset
from kinetoscope_tb.web.json_text import json_text
from support.build import TraceBuilder
from support.graphs import GraphRecording, Operator
from support.reading import one_process
from support.waiting import LIMIT_S, wait_for

ROOT = Path(__file__).parents[3]


def write(path, recording):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(recording.builder.text())


class Exact(Table):
    """One row is one number."""

    name = Column(TEXT, "A name.")
    count = Column(COUNT, "A large number.")
    busy_frac = Column(FRACTION, "A share.")


def exact(trace):
    raise RuntimeError("the inside")


VIEW = View(exact, table=Exact, title="Exact", entry="Operators")


def test_numbers_are_exact_and_what_is_no_number_is_null():
    largest = 2**63 - 1
    rows = {
        "name": ["é\u2028</script>", None, "c"],
        "count": [largest, None, -1],
        "busy_frac": [0.1, math.nan, math.inf],
    }
    answer = encode.view_answer(VIEW, pl.DataFrame(rows, schema=Exact.schema()))
    data = json.loads(json_text(answer))["data"]
    assert data == {"name": rows["name"], "count": [largest, None, -1], "busy_frac": [0.1, None, None]}


def test_the_first_answer_is_there_before_the_page_asks(tmp_path):
    put(tmp_path, "job/rank3.5.pt.trace.json")
    site, place = Site([Logdir(str(tmp_path), "")], None), {"run": "job", "worker": "rank3", "span": "5"}
    site.prepare(place)
    client = Client(site.application("/answer"))
    assert client.get("/answer", query_string=place).json["state"] == "ready"


def test_what_is_known_of_a_run_so_far_is_one_answer(tmp_path, monkeypatch):
    for rank in (0, 1):
        put(tmp_path, f"job/rank{rank}.5.pt.trace.json")
    site, place = Site([Logdir(str(tmp_path), "")], None), {"run": "job", "worker": "rank0", "span": "5"}
    site.prepare(place)
    client = Client(site.application("/answer"))

    def not_yet(*_):
        raise NotReady(LoadingProgress("comparing"))

    answers = []
    for function, ranks in (("_frames_of_run", 0), ("_answers_behind", 2), (None, 2)):
        with monkeypatch.context() as patch:
            if function:
                patch.setattr(app, function, not_yet)
            answers.append(wait_until_known(client, {"of": "run", **place}, ranks))
    assert [answer["state"] for answer in answers] == ["loading", "loading", "ready"]
    assert answers[1]["so_far"]["also"] == answers[2]["also"]  # no rank is late


def wait_until_known(client, place, ranks):
    """The first answer about a run that knows so many ranks."""
    return wait_for(
        lambda: client.get("/answer", query_string=place).json,
        is_right=lambda answer: answer.get("so_far", answer).get("ranks") == ranks,
    )


def test_what_can_not_be_prepared_is_said_to_the_page(tmp_path):
    put(tmp_path, "job/rank3.5.pt.trace.json", text="nothing")
    site = Site([Logdir(str(tmp_path), "")], None)
    for span in ("5", "no such span"):
        place = {"run": "job", "worker": "rank3", "span": span}
        site.prepare(place)
        assert Client(site.application("/state")).get("/state", query_string=place).json["state"] == "failed"


def test_views_of_ranks_are_missing_where_there_is_one_rank():
    def missing(trace, is_alone):
        health = compute(VIEWS["health"], trace, {})
        return encode_state.state(trace, "rank0.json", EVERY_VIEW, health, is_alone=is_alone)["missing"]

    quiet = TraceBuilder().op("aten::add", 0, 5).build()
    assert "Record several ranks" in missing(quiet, is_alone=True)["rank_steps"]
    assert missing(quiet, is_alone=True)["stragglers"] == EVERY_VIEW["stragglers"].hint
    of_communication = {"communication", "collectives", "links", "traffic", "rank_waits", "pipeline"}
    assert set(RUN_VIEWS) & set(missing(quiet, is_alone=False)) == of_communication
    config = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 8, "Process Group Name": "0"}
    talking = TraceBuilder().op("record_param_comms", 0, 5, **config).build()
    assert not set(RUN_VIEWS) & set(missing(talking, is_alone=False))
    assert "communication" not in missing(talking, is_alone=True)
    assert "path_across_ranks" in missing(talking, is_alone=True)
    only = TraceBuilder(distributedInfo={"rank": 0, "world_size": 1}).op("record_param_comms", 0, 5, **config).build()
    assert set(RUN_VIEWS) <= set(missing(only, is_alone=True))


@pytest.mark.parametrize(("has_other_workers", "is_shown"), [(False, False), (True, True)])
def test_what_the_badge_counts_of_a_run_is_shown_where_its_workers_are_no_ranks_of_one_job(has_other_workers, is_shown):
    only = TraceBuilder(distributedInfo={"rank": 0, "world_size": 1}).op("aten::add", 0, 5).build()
    health = compute(VIEWS["health"], only, {})
    missing = encode_state.state(only, "a.json", EVERY_VIEW, health, has_other_workers=has_other_workers)["missing"]
    assert ("run_health" not in missing) is is_shown
    assert "stragglers" in missing


@pytest.mark.parametrize(("world_size", "is_shown"), [(None, False), (1, False), (8, True)])
def test_what_the_badge_counts_of_ranks_without_a_trace_is_shown_for_a_rank_without_communication(world_size, is_shown):
    info = {} if world_size is None else {"rank": 0, "world_size": world_size}
    quiet = TraceBuilder(distributedInfo=info).op("aten::add", 0, 5).build()
    missing = encode_state.state(quiet, "a.json", EVERY_VIEW, compute(VIEWS["health"], quiet, {}))["missing"]
    assert ("run_health" not in missing) is is_shown


@pytest.mark.parametrize(
    ("names", "world_size", "has_ranks"),
    [
        (("rank0", "rank1"), None, True),
        (("host_17", "host_18"), None, False),
        (("host_17", "host_18"), 2, True),
        (("rank0", "rank1"), 1, False),
    ],
)
def test_workers_of_a_run_are_ranks_unless_each_is_a_job_of_its_own(tmp_path: Path, names, world_size, has_ranks):
    (tmp_path / "job").mkdir()
    for rank, name in enumerate(names):
        top = {} if world_size is None else {"distributedInfo": {"rank": rank % world_size, "world_size": world_size}}
        text = TraceBuilder(**top).op("aten::add", 0, 5).text()
        (tmp_path / "job" / f"{name}.5.pt.trace.json").write_text(text, encoding="utf-8")
    engine = Engine([Logdir(str(tmp_path))], patience_s=LIMIT_S)
    worker = min(engine.listing().runs["job"])
    query = {"run": "job", "worker": worker, "span": "5"}
    missing = Client(Applications(engine)["/state"]).get("/", query_string=query).json["missing"]
    assert ("rank_steps" not in missing) == has_ranks


def test_texts_that_a_spreadsheet_might_run_are_inert_as_on_the_page():
    cases = json.loads((ROOT / "frontend" / "tests" / "formulas.json").read_text(encoding="utf-8"))
    texts = [text for text, _ in cases]
    for kind in (pl.String, pl.Categorical, pl.Enum(sorted(set(texts)))):
        frame = pl.DataFrame({"text": pl.Series(texts, dtype=pl.String).cast(kind), "number": [-5] * len(texts)})
        rows = list(csv.reader(io.StringIO(encode.csv(frame), newline="")))
        assert rows == [["text", "number"], *([expected, "-5"] for _, expected in cases)]


def test_links_out_of_the_logdir_are_followed_as_tensorboard_does(tmp_path):
    logdir, outside = tmp_path / "logdir", tmp_path / "outside"
    logdir.mkdir()
    outside.mkdir()
    (outside / "rank0.5.pt.trace.json").write_text(TraceBuilder().step(5, 0, 900).text())
    (outside / "events.out.tfevents.1.host").touch()
    (logdir / "folder").symlink_to(outside)
    (logdir / "rank7.5.pt.trace.json").symlink_to(outside / "rank0.5.pt.trace.json")
    assert str(logdir / "folder") in io_wrapper.GetLogdirSubdirectories(str(logdir))
    apps = {
        route: Client(app) for route, app in Applications(Engine([Logdir(str(logdir))], patience_s=LIMIT_S)).items()
    }
    runs = [(run["name"], run["workers"][0]["name"]) for run in apps["/runs"].get("/runs").json["runs"]]
    assert runs == [("folder", "rank0"), ("logdir", "rank7")]
    for run, worker in runs:
        place = {"run": run, "worker": worker, "span": "5"}
        assert apps["/state"].get("/state", query_string=place).json["state"] == "ready"


def test_a_fault_of_ours_is_told_without_its_inside_and_logged_with_it(tmp_path, monkeypatch, caplog):
    (tmp_path / "rank0.pt.trace.json").write_text("{}")
    monkeypatch.setattr("kinetoscope_tb.web.app.EVERY_VIEW", {"exact": VIEW})
    engine = Engine(
        [Logdir(str(tmp_path), "run")],
        read=one_process(lambda path, progress: TraceBuilder().build()),
        patience_s=LIMIT_S,
    )
    query = {"view": "exact", "run": "run", "worker": "rank0", "span": "default"}
    response = Client(Applications(engine)["/view"]).get("/view", query_string=query)
    assert response.status_code == 500
    assert response.json["code"] == "internal_error"
    assert set(response.json) == {"state", "view", "code", "message"}
    assert "the inside" not in response.text
    assert "RuntimeError: the inside" in caplog.text


def test_while_a_trace_is_read_the_page_hears_how_far_it_is(tmp_path):
    (tmp_path / "rank0.pt.trace.json").write_text("{}")
    free = threading.Event()
    engine = Engine(
        [Logdir(str(tmp_path), "run")], read=one_process(lambda path, progress: free.wait(LIMIT_S)), patience_s=0.01
    )
    state = Client(Applications(engine)["/state"])
    query = {"run": "run", "worker": "rank0", "span": "default"}
    answer = state.get("/state", query_string=query).json
    free.set()
    assert answer["state"] == "loading"
    assert set(answer["progress"]) == {"stage", "fraction", "bytes_per_second", "seconds_left"}


def test_a_number_and_a_text_reach_the_view(tmp_path, monkeypatch):
    (tmp_path / "rank0.pt.trace.json").write_text("{}")
    given = {}

    def exact(trace, *, from_ns: int | None = None, name: str | None = None):
        given.update(from_ns=from_ns, name=name)
        return pl.DataFrame(schema=Exact.schema())

    monkeypatch.setattr("kinetoscope_tb.web.app.EVERY_VIEW", {"exact": replace(VIEW, run=exact)})
    engine = Engine(
        [Logdir(str(tmp_path), "run")],
        read=one_process(lambda path, progress: TraceBuilder().op("aten::add", 0, 5).build()),
        patience_s=LIMIT_S,
    )
    client = Client(Applications(engine)["/view"])
    query = {"view": "exact", "run": "run", "worker": "rank0", "span": "default"}
    answer = client.get("/view", query_string={**query, "from_ns": "7", "name": "a+b &c"})
    assert answer.json["state"] == "ready"
    assert given == {"from_ns": 7, "name": "a+b &c"}
    refused = client.get("/view", query_string={**query, "from_ns": "soon"})
    assert (refused.status_code, refused.json["code"]) == (400, "bad_parameter")
    assert "from_ns='soon' is not possible" in refused.json["message"]


def test_only_files_inside_the_folder_are_given_out(tmp_path):
    (tmp_path / "static").mkdir()
    (tmp_path / "static/index.js").write_text("js")
    (tmp_path / "secret").write_text("secret")
    assert asset("index.js", tmp_path / "static") == (b"js", "text/javascript")
    for name in ("../secret", "..\\secret", str(tmp_path / "secret"), "", ".", "index.js/", "index.js\0"):
        with pytest.raises(NotFound):
            asset(name, tmp_path / "static")


def test_a_compressed_file_is_used_unless_the_file_was_built_again(tmp_path):
    assert compressed_asset("index.js", tmp_path) is None
    (tmp_path / "index.js").write_text("js")
    assert compressed_asset("index.js", tmp_path) is None
    (tmp_path / "index.js.gz").write_bytes(b"gz")
    assert compressed_asset("index.js", tmp_path) == b"gz"
    os.utime(tmp_path / "index.js.gz", (0, 0))
    assert compressed_asset("index.js", tmp_path) is None


def test_the_capture_of_graphs_is_one_of_the_run_s_files_or_none(tmp_path):
    work = tuple(Operator("aten::mm", (4,), 0, (f"gemm_{number}",)) for number in range(4))
    other = tuple(replace(one, name="aten::linear") for one in work)
    logdir = tmp_path / "logdir"
    write(logdir / "run/rank0.1.pt.trace.json", GraphRecording("rocm").replayed(work, 1))
    write(logdir / "run/capture_traces/rank0.json", GraphRecording("rocm").captured(work))
    write(logdir / "run/rank1.1.pt.trace.json", GraphRecording("rocm").eager(other))
    write(logdir / "secret/rank0.1.pt.trace.json", GraphRecording("rocm").captured(other))
    write(tmp_path / "outside.json", GraphRecording("rocm").captured(other))
    apps = {
        route: Client(app) for route, app in Applications(Engine([Logdir(str(logdir))], patience_s=LIMIT_S)).items()
    }
    place = {"run": "run", "worker": "rank0", "span": "1"}

    def operators(**capture):
        query = {"view": "graph_kernels", **place, **capture}
        answer = apps["/view"].get("/view", query_string=query)
        return (
            answer.status_code,
            set(answer.json["data"]["op"]) if answer.status_code == 200 else answer.json["code"],
        )

    choices = apps["/state"].get("/state", query_string=place).json["captures"]
    assert choices == ["run/capture_traces/rank0.json", "run/rank1.1.pt.trace.json"]
    assert operators() == (200, {"aten::mm"})
    assert operators(capture=choices[0]) == (200, {"aten::mm"})
    assert operators(capture=choices[1]) == (200, {"aten::linear"})
    assert operators(capture="none") == (200, {None})
    stranger = "secret/rank0.1.pt.trace.json"
    for path in (stranger, "run/../secret/rank0.1.pt.trace.json", "../outside.json", str(tmp_path / "outside.json")):
        assert operators(capture=path) == (404, "not_found")
    twice = apps["/view"].get("/view", query_string=[*place.items(), ("view", "graphs"), *[("capture", "none")] * 2])
    assert twice.status_code == 400
    assert apps["/state"].get("/state", query_string={**place, "capture": choices[1]}).json["state"] == "ready"
