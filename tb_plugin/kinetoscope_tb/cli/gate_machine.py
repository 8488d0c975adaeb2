"""What the machine does while a command runs: other processes, clocks, throttling. What can't be read stays unknown."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from kinetoscope.optional_packages import optional_package

from ..errors import KinetoscopeError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TICK_S, _GRACE_S = 0.25, 10
_CPUS = Path("/sys/devices/system/cpu")
_IDLE = (3, 4)  # columns of /proc/stat: idle, and waiting for a disk
_STOLEN = 7  # time of other virtual machines
_LIMITS = {  # bits of nvmlDeviceGetCurrentClocksThrottleReasons that mean less than the asked-for clock
    0x8: "hardware slowdown",
    0x20: "thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}


class CommandMissing(KinetoscopeError):
    """There is no such program."""


def run_to_end(words: Sequence[str], variables: Mapping[str, str], output: IO[bytes], machine: Machine) -> int:
    """Run a command, look at the machine meanwhile, and return its exit status. It ends with us, with its children.

    Raises:
        CommandMissing: There is no such program.
    """
    try:
        process = subprocess.Popen(
            words,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise CommandMissing(f"{words[0]!r} can't be started: {error.strerror or error}.") from error
    try:
        while True:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(_TICK_S)
            machine.look()
    except BaseException:
        _end(process)
        raise


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and whatever it started: they are one session, where the system has sessions."""
    if not hasattr(os, "killpg"):
        process.kill()
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)


class Machine:
    """Readings between its creation and `readings`."""

    def __init__(self) -> None:
        self._gpus = _gpu_handles()
        self._load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
        self._begin_s, self._ticks, self._own_s = time.monotonic(), _busy_s(), _own_s()
        self._cpu_limits = _cpu_limits()
        self._cpu_mhz: list[float] = []
        self._gpu_mhz: list[float] = []
        self._gpu_limits: set[str] = set()

    def look(self) -> None:
        """Read the clocks once."""
        self._cpu_mhz += _cpu_mhz()
        for nvml, handle in self._gpus:
            with suppress(nvml.NVMLError):
                self._gpu_mhz.append(float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)))
                bits = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
                self._gpu_limits |= {words for bit, words in _LIMITS.items() if bits & bit}

    def readings(self) -> dict[str, Any]:
        """Load, other processes, clocks, throttling and environment, as `Conditions` has them."""
        limits = _cpu_limits()
        return {
            "load": self._load,
            "others_frac": self._others_frac(),
            "cpu_mhz": _mean(self._cpu_mhz),
            "gpu_mhz": _mean(self._gpu_mhz),
            "gpu_limits": tuple(sorted(self._gpu_limits)),
            "cpu_limits": None if limits is None or self._cpu_limits is None else limits - self._cpu_limits,
            "environment": {"host": platform.node(), "system": platform.platform(), "cpu": _cpu_name()},
        }

    def _others_frac(self) -> float | None:
        """Share of the CPUs that processes other than the command used."""
        busy_s = _busy_s()
        if busy_s is None or self._ticks is None:
            return None
        others_s = busy_s - self._ticks - (_own_s() - self._own_s)
        return max(0.0, others_s / max(1e-9, (time.monotonic() - self._begin_s) * (os.cpu_count() or 1)))


def _busy_s() -> float | None:
    """Seconds that all CPUs were busy since they started; None where /proc doesn't say."""
    try:
        fields = [int(field) for field in Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return None
    return float(sum(fields) - sum(fields[column] for column in _IDLE)) / os.sysconf("SC_CLK_TCK")


def _own_s() -> float:
    """CPU seconds of this process and of the commands that it has waited for."""
    return sum(os.times()[:4])


def _cpu_mhz() -> list[float]:
    """The clock of each CPU."""
    clocks = []
    for path in _CPUS.glob("cpu[0-9]*/cpufreq/scaling_cur_freq"):
        with suppress(OSError, ValueError):
            clocks.append(int(path.read_text(encoding="ascii")) / 1000)
    return clocks


def _cpu_limits() -> int | None:
    """How often the CPUs lowered their clock for heat; None where it isn't counted."""
    counts = []
    for path in _CPUS.glob("cpu[0-9]*/thermal_throttle/core_throttle_count"):
        with suppress(OSError, ValueError):
            counts.append(int(path.read_text(encoding="ascii")))
    return sum(counts) if counts else None


def _cpu_name() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def _gpu_handles() -> list[tuple[Any, Any]]:
    """NVML and a handle for each NVIDIA GPU, if pynvml is installed."""
    try:
        nvml = optional_package("pynvml", "nvidia-ml-py")
    except ImportError:
        return []
    try:
        nvml.nvmlInit()
        return [(nvml, nvml.nvmlDeviceGetHandleByIndex(index)) for index in range(nvml.nvmlDeviceGetCount())]
    except nvml.NVMLError:  # no driver
        return []


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
