"""The changelog of a release: what was unreleased becomes its section, with its date."""

from __future__ import annotations

import re

UNRELEASED = "## Unreleased"


class NotReleasable(Exception):
    """This can't be released; the text says why, and what to do."""


def changelog_of_release(text: str, version: str, date: str) -> str:
    """The changelog with a dated section of this version, and an empty one for what comes next.

    One that has this section already is returned as it is, so that a release can be made again.

    Args:
        text: The changelog.
        version: Such as 0.2.0.
        date: Such as 2026-11-26.

    Raises:
        NotReleasable: Nothing is unreleased, or an earlier release had this version.
    """
    before, heading, after = text.partition(f"{UNRELEASED}\n")
    if not heading:
        raise NotReleasable(f'CHANGELOG.md has no section "{UNRELEASED}".')
    news, _, rest = after.partition("\n## ")
    earlier = f"## {rest}" if rest else ""
    if earlier.startswith(f"## {version} - ") and not news.strip():
        return text
    if re.search(rf"^## {re.escape(version)}\b(?!\.)", earlier, re.MULTILINE):
        raise NotReleasable(f"CHANGELOG.md has a section {version} already. Choose a later version.")
    if not news.strip():
        raise NotReleasable(f'The section "{UNRELEASED}" of CHANGELOG.md is empty.')
    return f"{before}{heading}\n## {version} - {date}\n\n{news.strip()}\n\n{earlier}"


def date_of(text: str, version: str) -> str:
    """The date of a version's section."""
    return re.search(rf"^## {re.escape(version)} - (\S+)$", text, re.MULTILINE)[1]  # type: ignore[index]


def newest_version(text: str) -> str:
    """The version of the newest section that is released."""
    return re.findall(r"^## (\d\S*)", text, re.MULTILINE)[0]
