"""A view's parameters, and what the catalogue says of it."""

from dataclasses import replace
from typing import Literal

import polars as pl
import pytest

from kinetoscope_tb.entries import ENTRIES
from kinetoscope_tb.errors import BadParameter
from kinetoscope_tb.measures.time.breakdown import CATEGORIES
from kinetoscope_tb.pictures import Lines, Sentence
from kinetoscope_tb.table import COUNT, ID, INSTANT, TEXT, Column, Table
from kinetoscope_tb.view import Detail, Lead, Part, RowTime, Slices, Tab, View, catalogue
from kinetoscope_tb.views import EVERY_VIEW


class Rows(Table):
    """One row is one x."""

    key, picture = ("name",), Lines(("calls",), series=("row",))

    name = Column(TEXT, "Name.")
    row = Column(ID, "A number.")
    at_ns = Column(INSTANT, "When.")
    calls = Column(COUNT, "Calls.")


def rows(
    trace, *, phase: Literal["all", "forward"] = "all", from_ns: int | None = None, name: str | None = None
) -> pl.DataFrame:
    return pl.DataFrame(schema=Rows.schema())


VIEW = View(rows, table=Rows, title="Rows", entry="Operators", place=Tab("By name"))


def test_a_parameter_is_a_choice_a_number_or_a_text():
    assert VIEW.describe()["parameters"] == [
        {"name": "phase", "kind": "choice", "choices": ["all", "forward"]},
        {"name": "from_ns", "kind": "number", "choices": []},
        {"name": "name", "kind": "text", "choices": []},
    ]


def test_values_become_what_the_function_takes():
    given = {"phase": "forward", "from_ns": "-12", "name": "aten::mm"}
    assert VIEW.arguments(given) == {"phase": "forward", "from_ns": -12, "name": "aten::mm"}
    assert VIEW.arguments({"name": ""}) == {"name": ""}


@pytest.mark.parametrize("value", ["", "1.5", "1e3", "ten", " 1", "1\n", "--1", "\u0661", "1" * 19])
def test_what_is_no_integer_is_refused(value):
    with pytest.raises(BadParameter, match=r"^from_ns=.* is an integer"):
        VIEW.arguments({"from_ns": value})


def test_a_refused_choice_names_the_others():
    with pytest.raises(BadParameter, match="choose one of all, forward"):
        VIEW.arguments({"phase": "backward"})


def test_an_unknown_parameter_names_the_known_ones():
    with pytest.raises(BadParameter, match="it takes phase, from_ns, name"):
        VIEW.arguments({"until_ns": "1"})


def test_the_catalogue_says_where_a_view_is_drawn_and_as_what():
    described = VIEW.describe()
    assert described["entry"]["title"] == "Operators"
    assert described["entry"]["question"].endswith("?")
    assert described["place"] == {"kind": "tab", "label": "By name"}
    assert described["picture"] == {
        "kind": "lines",
        "values": ("calls",),
        "series": ("row",),
        "marks": None,
        "is_stacked": False,
        "means": (),
    }
    assert described["comparable_columns"] == ["calls"]
    assert not any(described[name] for name in ("slices", "time", "reference", "shows_path"))


def test_entries_are_in_one_order_and_each_has_tabs():
    titles = list(dict.fromkeys(view.entry for view in EVERY_VIEW.values()))
    assert titles == [title for title in ENTRIES if title in titles]
    assert {view.entry for view in EVERY_VIEW.values() if isinstance(view.place, Tab)} == set(titles)


def test_the_number_beside_an_entry_is_of_its_own_views():
    for entry in ENTRIES.values():
        if entry.figure:
            view = EVERY_VIEW[entry.figure.view]
            assert view.entry == entry.title
            assert entry.figure.column in {None, *view.table.schema()}


def test_tabs_of_an_entry_have_names_of_their_own():
    labels = [
        (view.entry, view.describe()["place"]["label"]) for view in EVERY_VIEW.values() if isinstance(view.place, Tab)
    ]
    assert len(labels) == len(set(labels))


def test_parts_belong_to_tabs_and_details_to_tabs_or_parts_of_their_entry():
    for view in EVERY_VIEW.values():
        if isinstance(view.place, Part | Detail):
            owners = [EVERY_VIEW[name] for name in (view.place.of, *getattr(view.place, "also", ()))]
            places = Tab | Part if isinstance(view.place, Detail) else Tab
            assert all(isinstance(one.place, places) and one.entry == view.entry for one in owners), view.id
        if isinstance(view.place, Detail):
            keys = {p.name for p in view.parameters}
            assert all(keys & set(owner.table.key) for owner in owners), view.id


