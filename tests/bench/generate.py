"""Writes a large trace: a real recording, repeated with later times, other ids and the next step numbers.

python tests/bench/generate.py OUT.json --megabytes 340
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from decimal import Decimal
from pathlib import Path

SAMPLES = Path(__file__).parents[2] / "samples"
IDS = ("External id", "Ev Idx", "Record function id", "Sequence number", "correlation", "Python id", "Python parent id")


def recording() -> Path:
    """The recording that is repeated: one rank of a data-parallel training, with shapes and memory, without stacks."""
    return sorted(SAMPLES.glob("gloo_2ranks/*/rank0.*.pt.trace.json.gz"))[0]


def write(path: Path, megabytes: int, source: Path | None = None) -> int:
    """Write at least so many megabytes; return how many events."""
    with gzip.open(source or recording(), "rb") as file:
        whole = json.loads(file.read(), parse_float=Decimal)
    events = whole.pop("traceEvents")
    named = [e for e in events if e["ph"] == "M"]
    body = [e for e in events if e["ph"] in "Xisf" and isinstance(e["pid"], int)]
    first = min(e["ts"] for e in body)
    length = max(e["ts"] + e.get("dur", 0) for e in body) - first + 100
    template, steps = as_template(body)
    count = 0
    with path.open("w", encoding="utf-8") as out:
        head = json.dumps(whole, default=str).rstrip("}")
        out.write(head + ', "traceEvents": [\n' + ",\n".join(json.dumps(e, default=float) for e in named))
        for copy in range(10**6):
            if out.tell() >= megabytes * 1_000_000:
                break
            out.write(filled(template, copy, length, steps))
            count += len(body)
        out.write("\n]}\n")
    return count


def as_template(body: list[dict]) -> tuple[list[str], int]:
    """The events' text, cut where a copy differs: times, ids and step numbers."""
    text = "".join(",\n" + json.dumps(e, default=lambda value: f"@ts{value}@") for e in body)
    text = re.sub(r'"ts": "@ts([\d.]+)@"', r'"ts": @ts=\1@', text)
    text = re.sub(r'"@ts([\d.]+)@"', r"\1", text)
    for key in IDS:
        text = re.sub(rf'"{key}": (\d+)', rf'"{key}": @id=\1@', text)
    text = re.sub(r'("ph": "[sf]", "id": )(\d+)', r"\1@id=\2@", text)
    text = re.sub(r"ProfilerStep#(\d+)", r"ProfilerStep#@step=\1@", text)
    pieces = re.split(r"@(ts|id|step)=([\d.]+)@", text)
    numbers = {int(n) for n in re.findall(r"@step=(\d+)@", text)}
    return pieces, max(numbers) - min(numbers) + 1


def filled(pieces: list[str], copy: int, length: Decimal, steps: int) -> str:
    """One copy of the recording."""
    moved = []
    for i in range(0, len(pieces) - 1, 3):
        plain, kind, value = pieces[i : i + 3]
        moved.append(plain)
        if kind == "ts":
            moved.append(str(Decimal(value) + copy * length))
        else:
            moved.append(str(int(value) + copy * (10_000_000 if kind == "id" else steps)))
    return "".join(moved) + pieces[-1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--megabytes", type=int, default=340)
    parser.add_argument("--source", type=Path)
    arguments = parser.parse_args()
    print(f"{write(arguments.out, arguments.megabytes, arguments.source):,} events")
