"""Where real traces and others' documents lie: they are others' data, and not in the repository."""

import os
from pathlib import Path

_SHARED = Path(__file__).resolve().parents[3] / "shared"

FOLDER = Path(os.environ.get("KINETOSCOPE_TRACES", _SHARED / "traces"))
MISSING = f"the real traces aren't at {FOLDER}; KINETOSCOPE_TRACES names another folder"

CASES = FOLDER.parent / "cases"  # small recordings that were once misread

SEEDS = Path(os.environ.get("KINETOSCOPE_SEEDS", _SHARED / "seeds"))
SEEDS_MISSING = f"the documents of torch and Composer aren't at {SEEDS}; KINETOSCOPE_SEEDS names another folder"


def of_each_program(*kinds: str) -> list[Path]:
    """The real traces in these folders: one of each run, whose others the same writer made of the same program."""
    paths = sorted(path for kind in kinds for path in (FOLDER / kind).rglob("*.json*"))
    firsts = {path.parent if FOLDER / "runs" in path.parents else path: path for path in reversed(paths)}
    return sorted(firsts.values())
