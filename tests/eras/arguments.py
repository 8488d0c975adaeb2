"""Arguments of an event: what each release and each kind of device calls them, and which of them it writes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from support.build import Pointer

from .recording import BACKWARD, Row, op_numbers

if TYPE_CHECKING:
    from .kineto import Kineto

Args = dict[str, Any]
DEVICE_TYPES = {"cuda": 1, "rocm": 1, "xpu": 12, "hpu": 15, "mtia": 19, "privateuse1": 20}  # c10's numbers
HIP_NAMES = {"shared size": "shared", "grid dim": "grid", "block dim": "block"}


class Arguments:
    """The arguments of each row of a recording, as one writer spells them."""

    def __init__(self, writer: Kineto, rows: Sequence[Row]) -> None:
        self.writer, self.since = writer, writer.since
        self.ops = op_numbers(list(rows))
        self.kernels = {row.nth: row for row in rows if row.kind == "kernel"}
        self.index = {id(row): i for i, row in enumerate(rows)}

    def of(self, row: Row) -> Args:
        """The `args` of the row."""
        return getattr(self, f"_{row.kind}")(row)  # type: ignore[no-any-return]

    def _annotation(self, row: Row) -> Args:
        return self._numbered(row, {"External id": row.nth} | self._trace())

    def _op(self, row: Row) -> Args:
        shapes = json.loads(row.args["shapes"])
        if not self.since(1, 9):
            empty = {"Output dims": [], "Output type": [], "Output names": [], "Input names": [], "Device": 0}
            return {"Input dims": shapes, "Input type": [], **empty, "External id": row.nth, **self._trace()}
        args: Args = {"External id": row.nth, **self._trace(), "Input Dims": shapes, "Input type": ["float"]}
        if "sequence" in row.args:
            is_backward = row.thread == BACKWARD
            args |= {"Fwd thread id": 1 if is_backward else 0, "Sequence number": row.args["sequence"]}
        if self.since(1, 9) and not self.since(1, 11):
            args["Call stack"] = "train.py(10): step;"
        if self.since(2, 1):
            args["Concrete Inputs"] = ["" for _ in shapes]
        if self.since(2, 4):
            args["Record function id"] = 0
        if self.since(2, 2) and "collective" in row.args:
            args |= self._collective(row, since=(2, 2))
        return self._numbered(row, args)

    def _trace(self) -> Args:
        return {} if self.since(2, 0) else {"Trace name": "PyTorch Profiler", "Trace iteration": 0}

    def _numbered(self, row: Row, args: Args) -> Args:
        if self.since(1, 13):
            args["Ev Idx" if self.since(2, 0) else "Profiler Event Index"] = self.index[id(row)]
        return args

    def _python(self, row: Row) -> Args:
        args: Args = {"Python parent id": row.args.get("parent"), "Python id": row.args["id"]}
        if "module" in row.args:
            args["Python module id"] = row.args["module"]
        return self._numbered(row, args | {"Python thread": 0})

    def _memory(self, row: Row) -> Args:
        on_device = row.args["on_device"]
        kind = DEVICE_TYPES[self.writer.vendor] if on_device else 0
        args: Args = {"Device Type": kind, "Device Id": 0 if on_device else -1, "Bytes": row.args["bytes"]}
        if self.since(1, 11):
            total = max(row.args["bytes"], 0)
            args |= {"Addr": row.args["address"], "Total Allocated": total, "Total Reserved": 2048 if on_device else 0}
        return self._numbered(row, args)

    def _overhead(self, row: Row) -> Args:
        return {}

    def _gpu_annotation(self, row: Row) -> Args:
        return {"External id": row.nth} if row.nth else {}

    def _sync(self, row: Row) -> Args:
        if self.writer.vendor == "mtia":
            return {"stream": row.stream, "wait_on_stream": 104, "seq_num": 7, "correlation": row.nth}
        wait = {"wait_on_stream": -1, "wait_on_cuda_event_id": -1}
        if self.since(2, 2):
            wait["wait_on_cuda_event_record_corr_id"] = -1
        return {
            "cuda_sync_kind": row.name,
            **wait,
            "stream": row.stream,
            "correlation": row.nth,
            "device": self.writer.device,
        }

    def _link(self, row: Row, own: str = "correlation") -> Args:
        """Correlation and External id, in the order and spelling of the release (kineto f720123b to 955af497)."""
        linked = self.ops.get((row.step, row.op), 0)
        if not self.since(1, 12):
            return {own: row.nth, "external id": linked}
        if not self.since(2, 3):
            linked = row.nth
        if not self.since(2, 6):
            linked = linked or row.nth
        return ({"External id": linked} if linked else {}) | {own: row.nth}

    def _runtime(self, row: Row) -> Args:
        if self.writer.vendor == "rocm":
            return self._hip_call(row)
        if self.writer.vendor == "mtia":
            return {"correlation": row.nth, "device": self.writer.device, "stream_id": "7"}
        args = {"cbid": 211} | self._link(row)
        return args if self.since(1, 12) else args | {"external ts": 0}

    def _hip_call(self, row: Row) -> Args:
        kernel = self.kernels.get(row.nth)
        if self.since(2, 4):
            args = {"cid": 107} | self._link(row)
            return args if kernel is None else args | {"kernel": kernel.name, "grid": [2, 1, 1], "block": [128, 1, 1]}
        args = {"External id": row.nth, "stream": Pointer(0), "ptr": Pointer(0x7F00)}
        if kernel is not None:
            name = "Kernel" if self.since(2, 0) else "kernel"
            args |= {name: kernel.name} | {key: kernel.args[name] for key, name in HIP_NAMES.items()}
        return self._pointers(args)

    def _pointers(self, args: Args) -> Args:
        """Pointers without quotes up to torch 1.12 (kineto dcea7f39 put them)."""
        quoted = self.since(1, 13)
        return {k: str(v) if quoted and isinstance(v, Pointer) else v for k, v in args.items()}

    def _kernel(self, row: Row) -> Args:
        vendor, known = self.writer.vendor, row.args
        if vendor == "rocm":
            return self._hip_row(row, {"grid": known["grid"], "block": known["block"]})
        if vendor == "mtia":
            return {"correlation": row.nth, "stream": row.stream, "column": "0", "row": "0", "packet_ptr": 4}
        if vendor == "xpu":
            queue = {"sycl queue": "0x55", "l0 queue": "0x66", "appended": "at 12.3 us", "kernel_id": 4}
            return {
                "device": self.writer.device,
                "context": "0x77",
                **queue,
                "correlation": row.nth,
                "grid": known["grid"],
                "block": known["block"],
            }
        if vendor in ("hpu", "privateuse1"):
            return {"device": self.writer.device, "stream": row.stream, "correlation": row.nth}
        place = {"queued": 0, "device": self.writer.device, "context": 1, "stream": row.stream}
        sizes = {"registers per thread": known["registers"], "shared memory": known["shared"]}
        args = {**self._ordered(place, row), **sizes}
        if self.since(1, 9):
            args["blocks per SM"] = known["blocks"]
        args |= {"warps per SM": 2.0, "grid": known["grid"], "block": known["block"]}
        if self.since(1, 9):
            args["est. achieved occupancy %"] = known["occupancy"]
        if self.since(2, 2) and "collective" in known:
            args |= self._collective(row, since=(2, 3))
        if self.since(2, 12):
            limits = {"activeBlocksPerMultiprocessor": 6, "limitingFactors": known.get("limiter", "none")}
            args |= {"occupancy": limits | {"blockLimitRegs": 6}} | self._node(row)
        if self.since(2, 13):
            args |= {"priority": 0, "channel": 1, "channel_type": "COMPUTE"}
        return args

    def _ordered(self, place: Args, row: Row) -> Args:
        link = self._link(row)
        external = {k: link.pop(k) for k in list(link) if k == "External id"}
        return {**external, **place, **link}

    def _node(self, row: Row) -> Args:
        return {"graph id": 1 if "node" in row.args else 0, "graph node id": row.args.get("node", 0)}

    def _collective(self, row: Row, since: tuple[int, int]) -> Args:
        """What is known of a collective; its sizes and name have come and been renamed one by one."""
        known: Args = row.args["collective"]
        args = {"Group size": known["Group size"], "dtype": known["dtype"]}
        size = "nelems" if self.writer.torch >= since else "size"
        args |= {f"In msg {size}": known["In msg nelems"], f"Out msg {size}": known["Out msg nelems"]}
        if self.since(2, 4):
            late = ("Rank", "Seq") if not self.since(2, 5) else () if self.since(2, 12) else ("Seq",)
            args |= {k: v for k, v in known.items() if k not in (*args, *late, "In msg nelems", "Out msg nelems")}
        elif row.kind == "op":
            args["Collective name"] = known["Collective name"]
        return args

    def _memcpy(self, row: Row) -> Args:
        return self._copy(row)

    def _memset(self, row: Row) -> Args:
        return self._copy(row)

    def _copy(self, row: Row) -> Args:
        size = row.args["bytes"]
        if self.writer.vendor == "rocm":
            return self._hip_row(row, {"bytes": str(size)} if self.since(2, 4) else {"size": size})
        if self.writer.vendor == "mtia":
            direction = {"direction": "HOST_TO_DEVICE"} if row.kind == "memcpy" else {}
            return {"stream": row.stream, **direction, "size": size, "correlation": row.nth, "sqid": 8}
        speed: Any = "N/A" if self.writer.vendor == "xpu" else size / row.dur / 1000
        args = self._ordered({"device": self.writer.device, "context": 1, "stream": row.stream}, row)
        args |= {"bytes": size, "memory bandwidth (GB/s)": speed}
        return args | (self._node(row) if self.since(2, 12) and self.writer.vendor == "cuda" else {})

    def _queue(self) -> Args:
        return {"hsa_queue": 1} if self.since(3, 0) else {}

    def _hip_row(self, row: Row, args: Args) -> Args:
        if self.since(2, 4):
            return (
                self._ordered({"device": self.writer.device, "stream": row.stream}, row)
                | {"kind": "Dispatch"}
                | self._queue()
                | args
            )
        old = {"External id": row.nth, "stream": Pointer(0), "dst": Pointer(0x7F00_1234)}
        return self._pointers(old | {k: v for k, v in args.items() if k == "size"})
