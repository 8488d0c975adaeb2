import pytest


@pytest.fixture(autouse=True)
def scratch(tmp_path_factory, monkeypatch):
    """Where recordings have their raw files: a folder of the test's own."""
    folder = tmp_path_factory.mktemp("scratch")
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder
