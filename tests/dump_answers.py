"""Dumps what the viewer answers about every recording at hand, so that a redesign can be held against it.

    python tests/dump_answers.py write DIR                every answer of HTTP and of the command line, a file each
    python tests/dump_answers.py compare BEFORE AFTER     every file in which two dumps differ, with the first differences

It knows the viewer by its contract alone (TensorBoard's entry point, routes, commands), so that it runs unchanged
before and after whatever moves inside.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import os
import re
import sys
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tensorboard.plugins.base_plugin import TBContext
from werkzeug.test import Client

from kinetoscope_tb.cli import main as kinetoscope
from kinetoscope_tb.loader import Loader
from support.real_traces import FOLDER
from support.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).resolve().parents[1]
LOGDIRS = {
    "samples": REPOSITORY / "samples",
    "runs": FOLDER / "runs",
    "single": FOLDER / "single",
    "claims": FOLDER / "claims",
    "malformed": FOLDER / "derived_malformed",
    "labelled": FOLDER.parent / "labelled",
    "inference": FOLDER.parent / "inference",
    "torch-2.15": FOLDER.parent / "torch-2.15",
}
WITHIN_S = 600
COMPARED = ("operators", "kernels", "steps")
TERMINAL = ("overview", "operators", "kernels", "steps", "health", "idle", "communication")
COMMANDS = ("cache", "check", "compare", "demo", "event", "export", "index", "merge", "publish", "recover", "repair")
COMMANDS += ("report", "status", "trigger", "view", "views")
SLICES_ASKED = 40
DIFFERENCES_SHOWN = 5


class Page:
    """The routes of the plugin over one logdir, asked as the page asks them."""

    def __init__(self, logdir: Path) -> None:
        context = TBContext(logdir=str(logdir), flags=SimpleNamespace(logdir_spec=None, host=None, bind_all=False))
        self._apps = Loader().load(context).get_plugin_apps()

    def ask(self, route: str, **query: str | int) -> bytes:
        """The body of the answer, once it is no longer being made."""
        client = Client(self._apps[route])
        return wait_for(
            lambda: client.get(route, query_string=query).get_data(),
            WITHIN_S,
            is_right=lambda body: b'"loading"' not in body[:400] or json.loads(body).get("state") != "loading",
        )

    def listing(self) -> Any:
        """The runs, once they are listed."""
        return wait_for(
            lambda: json.loads(self.ask("/runs")), WITHIN_S, is_right=lambda listing: not listing["scanning"]
        )


def answers(logdir: Path) -> Iterator[tuple[str, bytes]]:
    """A name and the body of each answer about a logdir."""
    page = Page(logdir)
    listing = page.listing()
    yield "runs", _without_stamps(json.dumps(listing).encode())
    views = json.loads(page.ask("/views"))
    yield "views", json.dumps(views).encode()
    for run in listing["runs"]:
        known = [
            {"run": run["name"], "worker": worker["name"], "span": span["name"]}
            for worker in run["workers"]
            for span in worker["spans"]
        ]
        stamps = [span["stamp"] for worker in run["workers"] for span in worker["spans"]]
        for names, stamp in zip(known, stamps, strict=True):
            place = "/".join(_file_name(part) for part in names.values())
            for name, body in _of_recording(page, views, names, stamp, is_first=names == known[0]):
                yield f"{place}/{name}", body
        if len(known) > 1:
            base = {f"base_{name}": value for name, value in known[0].items()}
            for view in COMPARED:
                yield f"{_file_name(run['name'])}/compare/{view}", page.ask("/compare", view=view, **known[1], **base)


def _of_recording(
    page: Page, views: list[dict[str, Any]], names: dict[str, str], stamp: str, *, is_first: bool
) -> Iterator[tuple[str, bytes]]:
    yield "state", page.ask("/state", **names)
    yield "answer", page.ask("/answer", **names)
    for view in views:
        if view["scope"] != "recording" and not is_first:
            continue
        yield f"view/{view['id']}", page.ask("/view", view=view["id"], **names)
        for parameter in view["parameters"]:
            for choice in parameter["choices"][1:]:
                arguments = {parameter["name"]: choice}
                yield (
                    f"view/{view['id']}-{parameter['name']}-{choice}",
                    page.ask("/view", view=view["id"], **names, **arguments),
                )
    body = page.ask("/timeline", **names)
    yield "timeline", _without_stamps(body)
    timeline = json.loads(body)
    if timeline["state"] != "ready":
        return
    known = {**names, "stamp": stamp}
    yield "labels", page.ask("/timeline/labels", page=0, **known)
    start, end = timeline["window"]
    level = max(0, (end - start).bit_length() - 9)
    for index in sorted({start >> (level + 9), end >> (level + 9)} - {-1}):
        tracks = range(len(timeline["tracks"]))
        for first in range(0, len(tracks), 500):
            keys = ",".join(f"{track}.{level}.{index}" for track in tracks[first : first + 500])
            yield f"tiles-{index}-{first}", page.ask("/timeline/tiles", k=keys, **known)
    every = max(1, timeline["slices"] // SLICES_ASKED)
    for number in range(0, timeline["slices"], every):
        yield f"slice/{number}", page.ask("/timeline/slice", slice=number, **known)


def _without_stamps(body: bytes) -> bytes:
    """The body without what changes with the path and the time of a file."""
    return re.sub(rb'"stamp": ?"[0-9a-f]+"', b'"stamp": ""', body)


def terminal_outputs() -> Iterator[tuple[str, bytes]]:
    """A name and what each command prints; its exit status stands in the last line."""
    for command in COMMANDS:
        yield f"help/{command}", _printed(command, "--help")
    yield "views", _printed("views")
    yield "views-markdown", _printed("views", "--format", "markdown")
    run = str(LOGDIRS["samples"] / "gloo_2ranks")
    for view in TERMINAL:
        for form in ("text", "csv", "json"):
            yield f"view/{view}.{form}", _printed("view", view, run, "--format", form)
    yield "check", _printed("check", run)
    yield "compare", _printed("compare", run, "--base-worker", "rank0", "--new-worker", "rank1")


def _printed(*arguments: str) -> bytes:
    out, err = io.StringIO(), io.StringIO()
    status: object = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            kinetoscope(arguments)
        except SystemExit as ended:
            status = ended.code
    return f"{out.getvalue()}\n--- stderr\n{err.getvalue()}\n--- exit status {status}\n".encode()


def write(folder: Path) -> None:
    """Write every answer into a folder, which must not exist."""
    folder.mkdir(parents=True)
    for name, logdir in LOGDIRS.items():
        for answer, body in answers(logdir):
            _write(folder / name / answer, body)
        print(name, flush=True)
    for answer, body in terminal_outputs():
        _write(folder / "terminal" / answer, body)


def _write(path: Path, body: bytes) -> None:
    target = path.with_name(path.name + ".gz")
    target.parent.mkdir(parents=True, exist_ok=True)
    text = body.replace(os.fsencode(REPOSITORY), b"REPOSITORY")
    target.write_bytes(gzip.compress(text, 1, mtime=0))


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.=-]", "_", name) or "_"


def compare(before: Path, after: Path) -> int:
    """Print in what two dumps differ; return in how many files."""
    old, new = ({path.relative_to(folder) for path in folder.rglob("*.gz")} for folder in (before, after))
    for path in sorted(old ^ new):
        print(f"{path}: only in {before if path in old else after}")
    different = 0
    for path in sorted(old & new):
        one, other = (_decoded(gzip.decompress((folder / path).read_bytes())) for folder in (before, after))
        shown = list(islice(differences(one, other), DIFFERENCES_SHOWN))
        if shown:
            different += 1
            print(path, *shown, sep="\n    ")
    print(f"{different} of {len(old & new)} files differ; {len(old ^ new)} are in one dump only.")
    return different + len(old ^ new)


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode(errors="replace").splitlines()


def differences(one: Any, other: Any, place: str = "") -> Iterator[str]:
    """Where two JSON values differ, and in what."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in {**one, **other}:
            if key not in one or key not in other:
                yield f"{place}/{key}: only {'before' if key in one else 'after'}"
            else:
                yield from differences(one[key], other[key], f"{place}/{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (a, b) in enumerate(zip(one, other, strict=True)):
            yield from differences(a, b, f"{place}[{index}]")
    elif one != other or type(one) is not type(other):
        yield f"{place}: {str(one)[:160]} → {str(other)[:160]}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("write").add_argument("folder", type=Path)
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.command == "write":
        write(given.folder)
    else:
        sys.exit(bool(compare(given.before, given.after)))
