"""What git holds belongs to the project alone."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SYMBOLIC_LINK = "120000"
PERSONAL = re.compile(rb"/(?:home|Users)/(?!user\b|me\b|you\b|u\b|someone\b)[a-z][\w.-]+/|/tmp/tmp\w{8}")


def tracked() -> list[tuple[str, str]]:
    """The mode and the path of every tracked file."""
    listing = subprocess.run(["git", "ls-files", "-s", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode:
        pytest.skip("this is no git checkout")
    return [(entry.split()[0], entry.partition("\t")[2]) for entry in listing.stdout.split("\0") if entry]


def test_no_symbolic_link_leads_out_of_the_repository():
    links = [path for mode, path in tracked() if mode == SYMBOLIC_LINK]
    assert [link for link in links if not (ROOT / link).resolve().is_relative_to(ROOT)] == []


def test_no_file_names_a_folder_of_one_machine():
    texts = ((path, (ROOT / path).read_bytes()) for mode, path in tracked() if mode != SYMBOLIC_LINK)
    assert {path: names for path, text in texts if (names := set(PERSONAL.findall(text)))} == {}
