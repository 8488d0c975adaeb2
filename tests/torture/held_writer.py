"""The process that writes traces, which stops in the middle of a trace until the training has ended.

It leaves a file `merging` in the training's folder when it has begun one.
"""

import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

from kinetoscope.output import commit, writer_process
from support.waiting import wait_for


def main(queue, parent, places):
    """Run `writer_process.main` on a spool, with its arguments as strings."""
    merge_events = commit.merge_events

    def wait_and_merge(source, packed, *more):
        Path(os.environ["TORTURE"], "merging").touch()
        wait_for(lambda: _is_over(Path(queue), int(parent)))
        return merge_events(source, packed, *more)

    commit.merge_events = wait_and_merge
    writer_process.main(queue, int(parent), json.loads(places))


def hold_snapshots(queue, parent, places):
    """Run `writer_process.main`, which stops in the middle of a memory snapshot instead."""
    copy = shutil.copyfileobj

    def wait_and_copy(source, target, length):
        target.write(source.read(100))
        target.flush()
        Path(os.environ["TORTURE"], "merging").touch()
        wait_for(lambda: _is_over(Path(queue), int(parent)))
        copy(source, target, length)

    commit.shutil = SimpleNamespace(copyfileobj=wait_and_copy)
    writer_process.main(queue, int(parent), json.loads(places))


def _is_over(queue, parent):
    try:
        state = json.loads((queue / "process.json").read_text())["state"]
    except FileNotFoundError:  # the spool was deleted
        state = "ended"
    return os.getppid() != parent or state == "ended"
