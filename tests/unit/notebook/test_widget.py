"""The page as a widget, by the contracts of programs that show notebooks."""

import gzip
import json
import re
import sys

import pytest

import kinetoscope_tb
from kinetoscope_tb.engine import trace_cache
from kinetoscope_tb.errors import KinetoscopeError, NotFound
from kinetoscope_tb.notebook.widget import PageWidget
from support.build import TraceBuilder
from support.waiting import wait_for


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    path = tmp_path_factory.mktemp("widget") / "rank0.5.pt.trace.json"
    path.write_text(TraceBuilder().window(0, 9000).step(3, 1000, 2000).op("aten::mm", 1100, 100).text())
    return kinetoscope_tb.open(path)


def address_of(widget):
    """What the page of a widget opens."""
    head, content = widget._answer({"target": "/"})
    assert head["headers"]["Content-Encoding"] == "gzip"
    (address,) = re.findall(r'<meta name="address" content="([^"]*)"', gzip.decompress(content).decode())
    pairs = (pair.split("=") for pair in address.split("&amp;")[1:])
    return {key.removeprefix("p.pytorch_profiler."): value for key, value in pairs}


def test_programs_with_widgets_show_the_page_and_others_the_first_screen(profile):
    data, metadata = profile.page()._repr_mimebundle_()
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"]
    assert {kind: data[kind] for kind in ("text/plain", "text/html")} == profile._repr_mimebundle_()
    assert metadata == {}


def test_a_widget_is_a_module_that_loads_no_other(profile):
    state = profile.page(height=900).get_state()
    assert state["_esm"].rstrip().endswith("export default { render };")
    assert re.search(r"https?:|\bimport\b|\bfetch\b|innerHTML", state["_esm"]) is None
    assert (state["height"], state["title"]) == (900, profile.page().title)
    assert len(state["_esm"]) < 5000  # a notebook saves it with each widget


def test_a_message_is_answered_to_the_view_that_asked(profile, monkeypatch):
    widget, answers = profile.page(), []
    monkeypatch.setattr(PageWidget, "send", lambda _, content, buffers: answers.append((content, buffers)))
    message = {"method": "custom", "content": {"id": "a 1", "method": "GET", "target": "/views"}}
    widget._handle_msg({"content": {"data": message}, "buffers": []})
    ((head, (content,)),) = answers
    assert (head["id"], head["status"]) == ("a 1", 200)
    assert isinstance(content, bytes)


def test_the_page_shows_the_trace_that_was_read_and_what_was_computed_of_it(profile, monkeypatch):
    monkeypatch.setattr(trace_cache, "open_or_read_each", None)
    widget, rows = profile.page(), profile.operators.height
    query = f"run={profile.run}&worker=rank0&span=5"

    def ask(target):
        return json.loads(gzip.decompress(widget._answer({"target": f"/{target}&{query}"})[1]))

    view = wait_for(lambda: ask("view?view=operators"), is_right=lambda answer: answer["state"] != "loading")
    assert (view["state"], len(view["data"]["name"])) == ("ready", rows)
    assert profile._site._engine.trace(profile._file) is profile._trace


def test_the_timeline_begins_with_a_step(profile):
    place = {"run": profile.run, "worker": "rank0", "span": "5"}
    assert address_of(profile.timeline(step=3)) == {
        **place,
        "view": "timeline",
        "side": "folded",
        "from": "1000",
        "to": "3000",
    }
    assert address_of(profile.page("operators")) == {**place, "view": "operators"}
    with pytest.raises(NotFound, match="no step '4'; there is 3"):
        profile.timeline(step=4)
    with pytest.raises(NotFound, match="no view 'operator'; did you mean 'operators'"):
        profile.page("operator")


def test_without_anywidget_the_error_says_what_to_install(profile, monkeypatch):
    monkeypatch.setitem(sys.modules, "kinetoscope_tb.notebook.widget", None)
    with pytest.raises(KinetoscopeError, match=r"pip install 'kinetoscope\[notebook\]'"):
        profile.page()
    assert profile.report().title == profile._title
