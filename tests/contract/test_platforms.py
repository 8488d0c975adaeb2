"""A wheel builds for every platform that is promised, on any of them, with a library that loads there without libc."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.tags import parse_tag
from packaging.utils import parse_wheel_filename

from kinetoscope_tb.arrays.native import LIBRARY
from support.native_build import native_build
from support.shared_libraries import parse_library

ROOT = Path(__file__).parents[2]
BUILD = native_build()

TAGS = {
    "linux-x86_64": {"manylinux_2_17_x86_64", "musllinux_1_1_x86_64"},
    "linux-aarch64": {"manylinux_2_17_aarch64", "musllinux_1_1_aarch64"},
    "macos-x86_64": {"macosx_11_0_x86_64"},
    "macos-arm64": {"macosx_11_0_arm64"},
    "windows-amd64": {"win_amd64"},
    "windows-arm64": {"win_arm64"},
}
FORMATS = {"linux": ("ELF", "libkinetoscope.so"), "macos": ("Mach-O", "libkinetoscope.dylib")}
FORMATS |= {"windows": ("PE", "libkinetoscope.dll")}
MACHINES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}
LIBSYSTEM = "/usr/lib/libSystem.B.dylib"  # each process of macOS has it
FROM_LIBSYSTEM = {"bzero", "__bzero", "dyld_stub_binder"}
LINKERS_OWN = {"__dso_handle", "_mh_dylib_header"}  # Mach-O's linker defines these


@pytest.fixture(scope="module", params=TAGS)
def wheel(request, tmp_path_factory):
    """A platform, and its wheel."""
    folder = tmp_path_factory.mktemp(request.param)
    environment = {name: value for name, value in os.environ.items() if name not in ("CC", LIBRARY)}
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    environment |= {"KINETOSCOPE_PLATFORM": request.param}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    (path,) = folder.glob("*.whl")
    return request.param, path


def library(path):
    """Name and bytes of the library in a wheel: there is one, of this platform."""
    with ZipFile(path) as archive:
        (member,) = (name for name in archive.namelist() if name.endswith((".so", ".dylib", ".dll")))
        return member, archive.read(member)


def test_these_are_the_platforms():
    assert set(BUILD.TARGETS) == set(TAGS)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f"PLATFORMS := {' '.join(BUILD.TARGETS)}\n" in makefile


def test_its_tags_are_those_of_its_platform_and_of_every_python_3(wheel):
    platform, path = wheel
    _name, _version, _build, tags = parse_wheel_filename(path.name)
    assert {(tag.interpreter, tag.abi, tag.platform) for tag in tags} == {
        ("py3", "none", tag) for tag in TAGS[platform]
    }
    with ZipFile(path) as archive:
        (about,) = (name for name in archive.namelist() if name.endswith(".dist-info/WHEEL"))
        lines = archive.read(about).decode().splitlines()
    assert "Root-Is-Purelib: false" in lines
    assert set().union(*(parse_tag(line.removeprefix("Tag: ")) for line in lines if line.startswith("Tag:"))) == tags


def test_its_library_is_for_its_platform_and_needs_nothing(wheel):
    platform, path = wheel
    system, _, machine = platform.partition("-")
    file_format, name = FORMATS[system]
    member, data = library(path)
    found = parse_library(data)
    assert member == f"kinetoscope_tb/arrays/{name}"
    assert (found.file_format, found.machine) == (file_format, MACHINES[machine])
    assert found.needs == ((LIBSYSTEM,) if system == "macos" else ())
    assert found.undefined - (FROM_LIBSYSTEM if system == "macos" else set()) == set()


def test_its_library_exports_every_function_and_nothing_else(wheel):
    _platform, path = wheel
    functions = {
        name for source in BUILD.SOURCES.glob("*.c") for name, _ in BUILD._PROTOTYPE.findall(source.read_text("utf-8"))
    }
    found = parse_library(library(path)[1])
    assert len(functions) > 80
    assert found.exports - LINKERS_OWN == functions | {"prototypes"}
    assert BUILD.digest().encode() in library(path)[1]


def test_this_machine_loads_the_library_of_its_wheel(wheel, tmp_path):
    platform, path = wheel
    if platform != BUILD.host():
        pytest.skip(f"this machine is {BUILD.host()}; symbols and format are read above")
    copy = tmp_path / Path(library(path)[0]).name
    copy.write_bytes(library(path)[1])
    text = ctypes.c_char_p(ctypes.addressof(ctypes.c_char.in_dll(ctypes.CDLL(str(copy)), "prototypes"))).value
    assert text.decode("ascii").endswith(BUILD.digest())
