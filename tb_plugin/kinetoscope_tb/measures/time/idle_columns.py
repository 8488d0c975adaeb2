"""Columns of idle time by cause: each has one name and one title, and what it says of them is the table's own."""

from __future__ import annotations

from collections.abc import Mapping

from ...table import DURATION, Column, ColumnGroup
from .host_activity import ACTIVITY_WORDS
from .idle_causes import CAUSE_WORDS

_NAMES = {"runtime call": "runtime", "nothing recorded": "unrecorded"}
"""What columns call activities of the host, where it isn't their own name."""


def columns_of_causes(docs: Mapping[str, str]) -> ColumnGroup:
    """Columns of causes of idle time, in the order of their definitions."""
    return _columns({cause: f"{_words_in_name(cause)}_ns" for cause in docs}, CAUSE_WORDS, docs)


def columns_of_activities(docs: Mapping[str, str]) -> ColumnGroup:
    """Columns of what the host does while a device waits for it, in the order of their definitions."""
    names = {activity: f"late_{_words_in_name(_NAMES.get(activity, activity))}_ns" for activity in docs}
    return _columns(names, ACTIVITY_WORDS, docs)


def _columns(names: Mapping[str, str], words: Mapping[str, str], docs: Mapping[str, str]) -> ColumnGroup:
    titles = {of: "" if words[of] == of.capitalize() else words[of] for of in docs}
    return ColumnGroup({names[of]: Column(DURATION, doc, title=titles[of]) for of, doc in docs.items()})


def _words_in_name(words: str) -> str:
    return words.replace(" ", "_")


IN_ITERATIONS = columns_of_causes(
    {
        "host late": "Idle in the total while nothing was queued, as in the view Idle and overlap.",
        "launch latency": "Idle just after the launch of what came next, as there.",
        "dependency": "Idle while queued work waited for another stream, as there.",
        "blocked copy": "Idle while queued and the host was in a copy or synchronizing call, as there.",
        "graph launch": "Idle while the call that launches the next graph hadn't returned, as there.",
        "not shown": "Launch or work not recorded: the device may have run other work, as there.",
        "unexplained": "Idle while queued and waiting for nothing recorded, as there.",
    }
)
"""The causes in iterations of a server, of one or of a phase."""
