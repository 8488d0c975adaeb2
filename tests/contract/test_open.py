"""`kinetoscope open`: the page without TensorBoard, for one user, until it is closed."""

import gzip
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import pytest

from contract.opening import STARTED, opening
from contract.running import a_trace, put
from support.hostile import write_bomb
from support.places import web_server
from support.waiting import wait_for

TRACE = "job/rank3.5.pt.trace.json"
PACKAGES = """
import sys
from kinetoscope_tb.cli import main
try:
    main(sys.argv[1:])
finally:
    print("PACKAGES", *sorted({name.partition(".")[0] for name in sys.modules}))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two runs; `job` is the newer one."""
    folder = tmp_path_factory.mktemp("runs")
    put(folder, "earlier/rank0.5.pt.trace.json", TRACE)
    os.utime(folder / "earlier/rank0.5.pt.trace.json", (1_000_000, 1_000_000))
    (folder / "secret.txt").write_text("the secret")
    return folder


@pytest.fixture(scope="module")
def page(folder):
    with opening(folder, "--stay") as page:
        page.enter()
        yield page


# ---- what opens


def test_the_newest_run_opens(page):
    assert page.place == {"run": "job", "worker": "rank3", "span": "5"}
    html = page.enter()
    assert (html.status, html.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert b'import { render } from "./static/index.js"' in html.body
    assert page.ask("static/index.js").headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert page.settled("state", **page.place).json["steps"] == ["5", "6"]
    steps = page.settled("view", view="steps", **page.place).json
    assert steps["data"]["step"] == ["5", "6"]


def test_the_page_may_ask_this_server_alone_and_no_other_page_may_frame_it(page):
    answer = page.enter()
    policy = dict(rule.strip().split(" ", 1) for rule in answer.headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == policy["connect-src"] == policy["frame-ancestors"] == "'self'"
    assert policy["script-src"].startswith("'self' 'sha256-")
    assert "unsafe-eval" not in policy["script-src"]
    assert answer.headers["Referrer-Policy"] == "no-referrer"


def test_the_cookie_is_for_this_page_alone(page):
    cookie = page.enter().headers["Set-Cookie"]
    assert {part.strip() for part in cookie.split(";")[1:]} >= {"HttpOnly", "SameSite=Strict"}
    path = "/" + page.base.split("/")[3] + "/"
    assert f"Path={path}" in cookie
    assert len(path) > 16  # nobody guesses it, so a server at another port doesn't get the cookie


def test_a_file_of_a_web_server_opens_without_its_signature(folder):
    with web_server(folder) as url, opening(f"{url}/{TRACE}?signature=secret", "--run", "job") as page:
        assert page.place == {"run": "job"}
        page.enter()
        runs = wait_for(lambda: page.ask("runs").json["runs"])
        place = {"run": "job", "worker": "rank3", "span": "5"}
        assert [run["name"] for run in runs] == ["job"]
        assert page.settled("state", **place).json["steps"] == ["5", "6"]
        assert "secret" not in page.enter().body.decode() + page.ask("runs").body.decode()


@pytest.mark.parametrize(("arguments", "run"), [(["--run", "earlier"], "earlier"), ([], "job")])
def test_several_paths_and_a_choice(folder, arguments, run):
    with opening(folder / "earlier", folder / TRACE, *arguments, "--no-browser") as page:
        assert page.place["run"] == run
        page.enter()
        listed = wait_for(lambda: page.ask("runs").json["runs"], is_right=lambda runs: len(runs) == 2)
        assert [run["name"] for run in listed] == ["earlier", "job"]


def test_it_imports_no_tensorboard_and_ends_after_the_page_was_closed(folder):
    with opening(folder / TRACE, "--end-after", "0", program=(sys.executable, "-c", PACKAGES)) as page:
        shown = re.search(rb'name="page" content="(\d+)"', page.enter().body)[1].decode()
        page.settled("state", **page.place)
        page.send("presence", b"open", page=shown, number="1")
        assert page.process.poll() is None
        page.send("presence", b"closed", page=shown, number="2")
        assert page.wait_for_end() == 0
        said, _, loaded = page.output.read_text().partition("PACKAGES ")
    assert "The page was closed; the server ends." in said
    loaded = loaded.split()
    assert "kinetoscope_tb" in loaded
    assert {"tensorboard", "torch", "fsspec", "rich", "google"} & set(loaded) == set()


# ---- who may see it


def test_nothing_is_answered_without_the_token(page):
    for path in ("", "runs", "views", "static/index.js", "?token=wrong", "?token="):
        answer = page.request(page.base + path)
        assert (answer.status, b"lacks its token" in answer.body) == (403, True), path
    token = page.address.partition("?")[2].partition("#")[0]
    assert page.request(f"{page.base}runs?{token}").status == 403  # it opens the page alone
    assert page.ask("runs", headers={"Cookie": "kinetoscope=wrong"}).status == 403


def test_nothing_is_outside_the_folder_of_the_page(page):
    root = "/".join(page.base.split("/")[:3])
    token = page.address.partition("?")[2].partition("#")[0]
    for path in ("/", f"/?{token}", "/runs", "/data/plugin/pytorch_profiler/runs"):
        answer = page.request(root + path, headers={"Cookie": page.cookie})
        assert (answer.status, b"lacks its token" in answer.body) == (403, True), path


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "", "localhost.evil.example"])
def test_a_name_that_another_site_points_here_is_refused(page, host):
    answer = page.ask("runs", headers={"Host": host})
    assert (answer.status, b"doesn't know the name" in answer.body) == (403, True)


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "[::1]:8000", "a.localhost"])
def test_names_of_this_machine_are_known(page, host):
    assert page.ask("runs", headers={"Host": host}).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},  # another port of this machine
        {"Sec-Fetch-Site": "", "Origin": "http://evil.example"},
        {"Sec-Fetch-Site": "", "Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "", "Origin": "null"},
    ],
)
def test_other_pages_get_no_answer_and_change_nothing(page, headers):
    assert page.ask("runs", headers=headers).status == 403
    assert page.send("presence", b"closed", headers=headers).status == 403
    assert page.send("upload", b"{}", headers=headers, name="x.json").status == 403


