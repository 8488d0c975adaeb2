"""What docs and comments mention of the code is there: files, symbols, and make targets."""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = ("producer", "tb_plugin", "frontend", "tests", "samples")
GUIDES = ("CONTRIBUTING.md", "docs/architecture.md")  # pages that speak of the code itself
EXAMPLES = {"streams.py", "test_streams.py", "run.json"}  # what the guides have the reader write, and what a job writes
FILE = re.compile(r"(?<![\w/.{}*<-])((?:[\w.-]+/)*[\w.-]+\.(?:py|c|h|tsx?|toml|css))\b(?![\w/{}*(])")
SYMBOL = re.compile(
    r"^(?:[a-z]\w*\.)?(_?[A-Z]{2}[A-Z0-9_]+|[A-Z][a-z]+(?:[A-Z][a-z]+)*|_?[a-z]+(?:_[a-z0-9]+)+)(?:\(.*\))?$"
)


@cache
def files() -> list[str]:
    """The files of the project, those that aren't committed yet included."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode:
        pytest.skip("this is no git checkout")
    return [path for path in listing.stdout.split("\0") if path and (ROOT / path).is_file()]


@cache
def endings() -> set[str]:
    """Every path of a file, from any of its folders on."""
    return {"/".join(parts[i:]) for path in files() for parts in [path.split("/")] for i in range(len(parts))}


@cache
def words() -> set[str]:
    """Every word of the code."""
    sources = [path for path in files() if path.split("/")[0] in CODE or "/" not in path]
    texts = (
        (ROOT / path).read_text(encoding="utf-8", errors="replace") for path in sources if not path.endswith(".md")
    )
    return {word for text in texts for word in re.findall(r"\w+", text)} | {Path(path).stem for path in files()}


def code_in(page: str) -> list[str]:
    """What a page has as code within its sentences."""
    text = re.sub(r"^ *```.*?^ *```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"`([^`]+)`", text)


@pytest.mark.parametrize("guide", GUIDES)
def test_guides_name_files_that_exist(guide):
    named = {path for code in code_in(guide) for path in FILE.findall(code)}
    assert {path for path in named - endings() if path.rpartition("/")[2] not in EXAMPLES} == set()


@pytest.mark.parametrize("guide", GUIDES)
def test_guides_name_symbols_that_exist(guide):
    named = {match[1] for code in code_in(guide) if (match := SYMBOL.match(code))}
    assert named - words() == set()


def test_pages_name_make_targets_that_exist():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    pages = [path for path in files() if path.endswith(".md")]
    assert {name for page in pages for code in code_in(page) for name in re.findall(r"^make (\w+)", code)} <= targets


def test_comments_name_files_that_exist():
    sources = [
        path for path in files() if path.split("/")[0] in CODE and path.endswith((".py", ".c", ".h", ".ts", ".tsx"))
    ]
    rooms = {part for path in sources for part in path.split("/")[:-1] if not path.startswith(("tests", "samples"))}
    rooms -= {"tests"}  # other projects have such a folder too
    named = {
        (source, path)
        for source in sources
        for path in FILE.findall((ROOT / source).read_text(encoding="utf-8"))
        if path.split("/")[0] in rooms and "/" in path
    }
    assert {(source, path) for source, path in named if path not in endings()} == set()
