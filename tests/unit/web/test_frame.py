"""The page in a frame without a server: its messages are answered as requests are."""

import gzip
import json
import re

import pytest

from contract.running import put
from kinetoscope_tb.discovery import parse_logdirs
from kinetoscope_tb.web import frame
from kinetoscope_tb.web.app import Site
from kinetoscope_tb.web.frame import FramePage
from support.waiting import wait_for

HOSTILE = '"><script>alert(1)</script>&'


@pytest.fixture
def page(tmp_path):
    put(tmp_path, "job/rank3.5.pt.trace.json")
    site = Site(parse_logdirs(str(tmp_path)), None)
    wait_for(lambda: site._engine.listing())
    return FramePage(site, HOSTILE, {"run": HOSTILE, "view": "timeline"})


def ask(page, target, **message):
    """Head and content, unpacked."""
    head, content = page.answer({"method": "GET", "target": target, **message})
    is_packed = head["headers"].get("Content-Encoding") == "gzip"
    return head, gzip.decompress(content) if is_packed else content


def answer(page, target, **message):
    head, content = ask(page, target, **message)
    return head["status"], json.loads(content)


def test_the_page_asks_nobody_else_and_begins_where_it_should(page):
    head, content = ask(page, "/")
    text = content.decode()
    assert (head["status"], head["headers"]["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert re.search(
        r"default-src 'none'; script-src ('sha256-[\w+/=]+' ?){2}; style-src 'unsafe-inline'; img-src data: blob:", text
    )
    assert "alert(1)" not in text.replace("alert(1)%3C", "").replace("&lt;script&gt;alert(1)&lt;", "")
    assert 'content="#pytorch_profiler&amp;p.pytorch_profiler.run=%22%3E%3Cscript' in text
    assert "p.pytorch_profiler.view=timeline" in text
    assert '<base href="https://kinetoscope.invalid/">' in text


def test_messages_are_answered_as_requests_are(page):
    assert [run["name"] for run in answer(page, "/runs")[1]["runs"]] == ["job"]
    query = "run=job&worker=rank3&span=5"
    status, state = wait_for(lambda: answer(page, f"/state?{query}"), is_right=lambda got: got[1]["state"] != "loading")
    assert (status, state["steps"]) == (200, ["5", "6"])
    head, content = ask(page, f"/timeline/export?{query}&stamp=x")
    assert (head["status"], json.loads(content)["code"]) == (409, "changed")


@pytest.mark.parametrize("target", ["/nonsense", "/runs/x", "/static/../../secret", "/timeline/perfetto", "/\0"])
def test_what_is_not_there_is_an_error(page, target):
    status, content = answer(page, target)
    assert (status, content["state"]) == (404, "failed")


def test_only_the_page_may_ask_a_job_to_record(page):
    token = answer(page, "/capture")[1]["token"]
    message = {"method": "POST", "body": "{}"}
    json_type = {"Content-Type": "application/json"}
    assert answer(page, "/capture", headers=json_type, **message)[1]["code"] == "wrong_token"
    headers = {**json_type, "X-Kinetoscope-Token": token}
    assert answer(page, "/capture", headers=headers, **message)[1]["code"] == "bad_parameter"


def test_an_answer_that_is_too_large_for_a_message_says_what_to_do(page, monkeypatch):
    monkeypatch.setattr(frame, "MOST_BYTES", 100)
    status, content = answer(page, "/views")
    assert (status, content["code"]) == (413, "large_answer")
    assert "kinetoscope export" in content["message"]
