"""Which job of a cluster a process belongs to, by the variables of SLURM, Ray and Kubernetes.

SLURM gives each task of an array a job id of its own; people know a task by the array's id and its number in it, as
`squeue` and `%A_%a` show it. Ray's workers have the id of the job that started them. Kubernetes tells a container
nothing but its host name, which is the pod's, and the namespace of its service account; the rest comes through the
downward API under names that the pod's author chooses, mostly `POD_NAME`, `POD_NAMESPACE` and `NODE_NAME`.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from ..untrusted_files import read_plain

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_MOST_TEXT = 253  # of a name in Kubernetes


def slurm_job(environ: Mapping[str, str]) -> str | None:
    """Return SLURM's id of the job, `{array}_{task}` for a task of an array; None if there is none."""
    array, task = environ.get("SLURM_ARRAY_JOB_ID"), environ.get("SLURM_ARRAY_TASK_ID")
    return f"{array}_{task}" if array and task else environ.get("SLURM_JOB_ID") or None


def cluster_facts(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what is known of the job: `slurm_job`, `ray_job`, `pod`, `namespace` and `node`."""
    facts = {"slurm_job": slurm_job(environ), "ray_job": environ.get("RAY_JOB_ID")}
    if environ.get("KUBERNETES_SERVICE_HOST") or environ.get("POD_NAME"):
        facts |= {
            "pod": environ.get("POD_NAME") or environ.get("HOSTNAME") or socket.gethostname(),
            "namespace": environ.get("POD_NAMESPACE") or _namespace(),
            "node": environ.get("NODE_NAME"),
        }
    return {name: value[:_MOST_TEXT] for name, value in facts.items() if value}


def current_cluster_facts() -> dict[str, str]:
    """Return the same of this process."""
    return cluster_facts(os.environ)


def _namespace() -> str | None:
    try:
        return read_plain(_NAMESPACE_FILE, _MOST_TEXT).decode().strip()
    except (OSError, ValueError):
        return None
