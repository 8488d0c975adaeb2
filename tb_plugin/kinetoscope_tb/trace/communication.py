"""Which rows communicate with other ranks, and by which evidence.

The evidence, the strongest first: a user's pattern, the name, the metadata of a collective, the call that launched it.
Nothing else counts: on a stream of its own, a kernel with an unknown name may as well unpack what arrived.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from ..arrays.gather import NONE, categories_of, enum_of, gather, map_categories
from ..names.communication_patterns import NO_PATTERNS, CommunicationPatterns
from ..names.kernels import communication_rule, is_collective_call, is_communication_range
from ..names.tensor_cores import tensor_cores
from .model import ANSWERS, CALL_RULE, METADATA_RULE, Trace


def with_patterns(trace: Trace, patterns: CommunicationPatterns) -> Trace:
    """The trace with what users' patterns match as communication too."""
    if not patterns:
        return trace
    host = host_with_communication(trace.host_events, patterns)
    device = device_with_communication(trace.device_events, host, trace.launches, patterns)
    return replace(trace, host_events=host, device_events=device)


def host_with_communication(host: pl.DataFrame, patterns: CommunicationPatterns = NO_PATTERNS) -> pl.DataFrame:
    """Add whether a range is a collective or a point-to-point transfer."""
    of_users = patterns.matching_ranges(_names(host))
    communicates = map_categories(host["name"], lambda name: name in of_users or is_communication_range(name))
    return host.with_columns(is_communication=pl.Series(communicates, dtype=pl.Boolean))


def device_with_communication(
    device: pl.DataFrame, host: pl.DataFrame, launches: pl.DataFrame, patterns: CommunicationPatterns = NO_PATTERNS
) -> pl.DataFrame:
    """Add whether and by which rule a row is communication, and whether it uses tensor cores."""
    rule = _rules(device, host, launches, patterns)
    answers = ANSWERS.categories.to_list()
    uses = map_categories(
        device["name"], lambda name: answers.index(tensor_cores(name)), missing=answers.index("unknown")
    )
    communicates = rule.is_not_null()
    uses[communicates.to_numpy()] = answers.index("no")
    return device.with_columns(
        is_communication=communicates,
        communication_rule=rule,
        tensor_cores=pl.Series(uses.astype("u1")).cat.to(ANSWERS),
    )


def _names(frame: pl.DataFrame) -> list[str]:
    names: list[str] = categories_of(frame["name"]).to_list()
    return names


def _rules(
    device: pl.DataFrame, host: pl.DataFrame, launches: pl.DataFrame, patterns: CommunicationPatterns
) -> pl.Series:
    """The rule by which each row is communication, or null: its name, its metadata, or the call that launched it."""
    names = _names(device)
    rules = {name: rule for name in names if (rule := communication_rule(name))} | patterns.kernel_rules(names)
    labels = list(dict.fromkeys([*rules.values(), METADATA_RULE, CALL_RULE]))
    codes = map_categories(
        device["name"], lambda name: labels.index(rules[name]) if name in rules else NONE, missing=NONE
    ).astype(np.int16)
    is_call = host["is_communication"].to_numpy() | map_categories(host["name"], is_collective_call).astype(bool)
    is_launched_by_call = gather(
        is_call, gather(launches["host"].to_numpy(), device["launch"].to_numpy()), missing=False
    )
    is_launched_by_call &= (device["kind"] == "kernel").to_numpy()
    has_metadata = device["collective"].is_not_null().to_numpy()
    codes[(codes == NONE) & has_metadata] = labels.index(METADATA_RULE)
    codes[(codes == NONE) & is_launched_by_call] = labels.index(CALL_RULE)
    return enum_of(codes, labels)
