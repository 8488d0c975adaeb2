"""The recorder's tests under each torch that is supported: an environment per version, and a row per version.

Each environment has its own torch, with the packages that torch requires; everything else comes from the environment
that runs this. A CUDA build takes some gigabytes; `PIP_EXTRA_INDEX_URL` may name an index with CPU builds.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = ROOT / ".venv-torch"
VERSIONS = ("2.6.0", "2.9.1", "2.13.0", "2.15.0")
TESTS = ("unit/producer", "oracle/test_key_averages.py", "oracle/test_torch_memory.py", "oracle/test_flops.py")
TESTS += ("oracle/test_event_tree.py", "oracle/test_torch_validator.py", "integrations")
_COUNTS = re.compile(r"(\d+) (passed|failed|skipped|errors?)\b")


def python_with(version: str) -> Path:
    """The interpreter of the environment with this torch, made on first use."""
    folder = ENVIRONMENTS / version
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "-qq", f"torch=={version}", "numpy"], check=True)
        (packages,) = folder.glob("lib/python*/site-packages")
        (packages / "zz_others.pth").write_text(sysconfig.get_path("purelib") + "\n")  # after its own packages
        (folder / "complete").touch()
    return python


def torch_of(python: Path) -> str:
    """The version that the interpreter imports, with its build."""
    command = [python, "-c", "import torch; print(torch.__version__)"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def outcome_of(python: Path, arguments: list[str]) -> tuple[dict[str, int], str]:
    """How many tests passed, failed and were skipped under an interpreter, and what pytest printed."""
    paths = [ROOT / "producer", ROOT / "tb_plugin"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "KINETOSCOPE_CACHE": "off"}
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(arguments or [f"tests/{t}" for t in TESTS])]
    output = subprocess.run(command, check=False, cwd=ROOT, env=environment, capture_output=True, text=True).stdout
    counts = {name.removesuffix("s"): int(number) for number, name in _COUNTS.findall(output.splitlines()[-1])}
    return counts, output


def report_versions(versions: list[str], arguments: list[str]) -> bool:
    """Print a row for docs/which-traces-open.md per version; return whether no test failed."""
    is_fine = True
    print("| torch | passed | failed | skipped |\n| --- | --- | --- | --- |")
    for version in versions or VERSIONS:
        python = python_with(version)
        counts, output = outcome_of(python, arguments)
        failed = counts.get("failed", 0) + counts.get("error", 0)
        row = (torch_of(python), counts.get("passed", 0), failed, counts.get("skipped", 0))
        print(f"| {' | '.join(map(str, row))} |", flush=True)
        if failed or not counts.get("passed"):
            is_fine = False
            print(output[-20_000:], file=sys.stderr)
    return is_fine
