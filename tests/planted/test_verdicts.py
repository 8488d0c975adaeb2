"""A small fixed sample of the benchmark: what advice gets right today it must not get wrong tomorrow."""

import pytest

from kinetoscope_tb.engine.files import read_traces
from planted.catalog import catalog
from planted.judge import ABSTAINED, RIGHT, Verdict, bars, classify, is_right, judge, table
from planted.labelled import labelled
from planted.recording import Recording
from support.one_answer import check_words
from support.real_traces import FOLDER, MISSING

SAMPLE = (
    "data_loading.0",
    "data_loading.negligible",
    "python_between_launches.1",
    "pause_at_one_place.1",
    "operator_on_the_host.0",
    "reads_of_scalars.4",
    "pageable_copies.1",
    "exposed_copies.negligible",
    "copies_to_the_host.4",
    "exposed_communication.1",
    "slow_launches.1",
    "tiny_kernels.0",
    "float_matmuls.3",
    "healthy.vit_h100.0",
    "healthy.triton_mi300.1",
    "healthy.dlrm_v100.2",
    "efficient.2",
    "dropped_head.0",
    "unlinked_rows.0",
    "unrecorded_work.1",
    "many_ranks_late.0",
    "many_ranks_even.1",
)


STOPPED: dict[str, tuple[tuple[str, str], ...]] = {}
"""(rule, view) of the claims that the gate of contradictions stops, by recording, each with its reason: none, as of 43
recordings of all causes. Who adds one says why the rule claims what another view contradicts."""


@pytest.mark.parametrize("name", SAMPLE)
@pytest.mark.skipif(not FOLDER.exists(), reason=MISSING)
def test_the_verdict_is_right(name, tmp_path, monkeypatch):
    monkeypatch.setenv("KINETOSCOPE_CACHE", "off")
    number = next(at for at, r in enumerate(catalog(1)) if r.name == name)
    verdict = judge(1, number, tmp_path, keep=True)
    assert not verdict.error
    assert is_right(verdict), (verdict.accepted, verdict.rules, verdict.title)
    assert not verdict.is_confident_wrong
    assert verdict.stopped == STOPPED.get(name, ())
    for path in tmp_path.glob("*.pt.trace.json"):
        check_words(next(read_traces(str(path))))


@pytest.mark.parametrize("name", [recording.name for recording in labelled()])
@pytest.mark.skipif(not FOLDER.exists(), reason=MISSING)
def test_no_view_contradicts_what_is_said_of_labelled_recordings(name, tmp_path):
    number = next(at for at, r in enumerate(catalog(1)) if r.name == name)
    assert judge(1, number, tmp_path, keep=True).stopped == STOPPED.get(name, ())


def verdict_of(accepted, *rows, **options):
    recording = Recording("x.0", "x", None, frozenset(accepted), **options)
    verdict = Verdict("x.0", "x", recording.must_abstain, recording.may_abstain, tuple(accepted), False)
    rows = [
        {"rule": rule, "confidence": sure, "saving_frac": 0.5, "title": f"{rule} costs", "evidence": "aten::mm"}
        for rule, sure in rows
    ]
    classify(recording, rows, verdict)
    return verdict


def test_claims_that_a_view_contradicts_are_listed():
    recording = Recording("x.0", "x", None, frozenset({"copies"}))
    verdict = verdict_of(["copies"], ("copies", "cannot_tell"))
    row = {"rule": "copies", "confidence": "cannot_tell", "saving_frac": None, "title": "Copies."}
    classify(recording, [{**row, "evidence": "The view `steps` contradicts this: it is longer."}], verdict)
    assert verdict.stopped == (("copies", "steps"),)


def test_the_headline_decides():
    assert verdict_of(["copies"], ("copies", "high")).outcome == RIGHT
    second = verdict_of(["copies"], ("host_bound", "high"), ("copies", "low"))
    assert (second.outcome, second.is_confident_wrong) == ("among three", True)
    assert verdict_of(["copies"], ("host_bound", "low")).outcome == "wrong"
    assert verdict_of(["copies"], ("host_bound", "medium")).outcome == "confident, wrong"
    assert verdict_of(["copies"], ("unexplained_idle", "cannot_tell"), ("copies", "high")).outcome == ABSTAINED


def test_nothing_to_fix_in_the_last_row_is_no_right_answer():
    assert verdict_of(["nothing_to_fix"], ("copies", "high"), ("nothing_to_fix", "high")).outcome == "confident, wrong"


def test_the_evidence_must_be_named():
    assert verdict_of(["copies"], ("copies", "high"), evidence=("aten::mm",)).outcome == RIGHT
    assert verdict_of(["copies"], ("copies", "high"), evidence=("aten::bmm",)).outcome == "confident, wrong"


def test_silence_is_right_only_where_nothing_can_be_said():
    must = verdict_of([], ("recording_faults", "cannot_tell"), must_abstain=True)
    need_not = verdict_of(["copies"], ("recording_faults", "cannot_tell"))
    assert is_right(must)
    assert not is_right(need_not)
    numbers = bars([must, need_not])
    assert numbers["abstains where it must"][:2] == (1, 1)
    assert numbers["abstains where it needn't"][:2] == (1, 1)
    assert any("expected copies" in line for line in table([must, need_not]))
