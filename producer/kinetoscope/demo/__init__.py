"""A small real training on several processes, recorded: something to look at if you have no training at hand.

    python -m kinetoscope.demo LOGDIR [--steps N] [--processes N]

A convolutional network learns to tell generated pictures apart, data-parallel over gloo, and each process records its
own traces with `Tracer`. It runs on the CPU in half a minute at most and ends by itself.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path


def record(logdir: str, *, steps: int = 8, processes: int = 2, run: str | None = None) -> None:
    """Train and record; the traces of all processes are in one run's folder."""
    # torch's C++ side reports each recording on standard error; the Tracer logs what matters.
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    # gloo looks up the host's own name, which not every machine can resolve.
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo" if sys.platform == "linux" else "lo0")
    training = import_module(".training", __package__)  # with torch, which reads these as it is imported
    with tempfile.TemporaryDirectory(prefix="kinetoscope-demo-") as folder:
        rendezvous = (Path(folder) / "rendezvous").as_uri()
        name = run or time.strftime("demo-%Y%m%d-%H%M%S")
        training.train_in_processes(processes, rendezvous, logdir, name, steps)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m kinetoscope.demo", description="Record a small real training.")
    parser.add_argument("logdir", help="where the run's folder is created; pass it to TensorBoard")
    parser.add_argument("--steps", type=int, default=8, help="how many steps are recorded (default: %(default)s)")
    parser.add_argument("--processes", type=int, default=2, help="how many processes train (default: %(default)s)")
    options = parser.parse_args(arguments)
    if options.steps < 1 or options.processes < 1:
        parser.error("--steps and --processes must be at least 1")
    logging.basicConfig(level=logging.WARNING)
    record(options.logdir, steps=options.steps, processes=options.processes)
