"""One odd value costs what it says, never the recording; one odd rank never the views of all ranks."""

import json

import pytest
from werkzeug.test import Client

from kinetoscope_tb.discovery import Logdir
from kinetoscope_tb.engine.engine import Engine
from kinetoscope_tb.views import EVERY_VIEW, RUN_VIEWS
from kinetoscope_tb.web.app import Applications
from support.build import TraceBuilder
from support.waiting import LIMIT_S

DEVICE = {"id": 0, "name": "GPU", "totalGlobalMem": 1 << 34, "computeMajor": 8, "computeMinor": 0}
COLLECTIVE = {
    "Collective name": "allreduce",
    "dtype": "Float",
    "In msg nelems": 8,
    "Out msg nelems": 8,
    "Group size": 3,
    "Process Group Name": "0",
    "Process Group Ranks": "[0, 1, 2]",
}


def recording(rank=0, **top):
    group = {"pg_name": "0", "pg_desc": "default_pg", "pg_size": 3, "ranks": [0, 1, 2]}
    metadata = {"backend": "nccl", "rank": rank, "world_size": 3, "pg_config": [group]}
    return (
        TraceBuilder(**{"deviceProperties": [DEVICE], "distributedInfo": metadata, **top})
        .step(1, 0, 100)
        .step(2, 100, 100)
        .op("aten::mm", 10, 20, **{"Input Dims": [[2, 3], [3, 4]], "Input type": ["float", "float"]})
        .launch(12, 3, 1)
        .kernel("gemm", 20, 30, 1)
        .op("record_param_comms", 60, 10, **COLLECTIVE)
        .launch(62, 3, 2)
        .kernel("ncclDevKernel_AllReduce", 70, 20 + rank, 2, stream=20)
        .python("train.py(3): step", 5, 90)
        .memory(64, 15)
    )


def changed(at, **values):
    """A recording in which one event has other values; None takes one away."""
    builder = recording()
    event = builder.events[at]
    for name, value in values.items():
        if value is None:
            del event[name]
        else:
            event[name] = value
    return builder


def with_argument(at, name, value):
    builder = recording()
    builder.events[at]["args"][name] = value
    return builder


STEP, OPERATOR, COMMUNICATION, PYTHON = 0, 2, 5, 8
ODD = {
    "an operator without a name": lambda: changed(OPERATOR, name=None),
    "an annotation without a name": lambda: changed(STEP, name=None),
    "a Python call without a name": lambda: changed(PYTHON, name=None),
    "a list for a name": lambda: changed(OPERATOR, name=["\ud800"]),
    "a step beyond 64 bits": lambda: changed(STEP, name="ProfilerStep#99999999999999999999"),
    "an operator without a process": lambda: changed(OPERATOR, pid=None),
    "a Python call without a process": lambda: changed(PYTHON, pid=None),
    "an operator without a thread": lambda: changed(OPERATOR, tid=None),
    "half a character in a list": lambda: with_argument(OPERATOR, "Input Dims", ["\ud800", [2]]),
    "half a character in metadata": lambda: recording(traceName="\ud800", **{"\udfff": ["\ud800", {"\ud800": 1}]}),
    "a list for a device's number": lambda: recording(deviceProperties=[{**DEVICE, "id": [0]}]),
    "a device's memory beyond 64 bits": lambda: recording(deviceProperties=[{**DEVICE, "totalGlobalMem": 2**64}]),
    "no memory on a device": lambda: recording(deviceProperties=[{**DEVICE, "totalGlobalMem": 0}]),
    "a number for the groups": lambda: recording(distributedInfo={"rank": 0, "world_size": 3, "pg_config": 7}),
    "odd groups": lambda: recording(distributedInfo={"pg_config": [{"pg_name": [], "ranks": ["\ud800", 1e308]}]}),
    "an object for a group's ranks": lambda: with_argument(COMMUNICATION, "Process Group Ranks", {"\ud800": [2**64]}),
    "shapes of no lists": lambda: with_argument(OPERATOR, "Input Dims", [5, float("inf")]),
    "sizes beyond 64 bits together": lambda: with_argument(OPERATOR, "Input Dims", [[1, 2**62], [2**62, 0]]),
}


@pytest.fixture
def write(tmp_path):
    def written(*builders):
        for rank, builder in enumerate(builders):
            (tmp_path / f"rank{rank}.1.pt.trace.json").write_text(builder.text())
        engine = Engine([Logdir(str(tmp_path), "run")], patience_s=LIMIT_S)
        apps = Applications(engine)

        def ask(route, worker="rank0", **query):
            return Client(apps[route]).get(route, query_string={"run": "run", "worker": worker, "span": "1", **query})

        return ask

    return written


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_value_costs_no_answer(odd, write):
    ask = write(ODD[odd]())
    for route, query in [("/state", {}), ("/timeline", {}), *(("/view", {"view": view}) for view in EVERY_VIEW)]:
        response = ask(route, **query)
        assert response.status_code == 200, (route, query, response.text)
        assert json.loads(response.data.decode())["state"] in ("ready", "missing")


def test_what_is_odd_is_told_in_trace_health(write):
    ask = write(changed(OPERATOR, name=None, pid=7))
    data = ask("/view", view="health").json["data"]
    assert "odd_name" in data["rule"]
    ask = write(recording(deviceProperties=[{**DEVICE, "id": [0]}], traceName=7))
    data = ask("/view", view="health").json["data"]
    text = data["consequence"][data["rule"].index("odd_metadata")]
    assert "deviceProperties.id, traceName" in text


PLACE = {"rank": 1, "world_size": 3}
IMPOSSIBLE = {
    "a rank": {"distributedInfo": {**PLACE, "rank": 2**63}},
    "a recorder's rank": {"kinetoscope": {"global_rank": 2**64}},
    "a number of ranks": {"distributedInfo": {**PLACE, "world_size": 2**63}},
    "a large number of ranks": {"distributedInfo": {**PLACE, "world_size": 10**9}},
    "the latest clock": {"base_ns": 2**63 - 1},
    "the earliest clock": {"base_ns": -(2**63)},
    "a clock of 9e18": {"base_ns": 9 * 10**18},
    "a clock beyond 64 bits": {"base_ns": 10**30},
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_a_rank_that_cannot_be_is_left_out_and_named(what, write):
    ask = write(recording(0), recording(1, **IMPOSSIBLE[what]), recording(2))
    for view in RUN_VIEWS:
        response = ask("/view", view=view)
        assert response.status_code == 200, (view, response.text)
    health = ask("/view", view="run_health").json["data"]
    text = health["consequence"][health["rule"].index("broken_recordings")]
    assert "rank1: " in text
    assert "can't be" in text
    steps = ask("/view", view="rank_steps").json["data"]
    assert set(steps["worker"]) == {"rank0", "rank2"}
    own = ask("/view", worker="rank1", view="operators").json
    assert own["data"]["name"]
    assert "impossible_metadata" in ask("/view", worker="rank1", view="health").json["data"]["rule"]
