"""Side by side with the peers on generated traces: whole processes in turn, medians of the ratios pair by pair.

    make bench                                      about 45 minutes, nearly all of it the peers'
    make bench ARGS="--megabytes 340 --rounds 3"    one size
    make bench ARGS="--without-peers"               a few minutes
    make bench ARGS="--first"                       first content after installation, memory after thirty traces, nothing else
    make bench ARGS="--open"                        from the command to the first picture, next to vizviewer and TensorBoard
    make bench ARGS="--ranks"                       runs of many ranks, nothing else; some three minutes
    make bench ARGS="--priorities"                  a warm view during background work, nothing else
    make bench ARGS="--graphs"                      recordings of replayed graphs, nothing else; a minute
    make bench ARGS="--forms"                       JSON and Perfetto's protobuf of the same recording, nothing else
    make bench ARGS="--snapshots"               memory snapshots, side by side with torch where it is installed; nothing else
    make bench ARGS="--views"                       every view of a million events, nothing else
    make bench ARGS="--timeline"                    the timeline against Perfetto, and one of 50 million slices, nothing else
    make bench ARGS="--page"                        the page in Chromium: first contents, frames; nothing else; some 20 minutes
    make bench ARGS="--page --quick"                the same, small: function, not figures
    make bench ARGS="--quick"                       all but peers and pages in small: within two minutes
    make bench ARGS="--speed"                       commands, scanning and a large trace, nothing else
    make bench ARGS="--producer"                    what recording costs a training, nothing else; four minutes
    make bench ARGS="--versions"                    the recorder's tests under each supported torch, nothing else
    make bench ARGS="--versions 2.15.0"             under one; -k and other arguments of pytest follow a --
    make bench ARGS="--history"                     how often a history has a false point, and misses a shift; three minutes
    make bench ARGS="--gate"                        how often the gate alarms, finds and abstains, nothing else; ten minutes
    make bench ARGS="--alignment"                   how right steps of different code are aligned, and how fast; three minutes
    make bench ARGS="--why"                         whom why and torchfrtrace name on the same dumps, and how soon ranks report that they hang; five minutes; needs torch
    make bench ARGS="--blind"                       first answers about recordings whose cause is known, nothing else; some 20 minutes
    make bench ARGS="--blind --seed 7"              other recordings; --seeds 1 fewer, --only KIND judges some, --write DIR keeps them
    make bench ARGS="--timeline --megabytes 13 --slices 800000 --rounds 1"    the same, small

Every line is the median of its rounds with quartiles and its ratio to a bound; the last lines list the bounds missed.
The peers get a virtual environment of their own, since their dependencies are theirs.
"""

from __future__ import annotations

import argparse
import compileall
import gzip
import importlib.util
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import indexing
import priorities
import snapshots
import thirty
import timelines
import training
from bounds import line, report_missed
from first import report_first
from forms import report_forms
from generate import write
from graph_replays import report_graphs
from speed import report_speed

HERE = Path(__file__).parent
PEERS_ENV = HERE.parents[1] / ".venv-peers"
PEERS = ("torch-tb-profiler==0.4.3", "HolisticTraceAnalysis==0.5.0", "pandas")
LARGE = 1000  # megabytes: above, the peers take minutes, so they run once, on plain JSON
MOST_S = 900  # after which a peer is stopped: torch-tb-profiler needs more than 23 minutes and 10 GB for 1600 MB

SIZES = (13, 340, 1600)
BARS_AT = 340  # megabytes that the bars are set at; smaller files cost mostly what any file does
FASTER = {"torch-tb-profiler": 40, "hta": 25}
FASTER_WARM = 60  # than torch-tb-profiler, in a server that has read a trace before
LEAST_MB_PER_S, MOST_TIMES_THE_FLOOR = 300, 3
PEAK_MB, PEAK_BYTES_PER_EVENT = 150, 120
REOPEN_S_PER_MILLION = 0.2
VIEWS_AT = 260  # megabytes of the made-up training: a million events
VIEW_S, AGAIN_MS = 1, 50
SPEED_AT = 780  # megabytes: three million events
QUICK = 65, 3  # megabytes and rounds
FIRST_ROUNDS, THIRTY_MB = 3, 65
QUICK_THIRTY_MB, QUICK_PRODUCER = 13, (4, 20)  # the latter in pairs and steps
PAIRS_A_ROUND = 10  # of the recorder's loops, which are short


