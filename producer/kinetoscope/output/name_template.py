"""Names with variables, such as `rank{rank}.{batch}.pt.trace.json`: those of Composer's format strings.

This module imports nothing but the standard library.
"""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..job.rank_info import RankInfo

TRACE = "rank{rank}.{batch}.pt.trace.json.gz"
"""The default name of traces."""


_CONVERSIONS: dict[str, Callable[[object], str]] = {"r": repr, "s": str, "a": ascii}


def format_name(template: str, values: Mapping[str, Any]) -> str:
    """Insert the values into a template; a variable without a value stays unchanged.

    None counts as no value. Formats such as `{batch:06d}` are Python's; one that doesn't fit its value stays unchanged,
    too. `{{` is a brace.
    """
    parts = []
    for text, name, format_spec, conversion in string.Formatter().parse(template):
        parts.append(text)
        if name is not None:
            parts.append(_value(name, format_spec or "", conversion, values))
    return "".join(parts)


def _value(name: str, format_spec: str, conversion: str | None, values: Mapping[str, Any]) -> str:
    value = values.get(name)
    if value is not None:
        try:
            converted = _CONVERSIONS[conversion](value) if conversion else value
            return format(converted, format_spec)
        except (ValueError, KeyError):
            pass
    placeholder = name + (f"!{conversion}" if conversion else "") + (f":{format_spec}" if format_spec else "")
    return "{" + placeholder + "}"


def variables(template: str) -> set[str]:
    """Return the variables of a template.

    Raises:
        ValueError: Its braces don't match.
    """
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


def fixed_prefix(template: str) -> str:
    """Return the common prefix of a template's names: all of it, or the folders before its first variable."""
    fixed = ""
    for text, name, _, _ in string.Formatter().parse(template):
        fixed += text
        if name is not None:
            return fixed[: fixed.rfind("/") + 1]
    return fixed


def gz_name(name: str) -> str:
    """Return the name of a compressed file: with `.gz` appended, unless it has it already."""
    return name if name.endswith(".gz") else f"{name}.gz"


def rank_values(rank_info: RankInfo, run: str, local_world_size: int | None = None) -> dict[str, Any]:
    """Return the variables that are constant in a run; without a launcher, those of a single process."""
    return {
        "run_name": run,
        "rank": rank_info.global_rank,
        "local_rank": rank_info.local_rank or 0,
        "world_size": rank_info.world_size,
        "local_world_size": local_world_size or 1,
        "node_rank": rank_info.node_rank or 0,
    }
