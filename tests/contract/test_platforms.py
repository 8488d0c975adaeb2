"""The compiled functions build for every platform that wheels are made for."""

import pytest

from support.native_build import native_build

BUILD = native_build()


@pytest.mark.parametrize("platform", BUILD.TARGETS)
def test_the_library_links(platform, tmp_path, monkeypatch):
    monkeypatch.delenv("CC", raising=False)
    library = tmp_path / BUILD.library_name(BUILD.target_of(platform))
    BUILD.build(library, platform)
    assert BUILD.is_built(library)
