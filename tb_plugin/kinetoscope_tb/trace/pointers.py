"""Which columns of a trace point to rows of which frame."""

from __future__ import annotations

POINTERS = {
    "host_events": {"thread": "threads", "parent": "host_events", "step": "steps"},
    "launches": {"thread": "threads", "host": "host_events", "op": "host_events", "step": "steps"},
    "device_events": {"launch": "launches", "op": "host_events", "step": "steps"},
    "memory": {"thread": "threads", "op": "host_events"},
    "python_calls": {"thread": "threads", "parent": "python_calls"},
    "flows": {"thread": "threads"},
    "collectives": {"host_event": "host_events", "device_event": "device_events"},
    "others": {"thread": "threads"},
}
"""Of each frame its columns that are row indices, or NONE. A parent is a row above its children's."""
