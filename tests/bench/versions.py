"""The recorder's tests under each torch that is supported: an environment per version, and a row per version.

A version takes some three minutes of a core. What doesn't depend on torch isn't in the selection.

Each environment has its own torch, with the packages that torch requires; everything else comes from the environment
that runs this. A CUDA build takes some gigabytes; `PIP_EXTRA_INDEX_URL` may name an index with CPU builds.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = ROOT / ".venv-torch"
VERSIONS = ("2.6.0", "2.9.1", "2.13.0", "2.15.0")
INDEPENDENT = ("journal", "output/test_commit.py", "output/test_manifest.py", "output/test_redaction.py")
INDEPENDENT += ("output/test_name_template.py", "output/test_scratch.py", "output/test_writer_process.py")
INDEPENDENT += ("sampling/test_scalars.py", "scheduling/test_request.py", "test_naming.py")
TESTS = ("unit/producer", "oracle/test_key_averages.py", "oracle/test_torch_memory.py", "oracle/test_flops.py")
TESTS += ("oracle/test_event_tree.py", "oracle/test_torch_validator.py", "integrations")
_SUMMARY = re.compile(r"\d+ (passed|failed|skipped|errors?)\b.* in [\d.]+s")
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
        others = [path for path in sys.path if path.endswith("-packages")]  # the running one's, wherever they come from
        (packages / "zz_others.pth").write_text("\n".join(others) + "\n")  # after its own packages
        (folder / "complete").touch()
    return python


def torch_of(python: Path) -> str:
    """The version that the interpreter imports, with its build."""
    command = [python, "-c", "import torch; print(torch.__version__)"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def cpu_s() -> float:
    """How long the processes that have ended so far were on a core."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def outcome_of(python: Path, log: Path, arguments: list[str]) -> dict[str, int]:
    """How many tests passed, failed and were skipped under an interpreter; the log grows while they run."""
    paths = [ROOT / "producer", ROOT / "tb_plugin"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "KINETOSCOPE_CACHE": "off"}
    command = [python, "-m", "pytest", "-p", "no:cacheprovider", "--durations=20", *arguments]
    if not any((ROOT / argument.partition("::")[0]).exists() for argument in arguments):
        command += [*(f"tests/{t}" for t in TESTS), *(f"--ignore=tests/unit/producer/{t}" for t in INDEPENDENT)]
    with log.open("w", encoding="utf-8") as file:
        subprocess.run(command, check=False, cwd=ROOT, env=environment, stdout=file, stderr=subprocess.STDOUT)
    summaries = [line for line in log.read_text(encoding="utf-8").splitlines() if _SUMMARY.search(line)]
    return {name.removesuffix("s"): int(number) for number, name in _COUNTS.findall("".join(summaries[-1:]))}


def report_versions(versions: list[str], arguments: list[str]) -> bool:
    """Print a row for docs/which-traces-open.md per version; return whether no test failed."""
    is_fine = True
    print("| torch | passed | failed | skipped | minutes of a core |\n| --- | --- | --- | --- | --- |")
    for version in versions or VERSIONS:
        python, before_s = python_with(version), cpu_s()
        log = ENVIRONMENTS / f"{version}.log"
        counts = outcome_of(python, log, arguments)
        minutes = (cpu_s() - before_s) / 60
        failed = counts.get("failed", 0) + counts.get("error", 0)
        row = (torch_of(python), counts.get("passed", 0), failed, counts.get("skipped", 0), f"{minutes:.1f}")
        print(f"| {' | '.join(map(str, row))} |", flush=True)
        if failed or not counts.get("passed"):
            is_fine = False
            print(f"{log} has the details.", file=sys.stderr)
    return is_fine
