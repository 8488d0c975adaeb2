"""`make site`: every link of the pages leads somewhere, and nothing is loaded from elsewhere."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from newcomer.installing import ROOT


@dataclass
class Parsed(HTMLParser):
    """What a page refers to."""

    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values["id"]} if "id" in values else set()
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag == "link" and values.get("rel") not in ("canonical", "prev", "next"):
            self.loads.append(values["href"])
        elif "src" in values:
            self.loads.append(values["src"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Parsed]:
    pages = {}
    for path in site.rglob("*.html"):
        pages[path] = Parsed()
        pages[path].feed(path.read_text(encoding="utf-8"))
    return pages


def test_each_page_of_docs_is_on_the_site(site: Path) -> None:
    names = [path.stem for path in (ROOT / "docs").glob("*.md")]
    assert len(names) > 30
    assert [name for name in ["index", "contributing", *names] if not (site / f"{name}.html").exists()] == []


def test_links_lead_to_pages_and_headings_of_the_site(pages: dict[Path, Parsed]) -> None:
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or path.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists() or (parts.fragment and parts.fragment not in pages[target].anchors):
                broken.append((path.name, link))
    assert broken == []


def test_nothing_is_loaded_from_elsewhere(pages: dict[Path, Parsed]) -> None:
    assert {
        load for page in pages.values() for load in page.loads if urlsplit(load).scheme not in ("", "data")
    } == set()


def test_the_search_knows_words_of_every_page(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    pages = {entry["location"].partition("#")[0] for entry in index["docs"] if "speedscope" in entry["text"]}
    assert "other-viewers.html" in pages
