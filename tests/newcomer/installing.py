"""The wheels of this project, and fresh environments with them."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from importlib.metadata import Distribution, distribution
from pathlib import Path
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from support.native_build import native_build

ROOT = Path(__file__).parents[2]
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")


def build_wheels(folder: Path) -> list[Path]:
    """The wheels of the viewer and of the recorder, as an index has them.

    The page and the compiled library are built already, so that it takes seconds.
    """
    env = {**os.environ, "KINETOSCOPE_PLATFORM": native_build().host()}
    options = ("--no-deps", "--no-build-isolation", "--wheel-dir", folder)
    subprocess.run([*PIP, "wheel", *options, ROOT, ROOT / "producer"], env=env, check=True, timeout=300)
    return sorted(folder.glob("*.whl"))


def fresh_environment(folder: Path) -> Path:
    """The folder of the programs of an environment without any package."""
    venv.create(folder, with_pip=False)
    return folder / ("Scripts" if sys.platform == "win32" else "bin")


def pip(programs: Path, *words: str | Path) -> None:
    """Run pip on an environment."""
    subprocess.run([*PIP, "--python", programs / "python", *words], check=True, timeout=300)


def site_packages(programs: Path) -> Path:
    """Where an environment has its packages."""
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    run = subprocess.run([programs / "python", "-c", code], capture_output=True, text=True, check=True)
    return Path(run.stdout.strip())


def show_our_packages(programs: Path) -> None:
    """Let an environment see the packages of the environment of the tests, but not the sources of this project."""
    ours = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    Path(site_packages(programs), "ours.pth").write_text("\n".join(ours))


def environment(folder: Path, wheels: list[Path], *requirements: str, sees_ours: bool = False) -> Path:
    """The folder of the programs of a fresh environment with the wheels.

    Args:
        folder: Where it is made.
        wheels: What is installed, without what it needs.
        requirements: What is installed from the registry.
        sees_ours: Whether it has the packages of the environment of the tests too.
    """
    programs = fresh_environment(folder)
    if sees_ours:
        show_our_packages(programs)
    if requirements:
        pip(programs, "install", "--no-compile", *requirements)
    pip(programs, "install", "--no-deps", "--no-index", "--no-compile", *wheels)
    return programs


def with_its_needs(package: str) -> dict[str, Distribution]:
    """A distribution of the environment of the tests and all that it needs, by their names."""
    found: dict[str, Distribution] = {}
    pending = [package]
    while pending:
        name = canonicalize_name(pending.pop())
        if name not in found:
            found[name] = distribution(name)
            needs = [Requirement(line) for line in found[name].requires or ()]
            pending += [need.name for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})]
    return found


def pack(found: Distribution, folder: Path) -> None:
    """Make a wheel of a distribution that was installed from one: for installers that must not ask a registry."""
    (tag, *_) = [line.partition(": ")[2] for line in (found.read_text("WHEEL") or "").splitlines() if "Tag: " in line]
    name = canonicalize_name(found.metadata["Name"]).replace("-", "_")
    left_out = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}
    paths = [path for path in found.files or () if path.parts[0] != ".." and path.suffix != ".pyc"]
    paths = [path for path in paths if not (path.parent.suffix == ".dist-info" and path.name in left_out)]
    info = next(path.parent for path in paths if path.parent.suffix == ".dist-info")
    with ZipFile(folder / f"{name}-{found.version}-{tag}.whl", "w") as wheel:
        for path in paths:
            wheel.write(path.locate(), path.as_posix())
        wheel.writestr(f"{info}/RECORD", "".join(f"{path.as_posix()},,\n" for path in [*paths, info / "RECORD"]))
