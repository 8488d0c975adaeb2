"""The error files of torchrun: what ranks that ended with an exception wrote, if their program has `@record`.

torchrun sets TORCHELASTIC_ERROR_FILE to `{log_dir}/{run}_{random}/attempt_{n}/{local rank}/error.json`, and torch's
`record` writes `{"message": {"message": "KeyError: 'x'", "extraInfo": {"py_callstack": traceback, "timestamp": "s"}}}`
there (torch/distributed/elastic/multiprocessing/errors/error_handler.py). Anyone may have written the file: each value
is checked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kinetoscope.journal.ending import Ending, ErrorText, ending_of
from kinetoscope.journal.status import RankStatus

from ...names.regex import regex
from .values import integer

NAME = "error.json"
MOST_BYTES = 1 << 20
SECOND = 1_000_000_000
_MOST_FRAMES, _MOST_RANK = 64, 1 << 16
_FOLDERS = regex(r"(?:^|.*/)attempt_(\d{1,6})/(\d{1,6})/error\.json$")
_FRAME = regex(r'  File "([^"\n]{1,300})", line (\d{1,9}), in ([^\n]{1,300})')
_ERROR = regex(r"^([A-Za-z_][\w.]{0,200})(?:: .*)?$")
_PACKAGES = regex(r"^.*?(?:site|dist)-packages/(.+?)(?:/__init__)?\.py$")
_CHAINS = ("The above exception was the direct cause", "During handling of the above exception")


def attempt_and_rank(path: str) -> tuple[int, int] | None:
    """The attempt and the local rank that an error file is of; None if torchrun doesn't name files so."""
    match = _FOLDERS.match(path.replace("\\", "/"))
    return (int(match[1]), int(match[2])) if match and int(match[2]) < _MOST_RANK else None


def ending_in(data: bytes) -> Ending | None:
    """How a rank ended, by its error file; None if it isn't one. The time is that of the second in which it ended."""
    try:
        message = _mapping(_mapping(json.loads(data)).get("message"))
    except (ValueError, RecursionError):
        return None
    more, title = _mapping(message.get("extraInfo")), message.get("message")
    seconds, stack = integer(more.get("timestamp")), more.get("py_callstack")
    if not isinstance(title, str) or seconds is None:
        return None
    blocks = _blocks(stack if isinstance(stack, str) else "")
    name, _, text = title.partition(": ")
    first = blocks[0] if len(blocks) > 1 else []
    ending = ending_of(
        {
            "ns": seconds * SECOND,
            "exception": {"type": _type(blocks[-1]) or name, "message": text},
            "calls": _calls(blocks[-1]),
        }
    )
    return None if ending is None else replace(ending, is_exact=False, cause=_error(first))


def statuses_of(endings: Mapping[int, Ending], world_size: int) -> tuple[RankStatus, ...]:
    """The states of ranks that left error files; nothing is known of the others."""
    return tuple(_status(rank, ending, world_size) for rank, ending in sorted(endings.items()))


def _blocks(stack: str) -> list[list[str]]:
    """The lines of each traceback of a chain, that of the first exception first."""
    blocks: list[list[str]] = [[]]
    for line in stack.splitlines():
        if line.startswith(_CHAINS):
            blocks.append([])
        else:
            blocks[-1].append(line)
    return blocks


def _calls(lines: Sequence[str]) -> list[list[Any]]:
    """File, line and function of each call, the innermost first; functions of packages with their module."""
    matches = [match for line in lines if (match := _FRAME.match(line))][-_MOST_FRAMES:]
    return [[file, int(line), _module(file) + function] for file, line, function in (m.groups() for m in matches[::-1])]


def _module(file: str) -> str:
    match = _PACKAGES.match(file.replace("\\", "/"))
    return f"{match[1].replace('/', '.')}." if match else ""


def _type(lines: Sequence[str]) -> str:
    """The class of the exception that a traceback ends with, with its module; empty if there is none."""
    after = next((nth for nth in range(len(lines), 0, -1) if lines[nth - 1].startswith(" ")), 0)
    match = _ERROR.match(lines[after]) if after < len(lines) else None
    return match[1] if match else ""


def _error(lines: Sequence[str]) -> ErrorText | None:
    name = _type(lines)
    line = next((line for line in reversed(lines) if line.startswith(name)), "")
    return ErrorText(name, line[len(name) :].removeprefix(": ")[:300]) if name else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _status(rank: int, ending: Ending, world_size: int) -> RankStatus:
    return RankStatus(
        rank=rank,
        world_size=world_size,
        host="",
        pid=0,
        state="ended",
        reason=f"exception: {ending.exception.type}" if ending.exception else None,
        ending=ending,
        ignored_signal=None,
        completed=None,
        step_s=None,
        usual_step_s=None,
        current_step_s=None,
        saved_steps=0,
        recording_since_step=None,
        is_recording=False,
        is_recovered=False,
        listens=False,
        records=False,
        doubt=None,
        age_s=0.0,
        written_ns=ending.ns,
    )
