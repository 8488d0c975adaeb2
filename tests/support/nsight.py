"""Writes a recording as Nsight Systems' SQLite export has it: the JSON of torch → the tables of `nsys export`.

Operators become the ranges that torch.autograd.profiler.emit_nvtx pushes. The schema is that of version 2026.1.
"""

import json
import re
import sqlite3
from contextlib import closing
from decimal import Decimal

SCHEMA = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE ANALYSIS_DETAILS (globalVid INTEGER NOT NULL, duration INTEGER NOT NULL, startTime INTEGER, stopTime INTEGER);
CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);
CREATE TABLE ThreadNames (nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER, id INTEGER NOT NULL, name TEXT, busLocation TEXT, totalMemory INTEGER,
    memoryBandwidth INTEGER, clockRate INTEGER, smCount INTEGER, uuid TEXT, cuDevice INTEGER, computeMajor INTEGER,
    computeMinor INTEGER, threadsPerWarp INTEGER, maxWarpsPerSm INTEGER, maxRegistersPerSm INTEGER,
    maxShmemPerSm INTEGER);
CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER NOT NULL, cudaId INTEGER NOT NULL, pid INTEGER NOT NULL, uuid TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER,
    globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER,
    launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL,
    gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL,
    blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL,
    localMemoryPerThread INTEGER, graphNodeId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER,
    globalPid INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, deprecatedSrcId INTEGER, srcKind INTEGER,
    dstKind INTEGER, srcDeviceId INTEGER, dstDeviceId INTEGER, migrationCause INTEGER, graphNodeId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER,
    globalPid INTEGER, value INTEGER NOT NULL, bytes INTEGER NOT NULL, graphNodeId INTEGER, memKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    graphId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL,
    correlationId INTEGER, globalPid INTEGER, originalGraphId INTEGER, graphExecId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
    globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL,
    callchainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER NOT NULL, end INTEGER NOT NULL,
    deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL,
    correlationId INTEGER, globalPid INTEGER, syncType INTEGER NOT NULL, eventId INTEGER NOT NULL, eventSyncId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT (timestamp INTEGER, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
    greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    eventId INTEGER NOT NULL, eventSyncId INTEGER);
CREATE TABLE GPU_METRICS (rawTimestamp INTEGER, timestamp INTEGER, typeId INTEGER NOT NULL,
    metricId INTEGER NOT NULL, value INTEGER NOT NULL);
CREATE TABLE TARGET_INFO_GPU_METRICS (typeId INTEGER NOT NULL, sourceId INTEGER NOT NULL, typeName TEXT NOT NULL,
    metricId INTEGER NOT NULL, metricName TEXT NOT NULL);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER,
    category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER,
    domainId INTEGER, uint64Value INTEGER, int64Value INTEGER, doubleValue REAL, uint32Value INTEGER,
    int32Value INTEGER, floatValue REAL, jsonTextId INTEGER, jsonText TEXT);
