"""A run that costs too many CPU seconds fails, in one process and in several, and says what took most."""

import pytest

pytest_plugins = ["pytester"]

CONFTEST = """
from support.cpu_budget import CpuBudget

def pytest_configure(config):
    config.pluginmanager.register(CpuBudget({seconds}))
"""
BUSY = """
import time

def test_busy():
    until = time.process_time() + 0.2
    while time.process_time() < until:
        pass
"""


@pytest.fixture
def run(pytester):
    """Run two files of tests, one of them busy, with a budget."""

    def run(seconds, *arguments):
        pytester.makeconftest(CONFTEST.format(seconds=seconds))
        pytester.makepyfile(test_busy=BUSY, test_idle="def test_idle(): pass")
        return pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:playwright", *arguments)

    return run


def test_a_run_within_its_budget_passes(run):
    result = run(100_000)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*CPU seconds of 100000"])


@pytest.mark.parametrize("arguments", [(), pytest.param(("-n", "2"), marks=pytest.mark.slow)])
def test_a_run_above_its_budget_fails_and_names_the_costliest_file_first(run, arguments):
    result = run(0, *arguments)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*CPU seconds of 0 are too many; the most of them:", "*test_busy.py"])
    result.assert_outcomes(passed=2)
