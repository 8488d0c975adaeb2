"""What peers say of the same recordings, as our rules.

torch-tb-profiler gives recommendations. HTA has tables and no rules, so it gives no verdict on anything.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import threading
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planted.judge import Verdict

SCRIPT = Path(__file__).parents[1] / "bench" / "recommendations.py"
MOST_S = 20  # for a trace: rows that overlap a lot take it minutes
SENTENCES = {
    "DataLoader": {"data_loading", "worker_start"},
    "Automatic Mixed Precision": {"mixed_precision"},
    "low utilization": {"host_bound", "launch_bound", "repeated_gap", "small_kernels", "synchronizing"},
    "low GPU utilization": {"host_bound", "launch_bound", "repeated_gap", "small_kernels", "synchronizing"},
    "communication": {"communication", "gloo"},
    "DistributedDataParallel": {"data_parallel"},
}
"""Words of a recommendation → rules that say the same, read generously."""


@functools.cache
def _process(python: str) -> subprocess.Popen[str]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.Popen(
        [python, str(SCRIPT)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )


def recommendations(python: str, path: Path) -> list[str]:
    """torch-tb-profiler's sentences about a trace, from its own environment."""
    process = _process(python)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{path}\n")
    process.stdin.flush()
    limit = threading.Timer(MOST_S, process.kill)
    limit.start()
    for line in process.stdout:
        if line.startswith("["):  # it also logs
            limit.cancel()
            return list(json.loads(line))
    limit.cancel()
    _process.cache_clear()
    return [f"error: stopped after {MOST_S} s"]


def rules_of(sentence: str) -> set[str]:
    """Rules that say the same as a sentence."""
    return next((rules for words, rules in SENTENCES.items() if words in sentence), set())


def classify(sentences: list[str], accepted: Iterable[str], *, must_abstain: bool) -> str:
    """What the recommendations amount to: no recommendation is "nothing to fix"."""
    rule_sets = [rules_of(s) for s in sentences if not s.startswith("error")] or [{"nothing_to_fix"}]
    if any(s.startswith("error") for s in sentences):
        return "fails"
    if must_abstain:
        return "wrong"
    right = [bool(rules & set(accepted)) for rules in rule_sets]
    return "right" if right[0] else "among three" if any(right[1:3]) else "wrong"


def table(verdicts: list[Verdict]) -> Iterable[str]:
    """How the peers do."""
    judged = [v for v in verdicts if v.peer]
    if not judged:
        return
    counts = Counter(v.peer for v in judged)
    yield f"torch-tb-profiler, of {len(judged)} traces: " + ", ".join(f"{n} {what}" for what, n in counts.most_common())
    yield "    wrong about: " + ", ".join(
        f"{cause} {n}" for cause, n in Counter(v.cause for v in judged if v.peer == "wrong").most_common()
    )
    yield "HolisticTraceAnalysis has no rules: no verdict on anything"
    yield ""
