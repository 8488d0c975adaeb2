"""What the page contains of others comes with its license, wherever the page goes."""

import json
import re
from pathlib import Path

from kinetoscope_tb.web.assets import asset
from kinetoscope_tb.web.report import _page

ROOT = Path(__file__).parents[2]
FRONTEND = ROOT / "frontend"


def bundled_packages():
    """The npm packages that the page imports, and those that these need, with their versions, from the lock."""
    lock = json.loads((FRONTEND / "deno.lock").read_text(encoding="utf-8"))["npm"]
    locked = {name.partition("_")[0].rpartition("@")[0]: name for name in lock}
    text = "".join(path.read_text(encoding="utf-8") for path in FRONTEND.glob("src/**/*.ts*"))
    pending = [name for name in re.findall(r'from "([^"./][^"]*)"', text) if name in locked]
    packages = {}
    while pending:
        name = pending.pop()
        if name not in packages:
            packages[name] = locked[name].partition("_")[0].rpartition("@")[2]
            pending += lock[locked[name]].get("dependencies", [])
    return packages


def test_each_package_in_the_page_has_its_license():
    notices = asset("licenses.txt")[0].decode()
    packages = bundled_packages()
    assert {"preact", "@preact/signals", "@preact/signals-core"} <= packages.keys()
    for name, version in packages.items():
        own = notices.partition(f"\n{name} {version}\n")[2].partition("\n\n\n")[0]
        assert "Copyright (c)" in own, name
        assert "Permission is hereby granted" in own, name


def test_the_wheel_names_the_licenses_among_its_own():
    assert "static/licenses.txt" in (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("license-files")[2]


def test_the_recorder_has_the_license_of_the_project():
    assert (ROOT / "producer" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_a_report_has_them_too():
    assert "Jason Miller" in _page("{}", "Report", "", "")
