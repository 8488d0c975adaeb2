"""A real job under torchrun: ranks that aren't chosen, and another attempt after one of them died."""

import json
from pathlib import Path

import pytest

from kinetoscope.journal.status import rank_statuses
from kinetoscope_tb.discovery import Logdir, list_traces
from support.processes import Started, ended, steps_of, traces_in

JOB = Path(__file__).with_name("attempts.py")


@pytest.fixture(scope="module")
def logdir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attempts")
    rendezvous = ("--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--rdzv-id", "again")
    launcher = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", "1", *rendezvous)
    code, _, err = ended(Started(*launcher, str(JOB), str(folder)))
    assert code == 0, err
    return folder


def manifest_of(run):
    return json.loads((run / "run.json").read_text())


def test_each_attempt_of_torchrun_has_a_folder_with_its_traces(logdir):
    first, second = logdir / "again", logdir / "again.1"
    assert set(traces_in(first)) == {("rank0", 4), ("rank1", 4), ("rank0", 6)}
    assert set(traces_in(second)) == {("rank0", 4), ("rank1", 4), ("rank0", 8), ("rank1", 8)}
    for run in (first, second):
        for (_, span), trace in traces_in(run).items():
            assert trace["kinetoscope"]["run"] == run.name
            assert steps_of(trace) == ([span - 2, span - 1] if span != 6 else [6])
    assert manifest_of(first)["attempt"] != manifest_of(second)["attempt"]
    spans = [(run, span) for run, spans in ((first, (4, 6)), (second, (4, 8))) for span in spans]
    ids = [{t["trace_id"] for (_, each), t in traces_in(run).items() if each == span} for run, span in spans]
    assert [len(each) for each in ids] == [1, 1, 1, 1]  # all ranks call a window the same
    assert len(set.union(*ids)) == 4
    assert [rank["state"] for rank in manifest_of(second)["ranks"]] == ["ended", "ended"]
    ended_by, died = manifest_of(first)["ranks"]
    assert (ended_by["state"], ended_by["reason"]) == ("ended", "sigterm")
    assert (died["state"], died["problem"][:38]) == ("killed", "the process ended without a good-bye w")


def test_a_rank_that_is_not_chosen_records_when_it_is_named_and_is_never_missing(logdir):
    run = logdir / "chosen"
    traces = traces_in(run)
    (span,) = {span for worker, span in traces if worker == "rank0"}
    assert set(traces) == {("rank1", 4), ("rank0", span)}
    assert steps_of(traces["rank1", 4]) == [2, 3]
    assert steps_of(traces["rank0", span]) == [span - 2, span - 1]
    assert [traces[key]["kinetoscope"]["ranks"] for key in (("rank1", 4), ("rank0", span))] == [[1], [0]]
    manifest = manifest_of(run)
    assert manifest["ranks_expected"] == [1]
    assert [(w["span"], {rank: o["state"] for rank, o in w["ranks"].items()}) for w in manifest["windows"]] == [
        (4, {"1": "saved"}),
        (span, {"0": "saved"}),
    ]
    assert [(status.rank, status.records) for status in rank_statuses(run)] == [(0, False), (1, True)]
    assert not list_traces([Logdir(str(logdir))]).notes.get("chosen")
