import re
import threading
import time

import pytest
import torch.distributed as dist

from kinetoscope import UsageError
from kinetoscope.job import job_store, run_name
from kinetoscope.job.job_store import JobStore
from kinetoscope.job.rank_info import RankInfo, current_rank_info, rank_info_from
from kinetoscope.job.run_attempts import START_WINDOW_S
from kinetoscope.job.run_name import Run, run_name_from, validate_run_name

LAUNCHED = ("RUN_NAME", "PT_PROFILER_JOB_NAME", "TORCHELASTIC_RUN_ID", "SLURM_JOB_NAME", "SLURM_JOB_ID")
TORCHRUN = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "GROUP_RANK": "2"}
SLURM = {"SLURM_PROCID": "3", "SLURM_NTASKS": "4", "SLURM_LOCALID": "3", "SLURM_NODEID": "0"}
OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}


@pytest.mark.parametrize(
    ("environ", "rank_info"),
    [
        ({}, RankInfo(0, 1)),
        (TORCHRUN, RankInfo(5, 8, 1, 2)),
        (SLURM, RankInfo(3, 4, 3, 0)),
        ({**SLURM, "SLURM_STEP_NUM_TASKS": "16"}, RankInfo(3, 16, 3, 0)),
        (OPEN_MPI, RankInfo(1, 2, 1, None)),
        ({**TORCHRUN, **SLURM}, RankInfo(5, 8, 1, 2)),
        ({**TORCHRUN, "RANK": "x"}, RankInfo(0, 1)),
        ({**TORCHRUN, "RANK": "8"}, RankInfo(0, 1)),
        ({"RANK": "1"}, RankInfo(0, 1)),
    ],
)
def test_ranks_come_from_a_launcher_s_variables(environ, rank_info):
    assert rank_info_from(environ) == rank_info


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({}, None),
        ({"RUN_NAME": "a", "PT_PROFILER_JOB_NAME": "b"}, "a"),
        ({"PT_PROFILER_JOB_NAME": "b", "TORCHELASTIC_RUN_ID": "c"}, "b"),
        ({"TORCHELASTIC_RUN_ID": "c", "SLURM_JOB_NAME": "d", "SLURM_JOB_ID": "7"}, "c"),
        ({"TORCHELASTIC_RUN_ID": "none", "SLURM_JOB_NAME": "d", "SLURM_JOB_ID": "7"}, "d-7"),
        ({"SLURM_JOB_NAME": "d"}, None),
        ({"RUN_NAME": "../up"}, "_up"),
    ],
)
def test_the_environment_names_the_run(environ, name):
    assert run_name_from(environ) == name


def test_a_run_is_named_by_the_program_first_then_by_the_environment_then_by_the_time(tmp_path, monkeypatch):
    for name in LAUNCHED:
        monkeypatch.delenv(name, raising=False)
    assert re.fullmatch(r"\d{8}-\d{6}", Run(None, tmp_path).name)
    monkeypatch.setenv("RUN_NAME", "launched")
    assert Run(None, tmp_path).name == "launched"
    assert Run("given/deeper", tmp_path).name == "given/deeper"


@pytest.mark.parametrize("name", ["", "/abs", "../up", "a//b", "a/", ".hidden", "a/.b", "a\0b"])
def test_a_run_outside_the_logdir_is_refused(name):
    with pytest.raises(UsageError, match="below the logdir"):
        validate_run_name(name)


