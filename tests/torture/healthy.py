"""Two ranks that are slow for a while and healthy, a job each: `torchrun --nproc_per_node=2 healthy.py FOLDER NAME…`.

`run_scenarios` says how they run. A scenario's run is `FOLDER/NAME`. Work that lasts longer than the limit goes on when
the test has asked about it: when the file `NAME.asked` is there.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).parents[1]))

from kinetoscope import Tracer, on_request
from torture.scenarios import run_scenarios

FOLDER, NAMES = Path(sys.argv[1]), sys.argv[2:]
RANK = int(os.environ["RANK"])
STEPS, AFTER_S = 12, 6
SLOW_S = AFTER_S / 3
SLOW_STEP = 6
LONGEST_S = 60  # then the job goes on, even if nobody asked


def wait_until_asked(name):
    end = time.monotonic() + LONGEST_S
    while not (FOLDER / f"{name}.asked").exists() and time.monotonic() < end:
        time.sleep(0.05)


def compile_slowly():
    def build(graph, _inputs):
        wait_until_asked("compiles")
        return graph.forward

    torch.compile(lambda x: x + 1, backend=build)(torch.ones(2))


class SlowFile:
    """A file on a disk that takes its time."""

    def write(self, data):
        wait_until_asked("saves")
        return len(data)

    def flush(self):
        pass


def save_checkpoint():
    torch.save({"weight": torch.ones(8)}, SlowFile())


def evaluate():
    wait_until_asked("evaluates")


def import_library():
    """Import a module of a library from a disk that takes its time."""
    folder = FOLDER / "site-packages"
    folder.mkdir(exist_ok=True)
    (folder / "slow_library.py").write_text(
        "import pathlib, time\n"
        f"end = time.monotonic() + {LONGEST_S}\n"
        f"asked = pathlib.Path({str(FOLDER / 'imports.asked')!r})\n"
        "while not asked.exists() and time.monotonic() < end:\n"
        "    time.sleep(0.05)\n"
    )
    sys.path.append(str(folder))
    import slow_library  # noqa: F401


class Samples(torch.utils.data.Dataset):
    """Samples of which the first takes long, as in an epoch that begins."""

    def __len__(self):
        return STEPS

    def __getitem__(self, index):
        time.sleep(0 if index else SLOW_S)
        return torch.ones(2)


def write_log():
    """Write to a disk that is slow."""
    end = time.monotonic() + SLOW_S
    with (FOLDER / f"log.{RANK}").open("w") as file:
        while time.monotonic() < end:
            file.write("loss 0.5\n")
            file.flush()
            os.fsync(file.fileno())
            time.sleep(0.05)


def pause():
    """Be stopped for a while, as by a debugger."""
    subprocess.Popen(["sh", "-c", f"sleep {SLOW_S}; kill -CONT {os.getpid()}"])
    os.kill(os.getpid(), signal.SIGSTOP)


SLOW_WORK = {
    "compiles": compile_slowly,
    "saves": save_checkpoint,
    "evaluates": evaluate,
    "imports": import_library,
    "writes": write_log,
    "pauses": pause,
}
"""What rank 1 does in one step."""
STEPS_S = {
    "first_step": lambda step: 2 * AFTER_S if step == 0 else 0.1,
    "accumulates": lambda step: SLOW_S if step % 4 == 3 else 0.1,
    "grows": lambda step: 0.1 * step,
    "warms_caches": lambda step: SLOW_S if step < 3 else 0.1,
}
"""How long a step takes on all ranks."""


def train(name):
    dist.init_process_group("gloo", init_method=f"file://{FOLDER}/{name}.store", rank=RANK, world_size=2)
    batches = iter(torch.utils.data.DataLoader(Samples(), num_workers=1)) if name == "loads" else None
    with Tracer(FOLDER, run=name, schedule=on_request, system=(), scalars=False, hang_after_s=AFTER_S) as tracer:
        for step in range(STEPS):
            if batches is not None:
                next(batches)
            time.sleep(STEPS_S.get(name, lambda _: 0.1)(step))
            if step == SLOW_STEP and RANK == 1 and name in SLOW_WORK:
                SLOW_WORK[name]()
            dist.all_reduce(torch.ones(8))
            tracer.step()


torch.set_num_threads(1)
run_scenarios(FOLDER, NAMES, train)
