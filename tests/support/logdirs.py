"""Folders of traces that tests make, and what is found in them."""

import json

from kinetoscope_tb.discovery import Logdir, list_traces

NS = "1733770537022695153"
"""A time in a file's name."""


def begins(**top):
    """How a trace begins."""
    return json.dumps({"schemaVersion": 1, **top, "traceEvents": []}).encode()


def make(root, *paths, content=begins()):  # noqa: B008  # bytes
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def listed(root):
    return list_traces([Logdir(str(root))])


def names(listing):
    return [(f.run, f.worker, f.span) for f in listing.files]
