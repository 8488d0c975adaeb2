"""Builds the page with the Deno that comes from PyPI, unless it is already built.

The bundle is not in git. Its stamp is a digest of the sources, not their modification times, since those of an
unpacked sdist are unreliable; so installing from an sdist or a second time needs neither Deno nor the npm registry.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMMAND = ("deno", "bundle", "--quiet", "--frozen", "--platform=browser", "--minify")


class FrontendBuildHook(BuildHookInterface[Any]):
    """Makes static/index.js before hatchling collects the files of an sdist or a wheel."""

    @property
    def source(self) -> Path:
        """The folder of the page's sources."""
        return Path(self.root, "frontend")

    @property
    def stamp(self) -> Path:
        """The file next to the bundle with the digest of the sources it was built from."""
        return Path(self.root, "tb_plugin", "kinetoscope_tb", "static", "SOURCE")

    def digest(self) -> str:
        """Return the digest of the sources."""
        digest = hashlib.sha256()
        shared = Path(self.root, "tb_plugin", "kinetoscope_tb", "web", "formulas.json")
        for path in sorted([*self.source.glob("deno.*"), *self.source.glob("src/**/*.*"), shared]):
            digest.update(path.relative_to(self.root).as_posix().encode() + path.read_bytes())
        return digest.hexdigest()

    def is_built(self) -> bool:
        """Whether the bundle exists and is current."""
        return self.stamp.exists() and self.stamp.read_text() == self.digest()

    def dependencies(self) -> list[str]:
        """Return what the build needs from PyPI: nothing if the bundle is current."""
        return [] if self.is_built() else ["deno~=2.9"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002, the hook's signature
        """Build the bundle; abort the installation with a message if that fails."""
        if self.is_built():
            return
        # Plain "deno" is found since pip, build and uv put the build environment's programs first on PATH.
        completed = subprocess.run(
            [*COMMAND, f"--output={self.stamp.parent / 'index.js'}", "src/index.tsx"],
            cwd=self.source,
            env={"DENO_TLS_CA_STORE": "system,mozilla", **os.environ},
            check=False,
        )
        if completed.returncode:
            self.app.abort("The page did not build (see above). It needs the npm registry once; a release comes built.")
        self.stamp.write_text(self.digest())
