"""The exceptions of the recorder.

RecorderError         the message says what went wrong and what to do
├── UsageError        the program uses the recorder in a way that can't work; also a ValueError
│   ├── ScheduleError a schedule that can't be followed
│   └── UnknownArgumentError   a keyword argument that doesn't exist; also a TypeError
├── ProfilerBusyError      another profiler is recording in this process
└── SaveError         a trace couldn't be written; logged, never raised into a training
"""

from __future__ import annotations


class RecorderError(Exception):
    """What went wrong and what to do about it."""


class UsageError(RecorderError, ValueError):
    """An invalid call: wrong arguments, wrong place or wrong thread."""


class ScheduleError(UsageError):
    """A schedule that can't be followed."""


class UnknownArgumentError(UsageError, TypeError):
    """A keyword argument that a function doesn't have, with what to write instead."""


class ProfilerBusyError(RecorderError):
    """Another profiler is recording in this process; torch crashes when two of them overlap."""


class SaveError(RecorderError):
    """A trace that couldn't be written."""