@dataclass(frozen=True)
class Measured:
    """One process: wall seconds, peak resident megabytes, what it says itself, and whether it came to its end."""

    seconds: float
    megabytes: float
    said: dict[str, Any]
    is_whole: bool = True


def measured(command: list[str], environment: dict[str, str] | None = None, most_s: float | None = None) -> Measured:
    """Run a command to its end, or for so many seconds."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=errors, env={**os.environ, **(environment or {})})
        limit = threading.Timer(most_s or threading.TIMEOUT_MAX, process.kill)
        limit.start()
        _, status, usage = os.wait4(process.pid, 0)
        limit.cancel()
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if most_s and process.returncode == -signal.SIGKILL and seconds >= most_s:
            return Measured(seconds, usage.ru_maxrss / 1024, {}, is_whole=False)
        if process.returncode:
            errors.seek(0)
            raise SystemExit(f"{' '.join(command)} failed:\n{errors.read().decode(errors='replace')[-2000:]}")
        output.seek(0)
        last = output.read().decode().splitlines()[-1:]
    said = json.loads(last[0]) if last and last[0].startswith("{") else {}
    return Measured(seconds, usage.ru_maxrss / 1024, said)


def peers_python() -> str:
    """The interpreter of the peers' environment, made on first use."""
    python = PEERS_ENV / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", PEERS_ENV], check=True)
        subprocess.run([python, "-m", "pip", "install", "-qq", *PEERS], check=True)
    return str(python)


def ours(path: Path, *options: str) -> Measured:
    """Kinetoscope on this file."""
    return measured([sys.executable, str(HERE / "ours.py"), str(path), *options])


