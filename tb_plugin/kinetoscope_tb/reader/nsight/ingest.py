"""A database → sorted events, table after table, in bounded memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from itertools import islice
from typing import Any

import numpy as np

from ...errors import NotATrace
from ...filesystem import DamagedDatabase, Database, Schema
from ...trace.model import Diagnostic
from ..frames.plausible_times import plausible_times, recorded_extent
from ..scan import scanner as s
from ..scan.counters import CounterLines
from ..scan.ingest import RawFile, RawTrace
from ..scan.rows import Occurrences, Part
from ..scan.tokens import Texts
from . import schema
from .events import Ints, Session, part_of, process_of, unique_correlation
from .metrics import device_indices, metric_names, read_metrics
from .scan import Batch, batches, row_count
from .strings import Strings

_MOST_LISTED = 1 << 16  # processes, threads, devices
_MOST_RECORDS = 1 << 20
_WHOLE_GRAPHS = (
    "CUDA graphs were recorded as a whole: each replay is one row of device work, and its kernels are unknown. Record "
    "with `nsys profile --cuda-graph-trace=node` for these."
)
_UNREAD = (
    "Tables of other kinds (operating system calls, CPU samples, libraries) aren't shown. Open the report "
    "in Nsight Systems for those."
)
_UNREADABLE = (
    "Some tables of this export aren't ordinary tables, so their rows are missing from all numbers ({}). Export the "
    "report again with `nsys export --type sqlite`, and don't change the file."
)
_OTHER_EVENTS = frozenset(
    {
        "OSRT_API",
        "COMPOSITE_EVENTS",
        "SCHED_EVENTS",
        "CUBLAS_EVENTS",
        "CUDNN_EVENTS",
        "MPI_COLLECTIVES_EVENTS",
    }
)


class _Export:
    """An open export."""

    def __init__(self, database: Database, tables: Schema) -> None:
        self.database, self.tables, self.unreadable = database, tables.tables, tables.unreadable
        self._damage: dict[str, tuple[str, int | None]] = {}
        self._strings: Strings | None = None

    def rows(self, table: str, *columns: str, most: int = _MOST_LISTED) -> list[tuple[Any, ...]]:
        """The values of a small table, None where a row has none; no rows if the table or a column is missing."""
        if not set(columns) <= self.columns(table):
            return []
        indices = [self.tables[table].columns.index(column) for column in columns]
        rows = self.database.rows(self.tables[table], lambda problem: self.note_damage(table, problem, None))
        return [
            tuple(values[index] if index < len(values) else None for index in indices)
            for _, values in islice(rows, most)
        ]

    def columns(self, table: str) -> frozenset[str]:
        """The columns of a table; empty if there is no such table."""
        return frozenset(self.tables[table].columns) if table in self.tables else frozenset()

    def count(self, table: str) -> int:
        """How many rows a table has; 0 if there is no such table."""
        return row_count(self.database, self.tables[table]) if table in self.tables else 0

    def batches(self, source: schema.Source) -> Iterator[Batch]:
        """The rows of a table of events that exists."""
        base = schema.SOURCES.index(source) << schema.ROW_BITS
        return batches(
            self.database,
            self.tables[source.table],
            source,
            lambda problem, row: self.note_damage(source.table, problem, base + row),
        )

    def name_of(self, numbers: Ints) -> Mapping[int, str]:
        """The texts of these numbers of StringIds."""
        if self._strings is None:
            self._strings = Strings(
                self.database,
                self.tables[schema.STRINGS],
                lambda problem: self.note_damage(schema.STRINGS, problem, None),
            )
        return self._strings.texts(numbers.tolist())

    def note_damage(self, table: str, problem: str, offset: int | None) -> None:
        """Note that some rows of a table can't be read."""
        self._damage.setdefault(table, (problem, offset))

    def damage(self) -> list[Diagnostic]:
        """What is damaged, as one finding."""
        tables = ", ".join(f"{table} ({problem})" for table, (problem, _) in self._damage.items())
        first = next((offset for _, offset in self._damage.values() if offset is not None), None)
        words = (
            f"The database is damaged: some rows of {tables} are missing from all numbers. Export the report again "
            "with `nsys export --type sqlite`."
        )
        return [Diagnostic("damaged_table", len(self._damage), words, first, "loss")] if self._damage else []


