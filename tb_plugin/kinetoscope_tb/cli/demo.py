"""`kinetoscope demo`: records a real training and shows it in TensorBoard."""

from __future__ import annotations

import importlib.util
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from ..errors import KinetoscopeError

if TYPE_CHECKING:
    from collections.abc import Iterator

PORTS = range(6006, 6106)
STARTS_WITHIN_S = 90


class DemoError(KinetoscopeError):
    """The demo can't be recorded or shown."""


@click.command()
@click.option("--logdir", default="runs", show_default=True, help="Folder for the recording.")
@click.option("--host", default="localhost", show_default=True, help="The address that TensorBoard listens on.")
@click.option("--port", type=int, help="The port that TensorBoard listens on; by default a free one from 6006.")
@click.option("--record-only", is_flag=True, help="Record, and don't start TensorBoard.")
def demo(logdir: str, host: str, port: int | None, record_only: bool) -> None:
    """Record a real training on two processes and show it in TensorBoard."""
    record(logdir)
    if record_only:
        click.echo(f"To see it: tensorboard --logdir {logdir}")
        return
    with tensorboard(logdir, host, port) as (address, process):
        click.echo(f"\n  {address}\n\nCtrl-C stops it.")
        process.wait()


def record(logdir: str) -> None:
    """Train a small model on two processes and record it under the logdir.

    Raises:
        DemoError: PyTorch isn't installed, or the training failed.
    """
    if importlib.util.find_spec("torch") is None:
        raise DemoError("The demo trains a model with PyTorch, which isn't installed: pip install 'kinetoscope[demo]'")
    with _process(sys.executable, "-m", "kinetoscope.demo", logdir) as training:
        status = training.wait()
    if status:
        raise DemoError(f"The demo's training ended with exit status {status}; see its message above.")


@contextmanager
def tensorboard(logdir: str, host: str, port: int | None) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Run TensorBoard until the block ends; yield the address of the page, which answers, and the process.

    Raises:
        DemoError: TensorBoard didn't start.
    """
    port = port or _free_port(host)
    program = (sys.executable, "-m", "tensorboard.main")
    with _process(*program, "--logdir", logdir, "--host", host, "--port", str(port)) as process:
        address = f"http://{host}:{port}/"
        _wait_for(f"{address}data/plugins_listing", process)
        yield f"{address}#pytorch_profiler", process


@contextmanager
def _process(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that ends with the block, even when this process is terminated."""
    before = signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    process = subprocess.Popen(command)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        signal.signal(signal.SIGTERM, before)


def _free_port(host: str) -> int:
    for port in PORTS:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return port
    raise DemoError(f"No port from {PORTS.start} to {PORTS.stop - 1} is free on {host}; choose one with --port.")


def _wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise DemoError(f"TensorBoard ended with exit status {process.returncode}; see its message above.")
        try:
            with urllib.request.urlopen(address, timeout=5):  # noqa: S310  # our own address
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise DemoError(f"TensorBoard didn't answer within {STARTS_WITHIN_S} s at {address}.")
