"""Makes a release, all but the upload: `make release VERSION=0.2.0`.

1. CHANGELOG.md gets the section of the version, with today's date; producer/kinetoscope/_version.py the version.
2. dist/VERSION gets an sdist of the recorder and of the viewer, and wheels for all platforms. These are built from the
   sdists, without a program on PATH: so nobody who builds from an sdist needs Deno, Node or npm's registry.
3. twine checks that PyPI takes each of them and can draw its long description.
4. sbom.json is the bill of materials (materials.py), SHA256SUMS the digests of all files.

Times in the archives are those of the day of the release, so a release that is made again is the same, byte for byte.
"""

from __future__ import annotations

import argparse
import datetime as dt
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from changelog import NotReleasable, changelog_of_release, date_of, newest_version
from materials import bill_of_materials

ROOT = Path(__file__).parents[1]
CHANGELOG = ROOT / "CHANGELOG.md"
VERSION_FILE = ROOT / "producer" / "kinetoscope" / "_version.py"
_FILTER: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # older Pythons 3.10 and 3.11
NEXT = """
To publish it:
  git commit --all --message "Release {version}" && git tag v{version} && git push --follow-tags origin HEAD v{version}
  {python} -m twine upload {folder}/*.whl {folder}/*.tar.gz
"""


def main() -> None:
    """Make the release that the command line asks for."""
    options = _options()
    try:
        repository = options.repository or _remote()
        _check_tree()
        _set_version(options.version)
    except NotReleasable as error:
        sys.exit(str(error))
    folder = ROOT / "dist" / options.version
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    environment = _environment(options.version, repository)
    _build(folder, options.platforms.split(), environment)
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *map(str, _archives(folder))], check=True)
    bill = bill_of_materials(ROOT, folder, options.version, environment)
    (folder / "sbom.json").write_text(json.dumps(bill, indent=1) + "\n", encoding="utf-8")
    (folder / "SHA256SUMS").write_text(_digests(folder), encoding="utf-8")
    sys.stdout.write((folder / "SHA256SUMS").read_text(encoding="utf-8"))
    sys.stdout.write(NEXT.format(version=options.version, folder=folder.relative_to(ROOT), python=sys.executable))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="release", description="Make a release, all but the upload.")
    parser.add_argument("version", help="such as 0.2.0")
    parser.add_argument("--platforms", required=True, help="of the wheels")
    parser.add_argument("--repository", help="https://… of the public repository; by default git's origin")
    return parser.parse_args()


def _git(*words: str) -> str:
    command = [shutil.which("git") or "git", *words]
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True).stdout


def _remote() -> str:
    """The page of git's origin, where pictures and pages of the long description are."""
    origin = re.fullmatch(
        r"(?:https://|git@|ssh://git@)([^:/]+)[:/](.+?)(?:\.git)?/?\n", _git("remote", "get-url", "origin")
    )
    if not origin:
        raise NotReleasable("git has no origin with a page. REPOSITORY=https://… names the public repository.")
    return f"https://{origin[1]}/{origin[2]}"


def _check_tree() -> None:
    """Refuse what isn't committed, but for what a release itself writes.

    Raises:
        NotReleasable: Something isn't committed.
    """
    own = {path.relative_to(ROOT).as_posix() for path in (CHANGELOG, VERSION_FILE)}
    changes = [line for line in _git("status", "--porcelain").splitlines() if line[3:] not in own]
    if changes:
        raise NotReleasable("\n".join(["Commit or remove these first:", *changes]))


def _set_version(version: str) -> None:
    """Write the version, and the section of the changelog.

    Raises:
        NotReleasable: It is no version, an earlier one, or nothing has changed since the last.
    """
    text = CHANGELOG.read_text(encoding="utf-8")
    try:
        is_plain = str(Version(version)) == version and not Version(version).local
    except InvalidVersion:
        is_plain = False
    if not is_plain:
        raise NotReleasable(f"{version} isn't a version such as 0.2.0 or 0.2.0rc1.")
    if Version(version) < Version(newest_version(text)):
        raise NotReleasable(f"{version} is earlier than {newest_version(text)}, the newest in CHANGELOG.md.")
    today = dt.datetime.now(tz=dt.timezone.utc).date()
    dated = changelog_of_release(text, version, today.isoformat())
    code = VERSION_FILE.read_text(encoding="utf-8")
    CHANGELOG.write_text(dated, encoding="utf-8")
    VERSION_FILE.write_text(re.sub(r'(?<=__version__ = ").*(?=")', version, code), encoding="utf-8")


def _environment(version: str, repository: str) -> dict[str, str]:
    """The variables for builds: the date of the release, and where its repository is."""
    day = dt.datetime.fromisoformat(f"{date_of(CHANGELOG.read_text(encoding='utf-8'), version)}T00:00:00+00:00")
    variables = {name: value for name, value in os.environ.items() if name not in ("CC", "KINETOSCOPE_PLATFORM")}
    return variables | {"SOURCE_DATE_EPOCH": f"{day.timestamp():.0f}", "KINETOSCOPE_REPOSITORY": repository}


def _build(folder: Path, platforms: list[str], environment: dict[str, str]) -> None:
    """Build the sdists, and from these the wheels."""
    _hatchling("sdist", ROOT / "producer", folder, environment)
    _hatchling("sdist", ROOT, folder, environment)
    with tempfile.TemporaryDirectory() as unpacked:
        for sdist in folder.glob("*.tar.gz"):
            shutil.unpack_archive(sdist, unpacked, **_FILTER)
        recorder, viewer = sorted(Path(unpacked).iterdir(), key=lambda path: "recorder" not in path.name)
        bare = environment | {"PATH": ""}
        _hatchling("wheel", recorder, folder, bare)
        for platform in platforms:
            _hatchling("wheel", viewer, folder, bare | {"KINETOSCOPE_PLATFORM": platform})


def _hatchling(target: str, source: Path, folder: Path, environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder)]
    subprocess.run(command, cwd=source, env=environment, check=True)


def _archives(folder: Path) -> list[Path]:
    return sorted([*folder.glob("*.whl"), *folder.glob("*.tar.gz")])


def _digests(folder: Path) -> str:
    """The lines of `sha256sum`, by which `sha256sum --check SHA256SUMS` verifies the files."""
    files = [*_archives(folder), folder / "sbom.json"]
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


main()
