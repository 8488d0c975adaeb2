"""Requests to running jobs: from our page only, small, and into the logdir only."""

import json
import os
import socket

import pytest
from werkzeug.test import Client, EnvironBuilder
from werkzeug.wrappers import Request

from kinetoscope.journal.journal import JournalWriter
from kinetoscope.scheduling.request import WORK, take_request
from kinetoscope_tb.discovery import Logdir
from kinetoscope_tb.discovery.jobs import has_job
from kinetoscope_tb.engine.engine import Engine
from kinetoscope_tb.web.access import HOSTS, TOKEN_HEADER, UnknownHost, WriteAccess
from kinetoscope_tb.web.app import Applications

OURS = {"Sec-Fetch-Site": "same-origin"}
HEAD = {"version": "1", "listens": True}


def listening(folder, *, listens=True, ended=False, pid=None):
    """Make a folder look as if a Tracer recorded into it."""
    sidecar = JournalWriter({**HEAD, "listens": listens}, list)
    facts = {"global_rank": 0, "world_size": 1, "host": socket.gethostname(), "pid": pid or os.getpid()}
    sidecar.open(folder, 0, facts)
    sidecar.add("s", 41, 1_000_000, 5_000_000)
    sidecar.write()
    if ended:
        sidecar.close("end")


@pytest.fixture
def logdir(tmp_path):
    folder = tmp_path / "logdir"
    listening(folder / "team/job")
    listening(folder / "over", ended=True)
    listening(folder / "deaf", listens=False)
    listening(folder / "killed", pid=2**22 + 1)
    listening(tmp_path / "outside")
    (folder / "link").symlink_to(tmp_path / "outside")
    (folder / "plain").mkdir()
    return folder


def client(*logdirs, hosts=()):
    return Client(Applications(Engine(logdirs), WriteAccess(hosts))["/capture"])


def ask(client, body, headers=OURS, kind="application/json"):
    """Ask as the page does, with the token that it reads first."""
    data = body if isinstance(body, str | bytes) else json.dumps(body)
    token = client.get("/capture").json["token"]
    return client.post("/capture", data=data, headers={TOKEN_HEADER: token, **headers}, content_type=kind)


def test_jobs_are_listed_with_what_they_do_and_why_they_do_not_listen(logdir):
    answer = client(Logdir(str(logdir))).get("/capture").json
    reasons = {job["run"]: job["unavailable_reason"] for job in answer["jobs"]}
    assert next(iter(reasons)) == "team/job"
    assert reasons.pop("team/job") == ""
    assert reasons.pop("over") == "it has ended (end)"
    assert "requests=False" in reasons.pop("deaf")
    assert "recover" in reasons.pop("killed")
    assert reasons == {}
    (rank,) = answer["jobs"][0]["ranks"]
    assert (rank["completed"], rank["step_s"], rank["state"]) == (42, 0.004, "running")
    one = client(Logdir(str(logdir), "named")).get("/capture?run=named/team/job").json
    assert [job["run"] for job in one["jobs"]] == ["named/team/job"]


def test_a_request_lands_in_the_run_s_folder_and_says_that_the_page_asks(logdir):
    answer = ask(client(Logdir(str(logdir))), {"run": "team/job", "steps": 5, "options": {"with_stack": True}})
    assert answer.status_code == 200
    request = take_request(logdir / "team/job")
    assert (request.steps, request.reason, dict(request.options)) == (5, "page", {"with_stack": True})
    assert answer.json["request"] == request.id


def test_a_logdir_that_is_a_run_itself_is_a_job_too(logdir):
    at_run = client(Logdir(str(logdir / "team/job")))
    assert [job["run"] for job in at_run.get("/capture").json["jobs"]] == ["job"]
    assert ask(at_run, {"run": "job"}).status_code == 200
    assert take_request(logdir / "team/job").steps == 3


def test_a_job_that_has_recorded_nothing_yet_is_reason_enough_for_the_tab(logdir):
    assert has_job([Logdir(str(logdir))])
    assert not has_job([Logdir(str(logdir / "plain")), Logdir("s3://bucket/runs"), Logdir("/nowhere")])


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": "http://localhost"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://localhost:81"},
        {"Origin": "null"},
        {"Origin": "http://["},
        {"Origin": ""},
    ],
)
def test_another_site_s_page_can_not_ask(logdir, headers):
    answer = ask(client(Logdir(str(logdir))), {"run": "team/job"}, headers)
    assert (answer.status_code, answer.json["code"]) == (403, "not_our_page")
    assert take_request(logdir / "team/job") is None


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_request_says_that_it_is_json(logdir, kind):
    assert ask(client(Logdir(str(logdir))), {"run": "team/job"}, kind=kind).status_code == 415
    assert take_request(logdir / "team/job") is None


FOREIGN = [
    "evil.example",
    "evil.example:6006",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "evil-localhost",
    "127.0.0.1@evil.example",
    "localhost:6006:80",
    "localhost, evil.example",
    "local host",
    "[::1",
    "[::1].evil.example",
    "1.2.3.4.5",
    "xn--lcalhost-bzb",
    "x" * 10_000,
    "",
]