def test_processes_agree_on_the_first_proposal():
    store, names = JobStore(dist.HashStore(), "group"), []
    threads = [threading.Thread(target=lambda i=i: names.append(store.agree("run", f"proposal-{i}"))) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(names) == 8
    assert len(set(names)) == 1


def test_what_an_earlier_attempt_left_in_the_store_counts_for_nothing():
    store = dist.HashStore()
    store.set("run", f"{time.time_ns() - 10**18} of processes that are gone")
    assert [JobStore(store, "group").agree("run", proposal) for proposal in ("first", "second")] == ["first", "first"]


def test_without_a_group_what_a_process_left_that_began_a_little_earlier_counts(monkeypatch):
    store, now = JobStore(dist.HashStore(), "agent"), time.time_ns()
    answer = []
    for seconds in (0, 30, 30 + START_WINDOW_S, 120):
        monkeypatch.setattr(job_store, "process_start_ns", lambda began=now + seconds * 10**9: began)
        answer.append(store.agree("run", f"after {seconds} s"))
    assert answer == ["after 0 s", "after 0 s", "after 90 s", "after 90 s"]


def test_two_jobs_that_meet_at_the_same_port_have_a_folder_each(tmp_path, monkeypatch):
    for name, value in {**TORCHRUN, "TORCHELASTIC_RUN_ID": "none", "MASTER_PORT": "29500"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(job_store, "is_distributed", lambda: True)

    def names(store):
        monkeypatch.setattr(job_store, "default_store", lambda: store)
        ranks = []
        for rank in range(2):
            monkeypatch.setattr(run_name, "current_rank_info", lambda rank=rank: RankInfo(rank, 2))
            monkeypatch.setattr(run_name, "_count", iter([0]))  # each process makes its first recorder
            run = Run("resnet", tmp_path)
            ranks.append((run.name, run.token))
        return ranks

    (one, same), (two, alike) = names(dist.HashStore()), names(dist.HashStore())
    assert one == same
    assert two == alike
    assert (one[0], two[0]) == ("resnet", "resnet.1")
    assert one[1] != two[1]


class Gone:
    """A store whose server is gone."""

    def compare_set(self, *_):
        raise RuntimeError("Connection reset by peer")


def test_where_the_store_is_gone_nothing_is_agreed_on():
    assert JobStore(Gone(), "group").agree("run/token", "mine") is None


@pytest.mark.parametrize("requested", ["resnet", None])
@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_rank_whose_store_died_joins_the_folder_of_its_job(tmp_path, monkeypatch, requested, lost):
    for name in (*LAUNCHED, "TORCHELASTIC_ERROR_FILE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {**TORCHRUN, "TORCHELASTIC_RUN_ID": "none", "MASTER_PORT": "29500"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(job_store, "is_distributed", lambda: True)
    store, runs = dist.HashStore(), []
    for rank in range(3):
        monkeypatch.setattr(run_name, "current_rank_info", lambda rank=rank: RankInfo(rank, 3))
        monkeypatch.setattr(job_store, "default_store", lambda rank=rank: Gone() if rank == lost else store)
        monkeypatch.setattr(run_name, "_count", iter([0]))
        monkeypatch.setattr(run_name.time, "strftime", lambda _, rank=rank: f"20260101-00000{rank}")
        run = Run(requested, tmp_path)
        runs.append((run.name, run.token, run.is_certain))
    assert len({(name, token) for name, token, _ in runs}) == 1
    assert runs[lost][2] is False
    if lost:
        assert runs[0][2] is True


def test_ranks_come_from_torch_distributed(tmp_path, monkeypatch):
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)
    assert current_rank_info() == RankInfo(5, 8, 1, 2)
    dist.init_process_group("gloo", store=dist.FileStore(str(tmp_path / "store"), 1), rank=0, world_size=1)
    try:
        assert current_rank_info() == RankInfo(0, 1, 1, 2)
    finally:
        dist.destroy_process_group()


def test_a_name_that_leads_out_of_the_logdir_is_refused(tmp_path, monkeypatch):
    for name in (*LAUNCHED, "TORCHELASTIC_ERROR_FILE", "TORCHELASTIC_USE_AGENT_STORE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {**TORCHRUN, "TORCHELASTIC_RUN_ID": "none"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(run_name, "_count", iter([0, 0]))
    logdir = tmp_path / "logdir"
    assert Run(None, logdir).name
    (record,) = logdir.glob(".kinetoscope/*/attempt")
    record.write_text(record.read_text().replace('"name": "', '"name": "../'))
    monkeypatch.setattr(run_name, "current_rank_info", lambda: RankInfo(6, 8))
    run = Run(None, logdir)
    assert re.fullmatch(r"\d{8}-\d{6}(\.1)?", run.name)
    assert [path.name for path in tmp_path.iterdir()] == ["logdir"]
