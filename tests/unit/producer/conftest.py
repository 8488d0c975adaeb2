import logging

import pytest


@pytest.fixture(autouse=True)
def scratch(tmp_path_factory, monkeypatch):
    """Where recordings have their raw files: a folder of the test's own."""
    folder = tmp_path_factory.mktemp("scratch")
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.fixture
def log(caplog):
    caplog.set_level(logging.INFO, "kinetoscope")
    return lambda: [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
