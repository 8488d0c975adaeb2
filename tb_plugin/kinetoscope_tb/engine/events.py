"""Single events of a file, as it has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import TraceError
from ..filesystem import entry_at
from ..reader.event import event_length

if TYPE_CHECKING:
    from ..discovery import TraceFile
    from ..reader.event import Event, EventTexts
    from ..trace import Trace


def event_in(file: TraceFile, trace: Trace, offset: int, texts: EventTexts) -> Event:
    """The event of a trace that begins at this byte of its file's text.

    Raises:
        NotFound: No row of the trace belongs to such an event.
        TraceError: The file can't be read, or changed since the trace was read.
    """
    length = event_length(trace, offset)
    _fail_if_changed(file)
    event = texts.event(file.path, file.stamp, offset, length)
    _fail_if_changed(file)
    return event


def _fail_if_changed(file: TraceFile) -> None:
    entry = entry_at(file.path)
    if entry is None or entry.stamp != file.stamp:
        how = "is gone" if entry is None else "has changed"
        raise TraceError(file.path, f"the file {how} since it was read, and the event with it. Open the trace again.")
