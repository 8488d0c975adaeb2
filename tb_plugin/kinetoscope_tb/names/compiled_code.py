"""Classifies ranges that torch.compile writes: compilation, and the compiled code of a frame.

torch._dynamo.utils.dynamo_timed wraps each phase of compilation in `PHASE (dynamo_timed)` (torch 2.0 and later), the
outermost being `_compile`, `_compile.compile_inner` or `entire_frame_compile`, and `backward._backward_impl` for a
backward graph that is compiled at its first call; `CUDAGraphNode.record (dynamo_timed)` captures a graph instead.
ChromiumEventLogger adds `PHASE_data: …compile_id=F/N` (seen in 2.13): F is the frame, N counts its compilations from 0.
Dynamo's evaluation of a compiled frame is `Torch-Compiled Region: F/N` (2.5 and later; `Torch-Compiled Region` before).
AOTAutograd's call is `CompiledFunction`, inductor's `## Call CompiledFxGraph KEY ##`.
"""

from __future__ import annotations

from .regex import regex

REGION = "Torch-Compiled Region"
_COMPILES = regex(
    r"^(?!CUDAGraph|cudagraph).*\(dynamo_timed\)$|^(?:entire_frame_compile|entire_backward_compile|dynamo)$"
)
_OF_FRAME = regex(r"^(?:dynamo|entire_frame_compile)$|^(?:_compile\b.*|entire_frame_compile) \(dynamo_timed\)$")
_BACKEND = regex(r"^(?:OutputGraph\.)?call_user_compiler \(dynamo_timed\)$|^backend_compile(?: \(dynamo_timed\))?$")
_ID = regex(r"_data: .*\bcompile_id=(?:!\d+/)?(\d+)/(\d+)")
_REGION_ID = regex(rf"{REGION}: (?:!\d+/)?(\d+)/(\d+)")
_GRAPH = regex(r"^CompiledFunction(?:Backward)?$|^## Call CompiledFxGraph")


def is_compilation(name: str) -> bool:
    """Whether torch.compile compiles within a range of this name."""
    return bool(_COMPILES.search(name))


def is_frame_compilation(name: str) -> bool:
    """Whether a range of this name holds all that a frame's compilation consists of, or an attempt that failed."""
    return bool(_OF_FRAME.search(name))


def is_backend_call(name: str) -> bool:
    """Whether a range of this name compiles what Dynamo traced; an attempt that it gave up has none."""
    return bool(_BACKEND.search(name))


def is_compiled_region(name: str) -> bool:
    """Whether a range of this name evaluates a frame that torch.compile compiled."""
    return name.startswith(REGION)


def is_compiled_graph(name: str) -> bool:
    """Whether a range of this name calls a compiled graph."""
    return bool(_GRAPH.search(name))


def compile_id(name: str) -> tuple[int, int] | None:
    """(Frame, number of its compilation, from 0) that a range compiles; None if its name doesn't say."""
    match = _ID.search(name)
    return (int(match.group(1)), int(match.group(2))) if match else None


def region_id(name: str) -> tuple[int, int] | None:
    """(Frame, number of its compilation, from 0) that a compiled region runs; None if its name doesn't say."""
    match = _REGION_ID.match(name)
    return (int(match.group(1)), int(match.group(2))) if match else None
