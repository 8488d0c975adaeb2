"""An optimizer whose update runs on the host, while devices wait for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import polars as pl

from ..arrays.gather import NONE, gather, map_categories
from ..arrays.intervals import exclusive_lengths
from ..arrays.nesting import nearest
from ..measures.time.breakdown import intervals_of
from ..names import text
from .facts import Facts, is_optimizer
from .model import Advice


def host_optimizer(facts: Facts) -> Iterator[Advice]:
    """An optimizer's step launches no kernel, though a device computes: it updates parameters on the host.

    Each class is judged by itself: a program can have several optimizers.
    """
    if not facts.has_device:
        return
    host, device = facts.trace.host_events, facts.trace.device_events
    ranges = map_categories(host["name"], is_optimizer)
    kernels = (device["kind"] == "kernel").to_numpy()
    of_row = gather(nearest(ranges, host["parent"].to_numpy()), device["op"].to_numpy())
    on_device = host["name"].gather(np.unique(of_row[kernels & (of_row != NONE)]))
    ranges &= ~host["name"].is_in(on_device.implode()).fill_null(value=False).to_numpy()
    spans = intervals_of(host, ranges)
    groups = [intervals_of(device, kernels), spans]
    lengths = np.asarray(exclusive_lengths(groups, facts.windows.start, facts.windows.end)[1])
    if not facts.is_worth(lengths):
        return
    inside = gather(ranges, of_row, missing=False)
    name = str(host["name"].filter(pl.Series(ranges))[0]).removeprefix("Optimizer.step#").split(".")[0]
    copy_ns = int(device["dur_ns"].filter(pl.Series(inside)).sum())
    copies = f", {text.time(copy_ns / facts.count)} of it beside copies of gradients or parameters" if copy_ns else ""
    candidate = facts.host_candidate("the optimizer on the host", spans)
    yield Advice(
        "host_optimizer",
        f"The optimizer ({name}) runs on the host for {facts.of_steps(lengths)}.",
        f"`Optimizer.step` launches no kernel: for {facts.part_of(lengths)} the host updates parameters and "
        f"{facts.device} compute{'' if facts.waits == 'wait' else 's'} nothing{facts.recurs(lengths)}{copies}.",
        "Update parameters on the device if its memory suffices (with sharded or 8-bit states); else offload fewer of "
        "them, and let the update overlap the backward pass.",
        None,
        "high",
        "gaps",
        "",
        facts.mean(lengths),
        replace(candidate, rows=np.flatnonzero(inside)),
    )
