"""A wheel of this project, and fresh environments with it."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")


def build_wheel(folder: Path) -> Path:
    """The wheel; the page and the compiled library are built already, so that it takes seconds."""
    subprocess.run([*PIP, "wheel", "--no-deps", "--wheel-dir", folder, ROOT], check=True, timeout=300)
    (wheel,) = folder.glob("kinetoscope-*.whl")
    return wheel


def environment(folder: Path, wheel: Path, *requirements: str, sees_ours: bool = False) -> Path:
    """The folder of the programs of a fresh environment with the wheel.

    Args:
        folder: Where it is made.
        wheel: What is installed, without what it needs.
        requirements: What is installed from the registry.
        sees_ours: Whether it has the packages of the environment of the tests, but not the sources of this project.
    """
    venv.create(folder, with_pip=False)
    programs = folder / ("Scripts" if sys.platform == "win32" else "bin")
    python = programs / "python"
    if sees_ours:
        ours = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
        code = "import sysconfig; print(sysconfig.get_path('purelib'))"
        site = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
        Path(site, "ours.pth").write_text("\n".join(ours))
    install = [*PIP, "--python", python, "install"]
    if requirements:
        subprocess.run([*install, *requirements], check=True, timeout=300)
    subprocess.run([*install, "--no-deps", "--no-index", wheel], check=True, timeout=120)
    return programs
