"""Random traces: every kind of row, times that collide, links that dangle."""

from __future__ import annotations

from hypothesis import strategies as st

from support.build import TraceBuilder

times = st.integers(0, 60)
lengths = st.integers(0, 25)
threads = st.integers(1, 3)
intervals = st.builds(lambda at, dur: (at, at + dur), times, lengths)
correlations = st.integers(0, 8)
op_names = st.sampled_from(["aten::mm", "aten::add", "c10d::allreduce_", "enumerate(DataLoader)#_Iter.__next__", "x"])
kernel_names = st.sampled_from(["ampere_sgemm_32x32", "nccl:all", "ncclDevKernel_AllReduce", "at::native::fill", "k"])
kernel_arguments = st.fixed_dictionaries(
    {"device": st.integers(0, 1), "stream": st.integers(7, 9)},
    optional={"blocks per SM": st.sampled_from([0, 0.25, 0.5, 3.0]), "est. achieved occupancy %": st.integers(0, 100)},
)
copy_arguments = st.fixed_dictionaries(
    {"name": st.sampled_from(["Memcpy HtoD (Pageable -> Device)", "Memcpy DtoH (Device -> Pinned)", "Memcpy"])},
    optional={"bytes": st.integers(0, 9), "device": st.integers(0, 1)},
)


@st.composite
def rows(draw):
    """One row as (method, arguments, keywords) of TraceBuilder."""
    at, dur = draw(times), draw(lengths)
    kinds = ["op", "annotation", "launch", "kernel", "memcpy", "memset", "memory", "python", "wait"]
    match draw(st.sampled_from(kinds)):
        case "op":
            shapes = draw(st.sampled_from([{}, {"Input Dims": [[2, 3], []]}, {"Input Dims": [[4]]}]))
            return (
                "op",
                (draw(op_names), at, dur),
                {"thread": draw(threads), "External id": draw(correlations), **shapes},
            )
        case "annotation":
            return "annotation", (draw(op_names), at, dur), {"thread": draw(threads)}
        case "launch":
            name = draw(
                st.sampled_from(["cudaLaunchKernel", "cudaStreamSynchronize", "cudaMemcpyAsync", "cudaGraphLaunch"])
            )
            ids = {"correlation": draw(correlations), "External id": draw(correlations)}
            return "launch", (at, dur), {"name": name, "thread": draw(threads), **ids}
        case "kernel":
            return "kernel", (draw(kernel_names), at, dur, draw(correlations)), draw(kernel_arguments)
        case "memcpy":
            return "memcpy", (at, dur, draw(correlations)), draw(copy_arguments)
        case "memset":
            return "memset", (at, dur, draw(correlations)), {}
        case "memory":
            device = {"Device Type": draw(st.integers(0, 1)), "Device Id": draw(st.integers(0, 1))}
            where = {"thread": draw(threads), "address": draw(st.integers(0, 3))}
            return "memory", (draw(st.integers(-64, 64)), at), {**where, **device}
        case "wait":
            place = {"device": 0, "stream": draw(st.integers(7, 9)), "cuda_sync_kind": "Stream Wait Event"}
            return "event", ("cuda_sync", "Stream Wait Event", at, 1), place
        case _:
            return "python", ("f.py(1): f", at, dur), {"thread": draw(threads)}


@st.composite
def builders(draw):
    """A builder with random rows, with steps that follow each other or none."""
    builder = TraceBuilder()
    at = draw(times)
    for number in range(draw(st.integers(0, 4))):
        dur = draw(lengths)
        builder.step(number, at, dur)
        at += dur + draw(st.integers(0, 3))
    for method, arguments, keywords in draw(st.lists(rows(), min_size=1, max_size=40)):
        getattr(builder, method)(*arguments, **keywords)
    return builder