def ingest(_blocks: Iterable[bytes], path: str, progress: Callable[[RawTrace, float], None]) -> RawFile:
    """Read all tables of the file itself.

    Args:
        path: The file, as the user knows it.
        progress: Called after each batch with the result so far, and the share of all rows that was read.

    Raises:
        TraceError: The database can't be opened.
        NotATrace: It isn't Nsight Systems' export, or has no events that are read.
    """
    with closing(Database(path)) as database:
        try:
            database_schema = database.schema()
        except DamagedDatabase as error:
            raise NotATrace(
                path, f"the schema of this SQLite database can't be read: {error}. Copy or export the file again."
            ) from error
        _check(path, database_schema)
        return _ingest(_Export(database, database_schema), path, progress)


def _check(path: str, database_schema: Schema) -> None:
    unreadable = _unreadable(database_schema)
    why = f" Tables of it can't be read: {unreadable}." if unreadable else ""
    if schema.STRINGS not in database_schema.tables:
        raise NotATrace(
            path,
            "this SQLite database isn't Nsight Systems' export: it has no table StringIds. Of SQLite files, only those "
            f"of `nsys export --type sqlite` are read.{why}",
        )
    if not schema.is_export(frozenset(database_schema.tables)):
        raise NotATrace(
            path,
            "this export of Nsight Systems has neither CUDA nor NVTX events. Record with `nsys profile "
            f"--trace=cuda,nvtx`.{why}",
        )


def _unreadable(database_schema: Schema) -> str:
    """The tables that would be read if they were ordinary ones, and why each isn't."""
    return "; ".join(
        f"{name}: {database_schema.unreadable[name]}"
        for name in sorted(schema.READ & database_schema.unreadable.keys())
    )


def _ingest(export: _Export, path: str, progress: Callable[[RawTrace, float], None]) -> RawFile:
    present = [source for source in schema.SOURCES if "start" in export.columns(source.table)]
    session = _session(export)
    result = RawTrace(head=_head(export, session), tail=b"]}")
    has_samples = schema.METRICS.table in export.tables
    sources = [*present, schema.METRICS] if has_samples else present
    rows, total = 0, max(1, sum(export.count(source.table) for source in sources))

    def on_rows(count: int) -> None:
        nonlocal rows
        rows += count
        progress(result, min(1.0, rows / total))

    for source in present:
        for batch in export.batches(source):
            events = _events_alone(batch)
            if len(events):
                result.events.append(part_of(events, session))
            on_rows(len(batch))
    if has_samples:
        _add_samples(export, session, result, on_rows)
    if not result.events.events and (damage := export.damage()):
        raise NotATrace(path, f"none of its events can be read. {damage[0].consequence}")
    result.events.append(_thread_names(export))
    return RawFile(result, export.damage() + _notes(export, has_samples=result.samples is not None))


def _add_samples(export: _Export, session: Session, result: RawTrace, on_rows: Callable[[int], None]) -> None:
    """Read the samples of GPU_METRICS, if they have names."""
    names = metric_names(export.rows(schema.METRIC_NAMES, "typeId", "metricId", "metricName"))
    if not names or not set(schema.METRICS.integers) <= export.columns(schema.METRICS.table):
        return
    devices = device_indices(session.device_of, export.rows("TARGET_INFO_CUDA_DEVICE", "cudaId", "gpuId"))
    result.samples = read_metrics(
        export.batches(schema.METRICS),
        names,
        lambda gpu: devices.get(gpu) if devices else gpu,
        recorded_extent(result.events, plausible_times(result.events, Texts(result.events.tokens))),
        on_rows,
    )


def _session(export: _Export) -> Session:
    pids = export.rows("TARGET_INFO_CUDA_DEVICE", "pid", "cudaId", "gpuId")
    several = len({pid for pid, _, _ in pids}) > 1
    processes = _Places()
    (end,) = next(iter(export.rows("ANALYSIS_DETAILS", "stopTime", most=1)), (s.MISSING,))
    return Session(
        export.name_of,
        processes,
        {(pid, own): gpu for pid, own, gpu in pids if _are_numbers(pid, own, gpu)} if several else {},
        _records(export, processes) if schema.WAITS in export.tables else {},
        end if _are_numbers(end) else s.MISSING,
    )


class _Places(dict[int, int]):
    """Numbers processes in the order in which their rows come."""

    def __missing__(self, process: int) -> int:
        self[process] = index = len(self)
        return index


def _are_numbers(*values: object) -> bool:
    return all(isinstance(value, int) for value in values)


def _records(export: _Export, processes: Mapping[int, int]) -> dict[tuple[int, int], int]:
    rows = export.rows(schema.RECORDS, "globalPid", "eventSyncId", "correlationId", most=_MOST_RECORDS)
    numbers = np.array([row for row in rows if _are_numbers(*row)], np.int64).reshape(-1, 3).T
    process = process_of(numbers[0])
    call = unique_correlation(numbers[2], process, processes)
    return dict(zip(zip(process.tolist(), numbers[1].tolist(), strict=True), call.tolist(), strict=True))


