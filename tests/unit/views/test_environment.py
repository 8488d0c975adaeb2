"""The environment: versions as people write them."""

from dataclasses import replace

import pytest

from kinetoscope_tb.filesystem import printable
from kinetoscope_tb.reader import read_blocks
from kinetoscope_tb.views.overview.environment import environment
from support.build import TraceBuilder
from support.snapshots import small_snapshot


def facts(**top):
    return dict(environment(TraceBuilder(**top).kernel("k", 0, 10).build()).rows())


@pytest.mark.parametrize(
    ("number", "version"), [(12040, "12.4"), (11080, "11.8"), (1_000_000, "1000000"), (0, None), ("12.4", None)]
)
def test_cuda_s_version_is_as_its_headers_encode_it(number, version):
    assert facts(cuda_runtime_version=number).get("CUDA") == version


@pytest.mark.parametrize(
    ("number", "version"), [(70253211, "7.2.53211"), (60241133, "6.2.41133"), (3212, "3212"), (0, None), (None, None)]
)
def test_rocm_s_version_is_as_hip_s_headers_encode_it(number, version):
    assert facts(hip_runtime_version=number).get("ROCm") == version


def test_when_the_file_was_written_is_said_where_its_name_has_another_time():
    trace = TraceBuilder().kernel("k", 0, 10).build()
    named = dict(environment(replace(trace, path="/logs/worker0.1623143566756.pt.trace.json.gz")).rows())
    assert named["File written"] == "2021-06-08 09:12:46 UTC"
    assert "File written" not in dict(environment(replace(trace, path="/logs/rank0.14.pt.trace.json.gz")).rows())


def test_the_name_of_a_single_step_is_not_taken_for_their_number():
    def steps(*names):
        built = TraceBuilder().kernel("k", 0, 10)
        for at, name in enumerate(names):
            built.step(name, 100 * at, 100)
        return dict(environment(built.build()).rows())["Steps"]

    assert steps(6) == "1, complete: number 6"
    assert steps(6, 7) == "6–7, 2 complete"


def test_only_a_trace_says_that_steps_are_not_marked():
    assert facts()["Steps"] == "not marked"
    snapshot = read_blocks([small_snapshot().dumped()], path="snapshot.pickle")
    assert "Steps" not in dict(environment(snapshot).rows())


def test_the_trace_id_is_told_where_the_file_has_one():
    assert facts(trace_id="A0B1C2").get("Trace id") == "A0B1C2"
    assert "Trace id" not in facts()


def test_the_number_of_events_has_spaces_between_thousands():
    trace = TraceBuilder().kernel("k", 0, 10).build()
    meta = replace(trace.meta, events=13_636)
    assert dict(environment(replace(trace, meta=meta)).rows())["Events"] == "13\u202f636"


def test_what_a_budget_recorded_says_why():
    def facts(why):
        return dict(environment(TraceBuilder(kinetoscope={"why": why}).kernel("k", 0, 10).build()).rows())

    assert facts("steps are slower\x1b[2J")["Recorded because"] == printable("steps are slower\x1b[2J") != ""
    assert not any("Recorded because" in facts(why) for why in (None, "", 3, ["x"]))


@pytest.mark.parametrize(
    ("cluster", "job"),
    [
        ({}, None),
        ("x", None),
        ({"slurm_job": "1000_3"}, "SLURM 1000_3"),
        ({"ray_job": "02", "pod": "train-0"}, "Ray 02, pod train-0"),
        ({"pod": "train-0", "namespace": "ml", "node": "gpu-7"}, "pod ml/train-0 on gpu-7"),
    ],
)
def test_the_cluster_s_names_of_the_job_are_shown(cluster, job):
    assert facts(kinetoscope={"cluster": cluster}).get("Job") == job
