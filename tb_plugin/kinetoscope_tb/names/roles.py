"""What a worker does in its job, by its name and by the descriptions of its process groups.

Servers and trainers write coordinates into names of files: vLLM `dp0_pp0_tp1_dcp0_ep0_rank1`, SGLang
`TP-1-DP-0-PP-0-EP-1-DECODE`. Frameworks describe groups by what they are for: `tp`, `ep:2`, `mesh_dp`,
`TENSOR_MODEL_PARALLEL_GROUP`.
"""

from __future__ import annotations

import re

from .regex import regex

_AXES = ("dp", "pp", "tp", "cp", "ep")
_COORDINATE = regex(r"(?<![a-z])(dp|pp|tp|dcp|pcp|cp|ep)[-_]?(\d{1,6})(?!\d)", re.IGNORECASE)
_WORDS = {
    "prefill": r"prefill|extend",
    "decode": r"decode",
    "trainer": r"trainer|actor[-_]?train\w*",
    "rollout": r"rollout",
    "reward": r"reward(?:[-_]?model)?",
    "reference": r"ref(?:erence)?[-_]?(?:model|policy)",
    "critic": r"critic",
}
FRONTEND = "frontend"
_FRONTEND = regex(rf"(?:^|\.)async_llm$|^{FRONTEND}(?: \(.*\))?$", re.DOTALL)  # vllm/v1/engine/async_llm.py
_OTHER_PROFILER = regex(r"(?<![a-z])(?:speedscope|py-?spy|viztracer|proton)(?![a-z])", re.IGNORECASE)
_ROLES = {role: regex(rf"(?<![a-z])(?:{words})(?![a-z])", re.IGNORECASE) for role, words in _WORDS.items()}
_GROUPS = {
    "tp": r"tp|tensor[-_ ](?:model[-_ ])?parallel",
    "pp": r"pp|pipeline[-_ ](?:model[-_ ])?parallel",
    "ep": r"ep|expert[-_ ](?:model[-_ ])?parallel",
    "dp": r"dp|data[-_ ]parallel",
    "cp": r"cp|context[-_ ]parallel",
}
_AXIS = {axis: regex(rf"(?<![a-z])(?:{words})(?![a-z])", re.IGNORECASE) for axis, words in _GROUPS.items()}


def roles_in_name(name: str) -> list[str]:
    """The roles and coordinates in the name of a worker, such as `decode` and `tp 1`."""
    roles = [role for role, pattern in _ROLES.items() if pattern.search(name)]
    return roles + [f"{axis.lower()} {int(at)}" for axis, at in _COORDINATE.findall(name)]


def is_frontend(name: str) -> bool:
    """Whether a worker of this name is a server's API process, which is no rank.

    It is vLLM's `HOST_PID.async_llm`, or `frontend` for a process of a file in which others use a device.
    """
    return bool(_FRONTEND.search(name))


def is_no_rank(name: str) -> bool:
    """Whether a worker of this name is next to the ranks of its run: a frontend, or what another profiler recorded."""
    return is_frontend(name) or bool(_OTHER_PROFILER.search(name))


def axis_of_group(description: str | None) -> str | None:
    """The axis of the job that a process group is along, such as `tp`; None if its description doesn't say one."""
    axes = [axis for axis in _AXES if description and _AXIS[axis].search(description)]
    return axes[0] if len(axes) == 1 else None
