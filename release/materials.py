"""The software bill of materials of a release, in CycloneDX: what is installed with it, and what is in its page.

cyclonedx-bom lists the packages of a fresh environment with the release, their licenses, and which needs which. The npm
packages in the page's bundle are added: their names, versions and licenses are in static/licenses.txt, their digests in
Deno's lock file.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
_PACKAGE = re.compile(r"^(@?[\w./-]+) (\d\S*)\n\n(.*?)(?=\n{3}|\n?\Z)", re.MULTILINE | re.DOTALL)


def bill_of_materials(root: Path, wheels: Path, version: str, environment: dict[str, str]) -> dict[str, Any]:
    """The bill as JSON.

    Args:
        root: The repository.
        wheels: The folder with the wheels.
        version: Of the release.
        environment: The variables of the processes.
    """
    bill: dict[str, Any] = json.loads(_of_packages(wheels, version, environment))
    needs = {entry["ref"]: entry for entry in bill["dependencies"]}
    ref = f"kinetoscope=={version}"
    (viewer,) = (component for component in bill["components"] if component["bom-ref"] == ref)
    bill["components"].remove(viewer)
    bill["metadata"]["component"] = viewer | {"type": "application"}
    page = _of_page(root)
    bill["components"] += page
    needs[ref]["dependsOn"] = [*needs[ref].get("dependsOn", []), *(component["bom-ref"] for component in page)]
    bill["dependencies"] += [{"ref": component["bom-ref"]} for component in page]
    return bill


def _of_packages(wheels: Path, version: str, environment: dict[str, str]) -> str:
    """What cyclonedx-bom says of an environment with the release and what it needs."""
    ours = [f"kinetoscope=={version}", f"kinetoscope-recorder=={version}"]
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=False)
        python = Path(folder, "Scripts" if os.name == "nt" else "bin", "python")
        pip = [*PIP, "--python", str(python), "install"]
        subprocess.run([*pip, "--no-index", "--no-deps", "--find-links", str(wheels), *ours], check=True)
        subprocess.run([*pip, *ours], check=True)  # now from the index, what they need
        listing = [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "cyclonedx_py",
            "environment",
            "--output-reproducible",
            str(python),
        ]
        return subprocess.run(listing, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout


def _of_page(root: Path) -> list[dict[str, Any]]:
    """The npm packages in the page."""
    notices = (root / "tb_plugin/kinetoscope_tb/static/licenses.txt").read_text(encoding="utf-8")
    lock = json.loads((root / "frontend/deno.lock").read_text(encoding="utf-8"))["npm"]
    digests = {re.match(r"@?[^@]+@[^_]+", name)[0]: package["integrity"] for name, package in lock.items()}  # type: ignore[index]
    return [
        {
            "type": "library",
            "bom-ref": f"npm:{name}@{version}",
            "name": name,
            "version": version,
            "purl": f"pkg:npm/{name.replace('@', '%40', 1)}@{version}",
            "hashes": [{"alg": "SHA-512", "content": _hexadecimal(digests[f"{name}@{version}"])}],
            "licenses": [{"license": {"name": text.partition("\n")[0], "text": {"content": text}}}],
        }
        for name, version, text in _PACKAGE.findall(notices)
    ]


def _hexadecimal(integrity: str) -> str:
    """The digits of npm's `sha512-…`."""
    return base64.b64decode(integrity.removeprefix("sha512-")).hex()
