"""Builds what isn't in git with tools from PyPI: the page by Deno, the compiled functions by Zig's C compiler.

What is current isn't built again. Each has a digest of its sources in it or next to it, not their modification times,
since those of an unpacked sdist are unreliable. An sdist comes with the page, so installing from it needs neither Deno
nor the npm registry; a wheel comes with both.

KINETOSCOPE_PLATFORM chooses the platform of a wheel, as in tb_plugin/native/build.py; by default it is this machine's.

What is built also decides where the recorder, a distribution of its own in producer, comes from:

- An sdist, a wheel from one, and a wheel for KINETOSCOPE_PLATFORM are for others. They need the recorder of their
  version by name, as packages in an index do.
- A wheel from a clone needs the recorder at its path in the clone, so that `pip install .` takes none from an index:
  neither an older one nor a stranger's.
- An editable installation needs none: it has both folders on the path.

KINETOSCOPE_REPOSITORY is the address of the public repository. With it, the links and pictures of the long description,
which is the README, lead to the files of the version there.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

BUNDLE = ("deno", "bundle", "--quiet", "--frozen", "--platform=browser", "--minify")
GRAPH = ("deno", "info", "--json", "--frozen", "src/index.tsx")
MINIFY = ("deno", "run", "--quiet", "--frozen", "--allow-read", "--allow-write", "--allow-env", "minify.ts")
DENO = "deno~=2.9"
RECORDER = "kinetoscope-recorder"


def native_build(root: Path) -> ModuleType:
    """The module tb_plugin/native/build.py."""
    spec = importlib.util.spec_from_file_location("native_build", root / "tb_plugin" / "native" / "build.py")
    module = sys.modules["native_build"] = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module


class Page:
    """The page: static/index.js, and the licenses of what is in it of others: static/licenses.txt.

    Args:
        root: The repository.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self.source = root / "frontend"
        self.stamp = root / "tb_plugin" / "kinetoscope_tb" / "static" / "SOURCE"
        self.licenses = self.stamp.with_name("licenses.txt")

    def digest(self) -> str:
        """Return the digest of the sources."""
        digest = hashlib.sha256()
        shared = self._root / "tb_plugin" / "kinetoscope_tb" / "web" / "formulas.json"
        for path in sorted(
            [*self.source.glob("deno.*"), self.source / "minify.ts", *self.source.glob("src/**/*.*"), shared]
        ):
            digest.update(path.relative_to(self._root).as_posix().encode() + path.read_bytes())
        return digest.hexdigest()

    def is_built(self) -> bool:
        """Whether the bundle exists and is current."""
        return self.licenses.exists() and self.stamp.exists() and self.stamp.read_text() == self.digest()

    def build(self) -> bool:
        """Build the bundle; returns whether that succeeded."""
        # Plain "deno" is found since pip, build and uv put the build environment's programs first on PATH.
        page = str(self.stamp.parent / "index.js")
        env = {"DENO_TLS_CA_STORE": "system,mozilla", **os.environ}
        commands = [[*BUNDLE, f"--output={page}", "src/index.tsx"], [*MINIFY, page]]
        is_built = all(
            subprocess.run(command, cwd=self.source, env=env, check=False).returncode == 0 for command in commands
        )
        if is_built:
            graph = subprocess.run(GRAPH, cwd=self.source, env=env, check=True, capture_output=True)
            self.licenses.write_text(license_notices(json.loads(graph.stdout)), encoding="utf-8")
            self.stamp.write_text(self.digest())
        return is_built


def license_notices(graph: dict[str, Any]) -> str:
    """The licenses of the npm packages in a bundle, each below its name and version.

    Args:
        graph: What `deno info --json` says of the bundle's entry point.
    """
    packages, pending = {}, [module["npmPackage"] for module in graph["modules"] if "npmPackage" in module]
    while pending:
        name = pending.pop()
        if name not in packages:
            packages[name] = graph["npmPackages"][name]
            pending += packages[name]["dependencies"]
    notices = []
    for package in sorted(packages.values(), key=lambda package: package["name"]):
        texts = [path.read_text(encoding="utf-8").strip() for path in Path(package["localPath"]).glob("LICEN[CS]E*")]
        if not texts:
            raise FileNotFoundError(f"The npm package {package['name']} has no license file.")
        notices.append("\n\n".join([f"{package['name']} {package['version']}", *texts]))
    return "The page contains these packages.\n\n" + "\n\n\n".join(notices) + "\n"


