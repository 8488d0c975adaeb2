"""The process that writes the files of one window; it gets a job as JSON on standard input and never imports torch."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import SaveError
from ...output.chrome import ChromeTrace
from ...output.upload import upload
from .node_file import merge_window, remove_rank_files
from .rank_file import RankFile, write_array


def run_job(job: Mapping[str, Any]) -> list[str]:
    """Write the files of a job; return messages about what failed.

    Args:
        job: `folder`, `file`, `rank`, `pid`, `events`, `sources`, `files_of_node`, `merged` or None, `remote` and
            `merged_remote` or None, `overwrite`, `remove`: files to remove at the end, `temporary`: the
            sources to delete with them.
    """
    folder = Path(job["folder"])
    target, surplus = folder / job["file"], list(job["remove"])
    problems: list[str] = []
    is_merged = False
    try:
        rank = RankFile(job["rank"], job["pid"])
        problems = rank.problems
        write_array(target, rank.lines(job["events"], [ChromeTrace(Path(path)) for path in job["sources"]]))
        is_merged = job["merged"] is not None and merge_window(folder, job["files_of_node"], job["merged"])
        copies = [(target, job["remote"])] + ([(folder / job["merged"], job["merged_remote"])] if is_merged else [])
        for path, url in copies:
            if url is not None:
                upload(path, url, overwrite=job["overwrite"] or path != target)
    except (OSError, SaveError) as error:
        problems.append(f"kinetoscope: {target}: {error}")
        surplus = [name for name in surplus if name != job["file"]]  # there is no other copy of it
    try:
        if surplus or is_merged:
            remove_rank_files(folder, surplus, job["merged"])
        for path in job["temporary"]:
            Path(path).unlink(missing_ok=True)
    except OSError as error:
        problems.append(f"kinetoscope: {folder}: {error}")
    return problems


def main() -> None:
    """Run the job on standard input."""
    sys.stderr.writelines(f"{line}\n" for line in run_job(json.load(sys.stdin)))
