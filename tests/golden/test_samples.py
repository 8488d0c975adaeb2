"""Every view of every sample, as text: a file per view, so that a change of a number shows in a diff.

The samples are the recordings of `samples/`, made without a GPU, and one that is built, in which no view is empty.
missing.txt lists the views that a sample has nothing for. `make golden` rewrites the files.
"""

import os
from functools import cache, partial
from pathlib import Path

import polars as pl
import pytest

from kinetoscope_tb.discovery import list_path
from kinetoscope_tb.distributed.run import Member, Ranks
from kinetoscope_tb.distributed.summary import summary
from kinetoscope_tb.reader import read
from kinetoscope_tb.views import RUN_VIEWS, VIEWS
from support.build import text
from support.gpu_sample import gpu_sample
from support.graphs import joined
from support.snapshots import small_snapshot, with_snapshot

HERE = Path(__file__).parent
FOLDER = HERE.parents[1] / "samples"
TRACES = sorted(FOLDER.glob("*/*/*.pt.trace.json.gz"))
RUN = "gloo_2ranks-ddp"
MISSING = HERE / "missing.txt"
UPDATES = bool(os.environ.get("UPDATE_GOLDEN"))
LARGEST = 60  # rows of a table that are compared

read_once = cache(read)


def name_of(path):
    return "-".join(path.relative_to(FOLDER).parts).removesuffix(".pt.trace.json.gz")


SAMPLES = {
    **{name_of(path): partial(read_once, path) for path in TRACES},
    "gpu": lambda: with_snapshot(gpu_sample().build(), small_snapshot()),
}


@cache
def trace_of(sample):
    return joined(SAMPLES[sample]())


def test_there_are_samples():
    assert len({path.parents[1] for path in TRACES}) >= 2
    assert sum(path.stat().st_size for path in TRACES) <= 3_000_000


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_views_of_a_sample_say_what_they_said(sample, subtests):
    for view in VIEWS.values():
        if not view.is_missing(trace_of(sample)):
            with subtests.test(view=view.id):
                assert_golden(golden(sample, view), answer(trace_of(sample), view))


def test_the_views_of_a_sample_s_run_say_what_they_said(subtests):
    for view in RUN_VIEWS.values():
        if not view.is_missing(sample_run(view.scope)):
            with subtests.test(view=view.id):
                assert_golden(golden(RUN, view), answer(sample_run(view.scope), view))


def test_what_the_samples_lack_is_what_they_lacked():
    """A view that suddenly finds nothing, or something, shows here."""
    lines = []
    for view in (*VIEWS.values(), *RUN_VIEWS.values()):
        if samples := samples_without(view):
            lines += [f"{view.id}: {view.hint}", *(f"    {sample}" for sample in samples), ""]
    assert_golden(MISSING, "\n".join(lines))


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_each_view_has_rows_in_a_sample(view):
    assert not view.is_missing(trace_of("gpu"))
    assert view.run(trace_of("gpu")).height


def test_every_file_is_of_a_view_and_a_sample():
    expected = {
        golden(sample, view) for view in VIEWS.values() for sample in SAMPLES.keys() - set(samples_without(view))
    }
    expected |= {golden(RUN, view) for view in RUN_VIEWS.values() if not samples_without(view)}
    left_over = set(HERE.rglob("*.txt")) - expected - {MISSING, HERE / "verdicts.txt"}
    if UPDATES:
        for path in left_over:
            path.unlink()
    else:
        assert left_over == set()


def golden(sample, view):
    return HERE / sample / f"{view.id}.txt"


def samples_without(view):
    """The samples that lack what a view needs."""
    if view.id in RUN_VIEWS:
        return [RUN] if view.is_missing(sample_run(view.scope)) else []
    return [sample for sample in SAMPLES if view.is_missing(trace_of(sample))]


def assert_golden(path, text):
    if UPDATES:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    else:
        assert text == path.read_text(encoding="utf-8"), "`make golden` accepts the new text"


@cache
def sample_run(scope):
    """All recordings of the sample with two ranks, or the first of each."""
    workers = list_path(str(FOLDER / "gloo_2ranks")).runs["ddp"]
    chosen = [
        Member(worker, span, place, summary(read_once(Path(file.path))))
        for worker, spans in workers.items()
        for place, (span, file) in enumerate(spans.items())
        if scope == "run" or place == 0
    ]
    return Ranks("ddp", tuple(chosen))


def answer(trace, view):
    frame = view.run(trace)
    floats = frame.with_columns(pl.col(pl.Float64).round(9))
    return text(floats.head(LARGEST)) + f"\n{frame.height} rows\n"
