"""Compiled functions take the arrays that their prototypes say, and nothing else; a missing library is explained."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kinetoscope_tb.arrays import native
from kinetoscope_tb.arrays.native import LIBRARY, Function
from kinetoscope_tb.arrays.nesting import nearest
from support.native_build import native_build

IS_MATCH, PARENT = np.array([True, False, False]), np.array([-1, 0, 1], np.int32)


@pytest.fixture(scope="module")
def build():
    """The module that builds the library."""
    return native_build()


def test_a_function_reads_and_writes_arrays():
    assert nearest(IS_MATCH, PARENT).tolist() == [0, 0, 0]
    assert nearest(IS_MATCH[::-1], PARENT.astype(np.int16)).tolist() == [-1, -1, 2]


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_what_would_lose_digits_is_not_converted(dtype):
    with pytest.raises(TypeError, match="according to the rule 'safe'"):
        nearest(IS_MATCH, PARENT.astype(dtype))


@pytest.mark.parametrize(
    "rows",
    [np.empty(3, np.int64), np.empty(6, np.int32)[::2], np.frombuffer(bytes(12), np.int32)],
    ids=["another type", "not contiguous", "read-only"],
)
def test_what_is_written_must_be_as_declared(rows):
    with pytest.raises(TypeError, match="rows must be a writable, contiguous array of int32"):
        Function("nearest")(IS_MATCH, PARENT, rows)


@pytest.mark.parametrize("arguments", [(), (IS_MATCH, PARENT), (IS_MATCH, PARENT, PARENT.copy(), 1)])
def test_the_number_of_arguments_is_checked(arguments):
    with pytest.raises(ValueError, match="zip"):
        Function("nearest")(*arguments)


def test_python_names_the_functions_that_the_library_has():
    text = "".join(path.read_text(encoding="utf-8") for path in Path(native.__file__).parents[1].rglob("*.py"))
    assert set(re.findall(r'Function\("(\w+)"\)', text)) == set(native._library())


def process(code, library):
    environment = {**os.environ, LIBRARY: str(library)}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow  # starts a process
def test_a_missing_library_says_what_to_do(tmp_path):
    code = "import kinetoscope_tb.reader, kinetoscope_tb.arrays.native as n; n.Function('nearest')()"
    errors = process(code, tmp_path / "libkinetoscope.so").stderr
    assert "compiled functions can't be loaded" in errors
    assert "Install kinetoscope again with pip" in errors


def test_an_older_library_says_what_to_do():
    with pytest.raises(ImportError, match=r"has no function of_tomorrow, so it is an older one\. Install"):
        Function("of_tomorrow")()


def test_the_library_is_built_from_these_sources(build):
    library = Path(native.__file__).with_name(build.library_name(build.target_of(build.host())))
    assert build.is_built(library)


def test_a_library_of_other_sources_is_not_current(build, tmp_path):
    (tmp_path / "library.so").write_bytes(b"built from others")
    assert not build.is_built(tmp_path / "library.so")
    assert not build.is_built(tmp_path / "none.so")


def test_without_a_compiler_the_build_says_what_is_needed(build, tmp_path, monkeypatch):
    monkeypatch.setenv("CC", str(tmp_path / "cc"))
    with pytest.raises(build.BuildError, match=r"can't be run: .* CC names the compiler"):
        build.build(tmp_path / "library.so")
    monkeypatch.setenv("CC", f"{sys.executable} -c 'raise SystemExit(1)'")
    with pytest.raises(build.BuildError, match="need ziglang from PyPI, or a C compiler"):
        build.build(tmp_path / "library.so")


def test_an_unknown_platform_is_refused(build):
    with pytest.raises(build.BuildError, match=r"no platform amiga-68000; there are linux-x86_64, .*windows-arm64\."):
        build.target_of("amiga-68000")


@pytest.mark.slow  # compiles the library
@pytest.mark.skipif(sys.platform == "win32", reason="a process ends otherwise there")
def test_the_checked_library_ends_the_process_at_a_wrong_index(build, tmp_path):
    library = tmp_path / "libkinetoscope.so"
    try:
        build.build(library, checked=True)
    except build.BuildError as error:
        pytest.skip(f"{str(error).splitlines()[0]} Install ziglang.")
    code = "import numpy as np; from kinetoscope_tb.arrays.nesting import nearest;"
    code += "print(nearest(np.array([True, False]), np.array([-1, {}], np.int32)).tolist())"
    assert process(code.format(0), library).stdout == "[0, 0]\n"
    assert process(code.format(7), library).returncode in (-signal.SIGILL, -signal.SIGTRAP)
