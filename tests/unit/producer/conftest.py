import logging

import pytest

from kinetoscope import child_process
from kinetoscope.output import writer_client
from support.forks import forks  # noqa: F401  a fixture
from support.waiting import LIMIT_S


@pytest.fixture(autouse=True)
def scratch(tmp_path_factory, monkeypatch):
    """Where recordings have their raw files: a folder of the test's own."""
    folder = tmp_path_factory.mktemp("scratch")
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.fixture(autouse=True)
def quiet_wait(monkeypatch):
    """A busy machine writes traces slowly, which is no news."""
    monkeypatch.setattr(writer_client, "_QUIET_S", 60.0)


@pytest.fixture(autouse=True)
def no_process_left():
    """Waits for the processes that a test's recordings left alone: the next test has the machine for itself."""
    yield
    for process in child_process.detached_processes:
        process.wait(LIMIT_S)


@pytest.fixture
def log(caplog):
    caplog.set_level(logging.INFO, "kinetoscope")
    return lambda: [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch):
    """Each test is a process of its own for what is said once."""
    monkeypatch.setattr("kinetoscope.output.next_command._pids", set())
