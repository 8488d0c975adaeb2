"""The calls of one trace: from metadata, from names, from kernels alone, from the host alone."""

import pytest

from kinetoscope_tb.diagnostics.run import diagnose_run
from kinetoscope_tb.distributed.run import Member, Ranks
from kinetoscope_tb.distributed.summary import summary
from kinetoscope_tb.views import RUN_VIEWS
from support.build import TraceBuilder, same

RING = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def comms(name, elements=256, dtype="Float", group="0", **more):
    return {
        "Collective name": name,
        "dtype": dtype,
        "In msg nelems": elements,
        "Out msg nelems": elements,
        "Group size": 4,
        "Process Group Name": group,
        **more,
    }


def distributed(*groups, rank=1, world=4, backend="nccl"):
    config = [{"pg_name": name, "pg_desc": "", "pg_size": len(ranks), "ranks": ranks} for name, ranks in groups]
    return TraceBuilder(distributedInfo={"backend": backend, "rank": rank, "world_size": world, "pg_config": config})


def test_a_call_is_its_operator_with_the_times_of_its_kernels():
    trace = (
        distributed(("0", [0, 1, 2, 3]), ("tp", [0, 1]))
        .step(3, 0, 1000)
        .op("record_param_comms", 100, 50, **comms("allreduce", Seq=7))
        .launch(110, 10, 1)
        .launch(125, 10, 2)
        .kernel(RING, 200, 100, 1, stream=20)
        .kernel(RING, 320, 80, 2, stream=20)
        .kernel("gemm", 350, 20, 9)
        .op("record_param_comms", 500, 50, **comms("_allgather_base", 8, "BFloat16", "tp"))
        .op("record_param_comms", 600, 5, **comms("wait"))
        .build()
    )
    made = summary(trace)
    same(
        made.calls,
        """
        kind        group  nth  bytes  dtype     start_ns  dur_ns  exposed_ns  step
        all_reduce  0      7    1024   Float     200       200     180         0
        all_gather  1      -1   16     BFloat16  0         -1      -1          0
        """,
    )
    same(
        made.groups,
        """
        name  size  ranks
        0     4     0-3
        tp    4     0-1
        """,
    )


def test_without_metadata_the_backend_s_range_tells_kind_and_size():
    trace = (
        distributed(world=8)
        .op("c10d::allreduce_", 90, 100)
        .op("record_param_comms", 100, 80)
        .annotation("nccl:all_reduce", 110, 60, **{"Input Dims": [[10, 4]], "Input type": ["c10::Half"]})
        .launch(120, 10, 1)
        .kernel(RING, 300, 100, 1)
        .build()
    )
    made = summary(trace)
    same(
        made.calls,
        """
        kind        group  nth  bytes  dtype      start_ns  dur_ns
        all_reduce  0      -1   80     c10::Half  210       100
        """,
    )
    assert made.groups.rows() == [(None, None, 8, "0-7")]


def test_a_kernel_belongs_to_the_backend_s_range_also_if_an_operator_around_it_launched_it():
    trace = (
        distributed(world=8)
        .op("c10d::_allgather_base_", 90, 100)
        .annotation("nccl:_all_gather_base", 110, 60, **{"Input Dims": [[10, 4]], "Input type": ["c10::Half"]})
        .launch(120, 10, 1)
        .kernel("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", 300, 100, 1)
        .build()
    )
    same(
        summary(trace).calls,
        """
        kind        group  nth  bytes  dtype      start_ns  dur_ns
        all_gather  0      -1   640    c10::Half  210       100
        """,
    )


@pytest.mark.parametrize(
    ("operator", "inside", "shapes", "shape", "kind"),
    [
        ("c10d::_allgather_base_", "nccl:_all_gather_base", [[1024], [256], []], [[256]], "all_gather"),
        ("c10d::_reduce_scatter_base_", "nccl:_reduce_scatter_base", [[64, 4], [1024], []], [[1024]], "reduce_scatter"),
    ],
)
@pytest.mark.parametrize(("world", "group"), [(4, (None, None, 4, "0-3")), (8, (None, None, 4, None))])
def test_without_metadata_the_shapes_tell_how_many_ranks_take_part(operator, inside, shapes, shape, kind, world, group):
    types = ["c10::Half", "c10::Half", ""]
    trace = (
        distributed(world=world)
        .op(operator, 90, 100, **{"Input Dims": shapes, "Input type": types})
        .annotation(inside, 110, 60, **{"Input Dims": shape, "Input type": types[:1]})
        .launch(120, 10, 1)
        .kernel("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", 300, 100, 1)
        .build()
    )
    made = summary(trace)
    assert made.calls.select("kind", "group", "bytes").rows() == [(kind, 0, 2048)]
    assert made.groups.rows() == [group]


