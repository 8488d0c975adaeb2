"""Cases in a process of its own, with little memory: one that crashes, or asks for too much, is named.

The process says which case it begins, so the last one that it said is the one that it died of.
"""

import importlib.util
import os
import subprocess
import sys
import traceback
from pathlib import Path

TESTS = Path(__file__).parents[1]
MOST_BYTES = 1 << 30  # that cases may take beside what they began with


def run_apart(module, cases, folder):
    """Do `case(number, folder)` of a test module for each number, after its `prepare(folder)`."""
    command = [sys.executable, __file__, module, str(folder), *map(str, (cases.start, cases.stop, cases.step))]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    last = done.stdout.split()[-1:] or ["none"]
    message = (
        f"KINETOSCOPE_FUZZ_FIRST={last[0]} KINETOSCOPE_FUZZ_CASES=1: status {done.returncode}\n{done.stderr[-5000:]}"
    )
    assert done.returncode == 0, message
    assert done.stdout.split() == [str(number) for number in cases]


def _limit_memory():
    try:
        import resource
    except ImportError:  # Windows
        return
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    if pages:
        most = pages * os.sysconf("SC_PAGE_SIZE") + MOST_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def main():
    """Run the cases."""
    path, folder, *bounds = sys.argv[1:]
    sys.path.insert(0, str(TESTS))
    spec = importlib.util.spec_from_file_location("cases", path)
    cases = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(cases)
    cases.prepare(Path(folder))
    _limit_memory()
    for number in range(*map(int, bounds)):
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
        try:
            cases.case(number, Path(folder))
        except BaseException:  # noqa: BLE001  # whatever it was, the process is over and says so
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main()
