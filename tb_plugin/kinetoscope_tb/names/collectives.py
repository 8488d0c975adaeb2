"""Kinds of collectives, their message sizes and bus factors.

Torch, NCCL and custom kernels spell the same operation in many ways. Here each has one name.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from .regex import regex

UNKNOWN = "other"
SYNCHRONIZING = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier")
"""No rank can leave before the last rank has entered."""

PEER_TO_PEER = ("send", "recv")

ROOTED = ("broadcast", "reduce", "scatter", "gather")
"""One rank has or gets all data, and others may leave before all have entered."""

NOT_A_CALL = regex(r"_?(?:wait|init|startcoalescing|endcoalescing|start_coalescing|end_coalescing|coalesced)$")
"""Names in the metadata of calls that move no data themselves."""

_EXPERT_PARALLEL = r"deepep|dpskep|hybridep|uccl|mooncake|nixlep|mori|\bep(?=dispatch|combine)|\ba2a|moea2a"
_UNNAMED = regex(r"\(anonymous namespace\)::|<unnamed>::")
_KINDS = (  # the first that fits; names are lower case without underscores
    ("send_recv", regex(r"sendrecv")),
    ("reduce_scatter", regex(r"reducescatter")),
    ("all_reduce", regex(r"allreduce|crossdevicereduce|(?:two|one)shot|quickreduce|lamport")),
    ("all_gather", regex(r"allgather|gatherintotensor")),
    ("all_to_all", regex(rf"alltoall|(?:{_EXPERT_PARALLEL}).*(?:dispatch|combine)")),
    ("broadcast", regex(r"broadcast|bcast")),
    ("barrier", regex(r"barrier")),
    ("scatter", regex(r"scatter")),
    ("gather", regex(r"gather")),
    ("reduce", regex(r"reduce")),
    ("send", regex(r"send")),
    ("recv", regex(r"recv")),
)

_BYTES = {
    **dict.fromkeys(("bool", "byte", "char", "unsignedchar", "signedchar", "qint8", "quint8"), 1),
    **dict.fromkeys(("half", "bfloat16", "short", "shortint", "unsignedshort"), 2),
    **dict.fromkeys(("float", "int", "qint32", "unsignedint"), 4),
    **dict.fromkeys(("double", "long", "longint", "longlong", "unsignedlong", "complexfloat"), 8),
    "complexhalf": 4,
    "complexdouble": 16,
}
_SIZED = regex(r"u?int(?P<bits>8|16|32|64)|float(?P<tiny>[48])|bits?(?P<raw>8|16)|complex(?P<pair>32|64|128)")


@lru_cache(1 << 12)
def kind_of(name: str) -> str:
    """The operation that a name stands for: `_allgather_base`, `nccl:all_gather` and NCCL's kernels are `all_gather`.

    NCCL runs all-to-alls, sends and receives with the same kernel, SendRecv: only its call tells which one it is.
    """
    plain = _UNNAMED.sub("", name.lower()).split("(")[0].replace("_", "").replace("::", "").replace("-", "")
    return next((kind for kind, pattern in _KINDS if pattern.search(plain)), UNKNOWN)


@lru_cache(1 << 10)
def element_bytes(dtype: str) -> int | None:
    """Bytes of one number of a type, as c10 (Float, BFloat16) or C++ (c10::BFloat16, long int) calls it; None: unknown.

    A type that packs two numbers of 4 bits into a byte counts the byte as one element, as c10 does.
    """
    plain = dtype.removeprefix("c10::").replace(" ", "").replace("<", "").replace(">", "").lower()
    plain = plain.replace("c10::", "")
    if plain in _BYTES:
        return _BYTES[plain]
    match = _SIZED.match(plain)
    if not match:
        return None
    bits = match["bits"] or match["raw"] or match["pair"]
    return int(bits) // 8 if bits else 1


def message_bytes(kind: str, in_bytes: int, out_bytes: int) -> int:
    """The message size that bandwidths refer to, as in nccl-tests: the larger of input and output.

    https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md: the output of an all-gather, the input of a
    reduce-scatter; for all others both are equal. -1: unknown.
    """
    if kind == "all_gather" and out_bytes < 0:
        return -1
    return in_bytes if kind in ("reduce_scatter", "scatter") and in_bytes >= 0 else max(in_bytes, out_bytes)


_ONE_LESS: Mapping[str, int] = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "all_to_all": 1}


def bus_factor(kind: str, ranks: int) -> float:
    """Bus bandwidth ÷ algorithm bandwidth: the share of the message that each rank's link carries (nccl-tests)."""
    return _ONE_LESS[kind] * (ranks - 1) / ranks if kind in _ONE_LESS and ranks > 0 else 1.0
