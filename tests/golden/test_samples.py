"""Every view of every sample, as text: one file per view, so that a change of a number shows in a diff.

`make golden` writes the files anew.
"""

import os
from functools import cache
from pathlib import Path

import polars as pl
import pytest

from kinetoscope_tb.discovery import list_path
from kinetoscope_tb.distributed import Member, Ranks, summary
from kinetoscope_tb.reader import read
from kinetoscope_tb.views import RUN_VIEWS, VIEWS
from support.build import text

HERE = Path(__file__).parent
SAMPLES = HERE.parents[1] / "samples"
TRACES = sorted(SAMPLES.glob("*/*/*.pt.trace.json.gz"))
UPDATES = bool(os.environ.get("UPDATE_GOLDEN"))
LARGEST = 60  # rows of a table that are compared

read_once = cache(read)


def name_of(path):
    return "-".join(path.relative_to(SAMPLES).parts).removesuffix(".pt.trace.json.gz")


def test_there_are_samples():
    assert len({path.parents[1] for path in TRACES}) >= 2
    assert sum(path.stat().st_size for path in TRACES) <= 3_000_000


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("path", TRACES, ids=name_of)
def test_a_view_of_a_sample_says_what_it_said(path, view):
    assert_golden(HERE / name_of(path) / f"{view.id}.txt", answer(read_once(path), view))


@pytest.mark.parametrize("view", RUN_VIEWS.values(), ids=RUN_VIEWS)
def test_a_view_of_a_sample_s_run_says_what_it_said(view):
    assert_golden(HERE / "gloo_2ranks-ddp" / f"{view.id}.txt", answer(sample_run(view.scope), view))


def test_every_file_is_of_a_view_and_a_sample():
    expected = {HERE / name_of(path) / f"{name}.txt" for path in TRACES for name in VIEWS}
    expected |= {HERE / "gloo_2ranks-ddp" / f"{name}.txt" for name in RUN_VIEWS} | {HERE / "verdicts.txt"}
    left_over = set(HERE.rglob("*.txt")) - expected
    if UPDATES:
        for path in left_over:
            path.unlink()
    else:
        assert left_over == set()


def assert_golden(path, text):
    if UPDATES:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    else:
        assert text == path.read_text(encoding="utf-8"), "`make golden` accepts the new text"


@cache
def sample_run(scope):
    """All recordings of the sample with two ranks, or the first of each."""
    workers = list_path(str(SAMPLES / "gloo_2ranks")).runs["ddp"]
    chosen = [
        Member(worker, span, place, summary(read_once(Path(file.path))))
        for worker, spans in workers.items()
        for place, (span, file) in enumerate(spans.items())
        if scope == "run" or place == 0
    ]
    return Ranks("ddp", tuple(chosen))


def answer(trace, view):
    if view.is_missing(trace):
        return f"missing: {view.hint}\n"
    frame = view.run(trace)
    floats = frame.with_columns(pl.col(pl.Float64).round(9))
    return text(floats.head(LARGEST)) + f"\n{frame.height} rows\n"
