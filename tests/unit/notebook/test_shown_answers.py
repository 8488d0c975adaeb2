"""What a notebook shows of a recording and its views: the terminal's text, and HTML without scripts or markup of a trace."""

import pickle
import re
from dataclasses import replace
from html.parser import HTMLParser

import polars as pl
import pytest

import kinetoscope_tb
from kinetoscope_tb.cli.print_rows import print_table
from kinetoscope_tb.text_table import columns_with_values, display_order, text_columns
from kinetoscope_tb.views import EVERY_VIEW
from support.build import TraceBuilder

HOSTILE = '</td><script>alert(1)</script><img src=x onerror="alert(2)">`code`'
VOID = {"img", "br", "meta"}


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    builder = TraceBuilder().window(0, 90_000)
    for number in range(3):
        start = 20_000 * number
        builder = builder.step(number, start, start + 10_000).op(HOSTILE, start + 10, start + 5_000)
        builder = builder.kernel(HOSTILE, start + 100, start + 900)
    for number in range(30):
        builder = builder.op(f"aten::op_{number}", 70_000 + number * 100, 70_000 + number * 100 + 50)
    path = tmp_path_factory.mktemp("hostile") / "rank0.5.pt.trace.json"
    path.write_text(builder.text())
    return kinetoscope_tb.open(path)


class Tags(HTMLParser):
    """The tags, attributes and texts of HTML; every tag must be closed."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.names, self.texts, self.open_tags = set(), set(), [], []
        self.feed(text)
        self.close()
        assert self.open_tags == []

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.names |= {name for name, _ in attributes}
        if tag not in VOID:
            self.open_tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open_tags.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def is_static(text):
    """Whether HTML is complete and has nothing that runs or loads."""
    shown = Tags(text)
    safe = {"div", "style", "p", "strong", "code", "table", "caption", "tr", "th", "td"}
    return shown.tags <= safe and shown.names <= {"class", "style", "tabindex", "title"} and "url(" not in text


def test_a_recording_shows_its_first_screen(profile):
    bundle = profile._repr_mimebundle_()
    assert bundle["text/plain"] == profile.summary()
    assert is_static(bundle["text/html"])
    shown = " ".join("".join(Tags(bundle["text/html"]).texts).split())
    words = re.findall(r"[\w:]+", re.sub(r"[█…]", " ", profile.summary().replace("`", "")))
    assert [word for word in words if word not in shown] == []
    assert "light-dark(" in bundle["text/html"]


@pytest.mark.parametrize("name", EVERY_VIEW)
@pytest.mark.slow  # each view
def test_each_view_shows_itself_without_scripts(profile, name):
    try:
        frame = profile.view(name)
    except kinetoscope_tb.errors.MissingData:
        return
    bundle = frame._repr_mimebundle_()
    assert is_static(bundle["text/html"])
    assert "\x1b" not in bundle["text/plain"]
    assert max(map(len, bundle["text/plain"].splitlines())) <= 100


def test_the_text_is_that_of_a_terminal(profile, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    view, frame = EVERY_VIEW["operators"], profile.operators
    columns = columns_with_values(view.table.columns, frame)
    texts = text_columns(columns, frame)
    print_table(display_order(texts, [column.name for column in columns], view.table.weight))
    printed = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in capsys.readouterr().out.splitlines()]
    shown = frame._repr_mimebundle_()["text/plain"].splitlines()
    first = shown.index(printed[0])
    assert " ".join(shown[:first]).strip() == frame._display.note != ""
    assert shown[first : first + len(printed)] == printed
    assert shown[-1] == f"{frame.height - 20} more rows."


def test_headings_have_units_and_definitions(profile):
    text = profile.operators._repr_mimebundle_()["text/html"]
    assert re.search(r'<th class="number" title="[^"]+\.">host_self \(µs\)</th>', text)
    assert HOSTILE[:30] in "".join(Tags(profile.kernels._repr_mimebundle_()["text/html"]).texts)


def test_a_view_without_rows_says_what_to_do(profile):
    frame = profile.operators
    empty = type(frame)(frame.clear(), replace(frame._display, note=""))
    assert empty._repr_mimebundle_()["text/plain"].startswith("Operators: no rows.")
    assert is_static(empty._repr_mimebundle_()["text/html"])


def test_a_view_stays_a_polars_frame(profile):
    frame = profile.operators
    assert isinstance(frame, pl.DataFrame)
    assert type(frame.filter(pl.col("calls") > 1)) is pl.DataFrame
    assert pl.concat([frame, profile.operators]).height == 2 * frame.height
    for derived in (frame.head(2), frame[["name"]], pickle.loads(pickle.dumps(frame))):
        assert derived._repr_mimebundle_()["text/plain"] == repr(derived)


def test_a_comparison_shows_itself_as_polars_does(profile):
    assert type(profile.compare(profile)) is pl.DataFrame


def test_the_report_is_in_a_frame_that_reaches_nothing(profile):
    report = profile.report()
    bundle = report._repr_mimebundle_()
    shown = Tags(bundle["text/html"])
    assert shown.tags == {"iframe", "p"}
    sandbox, srcdoc = re.search(r'sandbox="([^"]*)" srcdoc="([^"]*)"', bundle["text/html"]).groups()
    assert set(sandbox.split()) == {"allow-scripts", "allow-downloads"}  # and so an origin of its own
    assert "default-src &#x27;none&#x27;" in srcdoc
    assert "alert(1)" not in bundle["text/html"]
    assert bundle["text/plain"] in "".join(shown.texts)
    assert re.fullmatch(r"\d+(\.\d)? kB", report.size)
