"""What the site needs besides docs: the pages at the top of the repository, and markdown as Python-Markdown reads it.

mkdocs calls these functions (https://www.mkdocs.org/user-guide/configuration/#hooks).
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index.md",
    **{name: name.lower() for name in ("CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md")},
}
_LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|#)([^)#]+)(#[^)]*)?\)")
_CODE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LIST_AFTER_TEXT = re.compile(r"(^(?!\s|[-|#>]|\d+\. ).+\n)(?=(?:- |1\. ))", re.MULTILINE)


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages at the top of the repository."""
    for name, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: MkDocsConfig, **_: Any) -> str:
    """Lead links of the repository to pages of the site; separate lists from text, and indent in them by four."""
    folder = "." if page.file.src_uri in PAGES.values() else "docs"
    parts = _CODE.split(markdown)
    for number in range(0, len(parts), 2):
        text = _LINK.sub(lambda link: _link(link, folder, config.repo_url), parts[number])
        parts[number] = re.sub(r"^ {3}", " " * 4, _LIST_AFTER_TEXT.sub(r"\1\n", text), flags=re.MULTILINE)
    return "".join(parts)


def _link(link: re.Match[str], folder: str, repository: str | None) -> str:
    """A link to a page of the site, or else to the repository's file; without a repository, its text."""
    text, target, anchor = link[1], posixpath.normpath(posixpath.join(folder, link[2])), link[3] or ""
    page = PAGES.get(target, target.removeprefix("docs/"))
    if target in PAGES or target.startswith("docs/"):
        return f"[{text}]({page}{anchor})"
    return f"[{text}]({repository}/blob/HEAD/{target}{anchor})" if repository else text
