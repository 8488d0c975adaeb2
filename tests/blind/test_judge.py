"""The judge, by answers made by hand."""

from __future__ import annotations

import json
import re

import pytest

from blind.cases import HEALTHY, UNKNOWN, Case
from blind.judge import Claim, claims, judge, shares
from blind.training import Training
from blind.words import CAUSES, EVERY_STEP

LATE = Case("straggler", Training(), title=(r"\brank 2\b",), rest=(r"data|load",), never=("no rank is",))
ONCE = Case("loader", Training(), rest=(r"step 25\b",), never=(EVERY_STEP,))
NOTHING = Claim("Nothing stands out: the GPU computes for 99 % of the average step.", is_nothing=True)


def claim(title: str, rest: str = "", confidence: str = "high") -> Claim:
    return Claim(title, f"{title} {rest}", confidence)


@pytest.mark.parametrize(
    ("case", "said", "first", "is_sure_and_wrong"),
    [
        (LATE, claim("Rank 2 is slow: each step waits 4.96 ms for it.", "4.96 ms is data loading"), "right", False),
        (LATE, claim("Rank 1 is slow: each step waits 4.96 ms for it.", "4.96 ms is data loading"), "vague", False),
        (LATE, claim("Rank 2 is slow: each step waits 4.96 ms for it.", "its kernels take longer"), "vague", False),
        (LATE, claim("Exposed communication takes 65.9 % of every step.", "rank 2 loads data"), "wrong", True),
        (LATE, claim("Exposed communication takes 65.9 %.", confidence="low"), "wrong", False),
        (LATE, claim("No rank is slower than noise explains."), "wrong", True),
        (LATE, claim("Rank 2 loads data late.", confidence="cannot_tell"), "withheld", False),
        (LATE, NOTHING, "silent", True),
        (ONCE, claim("Step 25 waits 300 ms for data."), "right", False),
        (ONCE, claim("63 % of every step waits for data.", "step 25"), "wrong", True),
        (ONCE, claim("A step waits 300 ms for data."), "vague", False),
        (Case(HEALTHY, Training()), NOTHING, "right", False),
        (Case(HEALTHY, Training()), claim("Copies take 5 % of every step."), "wrong", True),
        (Case(HEALTHY, Training()), claim("No cause stands out.", confidence="cannot_tell"), "withheld", False),
        (Case(UNKNOWN, Training()), NOTHING, "wrong", True),
        (Case(UNKNOWN, Training()), claim("Kernels are missing.", confidence="cannot_tell"), "right", False),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)  # fmt: skip
def test_an_answer_is_scored(case: Case, said: Claim, first: str, is_sure_and_wrong: bool):
    verdict = judge(case, [said])
    assert (verdict.first, verdict.is_sure_and_wrong) == (first, is_sure_and_wrong)


def test_the_first_three_claims_count_and_no_fourth():
    other, right = claim("Copies take 5 % of every step."), claim("Step 25 waits 300 ms for data.")
    assert judge(ONCE, [other, other, right]).is_among_three
    assert not judge(ONCE, [other, other, other, right]).is_among_three


def test_no_answer_is_withheld():
    assert judge(ONCE, []).first == "withheld"
    assert judge(Case(UNKNOWN, Training()), []).first == "right"


def row(title: str, action: str, confidence: str = "high", saving_frac: float | None = None) -> dict[str, object]:
    return {
        "title": title,
        "evidence": "1 ms",
        "action": action,
        "confidence": confidence,
        "filter": None,
        "saving_frac": saving_frac,
    }


def test_claims_come_as_the_summary_prints_them():
    summary = {
        "verdict": row("Copies take 9 %.", "Pin memory.", "medium", 0.09),
        "also": [row("Nothing to fix in loading.", "Nothing."), row("No rank is slower.", "There is nothing to do.")],
    }
    assert claims(json.loads(json.dumps(summary))) == [
        Claim("Copies take 9 %.", "Copies take 9 %. 1 ms Pin memory. ", "medium", 0.09, action="Pin memory.")
    ]


def test_nothing_stands_out_is_what_is_said_if_nothing_else_is():
    summary = {"verdict": row("Nothing stands out.", "Nothing."), "also": []}
    assert [said.is_nothing for said in claims(summary)] == [True]


def test_shares_count_each_case_once():
    verdicts = [
        judge(LATE, [NOTHING]),
        judge(ONCE, [claim("Step 25 waits 300 ms for data.")]),
        judge(Case(HEALTHY, Training()), [NOTHING]),
    ]
    assert shares(verdicts) == {
        "first answer right": 1 / 2,
        "right among three": 1 / 2,
        "sure and wrong": 1 / 3,
        "healthy misjudged": 0,
        "withheld where it must be": 0,
    }


def test_patterns_compile_and_never_match_a_healthy_answer():
    for name, words in CAUSES.items():
        re.compile(words.rest)
        assert not judge(Case(name, Training()), [NOTHING]).is_among_three
