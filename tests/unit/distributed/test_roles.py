"""Roles of ranks: stated by names and groups, inferred from what they ran, and never mixed up."""

import pytest

from kinetoscope_tb.distributed.run import Member, Ranks
from kinetoscope_tb.distributed.summary import summary
from kinetoscope_tb.names.roles import axis_of_group, roles_in_name
from kinetoscope_tb.views import RUN_VIEWS
from support.build import TraceBuilder
from support.server import Server


@pytest.mark.parametrize(
    ("name", "roles"),
    [
        ("dp0_pp1_tp3_dcp0_ep3_rank7", ["dp 0", "pp 1", "tp 3", "dcp 0", "ep 3"]),
        ("TP-1-DP-0-PP-0-EP-1-DECODE", ["decode", "tp 1", "dp 0", "pp 0", "ep 1"]),
        ("TP-0-EXTEND", ["prefill", "tp 0"]),
        ("prefill_worker_3", ["prefill"]),
        ("actor_train_rank0", ["trainer"]),
        ("rollout-2", ["rollout"]),
        ("reward_model", ["reward"]),
        ("rank3", []),
        ("host_4711", []),
        ("mapping_depth2", []),
    ],
)
def test_names_of_workers_state_roles(name, roles):
    assert roles_in_name(name) == roles


@pytest.mark.parametrize(
    ("description", "axis"),
    [
        ("tp:0", "tp"),
        ("mesh_dp", "dp"),
        ("TENSOR_MODEL_PARALLEL_GROUP", "tp"),
        ("EXPERT_MODEL_PARALLEL_GROUP", "ep"),
        ("default_pg", None),
        ("undefined", None),
        ("dp_cp", None),
        (None, None),
    ],
)
def test_descriptions_of_groups_state_axes(description, axis):
    assert axis_of_group(description) == axis


def served(*phases, seed=1):
    server = Server(seed, "vLLM", graph=True)
    for phase in phases:
        server.serve(phase, 8)
    return server.builder.build()


def trained():
    return TraceBuilder().op("autograd::engine::evaluate_function: MmBackward0", 0, 10).build()


def roles_of(traces):
    run = Ranks("r", tuple(Member(name, "1", 0, summary(trace)) for name, trace in traces.items()))
    return {row["worker"]: (row["role"], row["role_source"]) for row in RUN_VIEWS["topology"].run(run).to_dicts()}


def test_what_only_the_recording_shows_is_inferred():
    assert roles_of({"a": served("prefill"), "b": served("decode"), "c": served("mixed")}) == {
        "a": ("prefill", "inferred"),
        "b": ("decode", "inferred"),
        "c": ("prefill and decode", "inferred"),
    }
    assert roles_of({"TP-0-DECODE": served("decode")}) == {"TP-0-DECODE": ("decode, tp 0", "name")}
    assert roles_of({"tp1": served("decode")}) == {"tp1": ("tp 1, decode", "name, inferred")}


def test_a_trainer_has_a_role_only_beside_a_server():
    assert roles_of({"a": trained(), "b": served("decode")}) == {
        "a": ("trainer", "inferred"),
        "b": ("rollout", "inferred"),
    }
    assert roles_of({"a": trained()}) == {"a": (None, None)}


def test_groups_give_places_along_axes():
    config = [{"pg_name": "5", "pg_desc": "tp:0", "pg_size": 2, "ranks": [4, 6]}]
    traces = {}
    for rank in (4, 6):
        builder = TraceBuilder(distributedInfo={"rank": rank, "world_size": 8, "pg_config": config})
        arguments = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 8, "Out msg nelems": 8}
        arguments |= {"Process Group Name": "5", "Process Group Description": "tp:0", "Group size": 2}
        traces[f"rank{rank}"] = builder.op("record_param_comms", 5, 5, **arguments).build()
    roles = {worker: role for worker, role in roles_of(traces).items() if worker}
    assert roles == {"rank4": ("tp 0", "process groups"), "rank6": ("tp 1", "process groups")}


def test_iterations_are_common_steps_only_of_ranks_that_ran_the_same():
    def steps(**traces):
        run = Ranks("r", tuple(Member(name, "1", 0, summary(trace)) for name, trace in traces.items()))
        return set(RUN_VIEWS["rank_steps"].run(run)["step"])

    assert steps(a=served("decode", "decode"), b=served("decode", "decode")) == {"0", "1"}
    assert steps(a=served("prefill"), b=served("decode", "decode")) == {"a 0", "b 0", "b 1"}