def test_a_link_to_the_page_may_be_anywhere(page):
    address = page.address.partition("#")[0]
    assert page.request(address, headers={"Sec-Fetch-Site": "cross-site"}).status == 200


def test_what_is_sent_without_an_origin_is_refused(page):
    assert page.send("presence", b"closed", headers={"Sec-Fetch-Site": ""}).status == 403


@pytest.mark.parametrize("name", ["../secret.txt", "..%2fsecret.txt", "../../etc/passwd", "%2e%2e/secret.txt"])
def test_no_path_leads_out(page, name):
    for route in ("static/", "timeline/perfetto/", ""):
        answer = page.ask(f"{route}{name}")
        assert answer.status in (403, 404), (route, answer.body)
        assert b"the secret" not in answer.body
    assert page.settled("state", run=unquote(name), worker="rank3", span="5").status == 404


# ---- standard input and dropped files


def test_standard_input_opens_and_is_deleted_at_the_end(tmp_path):
    (tmp_path / "tmp").mkdir()
    (tmp_path / "trace").write_bytes(gzip.compress(a_trace().text().encode()))
    with (tmp_path / "trace").open("rb") as stdin, opening("-", stdin=stdin, TMPDIR=str(tmp_path / "tmp")) as page:
        assert page.place["run"] == "stdin"
        assert page.settled("state", **page.place).json["steps"] == ["5", "6"]
        (private,) = (tmp_path / "tmp").iterdir()
        assert private.stat().st_mode & 0o777 == 0o700
        page.process.send_signal(signal.SIGTERM)
        assert page.wait_for_end() == 0
        assert list((tmp_path / "tmp").iterdir()) == []


