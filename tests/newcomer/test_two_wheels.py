"""The recorder's wheel alone records where there is only torch; with the viewer's, each owns its files and says its needs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
from email import message_from_bytes
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest
from packaging.utils import canonicalize_name

import kinetoscope_tb
from newcomer.installing import (
    ROOT,
    environment,
    fresh_environment,
    pip,
    show_our_packages,
    site_packages,
    with_its_needs,
)
from support.native_build import native_build

if TYPE_CHECKING:
    from email.message import Message
    from importlib.metadata import Distribution
    from pathlib import Path

VIEWER, RECORDER = "kinetoscope", "kinetoscope-recorder"
PINNED = f"{RECORDER}=={kinetoscope_tb.__version__}"
BUILD = (sys.executable, "-m", "hatchling", "build", "--target")


def link(found: Distribution, folder: Path) -> None:
    """Link the files of a distribution into a folder of packages."""
    for name in {path.parts[0] for path in found.files or ()} - {"..", "__pycache__"}:
        if not (folder / name).exists():
            (folder / name).symlink_to(found.locate_file(name))


@pytest.fixture(scope="module")
def image(wheels, tmp_path_factory) -> Path:
    """The programs of an environment with torch, its needs, and the recorder's wheel."""
    programs = environment(tmp_path_factory.mktemp("image"), wheels[1:])
    for found in with_its_needs("torch").values():
        link(found, site_packages(programs))
    return programs


def shown(programs: Path, *words: str | Path) -> str:
    """What a program of an environment prints."""
    run = subprocess.run([programs / words[0], *words[1:]], capture_output=True, text=True, check=False, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def packages(programs: Path) -> set[str]:
    """The names that `pip list` prints."""
    code = "from importlib.metadata import distributions; print(*(found.name for found in distributions()))"
    return {canonicalize_name(name) for name in shown(programs, "python", "-c", code).split()}


def test_an_image_has_torch_its_needs_and_the_recorder(image):
    assert packages(image) == {*with_its_needs("torch"), RECORDER}


def test_importing_the_recorder_imports_torch_and_the_standard_library(image):
    code = "import torch, sys; old = set(sys.modules); import kinetoscope; print(*set(sys.modules) - old)"
    added = {name.partition(".")[0] for name in shown(image, "python", "-c", code).split()}
    of_torch = {path.parts[0] for found in with_its_needs("torch").values() for path in found.files or ()}
    modules = {name.removesuffix(".py") for name in of_torch}
    assert added - sys.stdlib_module_names - modules == {"kinetoscope"}


def test_a_training_records_and_its_run_opens_in_a_viewer_elsewhere(image, programs, tmp_path):
    training = ("python", "-m", "kinetoscope.demo", tmp_path, "--steps", "2", "--processes", "1")
    traces = shown(image, *training).split()
    assert len(traces) == 2
    summary = shown(programs, "kinetoscope", "summary", tmp_path)
    assert "convolution" in summary
    steps = kinetoscope_tb.open(tmp_path).steps
    assert len(steps) == 1
    assert steps["total_ns"][0] > 0


def test_the_command_line_is_the_viewers(image):
    run = subprocess.run([image / "python", "-m", "kinetoscope"], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (
        1,
        "All commands but `run` and `selftest` come with the viewer: pip install kinetoscope\n",
    )


# ---- both


def metadata(wheel: Path) -> Message:
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(name))


def needs(about: Message) -> list[str]:
    """What a distribution needs without extras."""
    return [line for line in about.get_all("Requires-Dist", []) if "extra ==" not in line]


def test_they_have_one_version_and_the_viewer_needs_the_recorder(wheels):
    viewer, recorder = map(metadata, wheels)
    assert (viewer["Name"], recorder["Name"]) == (VIEWER, RECORDER)
    assert {viewer["Version"], recorder["Version"]} == {kinetoscope_tb.__version__}
    assert needs(recorder) == []
    assert [line for line in needs(viewer) if line.startswith(RECORDER)] == [PINNED]


def test_no_module_belongs_to_both(wheels):
    viewer, recorder = ({name.partition("/")[0] for name in ZipFile(wheel).namelist()} for wheel in wheels)
    assert not viewer & recorder
    assert "kinetoscope_tb" in viewer
    assert "kinetoscope" in recorder


@pytest.mark.parametrize(("removed", "left"), [(VIEWER, RECORDER), (RECORDER, VIEWER)])
def test_without_one_the_other_is_whole(removed, left, wheels, tmp_path):
    programs = environment(tmp_path, wheels)
    pip(programs, "uninstall", "--yes", removed)
    code = f"from importlib.metadata import files; print(*[f for f in files({left!r}) if not f.locate().exists()])"
    assert packages(programs) == {left}
    assert shown(programs, "python", "-c", code) == "\n"
    module = {VIEWER: "kinetoscope_tb", RECORDER: "kinetoscope.naming"}[left]
    shown(programs, "python", "-c", f"import {module}")


# ---- from a clone, where no index has the recorder


@pytest.fixture
def fresh(tmp_path) -> Path:
    """The programs of an environment that has what both need, and neither."""
    programs = fresh_environment(tmp_path / "fresh")
    show_our_packages(programs)
    return programs


def test_one_path_installs_both(fresh):
    pip(fresh, "install", "--no-index", "--no-compile", "--no-build-isolation", ROOT)
    code = "import kinetoscope, kinetoscope_tb; print(kinetoscope.__file__, kinetoscope_tb.__file__)"
    site = str(site_packages(fresh))
    assert all(path.startswith(site) for path in shown(fresh, "python", "-c", code).split())
    assert {path.name.partition("-")[0] for path in site_packages(fresh).glob("*.dist-info")} == {
        "kinetoscope",
        "kinetoscope_recorder",
    }


def test_an_editable_installation_has_the_sources_of_both(fresh):
    pip(fresh, "install", "--no-index", "--no-compile", "--no-build-isolation", "--editable", ROOT)
    code = "import kinetoscope, kinetoscope_tb; print(kinetoscope.__file__, kinetoscope_tb.__file__)"
    producer, plugin = shown(fresh, "python", "-c", code).split()
    assert producer == str(ROOT / "producer" / "kinetoscope" / "__init__.py")
    assert plugin == str(ROOT / "tb_plugin" / "kinetoscope_tb" / "__init__.py")


def test_an_sdist_and_its_wheel_need_the_recorder_by_name(tmp_path):
    subprocess.run([*BUILD, "sdist", "--directory", tmp_path], cwd=ROOT, check=True, capture_output=True)
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # older Pythons 3.10 and 3.11 have none
        archive.extractall(tmp_path)
    unpacked = tmp_path / sdist.name.removesuffix(".tar.gz")
    assert re.search(rf"^Requires-Dist: {PINNED}$", (unpacked / "PKG-INFO").read_text("utf-8"), re.MULTILINE)
    library = native_build().library_name(native_build().target_of(native_build().host()))
    arrays = ROOT / "tb_plugin" / "kinetoscope_tb" / "arrays"
    shutil.copy(arrays / library, unpacked / arrays.relative_to(ROOT) / library)  # spares the compiler
    subprocess.run([*BUILD, "wheel", "--directory", tmp_path], cwd=unpacked, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert PINNED in needs(metadata(wheel))
