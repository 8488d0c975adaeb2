"""Slow, obvious re-implementations of the trees: of modules, of Python calls, and of call stacks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from kinetoscope_tb.trace import Trace
from support import oracle


@dataclass(eq=False)
class Call:
    """One range with what lies in it."""

    kind: str  # python, module or op
    name: str
    thread: int
    start: int
    end: int
    row: int
    around: Call | None = None
    inside: list[Call] = field(default_factory=list)

    @property
    def self_ns(self) -> int:
        """Instants at which nothing inside is open."""
        own = set(range(self.start, self.end))
        for call in self.inside:
            own -= set(range(call.start, call.end))
        return len(own)

    def chain(self) -> list[Call]:
        """The call and all around it, from the outermost."""
        return [*(self.around.chain() if self.around else []), self]


def calls_of(trace: Trace, *, modules_only: bool) -> list[Call]:
    """The operators and the Python calls, or the modules alone, in each other."""
    found = []
    for row, call in enumerate(trace.python_calls.iter_rows(named=True)):
        kind = "python" if call["module_id"] < 0 else "module"
        if kind == "module" or not modules_only:
            found.append(_call(kind, call, row))
    for row, op in enumerate(trace.host_events.iter_rows(named=True)):
        if op["kind"] == "operator":
            found.append(_call("op", op, row))
    for thread in {call.thread for call in found}:
        there = [call for call in found if call.thread == thread]
        there.sort(key=lambda call: (call.start, -call.end, call.kind == "op", call.row))
        for call, parent in zip(there, oracle.parents([(c.start, c.end) for c in there]), strict=True):
            if parent >= 0:
                call.around = there[parent]
                there[parent].inside.append(call)
    return found


def _call(kind: str, row: dict[str, Any], number: int) -> Call:
    return Call(kind, row["name"], row["thread"], row["start_ns"], row["start_ns"] + row["dur_ns"], number)


def innermost(calls: list[Call], thread: int, at: int) -> Call | None:
    """The call that began last of those open on a thread at a time; of those that began together the shortest."""
    there = [c for c in calls if c.thread == thread and c.start <= at < c.end]
    order = sorted(there, key=lambda c: (c.start, -c.end, c.kind == "op", c.row))
    return order[-1] if order else None


def launching(trace: Trace, calls: list[Call], device: dict[str, Any]) -> Call | None:
    """The innermost call around a device row's launch, or else its operator."""
    if device["launch"] >= 0:
        launch = trace.launches.row(device["launch"], named=True)
        found = innermost(calls, launch["thread"], launch["start_ns"])
        if found:
            return found
    return next((c for c in calls if c.kind == "op" and c.row == device["op"]), None)


def forward_of(trace: Trace, calls: list[Call]) -> dict[Call, Call]:
    """The forward operator of each backward one, by number alone; all forward operators are on one thread."""
    args = trace.host_events.select("sequence", "fwd_thread").rows()
    ops = sorted((c for c in calls if c.kind == "op"), key=lambda c: c.row)
    made = {args[c.row][0]: c for c in ops if args[c.row][0] >= 0 and args[c.row][1] <= 0}
    return {
        c: made[args[c.row][0]]
        for c in ops
        if args[c.row][1] > 0 and args[c.row][0] in made and made[args[c.row][0]].start <= c.start
    }


def owner(call: Call | None, forward: dict[Call, Call]) -> tuple[tuple[str, ...] | None, bool]:
    """(Path of the module that a call's work belongs to, whether as backward work)."""
    is_backward = False
    for _ in range(10):
        while call and call.kind != "module" and call not in forward:
            call = call.around
        if call is None:
            return None, False
        if call.kind == "module":
            return tuple(c.name.removeprefix("nn.Module: ") for c in call.chain() if c.kind == "module"), is_backward
        call, is_backward = forward[call], True
    return None, False


def module_sums(trace: Trace) -> tuple[Counter[Any], Counter[Any]]:
    """Host and device self time, by (path, whether backward); None is no module, and "unattributed" no call at all."""
    calls = calls_of(trace, modules_only=True)
    forward = forward_of(trace, calls)
    host: Counter[Any] = Counter()
    device: Counter[Any] = Counter()
    for call in calls:
        host[owner(call, forward)] += call.self_ns
    for row in trace.device_events.iter_rows(named=True):
        call = launching(trace, calls, row)
        device[owner(call, forward) if call else "unattributed"] += row["dur_ns"]
    return host, device


def python_sums(trace: Trace) -> dict[tuple[str, ...], list[int]]:
    """Calls, host and device self time by path, the thread first; operators where Python called them."""
    threads = set(trace.python_calls["thread"])
    calls = [c for c in calls_of(trace, modules_only=False) if c.thread in threads]
    sums: dict[tuple[str, ...], list[int]] = {}
    for call in calls:
        place = sums.setdefault(_python_path(call), [0, 0, 0])
        place[0] += not _is_inner(call)
        place[1] += call.self_ns
    for row in trace.device_events.iter_rows(named=True):
        call = launching(trace, calls, row)
        if call:
            sums[_python_path(call)][2] += row["dur_ns"]
    return sums


def _is_inner(call: Call) -> bool:
    return call.kind == "op" and call.around is not None and call.around.kind == "op"


def _python_path(call: Call) -> tuple[str, ...]:
    return (str(call.thread), *(c.name for c in call.chain() if not _is_inner(c)))


def stacks(trace: Trace) -> Counter[tuple[str, str | None]]:
    """How often each operator was called with each stack of Python calls around it, where nothing ran backward."""
    calls = calls_of(trace, modules_only=False)
    python = [c for c in calls if c.kind != "op"]
    repeated = trace.host_events["is_repeat"]
    found: Counter[tuple[str, str | None]] = Counter()
    for call in calls:
        if call.kind == "op" and not repeated[call.row]:
            around = innermost(python, call.thread, call.start)
            frames = [c.name for c in reversed(around.chain()) if c.kind != "op"] if around else []
            found[call.name, "\n".join(frames) or None] += 1
    return found
