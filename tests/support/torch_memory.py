"""What torch itself gets wrong about memory, by version."""

from inspect import signature

from torch.autograd.profiler_util import MemRecordsAcc

HAS_EXACT_MEMORY = "start_ns" in signature(MemRecordsAcc.in_interval).parameters
ROUNDED_MEMORY = "this torch looks allocations up by floating-point microseconds, which are 256 ns apart"