def test_the_output_of_an_all_gather_among_unknown_ranks_is_unknown():
    trace = (
        TraceBuilder()
        .annotation("nccl:all_gather", 110, 60, **{"Input Dims": [[10, 4]], "Input type": ["c10::Half"]})
        .launch(120, 10, 1)
        .kernel("ncclKernel_AllGather_RING_LL_Sum_int8_t", 300, 100, 1)
        .build()
    )
    assert summary(trace).calls.select("kind", "bytes").rows() == [("all_gather", -1)]


def test_an_empty_message_without_a_kernel_is_not_lost():
    def rules(elements):
        trace = (
            distributed(("0", [0, 1, 2, 3]))
            .op("record_param_comms", 100, 50, **comms("allreduce"))
            .launch(110, 10, 1)
            .kernel(RING, 200, 100, 1)
            .op("record_param_comms", 500, 50, **comms("all_to_allv", elements))
            .build()
        )
        run = Ranks("r", (Member("rank1", "1", 0, summary(trace)),))
        lost = RUN_VIEWS["communication"].run(run)["lost"].sum()
        return lost, [found.rule for found in diagnose_run(run)].count("transfers_lost")

    assert rules(elements=0) == (0, 0)
    assert rules(elements=8) == (1, 1)


@pytest.mark.parametrize(("world", "rules"), [(4, ["missing_ranks", "transfers_lost"]), (1, [])])
def test_a_collective_without_a_kernel_is_no_loss_for_a_job_of_one_rank(world, rules):
    trace = (
        distributed(("0", [*range(world)]), rank=0, world=world)
        .op("record_param_comms", 100, 50, **comms("allreduce"))
        .launch(110, 10, 1)
        .kernel(RING, 200, 100, 1)
        .op("record_param_comms", 500, 50, **comms("all_to_allv"))
        .build()
    )
    assert [found.rule for found in diagnose_run(Ranks("r", (Member("rank0", "1", 0, summary(trace)),)))] == rules


def test_kernels_that_a_graph_launched_are_calls_of_their_own():
    trace = (
        distributed(("0", [0, 1, 2, 3]))
        .launch(0, 10, 5, name="cudaGraphLaunch")
        .kernel("gemm", 20, 10, 5)
        .kernel(RING, 30, 10, 5)
        .kernel("ncclDevKernel_AllGather_RING_LL", 50, 10, 5)
        .build()
    )
    same(
        summary(trace).calls,
        """
        kind        group  bytes  start_ns  dur_ns  step
        all_reduce  0      -1     30        10      0
        all_gather  0      -1     50        10      0
        """,
    )


def test_on_the_host_a_call_lasts_as_long_as_the_backend_takes():
    trace = (
        distributed()
        .step(1, 0, 500)
        .op("c10d::allreduce_", 100, 10)
        .op("aten::mm", 120, 100)
        .annotation("gloo:all_reduce", 105, 300, thread=2, **{"Input Dims": [[100]], "Input type": ["float"]})
        .build()
    )
    same(
        summary(trace).calls,
        """
        kind        bytes  start_ns  dur_ns  exposed_ns  step
        all_reduce  400    105       300     200         0
        """,
    )
    step = summary(trace).steps.row(0, named=True)
    assert (step["computation_ns"], step["exposed_communication_ns"], step["idle_ns"]) == (100, 205, 195)


def test_on_the_host_an_operator_that_encloses_an_open_collective_does_not_compute():
    trace = (
        distributed()
        .step(1, 0, 500)
        .op("AccumulateGrad", 50, 150)
        .op("c10d::allreduce_", 100, 10)
        .op("aten::add_", 120, 30)
        .op("aten::mm", 350, 50)
        .annotation("gloo:all_reduce", 105, 195, thread=2)
        .build()
    )
    made = summary(trace)
    assert made.calls["exposed_ns"].to_list() == [165]
    step = made.steps.row(0, named=True)
    assert (step["computation_ns"], step["exposed_communication_ns"], step["idle_ns"]) == (130, 170, 200)


