"""Builds the viewer's compiled functions: the C files next to this one → one shared library without dependencies.

    python tb_plugin/native/build.py                   for this machine, into the source tree
    python tb_plugin/native/build.py --checked OUT     with checks of every access to an array and of undefined behavior

The compiler is Zig's, from PyPI (`ziglang`), which needs nothing of the system and compiles for any platform; CC names
another one. Nothing of libc or Python is linked, so one library serves every Python and every libc of a platform.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import re
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).parent
PACKAGE = SOURCES.parent / "kinetoscope_tb" / "arrays"
COMPILER = "ziglang>=0.15,<0.18"

_PROTOTYPE = re.compile(r"^EXPORT int64_t (\w+)\(([^{]*)\) \{", re.MULTILINE)
_FLAGS = "-std=c11 -O3 -Wall -Wextra -Wno-unused-parameter -ffp-contract=off -fvisibility=hidden -shared -s"
_UNCHECKED, _CHECKED = "-fwrapv", "-DCHECKED"
_OF_ZIG = "-ffreestanding -nostdlib -fno-stack-protector"
_CHECKED_BY_ZIG = "-fsanitize=undefined -fsanitize-trap=undefined"


@dataclass(frozen=True)
class Target:
    """A platform that libraries are built for.

    Args:
        triple: Its name in Zig.
        tag: Its name in wheels.
        options: For the compiler.
        suffix: Of a shared library.
    """

    triple: str
    tag: str
    options: tuple[str, ...] = ()
    suffix: str = ".so"


_V2 = "-mcpu=x86_64_v2"  # since 2009; polars needs more
TARGETS = {
    "linux-x86_64": Target("x86_64-linux-musl", "manylinux_2_17_x86_64.musllinux_1_1_x86_64", (_V2,)),
    "linux-aarch64": Target("aarch64-linux-musl", "manylinux_2_17_aarch64.musllinux_1_1_aarch64"),
    "macos-x86_64": Target("x86_64-macos.11.0", "macosx_11_0_x86_64", (_V2,), ".dylib"),
    "macos-arm64": Target("aarch64-macos.11.0", "macosx_11_0_arm64", (), ".dylib"),
    "windows-amd64": Target("x86_64-windows-gnu", "win_amd64", (_V2,), ".dll"),
    "windows-arm64": Target("aarch64-windows-gnu", "win_arm64", (), ".dll"),
}


class BuildError(Exception):
    """The library didn't build; the text says why."""


def host() -> str:
    """This machine's platform, as in TARGETS if it is one of these."""
    system = {"darwin": "macos"}.get(platform.system().lower(), platform.system().lower())
    return f"{system}-{platform.machine().lower()}"


def target_of(name: str) -> Target:
    """The platform of a name; any other than those above is this machine's, and is built for it alone.

    Raises:
        BuildError: It is another machine's, and unknown.
    """
    if name in TARGETS:
        return TARGETS[name]
    if name != host():
        raise BuildError(f"There is no platform {name}; there are {', '.join(TARGETS)}.")
    return Target("", re.sub(r"[^A-Za-z0-9]", "_", sysconfig.get_platform()))


def library_name(target: Target) -> str:
    """The name of the library's file."""
    return f"libkinetoscope{target.suffix}"


def digest() -> str:
    """A digest of the sources and of this file."""
    result = hashlib.sha256()
    for path in sorted([*SOURCES.glob("*.[ch]"), Path(__file__)]):
        result.update(path.name.encode() + path.read_bytes())
    return result.hexdigest()


def is_built(library: Path) -> bool:
    """Whether the library was built from these sources."""
    return library.exists() and digest().encode() in library.read_bytes()


def build(library: Path, name: str = "", *, checked: bool = False) -> None:
    """Build the library.

    Args:
        library: Where it is written.
        name: The platform, as in TARGETS; by default this machine.
        checked: Whether each access to an array is checked; a wrong one ends the process.

    Raises:
        BuildError: There is no compiler, or it failed.
    """
    target = target_of(name or host())
    library.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        prototypes = Path(folder, "prototypes.c")
        prototypes.write_text(_prototypes(), encoding="utf-8")
        made = Path(folder, library.name)
        files = [*sorted(map(str, SOURCES.glob("*.c"))), str(prototypes)]
        options = [*_FLAGS.split(), _CHECKED if checked else _UNCHECKED, f"-I{SOURCES}"]
        options += [] if target.suffix == ".dll" else ["-fPIC"]
        _run([*_compiler(target, checked=checked), *options, "-o", str(made), *files], folder)
        partial = library.with_name(f"{library.name}.{os.getpid()}")
        partial.write_bytes(made.read_bytes())
        partial.replace(library)  # a process that has the old one loaded keeps it


def _prototypes() -> str:
    """C that exports the digest, and the prototypes of all functions as text, by which Python calls them."""
    prototypes = [
        match for path in sorted(SOURCES.glob("*.c")) for match in _PROTOTYPE.findall(path.read_text(encoding="utf-8"))
    ]
    text = "".join(f'    "{name}({" ".join(arguments.split())})\\n"\n' for name, arguments in prototypes)
    return f'#include "arrays.h"\nEXPORT const char prototypes[] =\n{text}    "{digest()}";\n'


def _compiler(target: Target, *, checked: bool) -> list[str]:
    if command := os.environ.get("CC"):
        return shlex.split(command)
    options = [*(["-target", target.triple] if target.triple else []), *target.options, *_OF_ZIG.split()]
    checks = _CHECKED_BY_ZIG.split() if checked else []
    return [sys.executable, "-m", "ziglang", "cc", *options, *checks]


def _run(command: list[str], cache: str) -> None:
    environment = {"ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache, **os.environ}
    try:
        completed = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    except OSError as error:
        raise BuildError(f"{command[0]} can't be run: {error}. CC names the compiler.") from error
    if completed.returncode:
        raise BuildError(
            f"The compiled functions didn't build:\n{completed.stderr}\nThey need ziglang from PyPI, or a C compiler "
            f"that the environment variable CC names. A wheel comes built for {', '.join(TARGETS)}."
        )


def main() -> None:
    """Build the library for this machine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", nargs="?", type=Path, default=PACKAGE / library_name(target_of(host())))
    parser.add_argument("--checked", action="store_true")
    options = parser.parse_args()
    build(options.library, checked=options.checked)


if __name__ == "__main__":
    main()