def description(readme: str, repository: str, version: str) -> str:
    """The README with links and pictures that work outside of the repository.

    Args:
        readme: Its markdown.
        repository: Such as https://github.com/owner/name.
        version: Whose files are linked.
    """
    pictures = re.sub(r"(!\[[^\]]*\]\()(?!https?:)", rf"\1{repository}/raw/v{version}/", readme)
    return re.sub(r"(?<!!)(\[[^\]]*\]\()(?!https?:|#)", rf"\1{repository}/blob/v{version}/", pictures)


class MetadataHook(MetadataHookInterface):
    """Adds to pyproject.toml the recorder of the same version, the long description and addresses."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the dependencies, the long description and the addresses of the project."""
        version = metadata["version"]
        metadata["dependencies"] = [*self.config["dependencies"], f"{RECORDER}=={version}"]
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["urls"] = {}
        if repository := os.environ.get("KINETOSCOPE_REPOSITORY", "").rstrip("/"):
            text = description(text, repository, version)
            metadata["urls"] = {
                "Source": repository,
                "Documentation": f"{repository}/blob/v{version}/README.md#documentation",
                "Changelog": f"{repository}/blob/v{version}/CHANGELOG.md",
                "Issues": f"{repository}/issues",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


class BuildHook(BuildHookInterface[Any]):
    """Makes what isn't in git before hatchling collects the files of an sdist or a wheel."""

    def _library(self) -> Path:
        """Where the compiled functions are built: for another platform, outside of the source tree."""
        native = native_build(Path(self.root))
        platform = os.environ.get("KINETOSCOPE_PLATFORM", native.host())
        folder = native.PACKAGE if platform == native.host() else Path(self.root, "build", platform)
        return Path(folder, native.library_name(native.target_of(platform)))

    def dependencies(self) -> list[str]:
        """Return what the build needs from PyPI: nothing for what is current."""
        native = native_build(Path(self.root))
        needs = [] if Page(Path(self.root)).is_built() else [DENO]
        if self.target_name == "wheel" and not os.environ.get("CC") and not native.is_built(self._library()):
            needs.append(native.COMPILER)
        return needs

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build both; abort the installation with a message if that fails."""
        page = Page(Path(self.root))
        if not page.is_built() and not page.build():
            self.app.abort("The page did not build (see above). It needs the npm registry once; a release comes built.")
        licenses = page.licenses.relative_to(self.root).as_posix()
        listed = self.metadata.core.license_files  # read before the first build, it lacks what was built now
        listed += [] if licenses in listed else [licenses]
        if self.target_name == "wheel":
            self._need_recorder(is_editable=version == "editable")
            self._build_library(is_editable=version == "editable", build_data=build_data)

    def _need_recorder(self, *, is_editable: bool) -> None:
        """Replace the recorder by name among the dependencies, unless the wheel is for others."""
        is_for_others = "KINETOSCOPE_PLATFORM" in os.environ or Path(self.root, "PKG-INFO").exists()
        dependencies = self.metadata.core.dependencies
        if is_editable or not is_for_others:
            dependencies.remove(f"{RECORDER}=={self.metadata.version}")
        if not is_editable and not is_for_others:
            dependencies.append(f"{RECORDER} @ {Path(self.root, 'producer').as_uri()}")

    def _build_library(self, *, is_editable: bool, build_data: dict[str, Any]) -> None:
        native, library = native_build(Path(self.root)), self._library()
        platform = os.environ.get("KINETOSCOPE_PLATFORM", native.host())
        try:
            if not native.is_built(library):
                native.build(library, platform)
        except native.BuildError as error:
            self.app.abort(str(error))
        if not is_editable:
            build_data["force_include"][str(library)] = f"kinetoscope_tb/arrays/{library.name}"
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{native.target_of(platform).tag}"
