"""Writes Perfetto's protobuf, as torch 2.15 does or as other writers do, and the JSON of the same recording."""

import json
import struct

REALTIME, BOOTTIME = 1, 6


def varint(value):
    value &= 2**64 - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, value):
    """One field: an int as a varint, a float as a double, a text or bytes with their length, a list as several."""
    if isinstance(value, (list, tuple)):
        return b"".join(field(number, one) for one in value)
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def message(fields):
    """A message of {number: value}."""
    return b"".join(field(number, value) for number, value in fields.items())


def packet(fields, sequence=1):
    """A packet of the file."""
    return field(1, message({**fields, 10: sequence}))


def fixed64(number, value):
    return varint(number << 3 | 1) + struct.pack("<Q", value)


def value_of(value):
    """The fields of an annotation's value."""
    if isinstance(value, bool):
        return field(2, int(value))
    if isinstance(value, int):
        return field(4, value)
    if isinstance(value, float):
        return field(5, value)
    if isinstance(value, str):
        return field(6, value)
    if isinstance(value, dict):
        return b"".join(field(11, annotation(key, one)) for key, one in value.items())
    return b"".join(field(12, value_of(one)) for one in value)


def annotation(name, value):
    return field(10, name) + value_of(value)


def clock(base, boot=None):
    """A snapshot: the Unix time, and the boot time, which torch sets to the same."""
    clocks = [{1: BOOTTIME, 2: base if boot is None else boot}, {1: REALTIME, 2: base}]
    return packet({6: message({1: [message(one) for one in clocks]}), 8: base if boot is None else boot})


class Torch:
    """A recording of torch 2.15 with Cuspy: operators, launches, kernels and counters, in both forms."""

    def __init__(self, base=1_790_857_026_000_000_000, pid=4242):
        self.base, self.pid = base, pid
        self.texts = {1: {}, 2: {}, 24: {}}
        self.json, self.slices, self.calls, self.work, self.samples = [], [], [], [], []
        for stage in ("Kernel", "Memcpy", "Memset", "Annotation", "EventRecord", "HostNode"):
            self.iid(24, stage)

    def iid(self, table, text):
        texts = self.texts[table]
        return texts.setdefault(text, len(texts) + 1)

    def slice(self, category, name, start, dur, args, tid=None, launched=()):
        tid = tid or self.pid
        self.json.append(
            {"ph": "X", "cat": category, "name": name, "pid": self.pid, "tid": tid, "ts": start / 1000, "dur": dur / 1000,
             "args": args}
        )  # fmt: skip
        event = {9: 1, 11: tid, 10: self.iid(2, name), 3: self.iid(1, category)}
        event[4] = [annotation(key, value) for key, value in sorted(args.items())]
        if launched:
            event[3000] = message({1: list(launched)})
        group = self.calls if category.startswith("cuda_") else self.slices
        group.append((start, dur, tid, message(event)))

    def kernel(self, name, start, dur, correlation, stream=7, device=0):
        self.json.append(
            {"ph": "X", "cat": "kernel", "name": name, "pid": device, "tid": stream, "ts": start / 1000,
             "dur": dur / 1000, "args": {"device": device, "context": 1, "stream": stream, "correlation": correlation,
             "grid": [8, 2, 1], "block": [256, 1, 1], "registers per thread": 122, "shared memory": 0, "priority": 0,
             "queued": 0, "channel": 0, "channel_type": 0}}
        )  # fmt: skip
        extra = {"device id": device, "context id": 1, "stream id": stream, "correlation": correlation,
                 "process_id": 7481, "process_name": "python"}  # fmt: skip
        event = {
            1: len(self.work) + 1, 2: dur, 5: 1, 6: [message({1: key, 2: str(value)}) for key, value in extra.items()],
            11: device, 13: self.iid(24, f"[{stream:02}] stream {stream}"), 14: 1, 20: self.iid(2, name),
            21: message({1: message({1: 8, 2: 2, 3: 1}), 2: message({1: 256, 2: 1, 3: 1}), 3: message({1: 1, 4: 122})}),
        }  # fmt: skip
        self.work.append((start, message(event)))
        return len(self.work)

    def arrow(self, correlation, start, end, stream=7, device=0, tid=None):
        """The arrow that JSON has for a launch and its work."""
        place = {"id": correlation, "cat": "ac2g", "name": "ac2g"}
        self.json.append({"ph": "s", **place, "pid": self.pid, "tid": tid or self.pid, "ts": start / 1000})
        self.json.append({"ph": "f", **place, "pid": device, "tid": stream, "ts": end / 1000, "bp": "e"})

    def sample(self, name, time, value, device=0):
        self.json.append(
            {"ph": "C", "name": name, "pid": f"GPU {device} Counters", "ts": time / 1000, "args": {"": value}}
        )
        self.samples.append((time, name, value))

    def pftrace(self):
        """The packets, in torch's order."""
        out = [clock(self.base), packet({60: message({1: self.pid + 10**6, 3: message({1: self.pid, 6: "python"})})})]
        for tid in sorted({tid for *_, tid, _ in self.slices + self.calls}):
            thread = message({1: self.pid, 2: tid, 5: f"thread {tid}"})
            out.append(packet({60: message({1: tid, 5: self.pid + 10**6, 4: thread})}))
        out.append(packet({13: 1, 12: self._interned(), 8: self.base}))
        for group in (self.slices, self.calls):
            out += [packet({8: self.base + start, 13: 2, 11: event}) for start, _, _, event in group]
            out += [packet({8: self.base + start + dur, 11: message({9: 2, 11: tid})}) for start, dur, tid, _ in group]
        out += [packet({8: self.base + start, 13: 2, 53: event}) for start, event in self.work]
        names = list(dict.fromkeys(name for _, name, _ in self.samples))
        for time, name, value in self.samples:
            counter = message({1: names.index(name), (3 if isinstance(value, float) else 2): value})
            out.append(packet({8: self.base + time, 13: 2, 52: message({2: counter, 4: 1})}))
        return b"".join(out)

    def _interned(self):
        names = list(dict.fromkeys(name for _, name, _ in self.samples))
        specs = message({1: [message({1: i, 2: name}) for i, name in enumerate(names)]})
        tables = {
            kind: [message({1: iid, 2: text}) for text, iid in texts.items()] for kind, texts in self.texts.items()
        }
        return message(
            {**tables, 47: message({1: 1, 2: specs, 3: 0}), 1001: message({1: 1, 2: "registers_per_thread"})}
        )

    def chrome(self):
        """The JSON, compact as Cuspy writes it."""
        top = {"schemaVersion": 1, "baseTimeNanoseconds": self.base, "traceEvents": self.json}
        return json.dumps(top, separators=(",", ":")).encode()


