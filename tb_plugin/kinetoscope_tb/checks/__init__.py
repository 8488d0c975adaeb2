"""What of a recording changes the meaning of its numbers: each rule is a count with its consequence in words.

device        device rows and the calls that launched them
clocks        whether times can be trusted
steps         steps that were cut off, missing or idle
autograd      sequence numbers, which tie backward to forward
syncs         waits, and the events that they wait for
collectives   what must be known of each
names         names that the profiler lost
distributed   ranks as one file knows them
recording     the profiler's own cost, and options that were off

The rules of torch 2.13's own validator (torch/profiler/_trace_validator.py) are among them.
"""

from __future__ import annotations

from ..trace import Finding, Trace
from . import autograd, clocks, collectives, device, distributed, names, recording, steps, syncs

__all__ = ["LEVELS", "findings"]

LEVELS = ("loss", "warning", "note")
_RULES = (device, clocks, steps, autograd, syncs, collectives, names, distributed, recording)


def findings(trace: Trace) -> list[Finding]:
    """What was repaired or lost while reading, and what the rules find; losses first, then warnings, then notes."""
    found = [*trace.findings, *(finding for rules in _RULES for finding in rules.findings(trace))]
    return sorted(found, key=lambda finding: LEVELS.index(finding.level))
