"""Names with numbers in them are sorted as people count."""

import pytest

from kinetoscope_tb.names.natural_sort import natural_key


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(["rank2", "rank10", "rank10b", "rank011"], id="numbers by value"),
        pytest.param(
            ["-20", "-3", "-1", "0", "7", "12", "", "a7", "stream 3"], id="negative, then numbers, then texts"
        ),
        pytest.param(["rank-2", "rank-10"], id="a minus inside a name separates"),
        pytest.param(["A1", "a2", "B1"], id="case doesn't matter"),
        pytest.param(["9" * 5000, "1" + "0" * 5000], id="numbers longer than int() takes"),
    ],
)
def test_names_are_in_the_order_in_which_people_count(names):
    assert sorted(dict.fromkeys(names[::-1]), key=natural_key) == names
