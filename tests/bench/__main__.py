"""Side by side with the peers on one generated trace: whole processes in turn, medians of the ratios pair by pair.

    make bench ARGS="--megabytes 340 --rounds 3"

The peers get a virtual environment of their own, since their dependencies are theirs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from generate import write

HERE = Path(__file__).parent
PEERS_ENV = HERE.parents[1] / ".venv-peers"
PEERS = ("torch-tb-profiler==0.4.3", "HolisticTraceAnalysis==0.5.0", "pandas")
BARS = {"torch-tb-profiler": (25, 4), "hta": (15, None)}  # how many times faster, with what part of the memory


@dataclass(frozen=True)
class Measured:
    """One process: wall seconds and peak resident megabytes."""

    seconds: float
    megabytes: float


def measured(command: list[str], environment: dict[str, str] | None = None) -> Measured:
    """Run a command to its end."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, **(environment or {})}
    )
    said = process.stderr.read() if process.stderr else b""
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{said.decode(errors='replace')[-2000:]}")
    return Measured(seconds, usage.ru_maxrss / 1024)


def peers_python() -> str:
    """The interpreter of the peers' environment, made on first use."""
    python = PEERS_ENV / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", PEERS_ENV], check=True)
        subprocess.run([python, "-m", "pip", "install", "-qq", *PEERS], check=True)
    return str(python)


def first_ever(path: Path) -> Measured:
    """Ours with nothing compiled yet."""
    with tempfile.TemporaryDirectory() as empty:
        return measured([sys.executable, str(HERE / "ours.py"), str(path)], {"NUMBA_CACHE_DIR": empty})


def rounds(path: Path, count: int) -> dict[str, list[tuple[Measured, Measured]]]:
    """For each peer, `count` pairs of (ours, the peer's)."""
    ours = [sys.executable, str(HERE / "ours.py"), str(path)]
    python = peers_python()
    measured(ours)  # compiles, and warms the file cache
    return {
        peer: [(measured(ours), measured([python, str(HERE / "peers.py"), peer, str(path)])) for _ in range(count)]
        for peer in BARS
    }


def report(peer: str, pairs: list[tuple[Measured, Measured]]) -> None:
    """Print the medians and whether the bars were reached."""
    ours, theirs = zip(*pairs, strict=True)
    faster = statistics.median(t.seconds / o.seconds for o, t in pairs)
    smaller = statistics.median(t.megabytes / o.megabytes for o, t in pairs)
    for name, side in (("kinetoscope", ours), (peer, theirs)):
        seconds = statistics.median(m.seconds for m in side)
        print(f"  {name:<18} {seconds:8.2f} s {statistics.median(m.megabytes for m in side):8.0f} MB")
    least_faster, least_smaller = BARS[peer]
    bars = f"bar {least_faster}×" + (f" and {least_smaller}×" if least_smaller else "")
    reached = faster >= least_faster and smaller >= (least_smaller or 0)
    print(f"  {faster:.1f}× faster, {smaller:.1f}× less memory ({bars}: {'reached' if reached else 'NOT reached'})\n")


def main() -> None:
    """Generate, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=340)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rank0.1.pt.trace.json")
        events = write(path, arguments.megabytes)
        print(f"{path.stat().st_size / 1e6:.0f} MB, {events:,} events; medians of {arguments.rounds} pairs\n")
        once = first_ever(path)
        print(f"first run ever, compiling: {once.seconds:.2f} s\n")
        for peer, pairs in rounds(path, arguments.rounds).items():
            report(peer, pairs)


if __name__ == "__main__":
    main()
