"""The verdicts of all real traces: tests/golden/verdicts.txt, a file that a person can read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kinetoscope_tb.engine.answers import Missing, compute
from kinetoscope_tb.errors import TraceError
from kinetoscope_tb.views import VIEWS
from support.real_traces import FOLDER

if TYPE_CHECKING:
    from kinetoscope_tb.trace import Trace

FILE = Path(__file__).parents[1] / "golden" / "verdicts.txt"
FOLDERS = ("traces", "inference", "labelled")
MOST = 3  # causes of one trace
NOTHING = "nothing_to_fix"


def judged_traces() -> list[Path]:
    """The files of the folders, without reference tables and damaged copies."""
    files = [file for folder in FOLDERS for file in sorted((FOLDER.parent / folder).rglob("*.json*"))]
    return [file for file in files if "derived_malformed" not in file.parts and "perf_csvs" not in file.parts]


def heading(file: Path) -> str:
    """What the verdict of a file stands under."""
    return str(file.relative_to(FOLDER.parent))


def verdict(trace: Trace | TraceError) -> list[str]:
    """The headline, what comes next, and whether something else is fine; or why there is none."""
    if isinstance(trace, TraceError):
        return [f"   {type(trace).__name__}"]
    advice = compute(VIEWS["advice"], trace, {})
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


def as_text(verdicts: dict[str, list[str]]) -> str:
    """The text of the file: a heading, the lines of its verdict, and an empty line, for each trace."""
    return "\n".join(line for heading, lines in verdicts.items() for line in (heading, *lines, ""))


def from_text(text: str) -> dict[str, list[str]]:
    """What the text holds, by heading."""
    parts = (part.split("\n") for part in text.removesuffix("\n").split("\n\n"))
    return {heading: lines for heading, *lines in parts}
