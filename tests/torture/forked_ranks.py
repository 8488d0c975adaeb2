"""torchrun whose ranks are forked from its own process, which has imported torch: `forked_ranks.py RANKS FILE ARGUMENT…`.

It watches them as torchrun does, and their environment is torchrun's. For ranks that only fork the processes under test.
"""

import runpy
import sys
from pathlib import Path

from torch.distributed.launcher.api import elastic_launch
from torch.distributed.run import config_from_args, parse_args


def run(file: str, *arguments: str) -> None:
    """Be a rank: run the file as a program with these arguments."""
    sys.argv, sys.path[0] = [file, *arguments], str(Path(file).parent)
    runpy.run_path(file, run_name="__main__")


if __name__ == "__main__":
    ranks, file, *arguments = sys.argv[1:]
    config, _, _ = config_from_args(parse_args([f"--nproc_per_node={ranks}", "--master_port=0", file]))
    config.start_method = "fork"
    elastic_launch(config, run)(file, *arguments)
