"""The critical path across ranks in a sentence."""

from kinetoscope_tb.views import RUN_VIEWS
from support.simulated import Truth, run_of, simulated


def sentence(truth):
    return RUN_VIEWS["path_across_ranks_summary"].run(run_of(simulated(truth))).row(0, named=True)


def test_the_rank_that_carries_the_path_is_named_with_its_work():
    row = sentence(Truth(late={(2, None): 5_000_000}, noise=0.0))
    assert row["rule"] == "rank"
    assert row["title"].endswith(" of the critical path is on rank 2.")
    assert row["evidence"].startswith("Most of that is kernels: ")


def test_slow_links_are_the_sentence_where_they_take_most_of_the_path():
    groups = (("dp", (0, 1, 2, 3)), ("tp", (0, 1)), ("tq", (2, 3)))
    row = sentence(Truth(groups=groups, slow={2: 30}, compute_ns=2_000_000))
    assert row["rule"] == "transfer"
    assert "is collectives that move data, after all ranks have entered." in row["title"]
