"""Numbers in sentences, with the digits that the page shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kinetoscope_tb.names import text

CASES = json.loads((Path(__file__).parents[3] / "frontend" / "tests" / "numbers.json").read_text(encoding="utf-8"))
FORMS = {"duration": text.time, "bytes": text.memory_size, "fraction": text.percent}


@pytest.mark.parametrize(("value", "kind", "shown"), CASES)
def test_numbers_have_three_significant_digits_and_no_padding_as_on_the_page(value, kind, shown):
    assert FORMS[kind](value) == shown


def test_a_range_of_times_has_its_unit_once():
    cases = [(6.9e6, 8.1e6), (0, 8.1e6), (900_000, 1.2e6), (0, 0)]
    assert [text.time_range(*bounds) for bounds in cases] == [
        "6.9 to 8.1 ms",
        "0 to 8.1 ms",
        "900 µs to 1.2 ms",
        "0 to 0 ns",
    ]


def test_counts_and_shares_begin_sentences():
    assert [text.share(part) for part in (0.334, 0.25, 0.4, 0.0752)] == ["A third", "A quarter", "40 %", "7.5 %"]
    assert [text.times(count, "call") for count in (1, 8.23, 1478)] == ["1 call", "8.2 calls", "1478 calls"]


def test_a_clause_that_begins_a_sentence_stays_but_for_its_first_letter():
    assert [text.capitalize(clause) for clause in ("the GPU", "all 4 GPUs", "`aten::mm`", "")] == [
        "The GPU",
        "All 4 GPUs",
        "`aten::mm`",
        "",
    ]


@pytest.mark.parametrize(
    ("bytes_per_s", "words"), [(5.15e6, "5.15 MB/s"), (24.8e9, "24.8 GB/s"), (3.35e12, "3.35 TB/s"), (0.5, "0.5 B/s")]
)
def test_rates_have_the_largest_unit_that_fits(bytes_per_s: float, words: str):
    assert text.byte_rate(bytes_per_s) == words


def test_a_name_as_code_has_no_backtick_of_its_own():
    assert text.code("a `b`") == "`a 'b'`"