def test_ten_gigabytes_in_ten_megabytes_of_standard_input_are_refused_and_deleted(tmp_path):
    (tmp_path / "tmp").mkdir()
    write_bomb(tmp_path / "bomb")
    assert (tmp_path / "bomb").stat().st_size < 12_000_000
    with (tmp_path / "bomb").open("rb") as stdin, opening("-", stdin=stdin, TMPDIR=str(tmp_path / "tmp")) as page:
        answer = page.settled("state", **page.place).json
        assert (answer["state"], answer["code"]) == ("failed", "not_a_trace")
        assert "expand to 1.1 GB, more than 500 times as much: no trace does." in answer["message"]
        page.process.send_signal(signal.SIGTERM)
        assert page.wait_for_end() == 0
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.fixture
def refusal(kinetoscope, monkeypatch, tmp_path):
    """What the command says when it opens nothing, and leaves nothing behind."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))

    def refusal(*arguments, stdin="/dev/null"):
        with Path(stdin).open(encoding="latin-1") as stream:
            monkeypatch.setattr(sys, "stdin", stream)
            status, answer, said = kinetoscope("open", *map(str, arguments))
        assert (status, answer) == (1, "")
        assert list(temporary.iterdir()) == []
        return said

    return refusal


def test_standard_input_without_an_end_is_refused_at_its_bound(refusal):
    said = refusal("-", "--most-bytes", 3_000_000, stdin="/dev/zero")
    assert "stdin is larger than 3 MB. --most-bytes allows more." in said


def test_no_more_than_half_of_the_disk_is_used(refusal, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=4_000_000))
    assert "stdin is larger than 2 MB, half of what is free" in refusal("-", stdin="/dev/zero")


def test_nothing_on_standard_input_is_refused(refusal):
    assert "Standard input is empty." in refusal("-")


def test_what_cannot_be_opened_is_refused_before_anything_is_served(refusal, tmp_path, folder):
    (tmp_path / "empty").mkdir()
    assert "There is no file or folder" in refusal(folder / "missing")
    assert "There is no trace in" in refusal(tmp_path / "empty")
    assert "There is no run 'x'" in refusal(folder, "--run", "x")
    with socket.create_server(("127.0.0.1", 0)) as other:
        assert "The server can't listen on port" in refusal(folder, "--port", other.getsockname()[1])


def test_a_file_that_is_dropped_onto_the_page_opens(folder, tmp_path):
    with opening(folder / TRACE, "--most-bytes", "200000", TMPDIR=str(tmp_path)) as page:
        page.enter()
        content = a_trace().text().encode()
        first = page.send("upload", content, name="../../rank1.5.pt.trace.json").json
        other = page.send("upload", content, name="rank2.5.pt.trace.json", run=first["drop"]).json
        alone = page.send("upload", content, name="any name").json
        assert (first["run"], alone["run"]) == ("dropped 1", "dropped 2")
        assert (first["worker"], other["worker"]) == ("rank1", "rank2")
        assert other["run"] == "dropped 1"
        for place in (first, other, alone):
            names = {name: place[name] for name in ("run", "worker", "span")}
            assert page.settled("state", **names).json["steps"] == ["5", "6"]
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert {path.name for path in files} == {"rank1.5.pt.trace.json", "rank2.5.pt.trace.json", "any_name"}
        large = page.send("upload", b" " * 200_001, name="large.json")
        page.cut_upload(b"{}", name="cut.json")
        assert (large.status, large.json["code"]) == (413, "too_large")
        assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(files)


# ---- how it ends, and what it says


def test_the_browser_opens_the_page_by_a_file_that_others_cannot_read(folder, tmp_path):
    script = tmp_path / "browser"
    script.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/new && mv {tmp_path}/new {tmp_path}/argument\n')
    script.chmod(0o755)
    with opening(folder / TRACE, BROWSER=str(script)) as page:
        argument = wait_for(lambda: (tmp_path / "argument").exists() and (tmp_path / "argument").read_text())
        assert "token" not in argument
        file = Path(unquote(argument.strip().removeprefix("file://")))
        assert page.address.replace("&", "&amp;") in file.read_text()
        assert file.parents[1].stat().st_mode & 0o777 == 0o700


def test_on_another_machine_it_prints_how_to_forward_the_port_and_opens_no_browser(folder):
    arguments = [folder / TRACE, "--host", "0.0.0.0"]
    with opening(*arguments, BROWSER="false", SSH_CONNECTION="10.1.1.1 50000 10.2.2.2 2222") as page:
        said, authority = page.output.read_text(), page.base.split("/")[2]
        host, _, port = authority.partition(":")
        assert host == "127.0.0.1"
        assert f"ssh -N -p 2222 -L {port}:{authority} " in said
        assert "@10.2.2.2\n" in said
        assert "Warning: everybody in the network can reach 0.0.0.0." in said
        assert page.enter().status == 200
        page.process.send_signal(signal.SIGINT)
        assert page.wait_for_end() == 0


def test_pages_that_are_open_at_the_same_time_share_the_cache(tmp_path, folder):
    trace = a_trace()
    for number in range(60_000):
        trace.op("aten::add", 2_000_000 + number * 10, 5)
    (tmp_path / "rank0.1.pt.trace.json").write_text(trace.text())
    cache = {"KINETOSCOPE_CACHE": str(tmp_path / "cache")}
    with opening(tmp_path / "rank0.1.pt.trace.json", **cache) as first:
        first.settled("state", **first.place)
        entries = wait_for(lambda: sorted((tmp_path / "cache").rglob("*.trace")))
        with opening(tmp_path / "rank0.1.pt.trace.json", **cache) as second:
            assert second.settled("state", **second.place).json["steps"] == ["5", "6"]
            assert second.base != first.base
            assert second.request(f"{second.base}runs", headers={"Cookie": first.cookie}).status == 403
            assert sorted((tmp_path / "cache").rglob("*.trace")) == entries


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another user")
def test_another_user_of_the_machine_reads_neither_what_was_dropped_nor_the_key(folder):
    with (
        tempfile.TemporaryDirectory() as private,
        opening(folder / TRACE, "--stay", program=STARTED, TMPDIR=private) as page,
    ):
        Path(private).chmod(0o755)
        page.enter()
        page.send("upload", a_trace().text().encode(), name="rank1.5.pt.trace.json")
        (dropped,) = (path for path in Path(private).rglob("*") if path.is_file())
        for path in (dropped, Path(f"/proc/{page.process.pid}/environ")):
            attempt = subprocess.run(["cat", path], user=65534, capture_output=True, text=True, check=False)
            assert (attempt.returncode, attempt.stdout) == (1, "")
            assert "Permission denied" in attempt.stderr
        token = page.address.partition("token=")[2].partition("#")[0].partition("&")[0]
        assert len(token) > 20
        assert token not in Path(f"/proc/{page.process.pid}/cmdline").read_text()
        page.process.terminate()
        page.wait_for_end()