def test_views_of_a_snapshot_are_shown_in_rows_of_views_whose_key_they_take():
    for view in EVERY_VIEW.values():
        taken = {parameter.name for parameter in view.parameters}
        for owner in view.in_rows_of_trace:
            assert taken & set(EVERY_VIEW[owner].table.key), (view.id, owner)


def events_of_row(trace, key):
    return {"host_events": [key["name"]]}


def row_of(trace, frame, row):
    return {"name": f"{frame} {row}", "calls": 3} if row else None


def test_a_view_says_what_its_rows_are_in_the_timeline():
    slices, time = Slices(events_of_row, row_of, category="Kernel"), RowTime("at_ns")
    view = View(rows, table=Rows, title="Rows", entry="Operators", slices=slices, time=time)
    assert view.describe()["slices"] == {
        "are_highlighted": True,
        "except_kind": None,
        "category": "Kernel",
        "panel": None,
    }
    assert view.describe()["time"] == {"begin": "at_ns", "length": None, "end": None, "worker": None}
    assert view.events_of_row(None, {"name": "x", "calls": 3}) == {"host_events": ["x"]}
    assert view.events_of_row(None, {}) == {"host_events": [None]}
    assert view.row_of_event(None, "host_events", 7) == {"name": "host_events 7"}
    assert view.row_of_event(None, "host_events", 0) is None
    several = replace(view, slices=Slices(events_of_row, "An event is behind several rows."))
    assert several.row_of_event(None, "host_events", 7) is None


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"time": RowTime("start_ns")}, "rows has no column 'start_ns' of the kind instant"),
        ({"time": RowTime("at_ns", length="calls")}, "no column 'calls' of the kind duration"),
        ({"slices": Slices(events_of_row, row_of, except_kind="rest")}, "no column 'kind'"),
    ],
)
def test_what_a_view_says_of_the_timeline_is_in_its_table(said, problem):
    with pytest.raises(TypeError, match=problem):
        View(rows, table=Rows, title="Rows", entry="Operators", **said)


def wrong_type(trace, *, most: float | None = None):
    raise NotImplementedError


def wrong_default(trace, *, most: int | None = 3):
    raise NotImplementedError


def wrong_name(trace, *, span: str | None = None):
    raise NotImplementedError


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (wrong_type, "must be a Literal"),
        (wrong_default, "the default None"),
        (wrong_name, "every query has a parameter 'span'"),
    ],
)
def test_a_parameter_that_no_client_could_give_is_refused(function, problem):
    with pytest.raises(TypeError, match=problem):
        _ = View(function, table=Rows, title="Rows", entry="Operators").parameters


def test_links_to_a_view_say_its_entry_and_its_tab_unless_it_is_the_first():
    titles = {described["id"]: described["page_title"] for described in catalogue(EVERY_VIEW.values())}
    assert [titles[name] for name in ("overview", "kernels", "graphs", "kernels_by_op", "launch_durations")] == [
        *("Overview", "Kernels", "Kernels: Graphs", "Kernels: By launcher", "Idle: How long launching takes")
    ]


def test_the_answer_of_an_entry_or_a_tab_is_drawn_as_a_sentence():
    sentences = {entry.sentence for entry in ENTRIES.values() if entry.sentence}
    sentences |= {view.id for view in EVERY_VIEW.values() if isinstance(view.place, Lead)}
    assert {view.id for view in EVERY_VIEW.values() if isinstance(view.table.picture, Sentence)} == sentences


def test_findings_have_a_level():
    assert [view.id for view in EVERY_VIEW.values() if view.level] == ["health", "run_health"]
    with pytest.raises(TypeError, match="no column 'level' with text"):
        View(rows, table=Rows, title="Rows", entry="Operators", level="level")


def test_categories_of_the_breakdown_have_the_words_of_the_legend_in_headers():
    legend = {"dataloader_ns": "DataLoader", "cpu_exec_ns": "CPU Exec"}
    assert set(legend.values()) <= set(CATEGORIES)
    columns = [column for view in catalogue(EVERY_VIEW.values()) for column in view["columns"]]
    titles = {(column["name"], column.get("title")) for column in columns if column["name"] in legend}
    assert titles == set(legend.items())
