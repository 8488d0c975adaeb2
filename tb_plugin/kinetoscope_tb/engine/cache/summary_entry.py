"""The summary of one recording for views of many, as bytes, and as one file of the cache.

A summary's bytes have the format of `columns`. They don't name their recording: another process or machine may have
computed them. The head of the cache entry, whose only column they are, names it.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cached_property
from typing import IO, Any

import numpy as np

from ...distributed.model import FRAMES, Summary
from ...distributed.validation import problem_of
from .columns import Reader, Writer
from .values import BrokenEntry, mapping

MAGIC = b"kinetoscope ranks\n"
_SUMMARY_MAGIC = b"kinetoscope facts\n"
MOST_BYTES = 1 << 26  # of a summary from elsewhere


class ImpossibleSummary(BrokenEntry):
    """A summary with impossible values; its bytes are intact."""


@dataclass(frozen=True)
class PackedSummary:
    """A summary as bytes; untrusted, because anyone who can write to a logdir may have written it."""

    data: bytes

    @cached_property
    def summary(self) -> Summary:
        """The summary.

        Raises:
            BrokenEntry: The bytes are damaged or forged.
            ImpossibleSummary: Its values are impossible.
        """
        reader = Reader.of(self.data, _SUMMARY_MAGIC)
        frame_heads = mapping(reader.head.get("frames"))
        frames = {name: reader.frame(frame_heads.get(name), schema) for name, schema in FRAMES.items()}
        summary = Summary(facts=mapping(reader.json(reader.head.get("facts"))), **frames)
        problem = problem_of(summary)
        if problem:
            raise ImpossibleSummary(problem)
        return summary


def pack_summary(summary: Summary) -> PackedSummary:
    """The summary as bytes."""
    file = io.BytesIO()
    writer = Writer(file, _SUMMARY_MAGIC)
    frames = {name: writer.frame(getattr(summary, name)) for name in FRAMES}
    writer.end({"frames": frames, "facts": writer.json(dict(summary.facts))})
    return PackedSummary(file.getvalue())


def write(file: IO[bytes], entry: PackedSummary, source: dict[str, Any]) -> None:
    """Write the summary to an empty file; `source` identifies the recording, as JSON values."""
    writer = Writer(file, MAGIC)
    writer.end({"source": source, "summary": writer.array(np.frombuffer(entry.data, "u1"))})


def read(reader: Reader) -> PackedSummary:
    """The summary in the entry.

    Raises:
        BrokenEntry: It is forged.
    """
    entry = PackedSummary(reader.array(reader.head.get("summary"), "|u1").tobytes())
    _ = entry.summary  # raises here if it can't be used
    return entry
