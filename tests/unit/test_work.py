"""Twice the size takes about twice the work, for every shape of a file and every view of it."""

from dataclasses import replace
from functools import cache

import pytest

from kinetoscope_tb.distributed.run import Member, Ranks
from kinetoscope_tb.distributed.summary import summary
from kinetoscope_tb.errors import NotATrace
from kinetoscope_tb.reader import read, read_blocks
from kinetoscope_tb.reader.input.document import MOST_VALUES
from kinetoscope_tb.timeline.core.build import timeline
from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder
from support.shapes import FILES, RECORDINGS, TEXTS
from support.work import work_of, work_of_each

MOST = 2.5
SIZE, MOST_OF_SHAPES = 200, 2.35
"""Of how many things a shape holds. Work that grows with the square of it is found by this bound where it is a fifth of the
other work for 200 things, which is a third for 300: what 2.5 finds there."""
BLOCK_BYTES = 1 << 12  # a shape must be longer than one: what is done per block is to be seen


def blocks(text):
    return [text[at : at + BLOCK_BYTES] for at in range(0, len(text), BLOCK_BYTES)]


def read_text(text):
    try:
        return read_blocks(blocks(text), path="shape.json", threads=1)
    except NotATrace:
        return None


def growth(run_views, small, large):
    """How many times the work of the small one the large one takes, once all that it needs is imported."""
    run_views(small)
    return work_of(lambda: run_views(large)) / work_of(lambda: run_views(small))


@pytest.mark.parametrize("shape", RECORDINGS)
def test_reading_grows_with_the_number_of_anything(shape):
    small, large = (RECORDINGS[shape](size) for size in (2 * SIZE, 4 * SIZE))
    assert growth(read_text, small, large) <= MOST_OF_SHAPES


@pytest.mark.parametrize("shape", TEXTS)
def test_reading_grows_with_the_length_of_any_part_of_the_text(shape):
    small, large = (TEXTS[shape](size) for size in (5_000, 10_000))
    assert growth(read_text, small, large) <= MOST


@pytest.mark.parametrize("shape", FILES)
def test_decompressing_grows_with_the_number_of_parts(shape, tmp_path):
    paths = tmp_path / "small", tmp_path / "large"
    for path, size in zip(paths, (3_000, 6_000), strict=True):
        path.write_bytes(FILES[shape](size))
    assert growth(read, *paths) <= MOST


@pytest.mark.parametrize("shape", ["keys before the events", "keys behind the events"])
def test_of_very_many_values_beside_the_events_the_first_are_kept(shape):
    size = MOST_VALUES + 7
    trace = read_text(TEXTS[shape](size))
    assert len(trace.meta.top) == MOST_VALUES
    (diagnostic,) = trace.diagnostics
    assert (diagnostic.rule, diagnostic.count) == ("damaged_metadata", size - MOST_VALUES)


@cache
def sizes_of(shape):
    return tuple(read_text(RECORDINGS[shape](size)) for size in (SIZE, 2 * SIZE))


def work_of_views(trace, views):
    """What each view does for a trace, in this order: what several need is done, and counted, once."""
    trace = replace(trace)
    work = work_of_each([lambda view=view: view.table.of(view.run(trace)) for view in views])
    return dict(zip([view.id for view in views], work, strict=True))


@pytest.mark.parametrize("shape", RECORDINGS)
def test_every_view_grows_with_the_number_of_anything(shape):
    small, large = sizes_of(shape)
    views = [view for view in VIEWS.values() if view.scope == "recording" and not view.is_missing(small)]
    assert views
    trace = replace(small)
    for view in views:  # so that all is imported
        view.run(trace)
    work, more = work_of_views(small, views), work_of_views(large, views)
    ratios = {name: more[name] / work[name] for name in work}
    assert {name: ratio for name, ratio in ratios.items() if ratio > MOST_OF_SHAPES} == {}


@pytest.mark.parametrize("shape", RECORDINGS)
def test_timeline_and_summary_grow_with_the_number_of_anything(shape):
    small, large = sizes_of(shape)
    assert growth(lambda trace: timeline(replace(trace)), small, large) <= MOST_OF_SHAPES
    assert growth(lambda trace: summary(replace(trace)), small, large) <= MOST_OF_SHAPES


def of_world(size, groups=20, listed=None):
    trace = TraceBuilder(distributedInfo={"rank": 0, "world_size": size, "backend": "nccl"})
    for i in range(groups):
        about = {"Collective name": "allreduce", "In msg nelems": 8, "Group size": size, "dtype": "Float"}
        ranks_of_group = {} if listed is None else {"Process Group Ranks": listed}
        trace.launch(10 * i, 1, i + 1)
        trace.kernel(
            f"ncclDevKernel_AllReduce_{i}",
            10 * i + 1,
            5,
            i + 1,
            **about,
            **ranks_of_group,
            **{"Process Group Name": f"g{i}"},
        )
    return trace.build()


@pytest.mark.parametrize("listed", [None, "[0, ..., 999999999]", "[0, 999999999]"])
def test_a_job_of_a_thousand_million_ranks_takes_as_long_as_a_large_one(listed):
    def run_views(trace):
        ranks = Ranks("run", (Member("worker", "span", 0, summary(trace)),))
        for view in VIEWS.values():
            if view.scope != "recording" and not view.is_missing(ranks):
                view.table.of(view.run(ranks))

    assert growth(run_views, of_world(1 << 20, listed=listed), of_world(10**9, listed=listed)) <= MOST


def test_groups_of_the_whole_job_are_not_listed_rank_by_rank():
    assert growth(lambda trace: summary(replace(trace)), of_world(1 << 10), of_world(1 << 20)) <= 1.1
