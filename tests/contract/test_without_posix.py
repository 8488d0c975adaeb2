"""Every module imports where the names that only POSIX has are missing, as on Windows."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy", reason="its stubs say what Windows lacks")

from kinetoscope_tb.arrays import native
from support.promises import modules_lacking, posix_only

ROOT = Path(__file__).parents[2]
PROGRAM = """
import importlib, json, os, sys
names, absent, attributes = json.load(sys.stdin)
for name in names:  # what others import isn't asked here
    importlib.import_module(name)
for name in [name for name in sys.modules if name.partition(".")[0] in ("kinetoscope", "kinetoscope_tb")]:
    del sys.modules[name]
sys.modules.update(dict.fromkeys(absent))
for module, missing in attributes.items():
    for name in missing:
        vars(importlib.import_module(module)).pop(name, None)
sys.platform = "win32"
os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks = set(), set(), set()
failed = {}
for name in names:
    try:
        importlib.import_module(name)
    except Exception as error:
        failed[name] = repr(error)
print(json.dumps(failed), flush=True)
os._exit(0)
"""
LIBRARY = Path(native.__file__).with_name(f"libkinetoscope{native._SUFFIX}")  # the one of this system
ELSEWHERE = ("kinetoscope.integrations.", "kinetoscope.demo")  # import the trainers that they belong to; trains


def modules():
    for folder in (ROOT / "producer" / "kinetoscope", ROOT / "tb_plugin" / "kinetoscope_tb"):
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder.parent).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            if parts[-1] != "__main__" and not name.startswith(ELSEWHERE):
                yield name


def test_every_module_imports_without_what_only_posix_has():
    names, absent = (
        list(modules()),
        sorted(modules_lacking() & {"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"}),
    )
    assert len(names) > 500
    assert {"fcntl", "pwd", "resource", "termios"} <= set(absent)
    attributes = {module: sorted(posix_only(module)) for module in ("os", "signal", "time", "mmap", "select")}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps([names, absent, attributes]),
        env={native.LIBRARY: str(LIBRARY), **os.environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout.splitlines()[-1]) == {}
