"""How much of the process's work was done by threads that weren't recorded.

torch.profiler records the thread that started it and those of autograd. Our recorder writes how much processor time
each thread used in the window (`kinetoscope.cpu`). Threads of libraries, such as those that share an operator's loop,
belong to operators of recorded threads; so only Python's threads count, and those that ended in the window.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..trace import Diagnostic, Trace
from ..trace.meta import positive_int

_LEAST_NS, _LEAST_SHARE = 20_000_000, 0.1
"""What a progress bar or a logger uses is less; schedulers count a running thread's time with an error of some ms."""
_OURS = "kinetoscope-"
_MOST_NAMED, _LONGEST_NAME = 3, 60


def diagnose(trace: Trace) -> Iterator[Diagnostic]:
    """Processor time of threads without operators in the trace."""
    cpu = trace.meta.producer.get("cpu")
    if not isinstance(cpu, Mapping) or trace.meta.has_option("all_threads"):
        return
    process_ns, alive_ns = positive_int(cpu.get("process_ns")), positive_int(cpu.get("threads_ns"))
    rows = [row for row in _rows(cpu.get("threads")) if not row[2].startswith(_OURS)]
    with_rows = trace.threads[trace.host_events["thread"].unique()]["tid"].to_list()
    used_ns = sum(ns for tid, ns, _ in rows if str(tid) in with_rows)
    without_rows = [(name, ns) for tid, ns, name in rows if name and str(tid) not in with_rows]
    if process_ns > alive_ns + _LEAST_NS:
        without_rows.append(("threads that ended", process_ns - alive_ns))
    hidden_ns = sum(ns for _, ns in without_rows)
    if hidden_ns >= max(_LEAST_NS, _LEAST_SHARE * process_ns):
        without_rows.sort(key=lambda thread: -thread[1])
        names = ", ".join(name[:_LONGEST_NAME] for name, _ in without_rows[:_MOST_NAMED])
        more = f" and {len(without_rows) - _MOST_NAMED} more" if without_rows[_MOST_NAMED:] else ""
        yield Diagnostic(
            "threads_not_recorded",
            len(without_rows),
            f"The recorded threads used {_s(used_ns)} of the process's {_s(process_ns)} of CPU time in this window; "
            f"{_s(hidden_ns)} are of threads that weren't recorded ({names}{more}), whose operators are missing: "
            "Tracer(all_threads=True) records them (torch 2.7).",
        )


def _rows(threads: Any) -> Iterator[tuple[int, int, str]]:
    """Id, time and name of each thread; the name is empty for one that isn't Python's."""
    for row in threads if isinstance(threads, list) else ():
        if isinstance(row, list) and len(row) == 3 and isinstance(row[0], int) and isinstance(row[2], str | None):
            yield row[0], positive_int(row[1]), row[2] or ""


def _s(ns: int) -> str:
    return f"{ns / 1e9:.3g} s"
