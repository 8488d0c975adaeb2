"""Odd parameters, headers, methods and paths: every route answers with what it promises, and with no path of ours."""

import gzip
import itertools
import json
import os
import random
from pathlib import Path
from urllib.parse import quote

import pytest
from werkzeug.test import Client

from contract.running import a_trace
from kinetoscope.scheduling.request import WORK
from kinetoscope_tb.discovery import Logdir
from kinetoscope_tb.engine.engine import Engine
from kinetoscope_tb.timeline.search.search import VALUES
from kinetoscope_tb.views import EVERY_VIEW, VIEWS
from kinetoscope_tb.web.app import Applications
from support.fuzzing import ODD_VALUES, case_numbers, named
from support.waiting import LIMIT_S

GROUPS = 8
ODD_TEXTS = (
    *(value if isinstance(value, str) else json.dumps(value) for value in ODD_VALUES),
    *(
        "..",
        "../..",
        "../../etc/passwd",
        "/etc/passwd",
        "file:///etc/passwd",
        "C:\\windows",
        "\\\\host\\share",
        "~root",
    ),
    *(
        "s3://bucket/key",
        "http://127.0.0.1:1/",
        "data:text/html,x",
        "%2e%2e%2f",
        "{0.__class__}",
        "$(id)",
        "`id`",
        "'; --",
    ),
    *(
        "1e400",
        "-1e400",
        "1_000",
        "+1",
        " 1",
        "1 ",
        "0x10",
        "٣",
        "１",
        "1.5",
        "--1",
        "9" * 18,
        "9" * 5000,
        "-" + "9" * 18,
    ),
    *(
        "a,b",
        ",",
        ",,,,",
        "1,1,1",
        "0.0.0",
        "0.99.0",
        "0.0.-1",
        "99.0.0",
        "0.44." + "9" * 18,
        "1.1.1," * 600,
        ":",
        "*",
        "(",
        "[",
    ),
    *(
        "(a+)+$",
        "/(a+)+$/",
        "name:(",
        '"',
        "name:\\",
        "\u2028",
        "\ufeff",
        "\ufffe",
        "\U0010ffff",
        "e\u0301" * 50,
        "[" * 5000,
    ),
    *(
        '[{"worker": "rank1", "span": "5", "shift_ns": 1e400}]',
        '[{"worker": [], "span": {}, "shift_ns": true}]',
        "NaN",
        "null",
    ),
)
RAW = (
    b"%",
    b"%zz",
    b"%ff",
    b"%00",
    b"%c0%ae%c0%ae",
    b"%ed%a0%80",
    b"\xff\xfe",
    b"+",
    b"&",
    b"==",
    b"%0d%0aX: y",
    b"a" * 100_000,
)
ODD_HEADERS = (
    *(
        ("Host", host)
        for host in ("", "x" * 5000, "[", "[::1]", "[::1]:99999999", "a:b:c", "a b", "\xff", "localhost:0", "@")
    ),
    *(("Origin", origin) for origin in ("null", "", "http://[", "file://", "x" * 5000, "\xff")),
    *(("Accept-Encoding", coding) for coding in ("", "gzip;q=nan", "gzip;q=" + "9" * 400, "*;q=0", "\xff", "," * 5000)),
    *(
        ("Cookie", "\xff"),
        ("Content-Length", "-1"),
        ("Content-Type", "\xff/;="),
        ("Range", "bytes=5-1"),
        ("If-None-Match", "*"),
    ),
    *(("X-Forwarded-Host", "evil.example"), ("Sec-Fetch-Site", "\xff"), ("User-Agent", "")),
)
PATHS = (
    "",
    "/",
    "/..",
    "/../../etc/passwd",
    "//etc/passwd",
    "/%2e%2e/",
    "/index.js/..",
    "/\0",
    "/\\..\\",
    "/" + "a" * 5000,
    "/" * 500,
)
METHODS = ("POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "X")
POSSIBLE = {200, 400, 403, 404, 405, 409, 413, 415}

PLACE = {"run": "job", "worker": "rank0", "span": "5"}
AREA = {"from_ns": "0", "to_ns": "900000"}
FIND = '{"text": "mm"}'
VALID = {
    "/runs": {},
    "/views": {},
    "/state": PLACE,
    "/view": {**PLACE, "view": "operators"},
    "/answer": {**PLACE, "of": "run"},
    "/compare": {
        **PLACE,
        "view": "kernels",
        "base_run": "job",
        "base_worker": "rank1",
        "base_span": "5",
        "columns": "calls",
    },
    "/history": {"run": "job"},
    "/why": {"run": "job"},
    "/event": {**PLACE, "offset": "175"},
    "/timeline": PLACE,
    "/timeline/labels": {**PLACE, "page": "0"},
    "/timeline/tiles": {**PLACE, "k": "0.20.0,1.10.3", "find": FIND},
    "/timeline/counters": {**PLACE, "k": "0.20.0"},
    "/timeline/slice": {**PLACE, "slice": "1"},
    "/timeline/row": {**PLACE, "find": '{"view": "operators", "name": "aten::mm"}'},
    "/timeline/row/ranks": {**PLACE, "find": '{"view": "operators", "name": "aten::mm"}'},
    "/timeline/row/advice": {**PLACE, "find": '{"view": "operators", "name": "aten::mm"}'},
    "/timeline/find": {**PLACE, "find": FIND, "at_ns": "5", "direction": "next"},
    "/timeline/area": {**PLACE, **AREA, "tracks": "0,1", "by": "module"},
    "/timeline/area/flame": {**PLACE, **AREA, "tracks": "0,1", "side": "host"},
    "/timeline/area/counters": {**PLACE, **AREA},
    "/timeline/path": {**PLACE, **AREA},
    "/timeline/path_across_ranks": {**PLACE, **AREA, "main_worker": "rank1", "main_span": "5"},
    "/timeline/path_shares": {**PLACE, **AREA},
    "/timeline/export": {**PLACE, **AREA, "workers": "[]", "include": "args"},
    "/timeline/export/size": {**PLACE, **AREA, "workers": "[]", "include": "args,memory"},
    "/timeline/perfetto": {},
    "/capture": {"run": "job"},
}
WITHOUT_STAMP = {
    "/runs",
    "/views",
    "/state",
    "/view",
    "/answer",
    "/compare",
    "/history",
    "/why",
    "/event",
    "/timeline",
    "/timeline/perfetto",
    "/capture",
}


@pytest.fixture(scope="module")
def logdir(tmp_path_factory):
    """Two ranks, of which one is a job too, and recordings that are broken each in its own way."""
    folder = tmp_path_factory.mktemp("secret_place")
    job = folder / "job"
    (job / WORK).mkdir(parents=True)
    whole = a_trace().text().encode()
    for name, data in {
        "rank0.5.pt.trace.json": whole,
        "rank1.5.pt.trace.json.gz": gzip.compress(whole),
        "rank2.5.pt.trace.json.gz": gzip.compress(whole)[:60],
        "rank3.5.pt.trace.json.gz": b"\x1f\x8b" + b"\0" * 50,
        "rank4.5.pt.trace.json": b"PK\x03\x04" + b"\0" * 50,
        "rank5.5.pt.trace.json": b'{"traceEvents": 5}',
        "rank6.5.pt.trace.json": whole[: len(whole) // 2],
        "rank7.5.pt.trace.json": b"",
        "rank8.5.pt.trace.json": b'{"traceEvents": [',
        "rank9.5.pt.trace.json": b"no JSON",
        "run.json": b"{",
    }.items():
        (job / name).write_bytes(data)
    (job / "rank10.5.pt.trace.json").symlink_to(folder / "nowhere")
    return folder


@pytest.fixture(scope="module")
def clients(logdir):
    return {
        route: Client(app) for route, app in Applications(Engine([Logdir(str(logdir))], patience_s=LIMIT_S)).items()
    }


@pytest.fixture(scope="module")
def valid(clients):
    """The parameters of a question to each route, each of which has an answer."""
    stamp = clients["/timeline"].get("/timeline", query_string=PLACE).json["stamp"]
    return {route: query if route in WITHOUT_STAMP else {**query, "stamp": stamp} for route, query in VALID.items()}


@pytest.fixture(autouse=True)
def no_fault(caplog):
    yield
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


def check(response, logdir):
    """What every answer is: possible, readable, and without a path of this machine."""
    assert response.status_code in POSSIBLE, response.data[:500]
    body = response.data
    assert str(logdir).encode() not in body
    if response.mimetype == "application/json":
        answer = json.loads(body.decode(), parse_constant=pytest.fail) if body else None
        assert isinstance(answer, list) or answer is None or response.status_code == 200 or answer["state"] == "failed"
        assert answer is None or "Traceback" not in body.decode()
    else:
        assert response.mimetype in ("application/octet-stream", "application/gzip", "text/javascript", "text/html")


def ask(clients, route, query_string):
    with clients[route].get(route, query_string=query_string) as response:
        response.get_data()
        return response


def encoded(query):
    return "&".join(f"{quote(name)}={quote(value, safe='', errors='surrogatepass')}" for name, value in query)


def test_each_route_is_asked_something_that_it_answers(clients, valid, logdir):
    assert valid.keys() | {"/*", "/static/*", "/timeline/perfetto/*"} == clients.keys()
    for route, query in valid.items():
        response = ask(clients, route, query)
        check(response, logdir)
        assert response.status_code == 200, response.data


CASES = [
    (route, name, odd) for route, query in VALID.items() for name in (*query, "stamp", "place") for odd in ODD_TEXTS
]


@pytest.mark.parametrize("group", range(GROUPS))
def test_odd_values_of_parameters(group, clients, valid, logdir):
    for case in case_numbers(group, GROUPS):
        route, name, odd = random.Random(case).choice(CASES)
        with named(case):
            check(ask(clients, route, encoded({**valid[route], name: odd}.items())), logdir)


FINDS = [({name: odd}) for name in (*VALUES, "text", "name", "category") for odd in ODD_VALUES]
KEYS = {view.id: (*view.table.key, "text") for view in VIEWS.values() if view.slices}
FINDS += [{"view": view, key: odd} for view, keys in KEYS.items() for key in keys for odd in ODD_VALUES]


@pytest.mark.parametrize("group", range(GROUPS))
def test_odd_values_of_a_find(group, clients, valid, logdir):
    for case in case_numbers(group, GROUPS, share=0.5):
        find = json.dumps(random.Random(case).choice(FINDS))
        with named(case):
            for route in ("/timeline/find", "/timeline/tiles"):
                check(ask(clients, route, encoded({**valid[route], "find": find}.items())), logdir)


ARGUMENTS = [(view.id, one.name, odd) for view in EVERY_VIEW.values() for one in view.parameters for odd in ODD_TEXTS]


@pytest.mark.parametrize("group", range(GROUPS))
def test_odd_values_of_parameters_of_views(group, clients, logdir):
    for case in case_numbers(group, GROUPS, share=0.5):
        view, name, odd = random.Random(case).choice(ARGUMENTS)
        with named(case):
            check(ask(clients, "/view", encoded({**PLACE, "view": view, name: odd}.items())), logdir)
            compared = {**VALID["/compare"], "view": view, name: odd}
            check(ask(clients, "/compare", encoded(compared.items())), logdir)


@pytest.mark.parametrize("route", VALID)
def test_parameters_that_are_missing_doubled_unknown_or_no_text(route, clients, valid, logdir):
    query = list(valid[route].items())
    for which in range(len(query)):
        check(ask(clients, route, encoded(query[:which] + query[which + 1 :])), logdir)
        doubled = ask(clients, route, encoded([*query, query[which]]))
        check(doubled, logdir)
        assert doubled.status_code == 400
    for name in ("unknown", "", "run\0", "x" * 10_000, "__class__"):
        check(ask(clients, route, encoded([*query, (name, "1")])), logdir)
    for raw in RAW:
        for text in (raw, encoded(query).encode() + b"&" + raw, encoded(query).encode() + raw):
            check(ask(clients, route, text.decode("latin-1")), logdir)


@pytest.mark.parametrize("route", VALID)
def test_odd_headers_and_methods(route, clients, valid, logdir):
    for header in ODD_HEADERS:
        with clients[route].get(route, query_string=valid[route], headers=[header]) as response:
            check(response, logdir)
    for method in METHODS:
        with clients[route].open(route, method=method, query_string=valid[route]) as response:
            check(response, logdir)
            assert response.status_code == 405 or (route, method) == ("/capture", "POST")


@pytest.mark.parametrize("path", PATHS)
def test_odd_paths(path, clients, logdir):
    for route in ("/static/*", "/timeline/perfetto/*", "/*"):
        with clients[route].get(route.rstrip("*").rstrip("/") + path) as response:
            check(response, logdir)
            assert response.status_code in (200, 404)
            assert b"root:" not in response.data


@pytest.mark.parametrize("view", ["environment", "run_health", "topology", "path_across_ranks", "clocks", "run_advice"])
def test_what_is_said_of_broken_recordings_has_no_path_of_this_machine(view, clients, logdir):
    for worker in (f"rank{number}" for number in range(11)):
        place = {"run": "job", "worker": worker, "span": "5"}
        for route, query in (("/state", place), ("/timeline", place), ("/view", {**place, "view": view})):
            check(ask(clients, route, query), logdir)


def test_a_broken_recording_is_called_as_on_the_page(clients, logdir):
    answer = ask(clients, "/state", {"run": "job", "worker": "rank4", "span": "5"}).json
    assert (answer["state"], answer["code"]) == ("failed", "not_a_trace")
    assert answer["message"].startswith("job/rank4.5.pt.trace.json: it is a zip archive")


def test_an_answer_is_json_whatever_names_a_file_has(tmp_path):
    for name in (b"caf\xe9", b"a\nb", b"<script>", b"\xed\xa0\x80", b"x" * 200, "‮txt".encode()):
        folder = str(tmp_path).encode() + b"/" + name
        for where, file in itertools.product(
            (folder, folder + b"/" + name), (b"rank0.5.pt.trace.json", name + b".json")
        ):
            path = Path(os.fsdecode(where + b"/" + file))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(a_trace().text().encode())
    apps = Applications(Engine([Logdir(str(tmp_path))], patience_s=LIMIT_S))
    listing = ask({"/runs": Client(apps["/runs"])}, "/runs", {})
    check(listing, tmp_path)
    assert len(listing.json["runs"]) >= 4
    clients = {"/state": Client(apps["/state"])}
    for run in listing.json["runs"]:
        for worker in run["workers"]:
            place = {"run": run["name"], "worker": worker["name"], "span": worker["spans"][0]["name"]}
            assert ask(clients, "/state", place).json["state"] == "ready"
