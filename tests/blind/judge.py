"""Scores what `kinetoscope summary --format json` says first, against what is true by construction.

The answer that is judged: the verdict, and what else is claimed. Claims whose action is that there is nothing to do are no claims, unless nothing else is said.
"""

from __future__ import annotations

import io
import json
import re
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kinetoscope_tb.cli import main

from .all_kinds import recordable
from .cases import HEALTHY, UNKNOWN, Known, drawn
from .words import CAUSES

SURE = ("high", "medium")
NOTHING = re.compile(r"(there is )?nothing( to do)?\.?$", re.IGNORECASE)


@dataclass(frozen=True)
class Claim:
    """A row of advice."""

    title: str
    rest: str = ""
    confidence: str = "high"
    saving_frac: float | None = None
    is_nothing: bool = False
    action: str = ""


@dataclass(frozen=True)
class Verdict:
    """How an answer did. `first` is right, vague (the cause without the culprit), wrong, silent or withheld."""

    case: Known
    first: str
    is_among_three: bool
    is_sure_and_wrong: bool
    said: str
    saving_error: float | None = None


def answer(path: Path) -> list[Claim]:
    """What the command says about a recording, claims first."""
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(io.StringIO()), suppress(SystemExit):
        main(["summary", str(path), "--format", "json"])
    text = output.getvalue()
    return claims(json.loads(text)) if text.startswith("{") else []


def claims(summary: dict[str, Any]) -> list[Claim]:
    """The claims of an answer, and only if there are none, that nothing stands out."""
    found = [_claim(row) for row in (summary["verdict"], *summary["also"]) if row]
    return [claim for claim in found if not claim.is_nothing] or found


def _claim(row: dict[str, Any]) -> Claim:
    rest = " ".join(str(row.get(column) or "") for column in ("title", "evidence", "action", "filter"))
    is_nothing = bool(NOTHING.match(row.get("action") or "")) and row["confidence"] != "cannot_tell"
    return Claim(
        row["title"], rest, row["confidence"], row.get("saving_frac"), is_nothing, str(row.get("action") or "")
    )


def _has(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None


def names_cause(case: Known, claim: Claim) -> bool:
    """Whether a claim says the cause, be it without its culprit."""
    words = CAUSES[case.cause]
    is_wrong = claim.is_nothing or any(_has(pattern, claim.title) for pattern in case.never)
    is_wrong |= any(_has(pattern, claim.action) for pattern in case.wrong_remedies)
    return not is_wrong and _has(words.title, claim.title) and _has(words.rest, claim.rest)


def names_culprit(case: Known, claim: Claim) -> bool:
    """Whether a claim says who it is."""
    return all(_has(pattern, claim.title) for pattern in case.title) and all(
        _has(pattern, claim.rest) for pattern in case.rest
    )


def is_right(case: Known, claim: Claim) -> bool:
    """Whether a claim says the cause and its culprit."""
    return claim.confidence != "cannot_tell" and names_cause(case, claim) and names_culprit(case, claim)


def judge(case: Known, said: Sequence[Claim]) -> Verdict:
    """Score an answer."""
    first = said[0] if said else Claim("", confidence="cannot_tell")
    outcome = _outcome(case, first)
    is_sure = first.confidence in SURE and outcome in ("wrong", "silent")
    among_three = outcome == "right" or (case.cause in CAUSES and any(is_right(case, claim) for claim in said[:3]))
    error = (
        abs(first.saving_frac - case.saving_frac)
        if outcome == "right" and first.saving_frac is not None and case.saving_frac
        else None
    )
    return Verdict(case, outcome, among_three, is_sure, f"{first.title} ({first.confidence})", error)


def _outcome(case: Known, first: Claim) -> str:
    if case.cause == HEALTHY:
        return "right" if first.is_nothing else "withheld" if first.confidence == "cannot_tell" else "wrong"
    if first.confidence == "cannot_tell":
        return "right" if case.cause == UNKNOWN else "withheld"
    if case.cause == UNKNOWN:
        return "wrong"
    if first.is_nothing:
        return "silent"
    if is_right(case, first):
        return "right"
    return "vague" if names_cause(case, first) else "wrong"


def run(
    seeds: Iterable[int], kinds: Iterable[str] = (), keep: Path | None = None, lacks: Sequence[str] = ()
) -> Iterator[Verdict]:
    """Record and judge the cases that seeds draw, kind by kind. `keep`: where recordings stay; `lacks`: of each of them."""
    seeds = list(seeds)
    for name in list(kinds) or recordable():
        for seed in seeds:
            case = drawn(name, seed)
            with tempfile.TemporaryDirectory() as folder:
                path = case.record((keep or Path(folder)) / f"{name}_{seed}", lacks)
                yield judge(case, answer(path))


def shares(verdicts: Sequence[Verdict]) -> dict[str, float]:
    """The shares that say how good the answers are."""
    caused = [verdict for verdict in verdicts if verdict.case.cause in CAUSES]
    healthy = [verdict for verdict in verdicts if verdict.case.cause == HEALTHY]
    unknown = [verdict for verdict in verdicts if verdict.case.cause == UNKNOWN]
    return {
        "first answer right": _share(caused, lambda verdict: verdict.first == "right"),
        "right among three": _share(caused, lambda verdict: verdict.is_among_three),
        "sure and wrong": _share(verdicts, lambda verdict: verdict.is_sure_and_wrong),
        "healthy misjudged": _share(healthy, lambda verdict: verdict.first == "wrong"),
        "withheld where it must be": _share(unknown, lambda verdict: verdict.first == "right"),
    }


def _share(verdicts: Sequence[Verdict], test: Any) -> float:
    return sum(map(test, verdicts)) / max(1, len(verdicts))


def table(verdicts: Sequence[Verdict]) -> list[str]:
    """Lines: how each kind did, and what is said where it isn't right."""
    lines = [f"{'kind':<34} {'first':>7} {'three':>7} {'sure, wrong':>12} {'saving off':>11}  outcomes"]
    for name in dict.fromkeys(verdict.case.kind for verdict in verdicts):
        own = [verdict for verdict in verdicts if verdict.case.kind == name]
        right, three, sure = (
            sum(test(verdict) for verdict in own)
            for test in (lambda v: v.first == "right", lambda v: v.is_among_three, lambda v: v.is_sure_and_wrong)
        )
        errors = [verdict.saving_error for verdict in own if verdict.saving_error is not None]
        off = f"{statistics.median(errors):.1%}" if errors else ""
        outcomes = ", ".join(
            f"{count} {outcome}" for outcome, count in Counter(verdict.first for verdict in own).most_common()
        )
        lines.append(f"{name:<34} {right:>3}/{len(own):<3} {three:>3}/{len(own):<3} {sure:>12} {off:>11}  {outcomes}")
        lines += [
            f"    {verdict.first}: {verdict.case.truth} → {verdict.said}" for verdict in own if verdict.first != "right"
        ][:2]
    lines += [f"{name:<34} {share:.1%}" for name, share in shares(verdicts).items()]
    return lines
