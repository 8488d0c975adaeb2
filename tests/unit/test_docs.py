"""The documentation agrees with the code, and its links work."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from kinetoscope_tb.cli.commands import commands

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "SECURITY.md",
    ROOT / "CODE_OF_CONDUCT.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted(ROOT.glob("samples/*/README.md")),
]


def test_the_metrics_page_is_what_make_docs_writes():
    written = CliRunner().invoke(commands, ["views", "--format", "markdown"]).stdout
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert page == written, "`make docs` writes docs/metrics.md from the views' definitions"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path):
    links = re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8"))
    assert [link for link in links if "://" not in link and not (path.parent / link).exists()] == []


def headings(path):
    """The anchors that GitHub gives to the headings of a page."""
    lines = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_to_headings_lead_to_one(path):
    links = re.findall(r"\]\(([^)#:]*)#([^)]+)\)", path.read_text(encoding="utf-8"))
    assert [link for link in links if link[1] not in headings(path.parent / link[0] if link[0] else path)] == []


def test_the_readme_has_two_commands_to_set_up():
    set_up = re.findall(r"^make \w+", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert set_up == ["make demo", "make test"]
