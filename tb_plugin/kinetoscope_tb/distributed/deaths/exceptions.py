"""An exception → its class of cause, by its class, error number and message."""

from __future__ import annotations

from collections.abc import Sequence

from kinetoscope.journal.ending import Ending

from ...names.regex import regex

EXCEPTION = "exception"
DEVICE_MEMORY, HOST_MEMORY, WORKER = "device memory", "host memory", "loader worker"
DEVICE_ERROR, DEVICE_FAULT = "device error", "device fault"
DISK, WRITE = "disk full", "write failed"
TIMEOUT, PEER_LOST = "timeout", "peer lost"

_NO_SPACE = (28, 122)  # ENOSPC, EDQUOT
_PLACES = ("torch.distributed.", "torch.nn.parallel.distributed.")
_OF_COMMUNICATION = regex(
    r"gloo|unbound_buffer|TCPStore|tensorpipe|c10d|ProcessGroup|NCCL|nccl|RCCL|monitoredBarrier|\bRPC|RPCErr|WorkNCCL"
    r"|client socket|_store_based_barrier|\bxccl\b",
    2,
)
_TIMED_OUT = regex(r"(?i)tim(?:ed|e)[ -]?out|timeout|ran for more than set|failed to pass", 2)
_GONE = regex(
    r"(?i)closed by peer|reset by peer|broken pipe|remote (?:process|peer|error)|network error|got 0 bytes|\beof\b"
    r"|connection (?:was |is )?(?:likely )?(?:closed|aborted|refused|lost)|aborted|shutdown or crash|failed to recv"
    r"|unhandled system error|no route to host|connectFullMesh",
    2,
)
_DEVICE_MEMORY = regex(
    r"CUDA out of memory|HIP out of memory|out of memory\. Tried to allocate|CUDA error: out of memory", 2
)
_DEVICE_FAULT = regex(r"uncorrectable (?:ECC|NVLink)|GPU (?:is lost|has fallen off the bus)|hardware stack error", 2)
_DEVICE_ERROR = regex(  # of a kernel, reported by a later call
    r"device-side assert|illegal (?:memory access|instruction|address)|unspecified launch failure|misaligned address"
    r"|launch timed out|invalid (?:program counter|address space)|CU[A-Z]+_STATUS_EXECUTION_FAILED",
    2,
)
_HOST_MEMORY = regex(r"DefaultCPUAllocator: (?:can't|not enough)|Cannot allocate memory", 2)
_NO_SPACE_MESSAGE = regex(r"No space left on device|Disk quota exceeded", 2)
_WRITE = regex(r"failed writing file|iostream error|unexpected pos \d+ vs \d+", 2)  # of torch.save
_WORKER = regex(r"DataLoader worker \(pid[^)]*\) (?:is killed by signal|exited unexpectedly)", 2)
_BARRIER = regex(r"(?i)ranks? ([\d, ]{1,200}) failed to pass monitoredBarrier", 2)


def kind_of_exception(ending: Ending) -> str:
    """The class of cause of a rank's exception."""
    errors = [item for item in (ending.exception, ending.cause) if item is not None]
    messages, types = [item.message for item in errors], [item.type.rpartition(".")[2] for item in errors]
    if "OutOfMemoryError" in types or any(map(_DEVICE_MEMORY.search, messages)):
        return DEVICE_MEMORY
    if "MemoryError" in types or any(map(_HOST_MEMORY.search, messages)):
        return HOST_MEMORY
    if any(map(_DEVICE_FAULT.search, messages)):
        return DEVICE_FAULT
    if any(map(_DEVICE_ERROR.search, messages)):
        return DEVICE_ERROR
    if ending.errno in _NO_SPACE or any(map(_NO_SPACE_MESSAGE.search, messages)):
        return DISK
    if any(map(_WRITE.search, messages)):
        return WRITE
    if any(map(_WORKER.search, messages)):
        return WORKER
    return _kind_of_communication(ending, messages) or EXCEPTION


def _kind_of_communication(ending: Ending, messages: Sequence[str]) -> str | None:
    """TIMEOUT or PEER_LOST for an error of torch's communication, else None.

    A message alone isn't enough: a connection to an object store can be reset, too.
    """
    exception = ending.exception
    innermost = ending.calls[0][2] if ending.calls else ""
    is_torch_s = exception is not None and exception.type.startswith("torch.distributed.")
    if not is_torch_s and not innermost.startswith(_PLACES) and not any(map(_OF_COMMUNICATION.search, messages)):
        return None
    if any(map(_TIMED_OUT.search, messages)):
        return TIMEOUT
    return PEER_LOST if is_torch_s or any(map(_GONE.search, messages)) else None


def ranks_of_barrier(ending: Ending) -> tuple[int, ...]:
    """The ranks that an exception of `monitored_barrier` names: those that didn't come."""
    match = _BARRIER.search(ending.exception.message) if ending.exception else None
    return tuple(int(rank) for rank in match[1].split(",") if rank.strip().isdecimal()) if match else ()
