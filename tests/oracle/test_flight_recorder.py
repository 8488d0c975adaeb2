"""Dumps that torch 2.13 wrote of jobs that stand still, each with what is true of it."""

import pytest

from kinetoscope_tb.distributed.hangs.evidence import evidence, rows
from kinetoscope_tb.distributed.hangs.sentences import sentence
from kinetoscope_tb.distributed.hangs.verdict import CULPRIT, NOTHING_OPEN, verdict
from kinetoscope_tb.reader.flight_recorder.files import read_folder

TRUTH = {
    "healthy": (NOTHING_OPEN, (), "Nothing recorded is open"),
    "absent": (CULPRIT, (2,), "Rank 2 never came to all_reduce 6 of default_pg (4 KiB); ranks 0, 1 and 3 wait"),
    "absent_in_group": (CULPRIT, (3,), "Rank 3 never came to all_reduce 6 of group 2 (ranks 2 and 3, 32 B); ranks 0–2"),
    "other_operation": (
        CULPRIT,
        (1,),
        "Rank 1 called broadcast as collective 6 of default_pg; ranks 0, 2 and 3 called",
    ),
    "other_order": (CULPRIT, (0, 1), "Ranks 0 and 1 wait for each other"),
    "p2p": (NOTHING_OPEN, (), "Nothing recorded is open"),
}


@pytest.mark.parametrize("name", TRUTH)
def test_the_culprit_of_a_real_job(name, traces):
    folder = read_folder(str(traces.parent / "flight-recorder" / name))
    answer = verdict(folder)
    outcome, culprits, words = TRUTH[name]
    assert (answer.outcome, answer.culprits) == (outcome, culprits)
    assert sentence(answer).startswith(words)
    assert folder.problems == ()
    assert [row.rank for row in rows(answer)] == [0, 1, 2, 3]


def test_who_departs_from_the_order_of_the_steps_before(traces):
    answer = verdict(read_folder(str(traces.parent / "flight-recorder" / "other_order")))
    assert evidence(answer)[0].startswith("Rank 0 departs from the order")


@pytest.mark.parametrize("name", TRUTH)
def test_json_and_pickles_of_a_real_job_agree(name, traces, tmp_path):
    answers = []
    for pattern in ("rank*.json", "comm_lib_trace_rank_*"):
        (tmp_path / pattern[:4]).mkdir()
        for path in (traces.parent / "flight-recorder" / name).glob(pattern):
            (tmp_path / pattern[:4] / path.name).write_bytes(path.read_bytes())
        answers.append(verdict(read_folder(str(tmp_path / pattern[:4]))))
    assert sentence(answers[0]) == sentence(answers[1])
    assert rows(answers[0]) == rows(answers[1])
