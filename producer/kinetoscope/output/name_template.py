"""Names with variables, such as `rank{rank}.{batch}.pt.trace.json`: those of Composer's format strings.

This module imports nothing but the standard library.
"""

from __future__ import annotations

import string
from dataclasses import fields
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from ..progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..job.rank_info import RankInfo

TRACE = "rank{rank}.{batch}.pt.trace.json.gz"
"""The default name of traces."""

VARIABLES = (
    *("run_name", "rank", "local_rank", "world_size", "local_world_size", "node_rank"),
    *(field.name for field in fields(Progress)),
)
"""The variables of names of files."""

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
            text = _CONVERSIONS[conversion](value) if conversion else value
            return format(text, format_spec)
        except (ValueError, KeyError):
            pass
    return _placeholder(name, format_spec, conversion)


def _placeholder(name: str, format_spec: str, conversion: str | None) -> str:
    """Return a variable as a template has it."""
    conversion, format_spec = f"!{conversion}" if conversion else "", f":{format_spec}" if format_spec else ""
    return f"{{{name}{conversion}{format_spec}}}"


def variables(template: str) -> set[str]:
    """Return the variables of a template.

    Raises:
        ValueError: Its braces don't match.
    """
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


def unknown_variables(template: str) -> str:
    """Return what is wrong with a template's variables, and which ones there are; empty if it has no others.

    Raises:
        ValueError: Its braces don't match.
    """
    unknown_names = sorted(variables(template) - set(VARIABLES))
    if not unknown_names:
        return ""
    close = get_close_matches(unknown_names[0], VARIABLES, 1)
    hint = f" Do you mean {{{close[0]}}}?" if close else ""
    valid_names = ", ".join(f"{{{name}}}" for name in VARIABLES)
    problem = f"{template!r} has {{{unknown_names[0]}}}, which isn't a variable."
    return f"{problem}{hint} There are {valid_names}; {{{{ is a brace."


def escape_unknown(template: str) -> str:
    """Return a template without unknown variables, whose names have these in braces, as Composer's do."""
    unknown_names = variables(template) - set(VARIABLES)
    parts = []
    for text, name, format_spec, conversion in string.Formatter().parse(template):
        parts.append(text.replace("{", "{{").replace("}", "}}"))
        if name is not None:
            placeholder = _placeholder(name, format_spec or "", conversion)
            parts.append(f"{{{placeholder}}}" if name in unknown_names else placeholder)
    return "".join(parts)


def trace_file(name: str, ending: str = ".pt.trace.json.gz") -> str:
    """Return the name of a trace: with an ending by which the page finds it, if it has neither `.json` nor `.gz`."""
    return name if name.endswith((".json", ".gz")) else f"{name}{ending}"


def fixed_prefix(template: str) -> str:
    """Return the common prefix of a template's names: all of it, or the folders before its first variable."""
    prefix = ""
    for text, name, _, _ in string.Formatter().parse(template):
        prefix += text
        if name is not None:
            return prefix[: prefix.rfind("/") + 1]
    return prefix


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