"""
HOST = 1 << 56 | 2 << 48
"""Above the process in globalTid: the machine."""

METRICS = 72057602627862528 & ~0xFF
"""typeId of GPU_METRICS without its last byte, the GPU."""

ROUTES = ("", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP")
MEMORY = ("Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static", "Unknown")
WAITS = ("", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync")
_COPY = re.compile(r"Memcpy (\w+) \(([\w ]+) -> ([\w ]+)\)")


def thread_of(pid, tid=0):
    """The globalTid of a thread; without one, the globalPid of a process."""
    return HOST | pid << 24 | tid


class Export:
    """A database that is being filled, with a method per kind of row; times in ns since the session began."""

    def __init__(self, path, base_ns=1_700_000_000_000_000_000):
        self.path = path
        self.db = sqlite3.connect(path)
        self.db.executescript(SCHEMA)
        self.insert("TARGET_INFO_SESSION_START_TIME", utcEpochNs=base_ns, utcTime="", localTime="")
        self.insert("META_DATA_EXPORT", name="EXPORT_SCHEMA_VERSION", value="3.24.14")
        self._numbers, self._metrics = {}, {}
        self.pid = 1000

    def insert(self, table, **values):
        names, places = ", ".join(f'"{name}"' for name in values), ", ".join("?" * len(values))
        self.db.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", list(values.values()))
        return self

    def text(self, text):
        """The number of a text in StringIds."""
        if text not in self._numbers:
            self._numbers[text] = number = len(self._numbers) + 1
            self.insert("StringIds", id=number, value=text)
        return self._numbers[text]

    def range(self, name, start, end, *, pid=1000, tid=1, kind=59, by_number=False):
        text = {"textId": self.text(name)} if by_number else {"text": name}
        return self.insert("NVTX_EVENTS", start=start, end=end, eventType=kind, globalTid=thread_of(pid, tid), **text)

    def call(self, name, start, end, correlation, *, pid=1000, tid=1):
        values = {"nameId": self.text(name), "returnValue": 0, "eventClass": int(not name.startswith("cuda"))}
        values |= {"globalTid": thread_of(pid, tid), "correlationId": correlation}
        return self.insert("CUPTI_ACTIVITY_KIND_RUNTIME", start=start, end=end, **values)

    def kernel(self, name, start, end, correlation, *, pid=1000, device=0, stream=7, grid=(1, 1, 1), block=(32, 1, 1),
               registers=16, static=0, dynamic=0, node=None):  # fmt: skip
        sizes = dict(zip(("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"), (*grid, *block), strict=True))
        names = {"demangledName": self.text(name), "shortName": self.text(name.partition("(")[0])}
        shared = {"staticSharedMemory": static, "dynamicSharedMemory": dynamic, "registersPerThread": registers}
        place = self._place(start, end, correlation, pid, device, stream)
        return self.insert("CUPTI_ACTIVITY_KIND_KERNEL", **place, **names, **sizes, **shared, graphNodeId=node)

    def copy(self, start, end, correlation, size, route="HtoD", source="Pageable", target="Device", *, pid=1000,
             device=0, stream=7, node=None, **more):  # fmt: skip
        kinds = {"srcKind": MEMORY.index(source), "dstKind": MEMORY.index(target), "copyKind": ROUTES.index(route)}
        place = self._place(start, end, correlation, pid, device, stream)
        return self.insert("CUPTI_ACTIVITY_KIND_MEMCPY", **place, **kinds, bytes=size, graphNodeId=node, **more)

    def fill(self, start, end, correlation, size, kind="Device", *, pid=1000, device=0, stream=7, node=None):
        place = self._place(start, end, correlation, pid, device, stream)
        more = {"bytes": size, "value": 0, "memKind": MEMORY.index(kind), "graphNodeId": node}
        return self.insert("CUPTI_ACTIVITY_KIND_MEMSET", **place, **more)

    def graph(self, start, end, correlation, graph, *, pid=1000, device=0, stream=7):
        place = self._place(start, end, correlation, pid, device, stream)
        return self.insert("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", **place, graphId=graph, graphExecId=graph + 1)

    def wait(self, kind, start, end, correlation, *, pid=1000, device=0, stream=7, event=0, sync=None):
        place = self._place(start, end, correlation, pid, device, stream)
        more = {"syncType": WAITS.index(kind), "eventId": event, "eventSyncId": sync}
        return self.insert("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", **place, **more)

    def record(self, correlation, event, sync, *, pid=1000, device=0, stream=7):
        place = {"deviceId": device, "contextId": 1, "streamId": stream, "correlationId": correlation}
        place |= {"globalPid": thread_of(pid), "eventId": event, "eventSyncId": sync}
        return self.insert("CUPTI_ACTIVITY_KIND_CUDA_EVENT", **place)

    def sample(self, metric, at, value, *, gpu=0):
        """A value of a metric, which gets a number in the order of first samples."""
        kind = METRICS | gpu
        if (kind, metric) not in self._metrics:
            self._metrics[kind, metric] = number = len(self._metrics)
            names = {"typeName": "GPU Metrics [H100]", "metricName": metric}
            self.insert("TARGET_INFO_GPU_METRICS", typeId=kind, sourceId=11, metricId=number, **names)
        number = self._metrics[kind, metric]
        return self.insert("GPU_METRICS", rawTimestamp=at, timestamp=at, typeId=kind, metricId=number, value=value)

    @staticmethod
    def _place(start, end, correlation, pid, device, stream):
        place = {"start": start, "end": end, "deviceId": device, "contextId": 1, "streamId": stream}
        return place | {"correlationId": correlation, "globalPid": thread_of(pid)}

    def close(self):
        """Write the file, and return its path."""
        self.db.commit()
        self.db.close()
        return self.path


def export_json(path, text, *, drop_empty=True):
    """The recording of a JSON file as a database; what the export has no table for is left out."""
    document = json.loads(text, parse_float=Decimal)
    export = Export(path, int(document.get("baseTimeNanoseconds", 0)))
    export.pid = next(
        event["pid"] for event in document["traceEvents"] if event.get("cat") in ("cuda_runtime", "cpu_op")
    )
    for event in document["traceEvents"]:
        if event["ph"] == "X" and event.get("cat") in _WRITE:
            start = int(Decimal(event["ts"]) * 1000)
            _WRITE[event["cat"]](export, event, start, start + int(Decimal(event["dur"]) * 1000))
        elif device := _COUNTED.fullmatch(str(event["pid"])):
            _write_sample(export, event, int(device[1]))
    if drop_empty:
        drop_empty_tables(export.db)
    return export.close()


def drop_empty_tables(db):
    """Tables are created when their first row comes."""
    for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        if db.execute(f"SELECT count(*) FROM {name}").fetchone() == (0,):
            db.execute(f"DROP TABLE {name}")


def damaged(path, copy, damage):
    """A copy of a file, with its bytes changed by a function."""
    copy.write_bytes(damage(path.read_bytes()))
    return copy


def connected(path):
    """A database to change."""
    return closing(sqlite3.connect(path, isolation_level=None))


def _host(event):
    return {"pid": event["pid"], "tid": event["tid"]}


def _device(export, event):
    args = event["args"]
    node, graph = args.get("graph node id", 0), args.get("graph id", 0)
    node = node if node >= 1 << 32 or not node else graph << 32 | node
    return {"device": args["device"], "stream": args["stream"], "node": node or None, "pid": export.pid}


def _write_operator(export, event, start, end):
    args = event["args"]
    name = event["name"]
    if args.get("Sequence number", -1) >= 0:
        name += f", seq = {args['Sequence number']}"
    name += ", op_id = 5"
    if args.get("Input Dims"):
        name += f", sizes = {json.dumps(args['Input Dims'])}"
    export.range(name, start, end, **_host(event))


def _write_annotation(export, event, start, end):
    export.range(event["name"], start, end, **_host(event), by_number=True)


def _write_call(export, event, start, end):
    name = event["name"] + ("_v7000" if event["name"].startswith("cuda") else "")
    export.call(name, start, end, event["args"].get("correlation", 0), **_host(event))


def _write_kernel(export, event, start, end):
    args = event["args"]
    more = {"grid": args.get("grid", (1, 1, 1)), "block": args.get("block", (1, 1, 1))}
    more |= {"registers": args.get("registers per thread", 0), "dynamic": args.get("shared memory", 0)}
    export.kernel(event["name"], start, end, args["correlation"], **_device(export, event), **more)


def _write_copy(export, event, start, end):
    args = event["args"]
    route, source, target = _COPY.fullmatch(event["name"]).groups()
    export.copy(start, end, args["correlation"], args.get("bytes", 0), route, source, target, **_device(export, event))


def _write_fill(export, event, start, end):
    args = event["args"]
    kind = re.search(r"\((.*)\)", event["name"])[1]
    export.fill(start, end, args["correlation"], args.get("bytes", 0), kind, **_device(export, event))


def _write_wait(export, event, start, end):
    args = event["args"]
    kind = args["cuda_sync_kind"]
    export.wait(kind, start, end, args.get("correlation", 0), device=args["device"], stream=args["stream"],
                pid=export.pid)  # fmt: skip


def _write_sample(export, event, gpu):
    name, value = event["name"], event["args"][""]
    is_clock = name.endswith(" (MHz)")
    raw = -1 if value is None else int(value * 10**6 if is_clock else value)
    metric = name.replace(" (MHz)", " [MHz]").replace(" (%)", " [Throughput %]")
    export.sample(metric, int(Decimal(event["ts"]) * 1000), raw, gpu=gpu)


_COUNTED = re.compile(r"GPU (\d+) Counters")
_WRITE = {
    "cpu_op": _write_operator,
    "user_annotation": _write_annotation,
    "cuda_runtime": _write_call,
    "cuda_driver": _write_call,
    "kernel": _write_kernel,
    "gpu_memcpy": _write_copy,
    "gpu_memset": _write_fill,
    "cuda_sync": _write_wait,
}
