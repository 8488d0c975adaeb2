"""What `make release` makes, but for the upload: by a clone of this repository, for this machine's platform alone."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
from email import message_from_bytes
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

from newcomer.installing import ROOT
from support.native_build import native_build

if TYPE_CHECKING:
    from email.message import Message
    from pathlib import Path

VERSION, REPOSITORY = "98.7.6", "https://github.com/owner/kinetoscope"
PAGE = "tb_plugin/kinetoscope_tb/static"


def git(clone: Path, *words: str) -> str:
    name = ("-c", "user.name=tests", "-c", "user.email=tests@example.com")
    return subprocess.run(["git", *name, *words], cwd=clone, check=True, capture_output=True, text=True).stdout


def release(clone: Path, version: str = VERSION, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the release as make does; the bill of materials lists no dependency, which would be 400 MB."""
    command = [sys.executable, "release", f"--platforms={native_build().host()}", f"--repository={REPOSITORY}", version]
    environment = {"PATH": "/usr/bin:/bin", "PIP_NO_DEPS": "1", **variables}
    return subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone with the built page and library, which spares npm's registry and the compiler."""
    clone = tmp_path_factory.mktemp("release") / "clone"
    git(ROOT, "clone", "--quiet", str(ROOT), str(clone))
    shutil.copytree(ROOT / PAGE, clone / PAGE)
    return clone


@pytest.fixture(scope="module")
def folder(clone: Path) -> Path:
    """The folder that the release makes."""
    run = release(clone)
    assert run.returncode == 0, run.stdout + run.stderr
    return clone / "dist" / VERSION


def about(archive: Path) -> Message:
    """The metadata of a wheel or an sdist."""
    if archive.suffix == ".whl":
        with ZipFile(archive) as wheel:
            (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
            return message_from_bytes(wheel.read(name))
    with tarfile.open(archive) as sdist:
        file = sdist.extractfile(f"{archive.name.removesuffix('.tar.gz')}/PKG-INFO")
        assert file
        return message_from_bytes(file.read())


def test_it_makes_both_sdists_and_wheels_of_the_version(folder: Path) -> None:
    archives = sorted(path.name for path in folder.glob("*.[wt][ha][lr]*"))
    tag = native_build().target_of(native_build().host()).tag
    assert archives == [
        f"kinetoscope-{VERSION}-py3-none-{tag}.whl",
        f"kinetoscope-{VERSION}.tar.gz",
        f"kinetoscope_recorder-{VERSION}-py3-none-any.whl",
        f"kinetoscope_recorder-{VERSION}.tar.gz",
    ]
    assert {about(folder / name)["Version"] for name in archives} == {VERSION}


def test_the_digests_are_those_of_all_files(folder: Path) -> None:
    lines = [line.split("  ") for line in (folder / "SHA256SUMS").read_text().splitlines()]
    assert {name for _, name in lines} == {path.name for path in folder.iterdir()} - {"SHA256SUMS"}
    assert all(hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest for digest, name in lines)


def test_the_long_description_has_a_picture_and_links_that_work_anywhere(folder: Path) -> None:
    (wheel,) = folder.glob("kinetoscope-*.whl")
    metadata = about(wheel)
    text = metadata.get_payload()
    assert metadata["Description-Content-Type"] == "text/markdown"
    targets = re.findall(r"\]\(([^)]+)\)", text)
    assert f"{REPOSITORY}/raw/v{VERSION}/docs/overview.png" in targets
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []
    files = re.findall(rf"{REPOSITORY}/(?:raw|blob)/v{VERSION}/([^)#]+)", text)
    assert len(files) > 30
    assert [name for name in files if not (ROOT / name).exists()] == []
    assert f"Source, {REPOSITORY}" in metadata.get_all("Project-URL", [])


def test_the_changelog_has_a_dated_section_and_a_new_empty_one(clone: Path, folder: Path) -> None:
    before = git(clone, "show", "HEAD:CHANGELOG.md").partition("## Unreleased\n")
    after = (clone / "CHANGELOG.md").read_text(encoding="utf-8")
    section = re.search(rf"## Unreleased\n\n## {VERSION} - \d{{4}}-\d\d-\d\d\n", after)
    assert section
    assert after.startswith(before[0])
    assert after[section.end() :].strip() == before[2].strip()
    assert (clone / "producer/kinetoscope/_version.py").read_text().endswith(f'__version__ = "{VERSION}"\n')


def test_the_bill_of_materials_is_valid_and_lists_what_is_in_the_page(folder: Path) -> None:
    from cyclonedx.schema import SchemaVersion  # at the top it takes each process of pytest a second
    from cyclonedx.validation.json import JsonStrictValidator

    text = (folder / "sbom.json").read_text(encoding="utf-8")
    bill = json.loads(text)
    assert JsonStrictValidator(SchemaVersion.from_version(bill["specVersion"])).validate_str(text) is None
    assert bill["metadata"]["component"]["purl"] == f"pkg:pypi/kinetoscope@{VERSION}"
    components = {component["purl"]: component for component in bill["components"]}
    names = re.findall(r"^(@?[\w/-]+ \d\S+)$", (ROOT / PAGE / "licenses.txt").read_text(), re.MULTILINE)
    npm = {f"pkg:npm/{name.replace(' ', '@').replace('@', '%40', name.count('/'))}" for name in names}
    assert len(npm) == 3
    assert components.keys() == {f"pkg:pypi/kinetoscope-recorder@{VERSION}", *npm}
    assert all(len(components[purl]["hashes"][0]["content"]) == 128 for purl in npm)
    assert all("MIT License" in components[purl]["licenses"][0]["license"]["name"] for purl in npm)
    (needs,) = (entry for entry in bill["dependencies"] if entry["ref"] == f"kinetoscope=={VERSION}")
    assert len(needs["dependsOn"]) == 4
    assert str(folder.parents[1]) not in text


def test_what_cannot_be_released_is_refused(clone: Path, folder: Path) -> None:
    for version, said in (
        ("1.2.3", f"1.2.3 is earlier than {VERSION}"),
        ("v99", "v99 isn't a version"),
        ("99.0", 'The section "## Unreleased" of CHANGELOG.md is empty.'),
    ):
        run = release(clone, version)
        assert (run.returncode, run.stdout) == (1, "")
        assert said in run.stderr
    (clone / "README.md").write_text("changed")
    assert "Commit or remove these first:\n M README.md" in release(clone).stderr
    git(clone, "checkout", "README.md")
