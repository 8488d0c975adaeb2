"""Two ranks of which the second raises: `torchrun --nproc_per_node=2 recorded_errors.py FOLDER [record]`."""

import os
import sys
import time
from pathlib import Path

from torch.distributed.elastic.multiprocessing.errors import record

FOLDER, RANK = Path(sys.argv[1]), int(os.environ["RANK"])


def parse(line):
    return int(line)


def load_batch():
    try:
        parse("batch 5")
    except ValueError as error:
        raise KeyError("label") from error


def main():
    (FOLDER / str(RANK)).touch()
    while len(list(FOLDER.iterdir())) < 2:
        time.sleep(0.05)
    if RANK == 1:
        load_batch()
    time.sleep(600)  # torchrun stops it


(record(main) if "record" in sys.argv else main)()