def _events_alone(batch: Batch) -> Batch:
    """Without rows that are no events: NVTX_EVENTS names domains, categories and threads, too."""
    if batch.source.table != schema.RANGES:
        return batch
    kinds = (*schema.PUSHED_RANGES, *schema.STARTED_RANGES, schema.MARK)
    return batch.take(np.flatnonzero(np.isin(batch["eventType"], kinds)))


_PROPERTIES = {  # of TARGET_INFO_GPU, by the names of kineto's deviceProperties
    "name": "name",
    "totalGlobalMem": "totalMemory",
    "computeMajor": "computeMajor",
    "computeMinor": "computeMinor",
    "numSms": "smCount",
    "warpSize": "threadsPerWarp",
    "regsPerMultiprocessor": "maxRegistersPerSm",
    "sharedMemPerMultiprocessor": "maxShmemPerSm",
}


def _head(export: _Export, session: Session) -> bytes:
    """The same facts as JSON of torch has before its events."""
    (base,) = next(iter(export.rows("TARGET_INFO_SESSION_START_TIME", "utcEpochNs", most=1)), (0,))
    facts = export.rows("META_DATA_EXPORT", "name", "value")
    versions = {name: value for name, value in facts if isinstance(name, str) and "VERSION" in name}
    head = {"baseTimeNanoseconds": base, "deviceProperties": _devices(export, session), "nsight": versions}
    return json.dumps(head).encode()[:-1] + b', "traceEvents": ['


def _devices(export: _Export, session: Session) -> list[dict[str, Any]]:
    """The devices, by the index that rows have: CUDA's in a file of one process, else the machine's."""
    index_of = {}
    if not session.device_of:
        index_of = {gpu: own for own, gpu in export.rows("TARGET_INFO_CUDA_DEVICE", "cudaId", "gpuId")}
    properties = {name: column for name, column in _PROPERTIES.items() if column in export.columns("TARGET_INFO_GPU")}
    warps = dict(export.rows("TARGET_INFO_GPU", "id", "maxWarpsPerSm"))
    devices = []
    for number, *values in export.rows("TARGET_INFO_GPU", "id", *properties.values()):
        if index_of and number not in index_of:
            continue
        facts = {name: value for name, value in zip(properties, values, strict=True) if value is not None}
        if _are_numbers(warps.get(number), facts.get("warpSize")):
            facts["maxThreadsPerMultiprocessor"] = warps[number] * facts["warpSize"]
        devices.append({"id": index_of.get(number, number), **facts})
    return devices


def _thread_names(export: _Export) -> Part:
    """The names of processes and threads as events of phase M."""
    names: dict[tuple[int, int | None], str] = {}
    for process, name in export.rows("PROCESSES", "globalPid", "name"):
        if isinstance(process, int) and isinstance(name, str):
            names[_pid(process), None] = name
    rows = [row for row in export.rows("ThreadNames", "priority", "globalTid", "nameId") if _are_numbers(*row)]
    texts = export.name_of(np.array([number for *_, number in rows], np.int64))
    for _, thread, number in sorted(rows):  # the name of the highest priority comes last
        if number in texts:
            names[_pid(thread), thread & 0xFFFFFF] = texts[number]
    tokens = [b'"process_name"', b'"thread_name"']
    codes = []
    for (process, own), name in names.items():
        codes.append((int(own is not None), *range(len(tokens), len(tokens) + 3)))
        tokens += [json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") for value in (process, own, name)]
    columns = dict(zip(("name", "pid", "tid", "label"), np.array(codes, np.int64).reshape(-1, 4).T, strict=True))
    return Part(0, tokens, {"names": columns}, Occurrences(), Occurrences(), CounterLines(np.empty(0, np.int64), b""))


def _pid(thread: int) -> int:
    return int(process_of(np.array([thread]))[0])


def _notes(export: _Export, *, has_samples: bool) -> list[Diagnostic]:
    notes = []
    if graphs := export.count(schema.GRAPHS):
        notes.append(Diagnostic("whole_graphs", graphs, _WHOLE_GRAPHS))
    others = _OTHER_EVENTS if has_samples else _OTHER_EVENTS | {schema.METRICS.table}
    if unread := sorted(table for table in others & export.tables.keys() if export.count(table)):
        notes.append(Diagnostic("other_tables", len(unread), f"{_UNREAD} They are {', '.join(unread)}.", level="note"))
    if unreadable := _unreadable(Schema(unreadable=export.unreadable)):
        count = len(schema.READ & export.unreadable.keys())
        notes.append(Diagnostic("unreadable_tables", count, _UNREADABLE.format(unreadable), level="loss"))
    return notes
