import polars as pl
import pytest

from kinetoscope_tb.tables import BOOL, COUNT, DURATION, ID, INSTANT, TEXT, Column, Table


def test_a_column_has_its_kind_s_suffix():
    with pytest.raises(TypeError, match="must end in '_ns'"):

        class Wrong(Table):
            """One row is one x."""

            total = Column(DURATION, "Total.")


def test_a_column_has_no_other_kind_s_suffix():
    with pytest.raises(TypeError, match="another kind's suffix"):

        class Wrong(Table):
            """One row is one x."""

            calls_ns = Column(COUNT, "How often.")


def test_a_definition_is_a_sentence():
    with pytest.raises(TypeError, match="a sentence"):

        class Wrong(Table):
            """One row is one x."""

            calls = Column(COUNT, "how often")


def test_a_bool_reads_like_a_question():
    with pytest.raises(TypeError, match="must begin with is_"):

        class Wrong(Table):
            """One row is one x."""

            complete = Column(BOOL, "Whether.")


def test_a_key_names_a_column():
    with pytest.raises(TypeError, match="no column title"):

        class Wrong(Table):
            """One row is one x."""

            key = ("title",)
            name = Column(TEXT, "Name.")


def test_a_table_says_what_a_row_is():
    with pytest.raises(TypeError, match="what one row is"):

        class Wrong(Table):
            pass


def test_columns_of_several_bases_stand_in_order():
    class First(Table):
        """One row is one x."""

        name = Column(TEXT, "Name.")

    class Second(Table):
        """One row is one x."""

        calls = Column(COUNT, "Calls.")

    class Both(Second, First):
        """One row is one x."""

    assert list(Both.schema()) == ["name", "calls"]


def test_a_frame_of_another_shape_is_refused():
    class Names(Table):
        """One row is one x."""

        name = Column(TEXT, "Name.")

    assert Names.of(pl.DataFrame({"name": ["a"]})).height == 1
    with pytest.raises(AssertionError, match="Names: expected"):
        Names.of(pl.DataFrame({"name": [1]}))


class Columns(Table):
    """One row is one x."""

    name = Column(TEXT, "Name.")
    row = Column(ID, "A number.")
    at_ns = Column(INSTANT, "When.")
    calls = Column(COUNT, "Calls.")
    self_ns = Column(DURATION, "Self.")
    total_ns = Column(DURATION, "Total.")


@pytest.mark.parametrize(
    ("attributes", "problem"),
    [
        ({"parent": "above"}, "no column above"),
        ({"parent": "calls"}, "must be an ID"),
        ({"flames": ("self_ns",)}, "no parent"),
        ({"parent": "row", "flames": ("name",)}, "no amount"),
        ({"curves": ("name",)}, "no amount"),
        ({"series": ("row",)}, "no curves"),
        ({"marks": "name"}, "no curves"),
        ({"bins": ("self_ns",), "charts": ("calls",)}, "lower and an upper edge"),
        ({"bins": ("self_ns", "calls"), "charts": ("calls",)}, "of one kind"),
        ({"bins": ("self_ns", "total_ns")}, "charts for the heights"),
    ],
)
def test_a_picture_is_of_columns_that_can_be_drawn(attributes, problem):
    with pytest.raises(TypeError, match=problem):
        type("Wrong", (Columns,), {"__doc__": "One row is one x.", **attributes})


def test_curves_are_over_an_instant():
    with pytest.raises(TypeError, match="no INSTANT"):

        class Wrong(Table):
            """One row is one x."""

            curves = ("calls",)
            calls = Column(COUNT, "Calls.")


def test_trees_curves_and_histograms_are_tables():
    class Tree(Columns):
        """One row is one x."""

        parent, flames = "row", ("self_ns", "calls")

    class Curve(Columns):
        """One row is one x."""

        curves, series = ("calls",), ("row",)

    class Histogram(Columns):
        """One row is one x."""

        bins, charts = ("self_ns", "total_ns"), ("calls",)

    assert Tree.schema() == Curve.schema() == Histogram.schema()
