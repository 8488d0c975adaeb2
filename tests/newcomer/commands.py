"""The commands in README and docs, as a newcomer reads them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from newcomer.installing import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^```(?:bash|sh|shell|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_ROW = re.compile(r"^\| `((?:kinetoscope|tensorboard) [^`]*)` \|", re.MULTILINE)


@dataclass(frozen=True)
class Command:
    """A command of a page, in words, without its comment."""

    page: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page}: {shlex.join(self.words)}"


def documented() -> list[Command]:
    """Every command, each once per page: the lines of blocks of a shell, and the rows of tables of commands."""
    found = []
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        lines = [line for block in _BLOCK.findall(text) for line in _lines(block)]
        found += [Command(path.name, words) for line in [*lines, *_ROW.findall(text)] if (words := _words(line))]
    return list(dict.fromkeys(found))


def _lines(block: str) -> list[str]:
    """The lines, with those that end within quotes or with a backslash joined to the next."""
    lines: list[str] = []
    for line in block.splitlines():
        if lines and _is_open(lines[-1]):
            lines[-1] = f"{lines[-1].removesuffix(chr(92))}\n{line}"
        else:
            lines.append(line)
    return lines


def _is_open(line: str) -> bool:
    try:
        shlex.split(line, comments=True)
    except ValueError:
        return True
    return line.endswith("\\")


def _words(line: str) -> tuple[str, ...]:
    return tuple(shlex.split(line, comments=True))
