import polars as pl
import pytest

from kinetoscope_tb.table import (
    BOOL,
    BYTE_RATE,
    BYTES,
    COUNT,
    DURATION,
    FLOP,
    FLOP_RATE,
    FRACTION,
    NUMBER,
    STACK,
    TEXT,
    Column,
    Table,
)
from kinetoscope_tb.text_table import aligned_lines, text_columns


class Everything(Table):
    """One row is one of everything."""

    name = Column(TEXT, "A text.")
    is_good = Column(BOOL, "A truth.")
    calls = Column(COUNT, "A count.")
    ratio = Column(NUMBER, "A ratio.")
    total_ns = Column(DURATION, "A duration.")
    size_bytes = Column(BYTES, "A size.")
    busy_frac = Column(FRACTION, "A share.")


def shown(*rows):
    frame = pl.DataFrame(rows, schema=Everything.schema(), orient="row")
    return aligned_lines(text_columns(Everything.columns, frame)).splitlines()


def test_each_column_has_one_unit_and_each_cell_its_place():
    assert shown(
        ("matmul", True, 3, 1.5, 1_234_567, 2048, 0.125),
        ("a", None, 12000, float("nan"), 1_000, 512, None),
    ) == [
        "name    is_good  calls  ratio  total (ms)  size (KiB)  busy (%)",
        "matmul  yes          3    1.5       1.23          2        12.5",
        "a       –        12000      –       0.001         0.5         –",
    ]


def test_a_stack_is_one_line_in_which_each_frame_is_followed_by_its_caller():
    class Stacks(Table):
        """One row is one stack."""

        stack = Column(STACK, "Frames.")

    frame = pl.DataFrame({"stack": ["f.py(1): f\nmain\x1b.py(2): main", None]})
    assert text_columns(Stacks.columns, frame)[0].cells == ["f (f.py:1) < main (main\\x1b.py:2)", "–"]


def test_values_that_are_ids_are_in_the_words_of_their_column():
    class Causes(Table):
        """One row is one cause."""

        cause = Column(TEXT, "Why.", words={"blocked copy": "Blocked in a copy or sync"})

    frame = pl.DataFrame({"cause": ["blocked copy", None, "a new id"]})
    assert text_columns(Causes.columns, frame)[0].cells == ["Blocked in a copy or sync", "–", "a new id"]


def test_a_frame_is_a_function_with_its_file_and_line_unless_a_label_says_more():
    class Names(Table):
        """One row is one name."""

        name = Column(TEXT, "A name.")

    frame = pl.DataFrame({"name": ["a/f.py(1): f", "gemm(1): kernel", None]})
    assert text_columns(Names.columns, frame, {"gemm(1): kernel": "GEMM"})[0].cells == ["f (a/f.py:1)", "GEMM", "–"]


def test_no_rows_are_a_header_without_units():
    assert shown() == ["name  is_good  calls  ratio  total  size  busy"]


class Speeds(Table):
    """One row is one speed."""

    work_flop = Column(FLOP, "Operations.")
    work_flop_per_s = Column(FLOP_RATE, "Operations per second.")
    moved_bytes_per_s = Column(BYTE_RATE, "Bytes per second.")


def test_rates_and_operations_count_in_thousands():
    frame = pl.DataFrame([(221_184, 1.5e15, 2.039e12)], schema=Speeds.schema(), orient="row")
    assert aligned_lines(text_columns(Speeds.columns, frame)).splitlines() == [
        "work (kFLOP)  work (PFLOP/s)  moved (TB/s)",
        "         221             1.5          2.04",
    ]


@pytest.mark.parametrize(
    ("ns", "text"), [(999, "999"), (1_000, "1"), (12_345, "12.3"), (999_949, "1000"), (3 * 10**9, "3")]
)
def test_the_largest_value_decides_the_unit(ns, text):
    assert text in shown(("a", True, 1, 1.0, ns, 1, 0.5))[1].split()
