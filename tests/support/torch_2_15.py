"""Files that torch 2.15's own writers made, with what they must hold beside them (`*.truth.json`)."""

import gzip
import json
import os
from pathlib import Path

from support.real_traces import FOLDER

FOLDER_2_15 = Path(os.environ.get("KINETOSCOPE_TORCH_2_15", FOLDER.parent / "torch-2.15"))
MISSING_2_15 = f"torch 2.15's files aren't at {FOLDER_2_15}; KINETOSCOPE_TORCH_2_15 names another folder"


def truth(path: Path) -> dict:
    """What the file beside a trace says of it."""
    return json.loads(path.with_name(path.name.split(".", 1)[0] + ".truth.json").read_text())


def document(path: Path) -> dict:
    """The JSON of a trace, plain or gzip."""
    text = path.read_bytes()
    return json.loads(gzip.decompress(text) if text.startswith(b"\x1f\x8b") else text)
