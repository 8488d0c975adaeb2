"""Packages that are used where they are installed, and that nothing needs."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def optional_package(name: str, requirement: str) -> Any:
    """Import a package, or a module of one, when it is first used.

    Args:
        name: What a program imports.
        requirement: What pip installs.

    Raises:
        ImportError: It isn't installed, or is broken; the message says what to install.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"{name} can't be imported ({error}). Install it: pip install {requirement}") from error