@pytest.mark.parametrize("host", FOREIGN)
def test_a_name_that_leads_here_by_dns_rebinding_is_no_address_of_ours(logdir, host):
    app = client(Logdir(str(logdir)))
    listed = app.get("/capture", headers={"Host": host}).json
    assert listed["token"] is None
    assert HOSTS in listed["refusal"]
    assert "kinetoscope trigger" in listed["refusal"]
    own = {"Host": host, "Origin": f"http://{host}", "X-Forwarded-Host": "localhost", "Forwarded": "host=localhost"}
    for headers in (own, {**own, "Sec-Fetch-Site": "same-origin"}):
        answer = ask(app, {"run": "team/job"}, headers)
        assert (answer.status_code, answer.json["code"]) == (403, "unknown_host")
    assert take_request(logdir / "team/job") is None


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "localhost:6006",
        "LocalHost.:6006",
        "tb.localhost",
        "127.0.0.1:6006",
        "192.0.2.7",
        "[::1]:6006",
        "[2001:db8::1]",
        socket.gethostname(),
        "hub.example.org",
        "HUB.example.org:443",
        "one.user.example.org",
    ],
)
def test_addresses_of_ours_are_numbers_localhost_and_names_that_the_server_has(logdir, host):
    app = client(Logdir(str(logdir)), hosts=["hub.example.org", " *.user.example.org ", ""])
    assert app.get("/capture", headers={"Host": host}).json["refusal"] == ""
    for headers in ({"Origin": f"http://{host}"}, OURS):
        assert ask(app, {"run": "team/job"}, {"Host": host, **headers}).status_code == 200


def test_the_server_s_names_are_those_of_its_flag_and_its_environment(monkeypatch):
    monkeypatch.setenv(HOSTS, "proxy.example, *.user.example")
    access = WriteAccess.from_settings("node7")
    for host in ("node7:6006", "proxy.example", "a.user.example"):
        assert access.token_for(request_from(host))
    for host in ("user.example", "a.proxy.example", "other"):
        with pytest.raises(UnknownHost, match=host):
            access.token_for(request_from(host))


def request_from(host):
    return Request(EnvironBuilder(headers={"Host": host}).get_environ())


@pytest.mark.parametrize("token", [None, "", "x", "é", "\udc80", "x" * 100_000])
def test_a_request_needs_the_token_of_this_process(logdir, token):
    headers = {
        **OURS,
        TOKEN_HEADER: client(Logdir(str(logdir))).get("/capture").json["token"] if token is None else token,
    }
    answer = ask(client(Logdir(str(logdir))), {"run": "team/job"}, headers)
    assert (answer.status_code, answer.json["code"]) == (403, "wrong_token")
    assert "Reload the page" in answer.json["message"]
    assert take_request(logdir / "team/job") is None


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none"])
def test_the_token_is_for_our_page_only(logdir, site):
    listed = client(Logdir(str(logdir))).get("/capture", headers={"Sec-Fetch-Site": site})
    assert listed.json["token"] is None
    assert not [name for name, _ in listed.headers if name.lower().startswith("access-control")]


def test_a_browser_that_does_not_say_more_is_known_by_its_origin(logdir):
    answer = ask(client(Logdir(str(logdir))), {"run": "team/job"}, {"Origin": "http://localhost"})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "run", ["../outside", "link", "plain", "team", "", "/", ".", "team/../team/job", "team/job/.work", "a\0b", 7, None]
)
def test_no_name_leads_out_of_the_logdir_or_to_what_is_no_job(logdir, run):
    answer = ask(client(Logdir(str(logdir))), {"run": run})
    assert answer.status_code in (400, 404)
    assert answer.json["state"] == "failed"
    assert take_request(logdir.parent / "outside") is None


@pytest.mark.parametrize("run", ["over", "deaf", "killed"])
def test_a_job_that_does_not_listen_is_not_asked(logdir, run):
    answer = ask(client(Logdir(str(logdir))), {"run": run})
    assert (answer.status_code, answer.json["code"]) == (409, "not_listening")
    assert take_request(logdir / run) is None


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("{", 400),
        ("[]", 400),
        ({"run": "team/job", "steps": 0}, 400),
        ({"run": "team/job", "steps": 10**9}, 400),
        ({"run": "team/job", "options": {"x": True}}, 400),
        ({"run": "team/job", "ranks": [0]}, 400),
        ({"run": "team/job", "reason": "schedule"}, 400),
        ({"steps": 3}, 400),
        ({"run": "team/job", "options": {"x" * 5000: True}}, 413),
    ],
)
def test_what_can_not_be_followed_is_refused(logdir, body, status):
    answer = ask(client(Logdir(str(logdir))), body)
    assert answer.status_code == status
    assert take_request(logdir / "team/job") is None


def test_a_folder_that_can_not_be_written_is_told(logdir, monkeypatch):
    def full(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kinetoscope_tb.discovery.jobs.write_request", full)
    answer = ask(client(Logdir(str(logdir))), {"run": "team/job"})
    assert answer.status_code == 500
    assert "No space left" in answer.json["message"]
    assert list((logdir / "team/job" / WORK).glob("trace*")) == []


def test_only_get_and_post_are_possible(logdir):
    answer = client(Logdir(str(logdir))).put("/capture")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, POST")
