"""Compiling functions with numba, to run without the GIL.

Compiled code is cached next to the sources or in the user's cache folder, wherever numba can write, else in the
temporary folder. If nothing is writable, each process compiles again.

A compiled function is annotated with `Array`, `Arrays`, `Bool` and int: numba looks at the values, mypy at the callers.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import config, njit
from numpy.typing import NDArray

from .private_folders import temporary_folder

Array = NDArray[Any]
Arrays = tuple[Array, ...]
Bool = bool | np.bool_

Function = TypeVar("Function", bound=Callable[..., Any])

logger = logging.getLogger(__name__)

_lock = threading.Lock()  # the cache folder is a global setting of numba
_reported: set[str] = set()


def compiled(function: Function, **options: Any) -> Function:
    """The function, compiled at its first call; `options` are passed to numba."""
    options = {"nogil": True, **options}
    with _lock:
        try:
            return _compile(function, cache=True, **options)
        except RuntimeError:  # numba can write nowhere
            pass
        return _compile_elsewhere(function, options)


def _compile_elsewhere(function: Function, options: dict[str, Any]) -> Function:
    """The function, cached in the temporary folder if possible."""
    settings: Any = config
    folder, before = temporary_folder(), settings.CACHE_DIR
    if folder is not None:
        settings.CACHE_DIR = str(folder / "compiled")
        try:
            dispatcher = _compile(function, cache=True, **options)
        except RuntimeError:
            pass
        else:
            _report_once(f"is cached in {folder}")
            return dispatcher
        finally:
            settings.CACHE_DIR = before
    _report_once("isn't cached, so each start compiles again, for a minute")
    return _compile(function, **options)


def _compile(function: Function, **options: Any) -> Function:
    dispatcher: Function = njit(**options)(function)
    return dispatcher


def _report_once(where: str) -> None:
    if not _reported:
        _reported.add(where)
        logger.warning(
            "Neither the installation nor the user's cache folder can be written to, so compiled code %s. "
            "NUMBA_CACHE_DIR names another folder.",
            where,
        )
