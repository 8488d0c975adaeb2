"""What a Tracer records: the arguments of torch.profiler.profile, checked before anything is recorded."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any

from torch.profiler import ProfilerActivity, profile, supported_activities

from ..errors import UsageError
from .torch_features import ExperimentalConfig, TorchFeatures, records_all_threads

_LOG = logging.getLogger("kinetoscope")

_NO_ALLOCATIONS = "torch records no allocations with all_threads=True (pytorch#166121): profile_memory has no effect."

Activities = Iterable[Any]  # of ProfilerActivity, or of {ProfilerActivity: [names of event types]} from torch 2.13

_FLAGS = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")
_TRACER_ARGUMENTS = {
    **{name: name for name in ("activities", "schedule", "on_trace_ready", *_FLAGS)},
    "use_cuda": "activities",
}
"""Tracer's own argument for each of these arguments of torch.profiler.profile."""

_TORCH_PARAMETERS = frozenset(signature(profile.__init__).parameters) - {"self"}
PROFILER_ARGUMENTS = {
    *("experimental_config", "execution_trace_observer", "acc_events"),
    *("custom_trace_id_callback", "post_processing_timeout_s"),  # older versions of torch don't have all of these
    *(_TORCH_PARAMETERS - set(_TRACER_ARGUMENTS)),
}
"""The keys that `Tracer(profiler={…})` accepts."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to record: the arguments of torch.profiler.profile, under the same names.

    Args:
        profiler: The arguments of torch.profiler.profile for which Tracer has none of its own.
        features: What not every torch can record.
        profile_class: Makes torch's profiler that records.

    Raises:
        UsageError: Invalid activities or arguments.
    """

    activities: Activities | None = None
    record_shapes: bool = True
    profile_memory: bool = False
    with_stack: bool = False
    with_flops: bool = False
    with_modules: bool = False
    profiler: Mapping[str, Any] = field(default_factory=dict)
    features: TorchFeatures = field(default_factory=TorchFeatures)
    profile_class: Callable[..., profile] = profile

    def __post_init__(self) -> None:
        activities = () if self.activities is None else tuple(self.activities)
        flat_activities = [activity for item in activities for activity in (item if isinstance(item, dict) else [item])]
        if not all(isinstance(activity, ProfilerActivity) for activity in flat_activities):
            raise UsageError(f"activities={activities!r}: they are torch.profiler.ProfilerActivity's, such as CPU.")
        if self.activities is not None and (not flat_activities or len(set(flat_activities)) < len(flat_activities)):
            raise UsageError(f"activities={activities!r}: name at least one, and each of them once.")
        _check_profiler_arguments(self.profiler)
        if not all(isinstance(name, str) and len(name) > 1 for name in self.features.gpu_counters):
            raise UsageError("gpu_counters: it must be a collection of names, such as ['environment'].")
        if self.features.names and self.profiler.get("experimental_config") is not None:
            raise UsageError(
                f"{self.features.names[0]}: it can't be combined with an experimental_config; set it there."
            )
        if self.features.needs_in_process_cupti and flat_activities and ProfilerActivity.CPU not in flat_activities:
            raise UsageError("torch's in-process CUPTI backend needs ProfilerActivity.CPU among the activities.")

    @property
    def acc_events(self) -> bool:
        """Whether torch accumulates the events of all windows."""
        return bool(self.profiler.get("acc_events"))

    @property
    def all_threads(self) -> bool:
        """Whether the operators of all threads are recorded, by whichever argument."""
        return self.features.all_threads or records_all_threads(self.profiler.get("experimental_config"))

    def arguments(self, trace_id: Callable[[], str], *, reads_events: bool = False) -> dict[str, Any]:
        """Return the arguments for torch.profiler.profile.

        Call stacks as text double the file, and the end of a window holds the training half as long again. The Python
        calls in the file say the same. The texts are needed only by a program that reads torch's events, which don't
        have the Python calls, and with TorchScript, which has none.

        Args:
            trace_id: Names each window.
            reads_events: Whether the program may read torch's events.
        """
        arguments = {flag: getattr(self, flag) for flag in _FLAGS}
        arguments |= {key: value for key, value in self.profiler.items() if value is not None}
        arguments.pop("custom_trace_id_callback", None)  # `trace_id` calls it
        if "custom_trace_id_callback" in _TORCH_PARAMETERS:
            arguments["custom_trace_id_callback"] = trace_id
        if self.activities is not None:
            arguments["activities"] = list(self.activities)
        if "experimental_config" not in arguments:
            arguments["experimental_config"] = self.features.config(
                with_stack=self.with_stack, verbose=self.with_stack and (reads_events or self.with_modules)
            )
        return arguments

    def supported_options(self) -> Options:
        """Return them without the features that the installed torch or this machine lacks, with a log message."""
        options = replace(self, features=self.features.supported_features())
        if options.all_threads and self.profile_memory:
            _LOG.warning("%s", _NO_ALLOCATIONS)
        return options

    def with_switches(self, switches: Mapping[str, bool]) -> Options:
        """Return a copy with some of the switches changed."""
        return replace(self, **dict[str, Any](switches))

    def to_json(self) -> dict[str, Any]:
        """Return what was recorded as JSON values."""
        all_threads = {"all_threads": True} if self.features.all_threads else {}
        return {**options_of({**self.profiler, **vars(self)}, self.activities), **all_threads}


def options_of(source: Mapping[str, Any], activities: Activities | None) -> dict[str, Any]:
    """Return the options among a profiler's attributes, as JSON values."""
    items = supported_activities() if activities is None else activities
    return {
        "activities": sorted(
            _name(activity) for item in items for activity in (item if isinstance(item, dict) else [item])
        ),
        **{flag: bool(source.get(flag)) for flag in _FLAGS},
        **({"all_threads": True} if records_all_threads(source.get("experimental_config")) else {}),
    }


def _name(activity: object) -> str:
    return str(getattr(activity, "name", activity))


def _check_profiler_arguments(arguments: Mapping[str, Any]) -> None:
    """Check the mapping that `Tracer(profiler={…})` was given.

    Raises:
        UsageError: A key that torch.profiler.profile doesn't have, or for which Tracer has an argument.
    """
    if not isinstance(arguments, Mapping):
        raise UsageError(f"profiler={arguments!r}: it must be a mapping of arguments of torch.profiler.profile.")
    for key in arguments:
        if key in _TRACER_ARGUMENTS:
            raise UsageError(f"profiler={{{key!r}: …}}: use Tracer({_TRACER_ARGUMENTS[key]}=…) instead.")
        if key not in PROFILER_ARGUMENTS:
            keys = ", ".join(sorted(PROFILER_ARGUMENTS))
            raise UsageError(f"profiler={{{key!r}: …}}: unknown key; accepted are {keys}.")
    config = arguments.get("experimental_config")
    if config is not None and ExperimentalConfig is not None and not isinstance(config, ExperimentalConfig):
        raise UsageError(f"experimental_config={config!r}: it must be a torch._C._profiler._ExperimentalConfig.")
