import polars as pl
import pytest

from kinetoscope_tb.pictures import Bars, Heatmap, Histogram, Lines, Tree, charted_columns, parent_column
from kinetoscope_tb.table import BOOL, COUNT, DURATION, ID, INSTANT, TEXT, Column, ColumnGroup, Summary, Table


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


def test_only_a_text_has_words_for_its_values():
    with pytest.raises(TypeError, match="only a text has words"):

        class Wrong(Table):
            """One row is one x."""

            calls = Column(COUNT, "How often.", words={"1": "Once"})


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


def test_a_table_says_what_it_shows():
    with pytest.raises(TypeError, match="what the table shows"):

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


def test_a_group_of_columns_stands_where_the_table_has_it():
    group = ColumnGroup({"first_ns": Column(DURATION, "One."), "second_ns": Column(DURATION, "Two.", title="Second")})

    class Whole(Table):
        """Columns around a group."""

        before = Column(TEXT, "Before.")
        parts = group
        after = Column(TEXT, "After.")

    assert list(Whole.schema()) == ["before", "first_ns", "second_ns", "after"]
    assert Whole.parts.names == ("first_ns", "second_ns")


@pytest.mark.parametrize("kind", [COUNT, TEXT])
def test_the_columns_of_a_group_are_checked(kind):
    group = ColumnGroup({"wrong_ns": Column(kind, "One.")})
    with pytest.raises(TypeError, match="wrong_ns"):

        class Wrong(Table):
            """Wrong."""

            parts = group


def test_a_summary_defines_what_its_columns_say_of_it():
    texts = {"rule": "Which.", "title": "What.", "evidence": "Why.", "confidence": "How sure.", "view": "Where."}

    class Answer(Summary, colors={"a": "kernel"}, **texts):
        """An answer."""

    class Advised(Summary, colors={"a": "kernel"}, action="What to do.", **texts):
        """An answer with what to do."""

    assert {column.name: column.doc for column in Answer.columns} == texts
    assert [column.name for column in Advised.columns] == [*[*texts][:3], "action", *[*texts][3:]]
    assert (Answer.key, Answer.picture.action, Advised.picture.action) == (("rule",), None, "action")
    assert Answer.of_row(("a", "b", "c", "high", "d")).rows() == [("a", "b", "c", "high", "d")]
    assert Answer.of_row(None).is_empty()


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
    ("picture", "problem"),
    [
        (Tree("above"), "no column above"),
        (Tree("calls"), "must be an ID"),
        (Tree("row", widths=("name",)), "isn't a number"),
        (Lines(("name",)), "isn't a number"),
        (Lines(("calls",), series=("stream",)), "no column stream"),
        (Lines(("calls",), marks="row"), "must be a TEXT"),
        (Histogram("self_ns", "calls", heights=("calls",)), "of one kind"),
        (Heatmap("row", "name"), "of the key"),
        (Bars(("name",)), "isn't a number"),
    ],
)
def test_a_picture_is_of_columns_that_can_be_drawn(picture, problem):
    with pytest.raises(TypeError, match=problem):
        type("Wrong", (Columns,), {"__doc__": "One row is one x.", "picture": picture})


def test_lines_are_over_an_instant():
    with pytest.raises(TypeError, match="no INSTANT"):

        class Wrong(Table):
            """One row is one x."""

            picture = Lines(("calls",))
            calls = Column(COUNT, "Calls.")


@pytest.mark.parametrize(
    ("picture", "parent", "charted"),
    [
        (Tree("row", widths=("self_ns", "calls")), "row", ()),
        (Lines(("calls",), series=("row",), marks="name"), None, ()),
        (Histogram("self_ns", "total_ns", heights=("calls",)), None, ("calls",)),
        (Heatmap("row", "name"), None, ()),
        (Bars(("calls",)), None, ("calls",)),
        (None, None, ()),
    ],
)
def test_a_picture_says_what_of_the_table_it_draws(picture, parent, charted):
    members = {"__doc__": "One row is one x.", "key": ("row", "name"), "weight": "calls", "picture": picture}
    drawn = type("Drawn", (Columns,), members).picture
    assert (parent_column(drawn), charted_columns(drawn)) == (parent, charted)
