"""A small fixed sample of what is planted: what first answers get right today they must not get wrong tomorrow.

`make bench ARGS=--blind` judges all kinds.
"""

import pytest

from blind import judge
from blind.all_kinds import KINDS
from blind.cases import HEALTHY, UNKNOWN, drawn
from blind.words import CAUSES
from kinetoscope_tb.engine.files import read_traces
from planted.kinds import NAMES
from support.one_answer import check_words
from support.real_traces import FOLDER, MISSING

SEED = 20_261_130
SAMPLE = (
    "data_loading", "python_between_launches", "pause_at_one_place", "operator_on_the_host", "reads_of_scalars",
    "pauses_behind_reads", "pageable_copies", "exposed_copies", "copies_to_the_host", "exposed_communication",
    "slow_launches", "tiny_kernels", "float_matmuls", "efficient", "hidden_communication", "negligible_cause",
    "negligible_fault", "dropped_head", "unlinked_rows", "unrecorded_work",
)  # fmt: skip


@pytest.mark.parametrize("name", [*SAMPLE, "healthy 1", "healthy 2", "healthy 3"])
@pytest.mark.skipif(not FOLDER.exists(), reason=MISSING)
def test_the_first_answer_is_right(name, tmp_path, monkeypatch):
    monkeypatch.setenv("KINETOSCOPE_CACHE", "off")
    kind, _, seed = name.partition(" ")
    case = drawn(f"planted_{kind}", int(seed or SEED))
    path = case.record(tmp_path)
    said = judge.answer(path)
    assert judge.judge(case, said).first in (("right", "withheld") if case.cause == HEALTHY else ("right",)), said
    assert not [claim.rest for claim in said if "contradicts this" in claim.rest]
    check_words(next(read_traces(str(path))))


def test_what_is_planted_is_named_and_each_kind_gives_the_same_case_again():
    assert len(NAMES) >= 50
    assert set(KINDS) >= NAMES
    for name in NAMES:
        case = drawn(name, 1)
        assert case.cause in {*CAUSES, HEALTHY, UNKNOWN}
        assert (case.truth, case.chance) == (drawn(name, 1).truth, drawn(name, 1).chance), name
