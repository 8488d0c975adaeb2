from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.distributed.process_groups import RankSet, format_ranks


def test_ranks_are_spelt_as_people_do():
    assert format_ranks([0, 1, 2, 3]) == "0-3"
    assert format_ranks([0, 8, 16, 24]) == "0-24/8"
    assert format_ranks([7]) == "7"
    assert format_ranks([3, 5]) == "3,5"
    assert format_ranks([0, 1, 5, 8, 9]) == "0-1,5,8-9"
    assert format_ranks([]) is None
    assert list(RankSet.of(None)) == []


@given(st.sets(st.integers(0, 200), min_size=1))
def test_what_is_spelt_is_read_back(ranks):
    assert list(RankSet.of(format_ranks(ranks))) == sorted(ranks)
