"""The last minutes of ranks as rows."""

from kinetoscope.output.ring import LastMinutes
from kinetoscope_tb.distributed.last_minutes import MinutesRow, minutes_rows

SECOND = 1_000_000_000


def test_a_row_has_the_last_steps_and_the_last_samples():
    steps = tuple((number, 100 * number, 100 * number + 10 + number) for number in range(7))
    memory = ((0, 500, 90), (2 * SECOND, 800, 40))
    processor = ((0, 0, 0), (2 * SECOND, 3 * SECOND, 250_000))
    assert minutes_rows({1: LastMinutes(steps, memory, processor), 0: LastMinutes((), memory)}) == [
        MinutesRow(1, 6, 616, 13, (12, 13, 14, 15, 16), 800, 300, 40, 1.5, 0.25)
    ]


def test_without_samples_these_values_are_missing():
    (row,) = minutes_rows({0: LastMinutes(((0, 5, 3),))})
    assert row == MinutesRow(0, 0, 3, 0, (0,))
