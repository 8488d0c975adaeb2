"""What newer versions of torch can record, by one option each.

A torch that lacks one records without it, and the log says so. torch takes all of them in its `_ExperimentalConfig`.
Those of its in-process CUPTI backend (2.13 and 2.14: CUPTI monitor; 2.15: Cuspy) are keys of the JSON in
`custom_profiler_config`: torch/profiler/profiler.py of these versions.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from typing import Any

import torch

ExperimentalConfig: Any = getattr(torch._C._profiler, "_ExperimentalConfig", None)  # not every torch has it

_LOG = logging.getLogger("kinetoscope")
_BACKENDS = (  # module, name, and whether it has graph dependencies and counters
    ("torch.profiler._cuspy", "cuspy", True),  # 2.15
    ("torch.profiler._cupti", "cupti_monitor", True),  # 2.14
    ("torch.profiler._cupti_monitor", "cupti_monitor", False),  # 2.13
)
_ENVIRONMENT = "environment"


def has_custom_profiler(profiler: Any) -> bool:
    """Whether a torch.profiler.profile may record with an in-process backend besides kineto."""
    return bool(getattr(getattr(profiler, "experimental_config", None), "custom_profiler_config", ""))


def records_all_threads(config: object) -> bool:
    """Whether an experimental configuration of torch's records all threads; False if the installed torch can't tell.

    torch gives it no such attribute, but a state for pickling.
    """
    if config is None or not _accepts(profile_all_threads=True):
        return False
    states = zip(_state_of(ExperimentalConfig()), _state_of(ExperimentalConfig(profile_all_threads=True)), strict=True)
    indices = [index for index, (default, value) in enumerate(states) if default != value]
    return len(indices) == 1 and bool(_state_of(config)[indices[0]])


def _state_of(config: Any) -> tuple[Any, ...]:
    state = config.__getstate__()
    return state if isinstance(state, tuple) else ()


@dataclass(frozen=True, kw_only=True)
class TorchFeatures:
    """Tracer's options of the same names."""

    trace_only: bool = False
    all_threads: bool = False
    in_process_cupti: bool = False
    graph_dependencies: bool = False
    gpu_counters: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The features that are on."""
        return [feature.name for feature in fields(self) if getattr(self, feature.name)]

    @property
    def needs_in_process_cupti(self) -> bool:
        """Whether kineto can't record them."""
        return self.in_process_cupti or self.graph_dependencies or bool(self.gpu_counters)

    def supported_features(self) -> TorchFeatures:
        """Return them without those that the installed torch or this machine lacks, with a log message for each."""
        features = self
        if self.trace_only and not _accepts(trace_only=True):
            _log_missing("trace_only", "2.13")
            features = replace(features, trace_only=False)
        if self.all_threads and not _accepts(profile_all_threads=True):
            _log_missing("all_threads", "2.7")
            features = replace(features, all_threads=False)
        if not self.needs_in_process_cupti:
            return features
        without = replace(features, in_process_cupti=False, graph_dependencies=False, gpu_counters=())
        backend = _backend()
        if backend is None or not _accepts(custom_profiler_config="{}"):
            _log_missing("torch's in-process CUPTI backend", "2.13")
            return without
        if not torch.cuda.is_available():
            _LOG.warning("There is no CUDA device for torch's in-process CUPTI backend; kineto records instead.")
            return without
        if not backend[2] and (self.graph_dependencies or self.gpu_counters):
            _log_missing("graph_dependencies and gpu_counters", "2.14")
            return replace(features, in_process_cupti=True, graph_dependencies=False, gpu_counters=())
        return features

    def config(self, *, with_stack: bool, verbose: bool) -> object | None:
        """Return torch's settings; None for its default.

        Args:
            with_stack: Whether Python calls are recorded. torch needs the events for it that `trace_only` leaves out.
            verbose: Whether torch also makes a text of each operator's call stack.
        """
        settings: dict[str, Any] = {"verbose": True} if verbose else {}
        if self.trace_only and not with_stack:
            settings["trace_only"] = True
        if self.all_threads:
            settings["profile_all_threads"] = True
        backend = _backend()
        if self.needs_in_process_cupti and backend is not None:
            settings["custom_profiler_config"] = json.dumps(self._backend_settings(backend[1]))
        return ExperimentalConfig(**settings) if settings and _accepts(**settings) else None

    def _backend_settings(self, backend: str) -> dict[str, Any]:
        metrics = [name for name in self.gpu_counters if name != _ENVIRONMENT]
        settings: dict[str, Any] = {"backend": backend}
        if self.graph_dependencies:
            settings |= {"enable_graph_dependencies": True, "enable_event_node_ids": True}
        if _ENVIRONMENT in self.gpu_counters:
            settings["enable_environment_counters"] = True
        if metrics:
            settings |= {"enable_pm_sampling": True, "pm_metrics": metrics}
        return settings


def _backend() -> tuple[str, str, bool] | None:
    """Return the in-process CUPTI backend of the installed torch."""
    return next((backend for backend in _BACKENDS if find_spec(backend[0]) is not None), None)


def _accepts(**settings: Any) -> bool:
    """Whether the installed torch has these settings."""
    try:
        return ExperimentalConfig is not None and ExperimentalConfig(**settings) is not None
    except TypeError:
        return False


def _log_missing(what: str, version: str) -> None:
    _LOG.warning("torch %s doesn't have %s; torch %s does. Recording without.", torch.__version__, what, version)