@pytest.mark.parametrize("backend", ["nccl", "rccl", "xccl", "hccl"])
def test_a_call_that_only_went_into_a_device_s_queue_has_no_times(backend):
    shape = {"Input Dims": [[100]], "Input type": ["float"]}
    trace = distributed().annotation(f"{backend}:all_reduce", 100, 7, **shape).kernel("gemm", 200, 50).build()
    same(
        summary(trace).calls,
        """
        kind        bytes  dur_ns  exposed_ns
        all_reduce  400    -1      -1
        """,
    )


@pytest.mark.parametrize(
    ("backend", "dur_ns"), [("gloo", 5), ("nccl", -1), ("cpu:gloo,cuda:nccl", -1), ("undefined", 5), (None, 5)]
)
def test_a_call_without_a_backend_s_range_is_of_the_job_s_backend(backend, dur_ns):
    trace = distributed(backend=backend).op("record_param_comms", 0, 5, **comms("allreduce")).build()
    assert summary(trace).calls["dur_ns"].to_list() == [dur_ns]


def test_without_a_name_the_group_is_the_only_one_or_unknown():
    one = distributed(("0", [0, 1, 2, 3])).kernel(RING, 0, 10).build()
    assert summary(one).groups.rows() == [(None, None, 4, "0-3")]
    several = distributed(("0", [0, 1, 2, 3]), ("1", [0, 1])).kernel(RING, 0, 10).build()
    assert summary(several).calls["group"].to_list() == [-1]


def test_a_cut_list_of_ranks_is_looked_up_in_the_file_s_groups():
    call = comms("allreduce", **{"Process Group Ranks": "[0, 1, ..., 63]"})
    known = distributed(("0", list(range(64)))).op("record_param_comms", 0, 5, **call).build()
    assert summary(known).groups["ranks"].to_list() == ["0-63"]
    strange = distributed().op("record_param_comms", 0, 5, **call).build()
    assert summary(strange).groups["ranks"].to_list() == [None if strange.meta.world_size != 4 else "0-3"]


@pytest.mark.parametrize(
    ("split", "sent"),
    [
        ("[1, 2, 1]", {4: 400, 6: 800, 8: 400}),
        ("[]", {4: 532, 6: 532, 8: 532}),
        ("[1, 2, ...]", {}),
        ("[1, 2]", {}),
        ("[0, 0, 0]", {}),
    ],
)
def test_what_goes_to_whom_is_told_by_the_split(split, sent):
    call = comms("all_to_allv", 400, group="ep", **{"In split size": split})
    trace = distributed(("ep", [4, 6, 8]), rank=4).op("record_param_comms", 0, 5, **call).build()
    rows = summary(trace).traffic
    assert dict(rows.select("peer", "bytes").rows()) == sent
    assert rows["calls"].to_list() == [1] * len(sent)


def test_sends_tell_their_receiver_and_receives_their_sender():
    trace = (
        distributed(("0", [0, 1, 2, 3]))
        .step(0, 0, 100)
        .op("record_param_comms", 10, 5, **comms("send", 10, **{"Dst Rank": 2}))
        .op("record_param_comms", 20, 5, **comms("recv", 20, **{"Src Rank": 0}))
        .build()
    )
    made = summary(trace)
    assert made.calls.select("kind", "peer", "bytes").rows() == [("send", 2, 40), ("recv", 0, 80)]
    assert made.traffic.rows() == [(2, "send", 40, 1)]


def test_odd_metadata_says_nothing_and_breaks_nothing():
    call = comms("allreduce", "many", "Gadget", **{"Process Group Ranks": "[[", "Seq": "x"})
    trace = TraceBuilder(distributedInfo={"pg_config": [1, {"ranks": ["a"]}]}).op("record_param_comms", 0, 5, **call)
    made = summary(trace.build())
    assert made.calls.select("kind", "nth", "bytes").rows() == [("all_reduce", -1, -1)]
