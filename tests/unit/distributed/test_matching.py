"""Which calls of different ranks are the same collective, where their numbers and their messages disagree."""

import polars as pl

from kinetoscope_tb.distributed.collectives.matching import match_calls

FLOAT, HALF = "Float", "BFloat16"


def calls_of(*ranks):
    """Calls of a group of all ranks: (number, bytes, dtype) of each, rank by rank; -1 and None are unknown."""
    rows = [(rank, nth, size, dtype) for rank, calls in enumerate(ranks) for nth, size, dtype in calls]
    schema = {"member": pl.Int32, "nth": pl.Int64, "bytes": pl.Int64, "dtype": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(
        pl.col("member").cast(pl.Int64).alias("rank"),
        place=pl.lit(0, pl.Int32),
        group=pl.lit(0, pl.Int32),
        kind=pl.lit("all_reduce"),
        step_name=pl.lit("1"),
        peer=pl.lit(-1, pl.Int64),
    )


def matches_of(*ranks):
    return match_calls(calls_of(*ranks))["match"].to_list()


def test_calls_of_one_number_and_one_message_are_one_collective():
    assert matches_of([(1, 384, FLOAT), (2, 512, FLOAT)], [(1, 384, FLOAT), (2, 512, FLOAT)]) == [0, 1, 0, 1]


def test_calls_of_one_number_with_different_sizes_are_not():
    assert matches_of([(1, 384, FLOAT)], [(1, 339_738_624, FLOAT)]) == [None, None]


def test_calls_of_one_number_with_different_types_are_not():
    assert matches_of([(1, 384, FLOAT)], [(1, 384, HALF)]) == [None, None]


def test_the_ranks_that_agree_are_matched_without_the_one_that_does_not():
    assert matches_of([(1, 384, FLOAT)], [(1, 512, FLOAT)], [(1, 384, FLOAT)]) == [0, None, 0]


def test_an_unknown_size_agrees_with_any_but_not_with_several():
    assert matches_of([(1, 384, FLOAT)], [(1, -1, None)]) == [0, 0]
    assert matches_of([(1, 384, FLOAT)], [(1, 512, FLOAT)], [(1, -1, None)]) == [None, None, None]


def test_calls_without_numbers_are_matched_in_order_only_where_their_types_agree():
    assert matches_of([(-1, 384, FLOAT), (-1, 384, FLOAT)], [(-1, 384, FLOAT), (-1, 384, HALF)]) == [0, None, 0, None]
