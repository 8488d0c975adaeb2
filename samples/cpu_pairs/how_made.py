"""Make these samples of what `make bench ARGS="--pairs --write OUT"` recorded: `python how_made.py OUT`.

All pairs that the machine measured well enough come in, whatever is predicted for them, if their recording is small.
"""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

HERE = Path(__file__).parent
MOST_BYTES = 350_000  # of a file
sys.path.insert(0, str(HERE.parents[1] / "tests"))

from blind.pairs import MOST_NOISE, measurements  # noqa: E402

if __name__ == "__main__":
    lines = []
    for measured, recording in measurements(Path(sys.argv[1])):
        if measured.noise <= MOST_NOISE and recording.stat().st_size <= MOST_BYTES:
            shutil.copy(recording, HERE / f"{measured.name}.pt.trace.json.gz")
            rounded = {
                key: float(f"{value:.5g}") if isinstance(value, float) else value
                for key, value in asdict(measured).items()
            }
            lines.append(json.dumps(rounded))
    (HERE / "measured.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
