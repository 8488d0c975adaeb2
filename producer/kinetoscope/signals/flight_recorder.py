"""A dump of torch's flight recorder: the last collectives of this process.

torch 2.13 records NCCL and gloo, older versions NCCL alone; their functions are private and have several names.
"""

from __future__ import annotations

import json
import pickle
import sys
from typing import Any

MOST_BYTES = 8 << 20
_MOST_RANKS = 1 << 16
_MODULE, _PYTHON_MODULE = "torch._C._distributed_c10d", "torch.distributed.distributed_c10d"
_JSON = ("_dump_fr_trace_json", "_dump_nccl_trace_json")
_PICKLES = ("_dump_fr_trace", "_dump_nccl_trace")


def flight_recorder_dump(module: Any = None) -> bytes:
    """Return a JSON object; an empty one if torch.distributed isn't used, or has no flight recorder.

    If the ring is very large, only operations that are open are in it.

    Args:
        module: The module with torch's functions, by default that of torch.distributed if it is imported.
    """
    module = sys.modules.get(_MODULE) if module is None else module
    for is_active_only in (False, True):
        data = _dump(module, is_active_only=is_active_only)
        if len(data) <= MOST_BYTES:
            return data
    return b"{}"


def group_ranks(module: Any = None) -> dict[str, list[int]]:
    """Return the global ranks of each process group by its name, in the order of their ranks within the group.

    gloo's recorder lacks them.

    Args:
        module: torch.distributed.distributed_c10d, by default if it is imported.
    """
    module = sys.modules.get(_PYTHON_MODULE) if module is None else module
    try:
        names, ranks = dict(module._world.pg_names), dict(module._world.pg_group_ranks)
    except (AttributeError, RuntimeError):  # another version, or a group is made just now
        return {}
    groups = {str(names[group]): sorted(of, key=of.__getitem__) for group, of in ranks.items() if group in names}
    return groups if sum(map(len, groups.values())) <= _MOST_RANKS else {}


def _dump(module: Any, *, is_active_only: bool) -> bytes:
    for name in _JSON:
        if hasattr(module, name):
            return bytes(getattr(module, name)(includeCollectives=True, onlyActive=is_active_only)).strip()
    for name in _PICKLES:
        if hasattr(module, name):
            options = {"includeCollectives": True, "includeStackTraces": False, "onlyActive": is_active_only}
            value = pickle.loads(getattr(module, name)(**options))  # noqa: S301  torch made it in this process just now
            return json.dumps(value, default=str).encode("ascii")
    return b"{}"