def training(steps, operators=200):
    """A recording of steps with operators, launches and kernels; about 3 events and an arrow per operator."""
    torch = Torch()
    for step in range(steps):
        at = step * operators * 20_000
        torch.slice("user_annotation", f"ProfilerStep#{step}", at, operators * 20_000, {"External id": step})
        for i in range(operators):
            begin, number = at + i * 20_000 + 100, step * operators + i + 1
            shapes = [[4, 1024 + i % 7], [1024, 256]]
            torch.slice("cpu_op", f"aten::op{i % 40}", begin, 15_003, {
                "External id": number, "Record function id": 0, "Ev Idx": number, "Input Dims": shapes,
                "Input type": ["float", "float"], "Sequence number": number, "Fwd thread id": 0})  # fmt: skip
            work = torch.kernel(_KERNEL.format(i % 30), begin + 18_000, 17_001, number)
            torch.slice(
                "cuda_runtime",
                "cudaLaunchKernel",
                begin + 2_000,
                5_002,
                {"cbid": 211, "correlation": number},
                launched=[work],
            )
            torch.arrow(number, begin + 2_000, begin + 18_000)
        torch.sample("Power (W)", at, 250.5 + step / 7)
    return torch


_KERNEL = "void at::native::vectorized_elementwise_kernel<{}, at::native::CUDAFunctor_add<float>, std::array<char*, 3>>(int, Functor)"


def foreign():
    """A trace as Perfetto's SDK writes it: two sequences with an incremental clock each, nested slices, an instant, a
    counter, a flow, a state that is cleared, and a packet that only Perfetto shows."""
    out = [
        packet(
            {6: message({1: [message({1: BOOTTIME, 2: 5_000_000}), message({1: REALTIME, 2: 10**18})]}), 8: 5_000_000},
            1,
        )
    ]
    for sequence, tid in ((2, 71), (3, 72)):
        defaults = message({58: 64, 11: message({11: tid})})
        clocks = [message({1: 64, 2: 6_000, 3: 1, 4: 1000}), message({1: BOOTTIME, 2: 6_000_000})]
        out.append(packet({6: message({1: clocks}), 13: 1, 59: defaults}, sequence))
        out.append(packet({60: message({1: tid, 4: message({1: 70, 2: tid, 5: f"worker {tid}"})})}, sequence))
        out.append(packet({60: message({1: tid + 10, 5: tid, 2: "queue depth", 8: message({3: 2})})}, sequence))
        for nth in range(3):
            names = message(
                {1: message({1: 1, 2: "render"}), 2: [message({1: 1, 2: f"frame {nth}"}), message({1: 2, 2: "draw"})]}
            )
            flow = fixed64(47 if tid == 71 else 48, 900 + nth)
            first = (
                message({9: 1, 10: 1, 3: 1, 4: message({10: "nested", 11: annotation("key", [1, {"a": 0.5}])})}) + flow
            )
            out.append(packet({8: 10, 13: 3 if nth == 1 else 2, 12: names, 11: first, 58: 64, 59: defaults}, sequence))
            later = (
                {9: 1, 10: 2, 11: tid},
                {9: 2, 11: tid},
                {9: 3, 23: "vsync", 11: tid},
                {9: 2, 11: tid},
                {9: 4, 30: nth, 11: tid + 10},
            )
            out += [packet({8: 5, 13: 2, 58: 64, 11: message(event)}, sequence) for event in later]
    out.append(packet({8: 7_000_000, 1: message({1: 3})}, 4))
    return b"".join(out)
