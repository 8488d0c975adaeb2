"""The text of CREATE TABLE → the columns of a table, in time proportional to the text.

Nothing of it is evaluated: a table with anything computed is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..names.regex import regex

_TOKEN = regex(
    r"""--[^\n]*|/\*.*?(?:\*/|\Z)|\s+  # skipped
    |(?P<token>"(?:[^"]|"")*(?:"|\Z)|`(?:[^`]|``)*(?:`|\Z)|'(?:[^']|'')*(?:'|\Z)|\[[^\]]*(?:\]|\Z)|[\w$]+|.)""",
    re.VERBOSE | re.DOTALL,
)
_QUOTES = {'"': '"', "`": "`", "'": "'", "[": "]"}
_CONSTRAINTS = frozenset({"CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"})
_AFTER_TYPE = frozenset(
    {"CONSTRAINT", "PRIMARY", "NOT", "NULL", "UNIQUE", "CHECK", "DEFAULT", "COLLATE", "REFERENCES", "GENERATED", "AS"}
)
Tokens = list[tuple[str, int]]
"""Words and signs, and how many parentheses each is in."""


@dataclass(frozen=True)
class Table:
    """An ordinary table: its rows have numbers, and all its columns are stored.

    Args:
        root: The first page of its tree.
        columns: Its columns, in the order in which rows store them.
        key: The column that is the row number itself, which rows don't store.
    """

    root: int
    columns: tuple[str, ...]
    key: int | None = None


def ordinary_table(sql: str) -> tuple[tuple[str, ...], int | None] | str:
    """The columns of a table and the place of the one that is the row number; a text says why it can't be read."""
    tokens = list(_tokens(sql))
    begin = [token.upper() for token, _ in tokens[:2]]
    if begin != ["CREATE", "TABLE"]:
        return "it is a virtual table" if begin == ["CREATE", "VIRTUAL"] else "its definition is damaged"
    end = tokens.index((")", 0)) if (")", 0) in tokens else len(tokens)
    if "WITHOUT" in (token.upper() for token, _ in tokens[end:]):
        return "its rows have no numbers (WITHOUT ROWID)"
    integers: dict[str, bool] = {}  # whether each column's type is INTEGER
    key = None
    for part in _parts([(token, depth) for token, depth in tokens[:end] if depth]):
        words = [token.upper() for token, depth in part if depth == 1]
        if part[0][0].upper() in _CONSTRAINTS:
            key = key or _key_of(part, integers)
        elif "AS" in words[1:]:
            return "it has computed columns"
        else:
            name = _unquote(part[0][0])
            integers[name] = _column_type(words[1:]) == ["INTEGER"]
            key = name if integers[name] and _is_key(words) else key
    columns = tuple(integers)
    return (columns, None if key is None else columns.index(key)) if columns else "its columns are unknown"


def _tokens(sql: str) -> Iterator[tuple[str, int]]:
    depth = 0
    for match in _TOKEN.finditer(sql):
        word = match["token"]
        depth -= word == ")"
        if word is not None:
            yield word, depth
        depth += word == "("


def _parts(tokens: Tokens) -> Iterator[Tokens]:
    """The definitions between commas."""
    part: Tokens = []
    for token in [*tokens, (",", 1)]:
        if token != (",", 1):
            part.append(token)
        elif part:
            yield part
            part = []


def _column_type(words: list[str]) -> list[str]:
    end = next((at for at, word in enumerate(words) if word in _AFTER_TYPE), len(words))
    return words[:end]


def _is_key(words: list[str]) -> bool:
    """Whether a column of type INTEGER is the row number; by a quirk it isn't if its order is DESC."""
    at = words.index("PRIMARY") if "PRIMARY" in words else len(words)
    return words[at : at + 2] == ["PRIMARY", "KEY"] and words[at + 2 : at + 3] != ["DESC"]


def _key_of(constraint: Tokens, integers: dict[str, bool]) -> str | None:
    """The column that a constraint of a table makes the row number."""
    if not _is_key([token.upper() for token, _ in constraint]):
        return None
    names = [_unquote(token) for token, depth in constraint if depth == 2]
    name = next((integer for integer in integers if names and integer.upper() == names[0].upper()), None)
    return name if name is not None and "," not in names and integers[name] else None


def _unquote(token: str) -> str:
    end = _QUOTES.get(token[:1])
    return token if end is None else token[1:].removesuffix(end).replace(end * 2, end)
