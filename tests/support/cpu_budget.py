"""What a run of tests may cost, in CPU seconds of all its processes.

Other work on the machine changes them, and so does the hour: the same tests take 94 or 130. So between the tests each
process repeats a piece of work, and the seconds of a run count by what that took, as those of a certain machine.
"""

from __future__ import annotations

import resource
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

OUTPUT = "cpu_seconds"
MOST_SHOWN = 10
REFERENCE_S = 0.0100  # what the reference takes on the machine whose seconds count
TESTS_PER_REFERENCE = 40


def cpu_seconds() -> float:
    """Of this process and of those that it started and that have ended."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def reference_seconds() -> float:
    """The CPU seconds of the reference: Python and small arrays, as most tests are."""
    before = time.process_time()
    values = np.arange(1_000)
    texts: dict[str, int] = {}
    for i in range(10_000):
        texts[f"{i % 100} ns"] = texts.get(f"{i % 99} ns", 0) + len(str(i))
        if i % 10 == 0:
            texts[""] = int(values[values > i].sum())
    return time.process_time() - before


class CpuBudget:
    """A plugin of pytest, in the main process and in each worker of xdist: the run fails if it costs more.

    Args:
        seconds: How much all processes may take together, on the machine whose seconds count.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.total = 0.0
        self.by_file: Counter[str] = Counter()
        self.tests = 0
        self.references: list[float] = []

    @property
    def counted(self) -> float:
        """The seconds of the machine whose seconds count."""
        took = sum(self.references)
        return self.total * len(self.references) * REFERENCE_S / took if took else self.total

    @pytest.hookimpl(hookwrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        """Counts what importing a file costs."""
        with self._count(collector.nodeid if isinstance(collector, pytest.Module) else ""):
            yield

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Counts what a test costs, with its fixtures."""
        if self.tests % TESTS_PER_REFERENCE == 0:
            self.references.append(reference_seconds())
        self.tests += 1
        with self._count(item.nodeid.partition("::")[0]):
            yield

    @contextmanager
    def _count(self, file: str) -> Iterator[None]:
        before = cpu_seconds()
        yield
        if file:
            self.by_file[file] += cpu_seconds() - before

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Adds what a worker counted; one that crashed has said nothing, and failed the run."""
        total, by_file, references = getattr(node, "workeroutput", {}).get(OUTPUT, (0.0, {}, []))
        self.total += total
        self.by_file.update(by_file)
        self.references += references

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Hands a worker's sum to the main process, which judges the sum of all."""
        self.total += cpu_seconds()
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[OUTPUT] = (self.total, dict(self.by_file), self.references)
        elif self.counted > self.seconds:
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Says the sum, and what took most if it is too much."""
        is_over = self.counted > self.seconds
        words = f"{self.total:.0f} CPU seconds, which count as {self.counted:.0f} of {self.seconds:.0f}"
        terminalreporter.write_line(words + (" are too many; the most of them:" if is_over else ""), red=is_over)
        for file, seconds in self.by_file.most_common(MOST_SHOWN if is_over else 0):
            terminalreporter.write_line(f"{seconds:8.1f}  {file}")
