"""The module that builds the compiled functions, which belongs to no package."""

import sys
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

SOURCES = Path(__file__).parents[2] / "tb_plugin" / "native"


@cache
def native_build() -> ModuleType:
    """tb_plugin/native/build.py."""
    spec = spec_from_file_location("native_build", SOURCES / "build.py")
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
