"""The wheel that the tests install."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from newcomer.installing import build_wheel, environment

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """The programs of an environment with the wheel and the newest of what it needs."""
    return environment(tmp_path_factory.mktemp("environment"), wheel, sees_ours=True)