def report_ours(path: Path, size: float, rounds: int, *, has_bars: bool) -> Measured:
    """Print what reading costs, beside the least that it could; returns the run of median time.

    A process that reads its first trace imports Polars and more, whatever the trace's size. The speed is that of its
    second reading, and what it is at the first stands beside it.
    """
    runs, again, floors = [], [], []
    for _ in range(rounds):
        runs.append(ours(path))
        again.append(ours(path, "--again").said)
        floors.append(measured([sys.executable, str(HERE / "floor.py"), str(path)]).said["floor_s"])
    middle = sorted(runs, key=lambda run: run.said["read_s"])[len(runs) // 2]
    million = middle.said["events"] / 1e6
    first, warm = middle.said["read_s"], statistics.median(said["warm_s"] for said in again)
    times_floor = [said["warm_s"] / floor for said, floor in zip(again, floors, strict=True)]
    print(f"  read in {warm:.2f} s, {warm / million:.2f} µs an event; the first in a process in {first:.2f} s,")
    print(f"  with imports, `steps` and `operators` {middle.said['all_s']:.2f} s")
    print(
        line(
            "speed of a second reading",
            [size / said["warm_s"] for said in again],
            LEAST_MB_PER_S if has_bars else None,
            "MB/s",
            at_least=True,
        )
    )
    print(line("reading / unpacking and counting", times_floor, MOST_TIMES_THE_FLOOR if has_bars else None, "×"))
    most_mb = PEAK_MB + PEAK_BYTES_PER_EVENT * million
    print(line("peak memory of reading", [run.said["read_mb"] for run in runs], most_mb, "MB"))
    print(f"  with the views {middle.megabytes:.0f} MB")
    reopened = [said["reopen_s"] / million for said in again]
    print(line("from the cache, a million events", reopened, REOPEN_S_PER_MILLION if has_bars else None, "s"))
    return Measured(middle.seconds, middle.megabytes, {**middle.said, "warm_s": warm})


def report_peer(peer: str, path: Path, rounds: int, *, has_bar: bool) -> None:
    """Print how many times faster ours is, and with how much less memory."""
    command = [peers_python(), str(HERE / "peers.py"), peer, str(path)]
    pairs, warm = [], []
    for _ in range(rounds):
        pairs.append((ours(path), measured(command, most_s=MOST_S)))
        warm.append(ours(path, "--again").said["warm_s"])
    faster = [theirs.seconds / our.seconds for our, theirs in pairs]
    smaller = statistics.median(theirs.megabytes / our.megabytes for our, theirs in pairs)
    sides = (
        f"{statistics.median(m.seconds for m in side):.2f} s, {statistics.median(m.megabytes for m in side):.0f} MB"
        for side in zip(*pairs, strict=True)
    )
    at_least = "" if all(theirs.is_whole for _, theirs in pairs) else "stopped there; at least "
    ratio = f"{at_least}{statistics.median(faster):.3g}× faster, {smaller:.1f}× less memory"
    print(f"  {peer:<18} {' against '.join(sides)}: {ratio}")
    if has_bar:
        print(line(f"faster than {peer}", faster, FASTER[peer], "×", at_least=True))
    if has_bar and peer == "torch-tb-profiler":
        in_server = [theirs.seconds / seconds for (_, theirs), seconds in zip(pairs, warm, strict=True)]
        print(line("  in a warm server", in_server, FASTER_WARM, "×", at_least=True))


def report_views(folder: Path) -> None:
    """Print what each view takes of a million events, in CPU time, and when it is asked again."""
    recording, path = folder / "training.json.gz", folder / "rank0.1.pt.trace.json"
    training.write_recording(recording)
    write(path, VIEWS_AT, recording)
    said = measured([sys.executable, str(HERE / "views.py"), str(path)]).said
    path.unlink()
    print(
        f"\nviews of {said['events']:,} events: CPU time (bar: {VIEW_S} s), again from the store (bar: {AGAIN_MS} ms)"
    )
    for view in said["views"]:
        is_late = view["first_s"] > VIEW_S or view["again_ms"] + view["json_ms"] > AGAIN_MS
        rows = "missing" if view["rows"] is None else f"{view['rows']:,} rows"
        print(
            f"  {view['view']:<22} first {view['first_s']:6.3f} s, then {view['second_s']:6.3f} s; again "
            f"{view['again_ms']:.2f} ms + {view['json_ms']:.1f} ms as JSON, {rows}{': NOT reached' if is_late else ''}"
        )


def compressed(path: Path) -> Path:
    """The same file by gzip."""
    packed = path.with_name(f"{path.name}.gz")
    with path.open("rb") as plain, gzip.open(packed, "wb", compresslevel=6) as file:
        shutil.copyfileobj(plain, file, 1 << 20)
    return packed


def report_timelines(folder: Path, arguments: argparse.Namespace) -> None:
    """Print what the timeline costs, beside Perfetto and with many slices."""
    if arguments.pictures:
        arguments.pictures.mkdir(exist_ok=True)
    megabytes = (arguments.megabytes or [BARS_AT])[0]
    timelines.report_opening(folder, megabytes, arguments.rounds, arguments.pictures)
    timelines.report_ranks(folder, arguments.slices, arguments.rounds, measured, arguments.pictures)


def report_blind(arguments: argparse.Namespace) -> None:
    """Print how first answers do on simulated jobs and on what is planted in real recordings."""
    sys.path.insert(0, str(HERE.parent))
    from blind import judge

    seeds = range(arguments.seed, arguments.seed + arguments.seeds)
    verdicts = judge.run(seeds, [arguments.only] if arguments.only else [], arguments.write, arguments.without)
    print("\n".join(judge.table(list(verdicts))))


def report_pairs(arguments: argparse.Namespace) -> None:
    """Print how well recordings predict changes that were measured on this machine."""
    sys.path.insert(0, str(HERE.parent))
    from blind import pairs

    with tempfile.TemporaryDirectory() as folder:
        predictions = pairs.run(arguments.write or Path(folder), arguments.seconds)
    print("\n".join(pairs.table(predictions)))


def main() -> None:
    """Generate, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, nargs="+", default=None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without-peers", action="store_true")
    parser.add_argument("--views", action="store_true", help="measure nothing but the views")
    parser.add_argument("--forms", action="store_true", help="measure nothing but JSON and Perfetto's protobuf")
    parser.add_argument("--snapshots", action="store_true", help="measure nothing but memory snapshots")
    parser.add_argument("--graphs", action="store_true", help="measure nothing but replayed graphs")
    parser.add_argument(
        "--timeline", action="store_true", help="measure nothing but the timeline; the first size alone"
    )
    parser.add_argument("--page", action="store_true", help="measure nothing but the page in Chromium")
    parser.add_argument(
        "--open", action="store_true", help="measure nothing but the page without TensorBoard, and peers"
    )
    parser.add_argument("--producer", action="store_true", help="measure nothing but the recorder")
    parser.add_argument("--first", action="store_true", help="measure nothing but first contents, and thirty traces")
    parser.add_argument("--ranks", action="store_true", help="measure nothing but runs of many ranks")
    parser.add_argument("--priorities", action="store_true", help="measure nothing but views during background work")
    parser.add_argument("--speed", action="store_true", help="measure nothing but commands, scanning and a large trace")
    parser.add_argument("--quick", action="store_true", help="all but peers and pages, small")
    parser.add_argument("--gate", action="store_true", help="measure nothing but the gate's rates")
    parser.add_argument("--alignment", action="store_true", help="measure nothing but the alignment of steps")
    parser.add_argument("--history", action="store_true", help="measure nothing but the rates of histories")
    parser.add_argument("--why", action="store_true", help="measure nothing but whom why names")
    parser.add_argument(
        "--blind", action="store_true", help="judge nothing but first answers, where the cause is known"
    )
    parser.add_argument("--seeds", type=int, default=3, help="how many cases of each kind that first answers are about")
    parser.add_argument(
        "--without", nargs="+", choices=("steps", "shapes"), default=(), help="what recordings that are judged lack"
    )
    parser.add_argument("--pairs", action="store_true", help="measure nothing but predictions of changes")
    parser.add_argument("--seconds", type=int, default=1_800, help="how long to measure changes that are predicted")
    parser.add_argument(
        "--versions", nargs="*", help="run nothing but the recorder's tests, under each of these torchs"
    )
    parser.add_argument("tests", nargs="*", help="of --versions, after --: what pytest runs, and its other arguments")
    parser.add_argument("--seed", type=int, default=1, help="of the recordings that first answers are judged by")
    parser.add_argument("--only", help="kind of the recordings that first answers are judged by")
    parser.add_argument("--write", type=Path, help="where to keep the recordings that first answers are judged by")
    parser.add_argument("--steps", type=int, default=50, help="of each loop that the recorder is measured with")
    parser.add_argument("--slices", type=int, default=50_000_000, help="of the timeline of many ranks")
    parser.add_argument("--pictures", type=Path, help="where to save what the pages show")
    arguments = parser.parse_args()
    compile_to_bytecode()
    if arguments.blind:
        report_blind(arguments)
        return
    if arguments.pairs:
        report_pairs(arguments)
        return
    if arguments.gate:
        from gate import report_gate

        report_gate(is_quick=arguments.quick)
        report_missed()
        return
    if arguments.alignment:
        from alignment import report_alignment

        report_alignment(is_quick=arguments.quick)
        report_missed()
        return
    if arguments.why:
        from why import report_why

        with tempfile.TemporaryDirectory() as folder:
            report_why(Path(folder))
        return
    if arguments.history:
        from history import report_history

        report_history(is_quick=arguments.quick)
        report_missed()
        return
    if arguments.versions is not None:
        from versions import report_versions

        sys.exit(not report_versions(arguments.versions, arguments.tests))
    if arguments.open:
        from standalone import report_open

        report_open(1 if arguments.quick else arguments.rounds)
    elif arguments.page:
        from page import report_page

        with tempfile.TemporaryDirectory() as folder:
            report_page(Path(folder), is_quick=arguments.quick)
    else:
        with tempfile.TemporaryDirectory() as folder:
            report_parts(Path(folder), arguments)
    report_missed()


def compile_to_bytecode() -> None:
    """Compile both packages, as pip does when it installs them; an editable installation leaves that to the first use."""
    for package in ("kinetoscope", "kinetoscope_tb"):
        spec = importlib.util.find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        compileall.compile_dir(Path(spec.origin).parent, quiet=1)


def report_parts(folder: Path, arguments: argparse.Namespace) -> None:
    """Print the parts that were chosen, or all in small, or all."""
    parts = {
        "first": lambda: report_start(folder / "first", FIRST_ROUNDS, THIRTY_MB),
        "speed": lambda: report_speed(folder, SPEED_AT, arguments.rounds, measured, compressed),
        "views": lambda: report_views(folder),
        "graphs": lambda: report_graphs(arguments.rounds * PAIRS_A_ROUND),
        "snapshots": lambda: snapshots.report_snapshots(folder / "snapshots", arguments.rounds, measured),
        "forms": lambda: report_forms(arguments.rounds * PAIRS_A_ROUND),
        "timeline": lambda: report_timelines(folder, arguments),
        "ranks": lambda: indexing.report_indexing(folder / "ranks", arguments.rounds, measured),
        "priorities": lambda: priorities.report_priorities(folder / "priorities", measured),
        "producer": lambda: report_producer(arguments.rounds * PAIRS_A_ROUND, arguments.steps),
    }
    chosen = [name for name in parts if getattr(arguments, name)]
    if arguments.quick:
        report_quick(folder)
        return
    if not chosen:
        report_sizes(folder, arguments)
    for name in chosen or parts:
        parts[name]()
        sys.stdout.flush()


def report_quick(folder: Path) -> None:
    """Print all but peers and pages, in small."""
    report_start(folder / "first", 1, QUICK_THIRTY_MB)
    report_speed(folder, *QUICK, measured, compressed)
    snapshots.report_snapshots(folder / "snapshots", 1, measured, snapshots.QUICK_MEGABYTES)
    priorities.report_priorities(folder / "priorities", measured, priorities.QUICK)
    report_producer(*QUICK_PRODUCER)


def report_start(folder: Path, rounds: int, megabytes: int) -> None:
    """Print how soon the first content is there, and what a server takes after thirty traces."""
    report_first(folder / "one", rounds)
    thirty.report_thirty(folder / "thirty", megabytes, rounds, measured)


def report_producer(pairs: int, steps: int) -> None:
    """Print what recording costs a training."""
    from recording import report_recording

    report_recording(pairs, steps)


def report_sizes(folder: Path, arguments: argparse.Namespace) -> None:
    """Print what reading costs at each size, and what it costs the peers."""
    per_event = {}
    for megabytes in arguments.megabytes or SIZES:
        path = folder / f"rank0.{megabytes}.pt.trace.json"
        events = write(path, megabytes)
        size = path.stat().st_size / 1e6
        for file in (path, compressed(path)):
            print(f"\n{size:.0f} MB, {events:,} events, {'gzip' if file.suffix == '.gz' else 'JSON'}")
            middle = report_ours(file, size, arguments.rounds, has_bars=megabytes >= BARS_AT)
            if file is path:
                per_event[megabytes] = middle.said["warm_s"] / middle.said["events"] * 1e6
            is_large = megabytes > LARGE
            rounds = 1 if is_large or file is not path else arguments.rounds
            for peer in () if arguments.without_peers or (is_large and file is not path) else FASTER:
                report_peer(peer, file, rounds, has_bar=megabytes == BARS_AT)
            if file is not path:
                file.unlink()
        path.unlink()
    print("\ntime per event: " + ", ".join(f"{us:.2f} µs at {mb} MB" for mb, us in per_event.items()))


if __name__ == "__main__":
    main()
