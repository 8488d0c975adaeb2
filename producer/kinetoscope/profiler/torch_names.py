"""Names of torch's modules that ours of the same name don't have themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType


def torch_name(module: str, torch_module: ModuleType, name: str) -> Any:
    """Return what torch's module has under a name, for the `__getattr__` of ours.

    Raises:
        AttributeError: It has nothing, or the name is one of Python's own, such as `__path__`.
    """
    if name.startswith("__") or not hasattr(torch_module, name):
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    return getattr(torch_module, name)
