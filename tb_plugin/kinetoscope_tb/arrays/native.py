"""Compiled functions on arrays, which run without the GIL: the C files in tb_plugin/native, as one shared library.

A wheel has the library for its platform; an editable installation builds it. It says itself which functions it has:
`IN(int64_t, start)` is an array that is read, and is converted if it has another type; `OUT(…)` one that is written.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Arrays = tuple[Array, ...]

LIBRARY = "KINETOSCOPE_LIBRARY"
"""An environment variable that names another library, such as one that checks each access to an array."""

SEED = int.from_bytes(os.urandom(8), "little") >> 1 | 1 << 62 | 1
"""Of hash tables, which take it as an argument. No file knows it, so its keys can't be made to collide."""

_SUFFIX = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")
_ARGUMENT = re.compile(r"(IN|OUT)\((\w+?)(?:_t)?, (\w+)\)|int64_t (\w+)")
_ARRAY, _INTEGER = (ctypes.c_void_p, ctypes.c_int64), (ctypes.c_int64,)
_WHOLE_PROTOTYPE = re.compile(r"(\w+)\((.*)\)")

_HOW_TO_BUILD = (
    "Install kinetoscope again with pip; in a copy of its repository run `make check`, or "
    "`python tb_plugin/native/build.py` where ziglang is installed."
)


class _Parameter:
    """An array that a function takes."""

    def __init__(self, direction: str, dtype: str, name: str) -> None:
        self.is_written, self.dtype, self.name = direction == "OUT", np.dtype(dtype), name

    def array(self, values: Any) -> Array:
        """The values as C reads them; the array itself if it is written."""
        array: Array = values.view(np.uint8) if values.dtype == bool else values
        fits = array.dtype == self.dtype and array.flags.c_contiguous
        if not self.is_written:
            return array if fits else np.ascontiguousarray(array.astype(self.dtype, casting="safe", copy=False))
        if not fits or not array.flags.writeable:
            raise TypeError(f"{self.name} must be a writable, contiguous array of {self.dtype}, not {array.dtype}")
        return array


class Function:
    """A compiled function: takes integers and arrays, or tuples of them, and returns an integer."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *values: Any) -> int:
        """Call it with the arguments of its prototype in tb_plugin/native."""
        function, parameters = self._find()
        _arrays, arguments = _prepare(parameters, _flat(values))  # live until the call is over
        result: int = function(*arguments)
        return result

    def bound(self, *values: Any) -> BoundFunction:
        """The function with its last arguments prepared, for many calls with the same arrays."""
        function, parameters = self._find()
        last = list(_flat(values))
        return BoundFunction(function, parameters[: -len(last)], *_prepare(parameters[-len(last) :], last))

    def _find(self) -> tuple[Callable[..., int], list[_Parameter | None]]:
        if self._name not in _library():
            raise ImportError(
                f"Kinetoscope's library has no function {self._name}, so it is an older one. {_HOW_TO_BUILD}"
            )
        return _library()[self._name]


@dataclass(frozen=True)
class BoundFunction:
    """A compiled function whose last arguments are prepared.

    Args:
        function: It.
        parameters: Its first parameters.
        arrays: The arrays among its last arguments.
        arguments: Its last arguments.
    """

    function: Callable[..., int]
    parameters: list[_Parameter | None]
    arrays: list[Array]
    arguments: list[int]

    def __call__(self, *values: Any) -> int:
        """Call it with its first arguments."""
        _arrays, arguments = _prepare(self.parameters, _flat(values))  # as above
        return self.function(*arguments, *self.arguments)


def _prepare(parameters: list[_Parameter | None], values: Iterable[Any]) -> tuple[list[Array], list[int]]:
    """The arrays that C uses, and its arguments."""
    arrays, arguments = [], []
    for parameter, value in zip(parameters, values, strict=True):
        if parameter is None:
            arguments.append(int(value))
        else:
            array = parameter.array(value)
            arrays.append(array)
            arguments += [array.__array_interface__["data"][0], array.size]
    return arrays, arguments


def _flat(values: tuple[Any, ...]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, tuple):
            yield from value
        else:
            yield value


@cache
def _library() -> dict[str, tuple[Callable[..., int], list[_Parameter | None]]]:
    """The functions of the library, with what they take; None stands for an integer.

    Raises:
        ImportError: It can't be loaded.
    """
    path = os.environ.get(LIBRARY) or str(Path(__file__).with_name(f"libkinetoscope{_SUFFIX}"))
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"Kinetoscope's compiled functions can't be loaded: {error}. {_HOW_TO_BUILD}") from error
    text = ctypes.string_at(ctypes.addressof(ctypes.c_char.in_dll(library, "prototypes"))).decode()
    functions: dict[str, tuple[Callable[..., int], list[_Parameter | None]]] = {}
    for name, arguments in _WHOLE_PROTOTYPE.findall(text):
        parameters = [_Parameter(*match.groups()[:3]) if match[1] else None for match in _ARGUMENT.finditer(arguments)]
        function = library[name]
        function.restype = ctypes.c_int64
        function.argtypes = [
            pointer_type for parameter in parameters for pointer_type in (_ARRAY if parameter else _INTEGER)
        ]
        functions[name] = function, parameters
    return functions
