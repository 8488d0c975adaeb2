"""One rank of a training over gloo, to one of whose ranks something happens; run by torchrun as `ranks.py FOLDER`.

FOLDER/case.json has the arguments of `Training`, and `rank`: which rank it happens to. It does in the first attempt
only.
"""

import gc
import json
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).parents[1]))

from torture.training import Training


class Rank(Training):
    """One rank's training."""

    def __init__(self, rank, **arguments):
        super().__init__(**arguments)
        self.attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
        if rank != int(os.environ["RANK"]) or self.attempt:
            self.at = None

    def meet(self):
        """Wait for each other in a collective."""
        dist.all_reduce(torch.ones(8))

    def hang(self):
        """Do nothing for longer than anybody waits."""
        time.sleep(600)


def main(folder):
    """Train as one of two ranks."""
    torch.set_num_threads(1)
    gc.freeze()  # a process that ends doesn't look through all of torch for garbage
    os.chdir(folder)
    os.environ["TORTURE"] = folder
    training = Rank(**json.loads(Path("case.json").read_text()))
    # torchrun's own store has all that the attempt before left there: gloo would look for processes that are gone.
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/store{training.attempt}", rank=int(os.environ["RANK"]), world_size=2
    )
    training.run()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
