"""What a run of tests may cost, in CPU seconds of all its processes, which other work changes less than its duration."""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

OUTPUT = "cpu_seconds"
MOST_SHOWN = 10


def cpu_seconds() -> float:
    """Of this process and of those that it started and that have ended."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


class CpuBudget:
    """A plugin of pytest, in the main process and in each worker of xdist: the run fails if it costs more.

    Args:
        seconds: How much all processes may take together.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.total = 0.0
        self.by_file: Counter[str] = Counter()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        """Counts what importing a file costs."""
        with self._counted(collector.nodeid if isinstance(collector, pytest.Module) else ""):
            yield

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Counts what a test costs, with its fixtures."""
        with self._counted(item.nodeid.partition("::")[0]):
            yield

    @contextmanager
    def _counted(self, file: str) -> Iterator[None]:
        before = cpu_seconds()
        yield
        if file:
            self.by_file[file] += cpu_seconds() - before

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Adds what a worker counted; one that crashed has said nothing, and failed the run."""
        total, by_file = getattr(node, "workeroutput", {}).get(OUTPUT, (0.0, {}))
        self.total += total
        self.by_file.update(by_file)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Hands a worker's sum to the main process, which judges the sum of all."""
        self.total += cpu_seconds()
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[OUTPUT] = (self.total, dict(self.by_file))
        elif self.total > self.seconds:
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Says the sum, and what took most if it is too much."""
        is_over = self.total > self.seconds
        words = f"{self.total:.0f} CPU seconds of {self.seconds:.0f}"
        terminalreporter.write_line(words + (" are too many; the most of them:" if is_over else ""), red=is_over)
        for file, seconds in self.by_file.most_common(MOST_SHOWN if is_over else 0):
            terminalreporter.write_line(f"{seconds:8.1f}  {file}")
