"""Training processes of tests: with an environment that says nothing of how the tests themselves were launched."""

import gzip
import json
import os
import random
import socket
import subprocess
import sys
import threading
from contextlib import suppress

from kinetoscope.naming import parse
from support.waiting import LIMIT_S, wait_for

QUIET = {"KINETO_LOG_LEVEL": "99", "TORCH_CPP_LOG_LEVEL": "ERROR", "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
RUN_NAMES = ("RUN_NAME", "PT_PROFILER_JOB_NAME", "TORCHELASTIC_RUN_ID", "SLURM_JOB_NAME", "SLURM_JOB_ID")
ENVIRON = {name: value for name, value in os.environ.items() if name not in RUN_NAMES} | QUIET


def free_port():
    """A free port below those that systems choose themselves: until it is used, no other process gets it by chance."""
    while True:
        port = random.randrange(10_000, 30_000)
        with socket.socket() as probe, suppress(OSError):  # somebody listens at it
            probe.bind(("", port))
            return port


class Started(subprocess.Popen):
    """A process of Python whose outputs are read as they come: none of those that write to them waits for a full pipe."""

    def __init__(self, *command):
        super().__init__(
            [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRON
        )
        self.out, self.err = [], []
        pairs = ((self.stdout, self.out), (self.stderr, self.err))
        self.readers = [threading.Thread(target=_gather, args=pair, daemon=True) for pair in pairs]
        for reader in self.readers:
            reader.start()

    def communicate(self, timeout=LIMIT_S):
        """Both outputs, when this process and all others that write to them have ended."""
        wait_for(
            lambda: not any(reader.is_alive() for reader in self.readers),
            timeout,
            context=lambda: "".join(self.out + self.err),
        )
        self.wait(timeout)
        return "".join(self.out), "".join(self.err)


def _gather(stream, lines):
    """Append each line that comes, until all who write to the stream have ended."""
    with stream:
        for line in stream:
            lines.append(line)


def ended(process):
    """The exit status and both outputs of a process at its end; torch 2.9's report of Gloo's connections isn't ours."""
    try:
        out, err = process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
    return process.returncode, without_gloo_s_lines(out), err


def traces_in(run):
    """Content of each trace of a run's folder by its worker and span."""
    processes = {}
    for path in sorted(run.glob("*.gz")):
        name = parse(path.name)
        processes[name.worker, name.span] = json.loads(gzip.decompress(path.read_bytes()))
    return processes


def steps_of(trace):
    """The numbers of a trace's steps."""
    names = [event["name"] for event in trace["traceEvents"] if event.get("cat") == "user_annotation"]
    return sorted(int(name.partition("#")[2]) for name in names if name.startswith("ProfilerStep#"))


def without_gloo_s_lines(output: str) -> str:
    """A process's output without the lines in which gloo of torch 2.9 reports its connections."""
    return "".join(line for line in output.splitlines(keepends=True) if not line.startswith("[Gloo] "))
