from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.distributed.process_groups import RankSet, spelled


def test_ranks_are_spelt_as_people_do():
    assert spelled([0, 1, 2, 3]) == "0-3"
    assert spelled([0, 8, 16, 24]) == "0-24/8"
    assert spelled([7]) == "7"
    assert spelled([3, 5]) == "3,5"
    assert spelled([0, 1, 5, 8, 9]) == "0-1,5,8-9"
    assert spelled([]) is None
    assert list(RankSet.of(None)) == []


@given(st.sets(st.integers(0, 200), min_size=1))
def test_what_is_spelt_is_read_back(ranks):
    assert list(RankSet.of(spelled(ranks))) == sorted(ranks)
