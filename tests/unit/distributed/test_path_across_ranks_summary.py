"""The critical path across ranks in a sentence."""

from dataclasses import replace

import polars as pl
import pytest

from kinetoscope_tb.distributed.run import Member, Ranks
from kinetoscope_tb.distributed.summary import summary
from kinetoscope_tb.reader import read
from kinetoscope_tb.views import RUN_VIEWS
from support.real_traces import FOLDER, MISSING
from support.simulated import Truth, run_of, simulated


def sentence_of(run):
    return RUN_VIEWS["path_across_ranks_summary"].run(run).row(0, named=True)


def sentence(truth):
    return sentence_of(run_of(simulated(truth)))


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


def on_host(run):
    """The run, with all that its ranks do between collectives outside of operators and calls."""
    spent = pl.col("spent_ns").arr.reverse()
    summaries = [replace(one.summary, segments=one.summary.segments.with_columns(spent)) for one in run.members]
    return Ranks(run.run, tuple(replace(one, summary=s) for one, s in zip(run.members, summaries, strict=True)))


def test_garbage_collection_is_named_as_far_as_the_rank_collects():
    truth = Truth(late={(2, None): 15_000_000}, by="garbage collection", noise=0.0, jitter_ns=0)
    row = sentence_of(on_host(run_of(simulated(truth))))
    assert "Most of that is host code between operators: " in row["evidence"]
    assert "; up to 15 ms is garbage collection." in row["evidence"]


@pytest.mark.skipif(not (FOLDER / "runs/dlrm_8gpu_nccl").is_dir(), reason=MISSING)
def test_a_late_begin_is_said_with_the_rank_that_began_earlier():
    folder = sorted((FOLDER / "runs/dlrm_8gpu_nccl").glob("*.json"))
    run = Ranks("dlrm", tuple(Member(f"rank{i}", "1", 0, summary(read(path))) for i, path in enumerate(folder)))
    evidence = sentence_of(run)["evidence"]
    assert evidence.startswith("43.8 % of that passed before it began the step, 4.67 ms after rank 4.")


def test_a_path_of_a_few_of_the_job_s_ranks_says_so():
    run = run_of(simulated(Truth(late={(2, None): 5_000_000}, noise=0.0)))
    summaries = [replace(one.summary, facts={**one.summary.facts, "world_size": 128}) for one in run.members]
    few = Ranks(run.run, tuple(replace(one, summary=s) for one, s in zip(run.members, summaries, strict=True)))
    row = sentence_of(few)
    assert row["title"].startswith(f"Among the {len(run.members)} of 128 ranks that were recorded, ")
    assert row["title"].endswith(" of the critical path is on rank 2.")
    assert (row["confidence"], row["view"]) == ("low", "run_health")
