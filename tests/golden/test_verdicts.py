"""The verdicts of all real traces in one file that a person can read: verdicts.txt.

`make golden` writes it anew. docs/verdicts.md says what each claim rests on.
"""

import os
from pathlib import Path

import pytest

from kinetoscope_tb.engine.answers import Missing, compute
from kinetoscope_tb.engine.files import read_traces
from kinetoscope_tb.errors import TraceError
from kinetoscope_tb.views import VIEWS
from support.real_traces import FOLDER, MISSING

FILE = Path(__file__).parent / "verdicts.txt"
FOLDERS = ("traces", "inference", "labelled")
UPDATES = bool(os.environ.get("UPDATE_GOLDEN"))
MOST = 3  # causes of one trace
NOTHING = "nothing_to_fix"


def real_traces() -> list[Path]:
    """The files of the folders, without reference tables and damaged copies."""
    files = [file for folder in FOLDERS for file in sorted((FOLDER.parent / folder).rglob("*.json*"))]
    return [file for file in files if "derived_malformed" not in file.parts and "perf_csvs" not in file.parts]


def verdict(file: Path) -> list[str]:
    """The headline, what comes next, and whether something else is fine; or why there is none."""
    try:
        advice = compute(VIEWS["advice"], next(read_traces(str(file))), {})
    except TraceError as error:
        return [f"   {type(error).__name__}"]
    if isinstance(advice, Missing):
        return ["   no advice: nothing with a duration"]
    rows = advice.rows(named=True)
    causes = [row for row in rows if row["rule"] != NOTHING]
    lines = [f"{number:>3}. {row['title']} [{_claim(row)}]" for number, row in enumerate(causes[:MOST], 1)]
    if len(causes) > MOST:
        lines.append(f"     and {len(causes) - MOST} more")
    return lines or [f"   {row['title']} [{row['confidence']}]" for row in rows if row["rule"] == NOTHING]


def _claim(row: dict[str, object]) -> str:
    share = row["saving_frac"]
    bound = f", saves ≤ {100 * share:.0f} %" if isinstance(share, float) else ""
    return f"{row['rule']}, {str(row['confidence']).replace('_', ' ')}{bound}"


@pytest.mark.slow
@pytest.mark.skipif(not FOLDER.is_dir(), reason=MISSING)
def test_the_verdicts_of_real_traces_are_those_that_were_read():
    lines = []
    for file in real_traces():
        lines += [str(file.relative_to(FOLDER.parent)), *verdict(file), ""]
    text = "\n".join(lines)
    if UPDATES:
        FILE.write_text(text, "utf-8")
    assert text == FILE.read_text("utf-8")
