"""Traces that are large in one respect alone: many threads, streams, devices, keys …, by the number of them.

What a shape costs must grow with its size: tests/support/work.py counts it.
"""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import zstandard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

EVENTS = b'"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":1}]'


def span(cat: str, name: str, at: int, dur: int = 2, *, pid: Any = 1, tid: Any = 1, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": at, "dur": dur, "args": args}


def kernel(at: int, number: int, *, device: int = 0, stream: int = 7, name: str = "k", **args: Any) -> dict[str, Any]:
    args = {"device": device, "stream": stream, "correlation": number + 1, **args}
    return span("kernel", name, at, pid=device, tid=stream, **args)


def call(at: int, number: int, **place: Any) -> dict[str, Any]:
    return span("cuda_runtime", "cudaLaunchKernel", at, 1, correlation=number + 1, **place)


def document(events: Iterable[dict[str, Any]], **top: Any) -> bytes:
    members = [f"{json.dumps(key)}:{json.dumps(value)}" for key, value in top.items()]
    lines = ",\n".join(json.dumps(event) for event in events)
    return "{{{}}}".format(",".join([*members, f'"traceEvents":[{lines}]'])).encode()


def threads(n: int) -> bytes:
    return document(span("cpu_op", "aten::add", i, tid=i) for i in range(n))


def processes(n: int) -> bytes:
    return document(span("cpu_op", "aten::add", i, pid=i) for i in range(n))


def launching_threads(n: int) -> bytes:
    rows = [span("cpu_op", "aten::add", 3 * i, tid=i) for i in range(n)]
    rows += [call(3 * i, i, tid=i) for i in range(n)]
    return document(rows + [kernel(3 * i + 1, i, device=i % 3, stream=i % 3) for i in range(n)])


def streams(n: int) -> bytes:
    return document([call(3 * i, i) for i in range(n)] + [kernel(3 * i + 1, i, stream=i) for i in range(n)])


def waiting_streams(n: int) -> bytes:
    waits = (
        span(
            "cuda_sync",
            "Stream Wait Event",
            3 * i,
            pid=0,
            tid=i,
            device=0,
            stream=i,
            cuda_sync_kind="Stream Wait Event",
            correlation=i + 1,
            wait_on_stream=max(i - 1, 0),
            wait_on_cuda_event_id=i,
            wait_on_cuda_event_record_corr_id=i,
        )
        for i in range(n)
    )
    launched = [call(3 * i, i) for i in range(n)]
    return document([*waits, *launched, *(kernel(3 * i + 1, i, stream=i) for i in range(n))])


def devices(n: int) -> bytes:
    listed = [{"id": i, "name": f"H100 {i}", "totalGlobalMem": 2**30, "numSms": 132} for i in range(n)]
    rows = [call(3 * i, i) for i in range(n)] + [kernel(3 * i + 1, i, device=i) for i in range(n)]
    return document(rows, deviceProperties=listed)


def memory_devices(n: int) -> bytes:
    return document(
        {
            "ph": "i",
            "cat": "cpu_instant_event",
            "name": "[memory]",
            "pid": 1,
            "tid": 1,
            "ts": at,
            "args": {
                "Device Type": 1,
                "Device Id": at % n,
                "Addr": 1 + at,
                "Bytes": 100,
                "Total Allocated": 100 + at,
                "Total Reserved": 200 + at,
            },
        }
        for at in range(2 * n)
    )


def steps(n: int) -> bytes:
    rows = [span("user_annotation", f"ProfilerStep#{i}", 10 * i, 9) for i in range(n)]
    rows += [span("cpu_op", "aten::add", 10 * i, 5) for i in range(n)]
    rows += [call(10 * i, i) for i in range(n)]
    return document(rows + [kernel(10 * i + 2, i) for i in range(n)])


def names(n: int) -> bytes:
    rows = [span("cpu_op", f"aten::add{i}", 5 * i) for i in range(n)] + [call(5 * i, i) for i in range(n)]
    return document(rows + [kernel(5 * i + 1, i, name=f"k{i}") for i in range(n)])


def counters(n: int) -> bytes:
    return document(
        {"ph": "C", "name": f"c{i}", "pid": 1, "tid": 1, "ts": i, "args": {f"s{i}": i, "b": 2}} for i in range(n)
    )


def groups(n: int) -> bytes:
    listed = [{"pg_name": f"g{i}", "pg_size": 2, "ranks": [0, i + 1]} for i in range(n)]
    about = {"Collective name": "allreduce", "In msg nelems": 8, "Out msg nelems": 8, "Group size": 2, "dtype": "Float"}
    rows = [call(10 * i, i) for i in range(n)]
    rows += [
        kernel(10 * i + 1, i, name="ncclDevKernel_AllReduce", **about, **{"Process Group Name": f"g{i}"})
        for i in range(n)
    ]
    return document(rows, distributedInfo={"rank": 0, "world_size": n + 1, "backend": "nccl", "pg_config": listed})


def graphs(n: int) -> bytes:
    rows = [span("cuda_runtime", "cudaGraphLaunch", 10 * i, 1, correlation=i + 1) for i in range(n)]
    rows += [kernel(10 * i + 1, i, **{"graph id": i + 1, "graph node id": i + 1}) for i in range(n)]
    return document(rows)


def python_functions(n: int) -> bytes:
    return document(
        span("python_function", f"f{i}.py(1): f{i}", 10 * i, 5, **{"Python id": i + 1, "Python parent id": i})
        for i in range(n)
    )


def modules(n: int) -> bytes:
    rows = [
        span("python_function", f"nn.Module: M{i}_0", 10 * i, 5, **{"Python id": i + 1, "Python module id": i})
        for i in range(n)
    ]
    return document(rows + [span("cpu_op", "aten::add", 10 * i + 1) for i in range(n)])


def nested_modules(n: int) -> bytes:
    rows = [
        span("python_function", f"nn.Module: M{i}_0", i, 2 * n - 2 * i, **{"Python id": i + 1, "Python module id": i})
        for i in range(n)
    ]
    return document([*rows, span("cpu_op", "aten::add", n, 0)])


def nested_operators(n: int) -> bytes:
    rows = [span("cpu_op", f"aten::a{i}", i, 2 * n - 2 * i) for i in range(n)]
    return document([*rows, call(n, 0), kernel(n + 1, 0)])


def flows(n: int) -> bytes:
    rows = [span("cpu_op", "aten::add", 3 * i) for i in range(n)]
    rows += [
        {"ph": phase, "cat": "fwdbwd", "name": "fwdbwd", "id": i, "pid": 1, "tid": 1, "ts": 3 * i, "bp": "e"}
        for i in range(n)
        for phase in "sf"
    ]
    return document(rows)


def call_stacks(n: int) -> bytes:
    return document(
        span("cpu_op", "aten::add", 3 * i, **{"Call stack": f"a.py({i}): f;b.py({i}): g", "Input Dims": [[i, 2]]})
        for i in range(n)
    )


def loaders(n: int) -> bytes:
    rows = [span("user_annotation", f"enumerate(DataLoader)#L{i}.__next__", 5 * i) for i in range(n)]
    return document(rows + [span("user_annotation", f"Optimizer.step#S{i}.step", 5 * i + 2) for i in range(n)])


RECORDINGS: dict[str, Callable[[int], bytes]] = {
    shape.__name__: shape
    for shape in (
        threads,
        processes,
        launching_threads,
        streams,
        waiting_streams,
        devices,
        memory_devices,
        steps,
        names,
        counters,
        groups,
        graphs,
        python_functions,
        modules,
        nested_modules,
        nested_operators,
        flows,
        call_stacks,
        loaders,
    )
}
"""Sound recordings with many of something."""


def _around(before: bytes = b"", behind: bytes = b"") -> bytes:
    return b"{" + before + EVENTS + behind + b"}"


def _in_array(text: bytes) -> bytes:
    return b'{"traceEvents":[' + text + b"]}"


TEXTS: dict[str, Callable[[int], bytes]] = {
    "keys before the events": lambda n: _around(b"".join(b'"k%d":1,' % i for i in range(n))),
    "keys behind the events": lambda n: _around(behind=b"".join(b',"k%d":1' % i for i in range(n))),
    "a long text before the events": lambda n: _around(b'"a":"' + bytes(n).replace(b"\0", b"x") + b'",'),
    "a long list before the events": lambda n: _around(b'"a":[' + b"1," * n + b"1],"),
    "keys without a colon before the events": lambda n: _around(b'"a" 1 ' * n),
    "values that aren't JSON before the events": lambda n: _around(b'"a":{' + b'"b": x ,' * n + b"},"),
    "empty events": lambda n: _in_array(b"{}," * n + b"{}"),
    "events without a colon": lambda n: _in_array(b'{"a" 1},' * n),
    "events that open lists": lambda n: _in_array(b'{"a":[,' * n),
    "events in events": lambda n: _in_array(b'{"ph":"X","args":' * n),
    "commas": lambda n: _in_array(b"," * n),
    "arguments of an event": lambda n: _in_array(
        b'{"ph":"X","name":"a","ts":1,"pid":1,"tid":1,"args":{' + b",".join(b'"a%d":1' % i for i in range(n)) + b"}}"
    ),
    "escapes in a name": lambda n: _in_array(b'{"ph":"X","name":"' + b'\\"' * n + b'","ts":1,"pid":1,"tid":1}'),
    "quotes in a name": lambda n: _in_array(b'{"ph":"X","name":"' + b'a"b' * n + b'","ts":1,"pid":1,"tid":1}'),
    "blanks behind an escaped quote": lambda n: b'{"traceEvents":[{"ph":"X","a":"b\\"}' + b" " * n + b"x",
    "blanks behind an object": lambda n: b'{"traceEvents":[{"ph":"X","a":"b"},' + b" " * n + b"x",
    "blanks behind the document": lambda n: b'{"traceEvents":[{"ph":"X","a":"b}],"' + b" " * n + b"{",
    "blanks behind a quote": lambda n: b'{"traceEvents":[{"ph":"X","a":"b"c},' + b" " * n + b'{" x',
    "digits of a number": lambda n: _in_array(
        b'{"ph":"X","name":"a","ts":' + b"1" * n + b',"pid":1,"tid":1,"args":{"blocks per SM":' + b"1" * n + b"}}"
    ),
    "blanks": lambda n: b" " * n,
}
"""Texts, sound and damaged, that are long in one place."""

FILES: dict[str, Callable[[int], bytes]] = {
    "empty members of gzip": lambda n: gzip.compress(_around()) + gzip.compress(b"") * n,
    "members of gzip with a byte each": lambda n: gzip.compress(_around()) + gzip.compress(b" ") * n,
    "zeros behind gzip": lambda n: gzip.compress(_around()) + bytes(n),
    "empty frames of zstd": lambda n: (
        zstandard.ZstdCompressor().compress(_around()) + zstandard.ZstdCompressor().compress(b"") * n
    ),
    "frames of zstd with a byte each": lambda n: (
        zstandard.ZstdCompressor().compress(_around()) + zstandard.ZstdCompressor().compress(b" ") * n
    ),
}
"""Compressed files of many parts."""
