"""The one way in which functions are compiled: by numba, to run without Python's global lock.

Compiled code is cached beside the sources or in the user's cache folder, wherever numba may write, else among the
temporary files. Where nothing can be written at all, each process compiles anew.

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

_lock = threading.Lock()  # the folder is a setting of numba, for a moment
_reported: set[str] = set()


def compiled(function: Function, **options: Any) -> Function:
    """The function, compiled at its first call; `options` are numba's, in addition to the usual ones."""
    options = {"nogil": True, **options}
    with _lock:
        try:
            return _compile(function, cache=True, **options)
        except RuntimeError:  # numba may write nowhere
            pass
        return _compile_elsewhere(function, options)


def _compile_elsewhere(function: Function, options: dict[str, Any]) -> Function:
    """The function, cached among the temporary files if that is possible."""
    settings: Any = config
    folder, before = temporary_folder(), settings.CACHE_DIR
    if folder is not None:
        settings.CACHE_DIR = str(folder / "compiled")
        try:
            made = _compile(function, cache=True, **options)
        except RuntimeError:
            pass
        else:
            _report_once(f"is kept in {folder}")
            return made
        finally:
            settings.CACHE_DIR = before
    _report_once("isn't kept, so each start compiles anew, for a minute")
    return _compile(function, **options)


def _compile(function: Function, **options: Any) -> Function:
    made: Function = njit(**options)(function)
    return made


def _report_once(where: str) -> None:
    if not _reported:
        _reported.add(where)
        logger.warning(
            "Neither the installation nor the user's cache folder can be written to, so compiled code %s. "
            "NUMBA_CACHE_DIR names another folder.",
            where,
        )
