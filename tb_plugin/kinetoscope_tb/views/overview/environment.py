"""Environment: hardware, software and profiler options, as far as the file has them."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import PurePath

import polars as pl

from ...discovery import span_labels
from ...discovery.filename_patterns import is_time, name_parts
from ...filesystem import printable
from ...measures.recording.contents import has_snapshot_alone
from ...measures.recording.torch_version import MEMORY_TIMELINE, torch_version, writer
from ...measures.recording.unrecorded_device import device_names, unrecorded_device
from ...names.text import digits
from ...table import TEXT, Column, Table
from ...trace import Trace
from ...trace.meta import Meta
from ...trace.model import EARLIEST_CLOCK_NS
from ...view import View


class Environment(Table):
    """Facts about the trace: hardware, software and profiler options."""

    key = ("fact",)

    fact = Column(TEXT, "Fact.")
    value = Column(TEXT, "Its value, as the file gives it; a count with thin spaces between thousands.")


def environment(trace: Trace) -> pl.DataFrame:
    """The facts in the file, the most useful first."""
    facts = {name: str(value) for name, value in (*_machine(trace), *_recording(trace)) if value not in (None, "")}
    return Environment.of(
        pl.DataFrame({"fact": list(facts), "value": list(facts.values())}, schema=Environment.schema())
    )


def _machine(trace: Trace) -> list[tuple[str, object]]:
    meta = trace.meta
    indices = trace.device_events["device"].unique()
    names = {d.get("id"): str(d.get("name") or "") for d in meta.devices}
    devices = sorted({names.get(device, "") for device in indices} - {""}) or sorted({n for n in names.values() if n})
    return [
        ("Device", ", ".join(devices) if indices.len() else _unused_device(trace)),
        ("Devices used", indices.len() or None),
        ("torch", torch_version(trace)),
        *job_facts(meta),
    ]


def _unused_device(trace: Trace) -> str | None:
    """The device of a recording without device work; None if the file doesn't say.

    A memory timeline doesn't say whose memory it is, nor do files of other programs whose events they hold.
    """
    if writer(trace) == MEMORY_TIMELINE or trace.meta.foreign_writer is not None:
        return None
    device, names = unrecorded_device(trace), device_names(trace)
    if device is not None:
        return f"{names or 'GPU'} (not recorded)"
    return f"CPU (the machine has {names})" if names else "CPU"


def job_facts(meta: Meta) -> list[tuple[str, object]]:
    """Facts from the file's metadata; None if missing."""
    return [
        ("CUDA", meta.cuda_version),
        ("ROCm", meta.rocm_version),
        ("Python", meta.producer.get("python_version")),
        ("Host", meta.producer.get("host") or meta.top.get("host_name")),
        ("Job", _job(meta.producer.get("cluster"))),
        ("Rank", meta.rank),
        ("World size", meta.world_size),
        ("Backend", _backend(meta.distributed_info.get("backend"))),
    ]


def _job(cluster: object) -> str | None:
    """The cluster's names for the job and the pod."""
    facts = {name: str(value) for name, value in cluster.items() if value} if isinstance(cluster, dict) else {}
    pod = "/".join(facts[name] for name in ("namespace", "pod") if name in facts)
    parts = [f"{title} {facts[name]}" for name, title in (("slurm_job", "SLURM"), ("ray_job", "Ray")) if name in facts]
    parts += [f"pod {pod}" + (f" on {facts['node']}" if "node" in facts else "")] if pod else []
    return printable(", ".join(parts)) or None


def _recording(trace: Trace) -> list[tuple[str, object]]:
    steps = trace.steps
    has_steps = steps["name"][0] != "all"
    start = datetime.fromtimestamp(trace.origin_ns / 1e9, timezone.utc) if trace.origin_ns > EARLIEST_CLOCK_NS else None
    start_text = f"{start:%Y-%m-%d %H:%M:%S} UTC" if start else None
    name_text = _time_in_name(trace)
    return [
        ("Recorded", start_text),
        ("File written", name_text if name_text != start_text else None),
        ("Steps", _steps(steps) if has_steps else None if has_snapshot_alone(trace) else "not marked"),
        ("Recorded because", _why(trace.meta)),
        ("Events", digits(trace.meta.events)),
        ("Written by", writer(trace)),
        ("Trace id", trace.meta.top.get("trace_id")),
        ("File", printable(PurePath(trace.path).name)),
        ("Process", _process(trace.meta)),
    ]


def _time_in_name(trace: Trace) -> str | None:
    """The time in the file's name: torch takes it when it writes the file, which may be minutes after the steps."""
    span = name_parts(PurePath(trace.path).name).span
    label = span_labels([span])[span] if is_time(span) else span
    return label if label != span else None


def _why(meta: Meta) -> str | None:
    """What made the recorder choose these steps, if a budget did."""
    why = meta.producer.get("why")
    return printable(why) if isinstance(why, str) and why else None


def _process(meta: Meta) -> str | None:
    """Which process of the file it is, if that holds several."""
    return None if meta.process is None else f"{meta.process.id}, one of {len(meta.processes)} in the file"


def _steps(steps: pl.DataFrame) -> str:
    """First to last, and how many are complete; a single one isn't shown as a number of steps."""
    names, complete = steps["name"].to_list(), int(steps["is_complete"].sum())
    if len(names) == 1:
        return f"1, {'complete' if complete else 'incomplete'}: number {names[0]}"
    return f"{names[0]}–{names[-1]}, {complete} complete"


def _backend(name: object) -> object:
    """torch.distributed's backend; a device mesh leaves it undefined."""
    return None if name == "undefined" else name


VIEW = View(environment, table=Environment, title="Environment", entry="Trace health", within="recording")
