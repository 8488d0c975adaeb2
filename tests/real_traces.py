"""Where real traces from many torch versions and devices lie: they are others' data, and not in the repository."""

import os
from pathlib import Path

FOLDER = Path(os.environ.get("KINETOSCOPE_TRACES", Path(__file__).resolve().parents[2] / "shared" / "traces"))
MISSING = f"the real traces aren't at {FOLDER}; KINETOSCOPE_TRACES names another folder"
