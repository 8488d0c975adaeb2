"""Whatever splits the same time adds up to the same total, in other forms of real traces and across ranks.

`test_each_recording.py` holds the rules against every real trace and sample.
"""

import gzip
from pathlib import Path

import numpy as np
import pytest

from kinetoscope_tb.discovery import list_path
from kinetoscope_tb.distributed.contents import has_several_workers
from kinetoscope_tb.distributed.run import Member, Ranks
from kinetoscope_tb.distributed.summary import summary
from kinetoscope_tb.reader import read
from kinetoscope_tb.views import RUN_VIEWS, VIEWS
from support.nsight import export_json
from support.real_traces import FOLDER
from support.sums import RULES, length_of_empty_queue

SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.mark.parametrize(
    "name", ["single/ncompass_h100nvl_test_trace.pt.trace.json", "claims/tracelens_h100_qwen1.5-0.5b.json.gz"]
)
def test_sums_reconcile_in_exports_of_nsight(name, traces, tmp_path, subtests):
    with gzip.open(traces / name) if name.endswith(".gz") else (traces / name).open("rb") as file:
        path = export_json(tmp_path / "rank0.sqlite", file.read())
    trace = read(path)
    tables = {name: view.run(trace) for name, view in VIEWS.items() if not view.is_missing(trace)}
    assert len(tables) > 30
    for holds in RULES:
        with subtests.test(rule=holds.__name__):
            holds(trace, tables)


def test_a_queue_is_empty_between_the_rows_that_wait_in_it():
    launched, begun = np.array([10, 12, 40, 5, 90]), np.array([20, 30, 41, 4, 200])
    assert length_of_empty_queue(launched, begun, 0, 100) == 10 + 10 + 49
    assert length_of_empty_queue(launched, begun, 15, 35) == 5
    assert length_of_empty_queue(launched[:0], begun[:0], 3, 7) == 4


RUNS = [
    *(folder for kind in ("runs", "claims") for folder in (FOLDER / kind).glob("*") if folder.is_dir()),
    *(folder for folder in SAMPLES.glob("*") if not folder.name.endswith("_pairs")),  # jobs of one process
]


@pytest.mark.parametrize("folder", sorted(RUNS), ids=lambda p: p.name)
def test_no_row_of_a_path_across_ranks_saves_more_than_its_share(folder):
    for workers in list_path(str(folder)).runs.values():
        files = [next(iter(spans.values())) for spans in workers.values()]
        ranks = Ranks("run", tuple(Member(file.worker, file.span, 0, summary(read(file.path))) for file in files))
        for by in ("part", "rank and part", "collective") if has_several_workers(ranks) else ():
            for per, percent in (("recording", 100), ("step", 50), ("step", 10)):
                table = RUN_VIEWS["path_across_ranks"].run(ranks, by=by, per=per, percent=str(percent))
                rows = table.drop_nulls("saved_ns")
                assert (rows["saved_ns"] >= 0).all()
                assert (rows["saved_ns"] <= rows["mean_ns"] * percent / 100 + 1).all()
