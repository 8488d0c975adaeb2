"""What the recorder's `run.json` says about a whole run: its program, versions, size and begin.

The file is as untrusted as a trace.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kinetoscope.output.manifest import NAME

from ..filesystem import last_part
from .manifest_notes import content_of, dicts

MOST_TEXT = 200


@dataclass(frozen=True)
class RunFacts:
    """Facts about a run; empty or 0: unknown.

    Args:
        program: Its first argument: a script or a module.
        arguments: The others.
        torch: Version of torch.
        cuda: Version of CUDA that torch was built for.
        world_size: Number of processes of the job.
        started_ns: Unix time at which its first window began.
    """

    program: str = ""
    arguments: str = ""
    torch: str = ""
    cuda: str = ""
    world_size: int = 0
    started_ns: int = 0


def run_facts(recording: str) -> RunFacts:
    """The facts in the run.json next to a recording; none of them if there is no such file, or it can't be used."""
    folder = recording[: -len(last_part(recording))]
    content = content_of(f"{folder}{NAME}") or {}
    argv = content.get("argv")
    words = [word for word in argv if isinstance(word, str)] if isinstance(argv, list) else []
    windows = dicts(content.get("windows"))
    return RunFacts(
        " ".join(words[:1])[:MOST_TEXT],
        " ".join(words[1:])[:MOST_TEXT],
        _text(content.get("torch_version")),
        _text(content.get("cuda_version")),
        _count(content.get("world_size")),
        min(filter(None, (_count(window.get("started_ns")) for window in windows)), default=0),
    )


def _text(value: Any) -> str:
    return value[:MOST_TEXT] if isinstance(value, str) else ""


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 62 else 0
