"""What is wrong with a recording, and with a run of many.

diagnose(trace) is what reading repaired or lost, with what the rules find; each rule is a count with its consequence:

device        device rows and the calls that launched them
overlaps      kernels of one stream that overlap
clocks        whether times can be trusted
steps         steps that were cut off, missing or idle
autograd      sequence numbers, which tie backward to forward
syncs         waits, and the events that they wait for
collectives   what must be known of each
names         names that the profiler lost
distributed   ranks as one file knows them
recording     the profiler's own cost, and options that were off

run           the same of a run of many ranks
verification  whether the traces of a run are whole (`kinetoscope check`)

The rules of torch 2.13's own validator (torch/profiler/_trace_validator.py) are among them. What the recorder itself
reports of missing ranks is `discovery/manifest_notes.py`, since the listing needs it.
"""

from __future__ import annotations

from ..trace import Diagnostic, Trace
from . import autograd, clocks, collectives, device, distributed, names, overlaps, recording, steps, syncs

__all__ = ["LEVELS", "diagnose"]

LEVELS = ("loss", "warning", "note")
_RULES = (device, overlaps, clocks, steps, autograd, syncs, collectives, names, distributed, recording)


def diagnose(trace: Trace) -> list[Diagnostic]:
    """What was repaired or lost while reading, and what the rules find; losses first, then warnings, then notes."""
    found = [*trace.diagnostics, *(diagnostic for rules in _RULES for diagnostic in rules.diagnose(trace))]
    return sorted(found, key=lambda diagnostic: LEVELS.index(diagnostic.level))
