"""A view's parameters, and what the catalogue says of it."""

from typing import Literal

import polars as pl
import pytest

from kinetoscope_tb.errors import BadParameter
from kinetoscope_tb.tables import COUNT, ID, INSTANT, TEXT, Column, Table
from kinetoscope_tb.views import View


class Rows(Table):
    """One row is one x."""

    key, charts, curves, series, parent = ("name",), ("calls",), ("calls",), ("row",), "row"

    name = Column(TEXT, "Name.")
    row = Column(ID, "A number.")
    at_ns = Column(INSTANT, "When.")
    calls = Column(COUNT, "Calls.")


def rows(
    trace, *, phase: Literal["all", "forward"] = "all", from_ns: int | None = None, name: str | None = None
) -> pl.DataFrame:
    return pl.DataFrame(schema=Rows.schema())


VIEW = View(rows, table=Rows, title="Rows", group="Host", part_of="steps", detail_of="operators")


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
    said = {name: described[name] for name in ("part_of", "detail_of", "parent", "flames", "curves", "series", "bins")}
    assert said == {
        "part_of": "steps",
        "detail_of": "operators",
        "parent": "row",
        "flames": [],
        "curves": ["calls"],
        "series": ["row"],
        "bins": None,
    }


def wrong_type(trace, *, most: float | None = None):
    raise NotImplementedError


def wrong_default(trace, *, most: int | None = 3):
    raise NotImplementedError


def wrong_name(trace, *, span: str | None = None):
    raise NotImplementedError


@pytest.mark.parametrize(
    ("function", "problem"),
    [(wrong_type, "must be a Literal"), (wrong_default, "the default None"), (wrong_name, "has a 'span' already")],
)
def test_a_parameter_that_no_client_could_give_is_refused(function, problem):
    with pytest.raises(TypeError, match=problem):
        _ = View(function, table=Rows, title="Rows", group="Host").parameters
