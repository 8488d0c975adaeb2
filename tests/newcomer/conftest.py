"""The wheels that the tests install."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from newcomer.installing import build_wheels, environment

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The viewer's and the recorder's."""
    return build_wheels(tmp_path_factory.mktemp("wheels"))


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory, wheels: list[Path]) -> Path:
    """The programs of an environment with the wheels and the newest of what it needs."""
    return environment(tmp_path_factory.mktemp("environment"), wheels, sees_ours=True)
