"""Which worker a trace is of, by the rank that it begins with."""

import pickle

import pytest

from support.logdirs import NS, begins, listed, make, names


@pytest.mark.parametrize(
    "top",
    [
        {"kinetoscope": {"run": "r", "place": {"global_rank": 3}}, "distributedInfo": {"rank": 4}},
        {"distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8, "pg_config": [{"rank": 5}]}},
        {"global_rank": 3},
    ],
)
def test_a_worker_without_a_rank_in_its_name_is_called_by_the_rank_inside(tmp_path, top):
    make(tmp_path, f"r/host_4711.{NS}.pt.trace.json", content=begins(**top))
    assert names(listed(tmp_path)) == [("r", "rank3", NS)]


def test_a_rank_that_an_event_speaks_of_is_not_the_worker_s(tmp_path):
    content = b'{"schemaVersion": 1, "traceEvents": [{"ph": "X", "args": {"global_rank": 3}}]}'
    make(tmp_path, "r/host_4711.5.pt.trace.json", content=content)
    assert names(listed(tmp_path)) == [("r", "host_4711", "5")]


def test_a_process_that_was_started_anew_is_the_same_worker(tmp_path):
    for pid, at in ((4711, 20), (4800, 10)):
        make(
            tmp_path, f"r/host_{pid}.{at}.pt.trace.json", content=begins(distributedInfo={"rank": 3}, host_name="host")
        )
    assert names(listed(tmp_path)) == [("r", "rank3", "10"), ("r", "rank3", "20")]


def process_names(tmp_path, *pids_and_seconds, **top):
    """Workers and spans of recordings by processes of one host, at these seconds."""
    for pid, second in pids_and_seconds:
        name = f"r/host_{pid}.{int(NS) + second * 10**9}.pt.trace.json"
        make(tmp_path, name, content=begins(host_name="host", **top))
    return [(worker, (int(span) - int(NS)) // 10**9) for _, worker, span in names(listed(tmp_path))]


def test_a_job_that_was_started_again_is_the_same_worker_with_its_newest_recording_first(tmp_path):
    assert process_names(tmp_path, (9, 0), (9, 3), (4711, 71), (12, 300)) == [
        ("host", 0),
        ("host", 3),
        ("host", 71),
        ("host", 300),
    ]
    assert listed(tmp_path).newest(run="r", worker=None, span=None)[0].span == str(int(NS) + 300 * 10**9)


@pytest.mark.parametrize("seconds", [((1, 0), (2, 3)), ((1, 0), (1, 60), (2, 1), (2, 61)), ((1, 0), (2, 40), (3, 42))])
def test_processes_that_recorded_at_once_are_workers_of_their_own(tmp_path, seconds):
    assert {worker for worker, _ in process_names(tmp_path, *seconds)} == {f"host_{pid}" for pid, _ in seconds}


def test_ranks_that_wrote_their_files_far_apart_stay_ranks(tmp_path):
    for rank, second in ((0, 0), (1, 90)):
        name = f"r/host_{rank}.{int(NS) + second * 10**9}.pt.trace.json"
        make(tmp_path, name, content=begins(distributedInfo={"rank": rank}, host_name="host"))
    assert [worker for _, worker, _ in names(listed(tmp_path))] == ["rank0", "rank1"]


def test_one_rank_on_two_hosts_is_two_workers(tmp_path):
    for host in ("a", "b"):
        make(tmp_path, f"r/{host}_1.10.pt.trace.json", content=begins(distributedInfo={"rank": 3}, host_name=host))
    assert names(listed(tmp_path)) == [("r", "rank3@a", "10"), ("r", "rank3@b", "10")]


def test_local_ranks_of_two_nodes_are_two_workers(tmp_path):
    for rank, span in ((0, 10), (8, 11)):
        name = f"r/fit-0-[Strategy]DDPStrategy.training_step.{span}.pt.trace.json"
        make(tmp_path, name, content=begins(distributedInfo={"rank": rank}))
    worker = "fit-0-[Strategy]DDPStrategy.training_step"
    assert names(listed(tmp_path)) == [("r", f"{worker}@rank0", "10"), ("r", f"{worker}@rank8", "11")]


def test_beside_a_recording_lie_those_of_the_same_span_or_else_of_the_same_place(tmp_path):
    make(tmp_path, *(f"job/rank{rank}.{span}.pt.trace.json" for rank in (0, 1) for span in (3, 7)))
    make(
        tmp_path,
        "job/rank2.1.pt.trace.json",
        "job/rank2.5.pt.trace.json",
        "job/rank3.2.pt.trace.json",
        "x/rank0.7.pt.trace.json",
    )
    listing = listed(tmp_path)
    others = listing.same_span_of_others(listing.find("job", "rank0", "7"))
    assert [(file.worker, file.span) for file in others] == [("rank1", "7"), ("rank2", "5")]


def test_our_recorder_s_snapshots_of_a_run_are_one_run_with_its_ranks_and_spans(tmp_path):
    snapshot = pickle.dumps({"segments": [], "device_traces": [[]]}, 4)
    for rank in (0, 1):
        make(tmp_path, f"job/rank{rank}.42.pt.trace.json")
        make(tmp_path, f"job/rank{rank}.42.memory.pickle", content=snapshot)
    make(tmp_path, "job/rank1.45.oom.memory.pickle", content=snapshot)
    make(tmp_path, "job/ep0-ba7-rank2.memory.pickle", content=snapshot)
    make(tmp_path, "job/mine.pickle", content=snapshot)
    assert names(listed(tmp_path)) == [
        ("job", "rank0", "42"),
        ("job", "rank1", "42"),
        ("job/memory", "rank0", "42"),
        ("job/memory", "rank1", "42"),
        ("job/memory", "rank1", "45.oom"),
        ("job/memory", "rank2", "7"),
        ("job/mine", "mine", "default"),
    ]
