"""Which job of a cluster a process belongs to, by its variables."""

import pytest

from kinetoscope.job import cluster
from kinetoscope.job.cluster import cluster_facts, slurm_job
from kinetoscope.job.run_name import run_name_from
from kinetoscope.output.metadata import process_facts

ARRAY = {"SLURM_JOB_ID": "1003", "SLURM_JOB_NAME": "sweep", "SLURM_ARRAY_JOB_ID": "1000", "SLURM_ARRAY_TASK_ID": "3"}
IN_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOSTNAME": "train-worker-0"}
BY_DOWNWARD_API = {"POD_NAME": "train-0", "POD_NAMESPACE": "ml", "NODE_NAME": "gpu-7"}


@pytest.fixture(autouse=True)
def namespace(tmp_path, monkeypatch):
    """The file in which a pod finds its namespace."""
    file = tmp_path / "namespace"
    monkeypatch.setattr(cluster, "_NAMESPACE_FILE", file)
    return file


@pytest.mark.parametrize(
    ("environ", "facts"),
    [
        ({}, {}),
        ({"SLURM_JOB_ID": "7"}, {"slurm_job": "7"}),
        (ARRAY, {"slurm_job": "1000_3"}),
        ({"RAY_JOB_ID": "02000000"}, {"ray_job": "02000000"}),
        (IN_POD, {"pod": "train-worker-0"}),
        ({**IN_POD, **BY_DOWNWARD_API}, {"pod": "train-0", "namespace": "ml", "node": "gpu-7"}),
        (BY_DOWNWARD_API, {"pod": "train-0", "namespace": "ml", "node": "gpu-7"}),
        ({"HOSTNAME": "laptop"}, {}),
        ({"RAY_JOB_ID": "x" * 999}, {"ray_job": "x" * 253}),
    ],
)
def test_facts_come_from_the_variables_of_launchers(environ, facts):
    assert cluster_facts(environ) == facts


def test_a_pod_s_namespace_is_that_of_its_service_account(namespace):
    namespace.write_text("team\n")
    assert cluster_facts(IN_POD) == {"pod": "train-worker-0", "namespace": "team"}


def test_tasks_of_an_array_are_named_by_the_array():
    assert run_name_from(ARRAY) == "sweep-1000_3"
    assert slurm_job({**ARRAY, "SLURM_ARRAY_TASK_ID": ""}) == "1003"
    assert run_name_from({"RAY_JOB_ID": "02000000"}) == "ray-02000000"
    assert run_name_from({"RAY_JOB_ID": "../x"}) == "ray-.._x"
    assert run_name_from({**ARRAY, "RAY_JOB_ID": "02000000"}) == "sweep-1000_3"


def test_each_trace_has_them(monkeypatch):
    for name, value in (*ARRAY.items(), *IN_POD.items()):
        monkeypatch.setenv(name, value)
    assert process_facts()["cluster"]["slurm_job"] == "1000_3"
    assert process_facts()["cluster"]["pod"] == "train-worker-0"
