import re
import threading
import time

import pytest
import torch.distributed as dist

from kinetoscope import UsageError, identity
from kinetoscope.identity import Place, Run, _agreed, checked_run, current_place, place_from, run_from

LAUNCHED = ("RUN_NAME", "PT_PROFILER_JOB_NAME", "TORCHELASTIC_RUN_ID", "SLURM_JOB_NAME", "SLURM_JOB_ID")
TORCHRUN = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "GROUP_RANK": "2"}
SLURM = {"SLURM_PROCID": "3", "SLURM_NTASKS": "4", "SLURM_LOCALID": "3", "SLURM_NODEID": "0"}
OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}


@pytest.mark.parametrize(
    ("environ", "place"),
    [
        ({}, Place(0, 1)),
        (TORCHRUN, Place(5, 8, 1, 2)),
        (SLURM, Place(3, 4, 3, 0)),
        ({**SLURM, "SLURM_STEP_NUM_TASKS": "16"}, Place(3, 16, 3, 0)),
        (OPEN_MPI, Place(1, 2, 1, None)),
        ({**TORCHRUN, **SLURM}, Place(5, 8, 1, 2)),
        ({**TORCHRUN, "RANK": "x"}, Place(0, 1)),
        ({**TORCHRUN, "RANK": "8"}, Place(0, 1)),
        ({"RANK": "1"}, Place(0, 1)),
    ],
)
def test_a_launcher_s_variables_tell_the_place(environ, place):
    assert place_from(environ) == place


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
    assert run_from(environ) == name


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
        checked_run(name)


def test_processes_agree_on_the_first_proposal():
    store, names = dist.HashStore(), []
    threads = [
        threading.Thread(target=lambda i=i: names.append(_agreed(store, "run", f"proposal-{i}"))) for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(names) == 8
    assert len(set(names)) == 1


def test_what_an_earlier_attempt_left_in_the_store_counts_for_nothing():
    store = dist.HashStore()
    store.set("run", f"{time.time_ns() - 10**18} of processes that are gone")
    assert [_agreed(store, "run", proposal) for proposal in ("first", "second")] == ["first", "first"]


def test_two_jobs_that_meet_at_the_same_port_have_a_folder_each(tmp_path, monkeypatch):
    for name, value in {**TORCHRUN, "TORCHELASTIC_RUN_ID": "none", "MASTER_PORT": "29500"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(identity, "is_distributed", lambda: True)

    def names(store):
        monkeypatch.setattr(identity, "default_store", lambda: store)
        ranks = []
        for _ in range(2):
            monkeypatch.setattr(identity, "_count", iter([0]))  # each process makes its first recorder
            ranks.append(Run("resnet", tmp_path))
        return [(run.name, run.token) for run in ranks]

    (one, same), (two, alike) = names(dist.HashStore()), names(dist.HashStore())
    assert one == same
    assert two == alike
    assert (one[0], two[0]) == ("resnet", "resnet.1")
    assert one[1] != two[1]


def test_where_the_store_is_gone_the_launcher_s_words_are_what_all_have_in_common():
    class Gone:
        def compare_set(self, *_):
            raise RuntimeError("Connection reset by peer")

    assert _agreed(Gone(), "run/token", "mine") == "mine"
    assert _agreed(Gone(), "run/token", "mine", otherwise="the launcher's") == "the launcher's"


def test_torch_distributed_tells_the_place(tmp_path, monkeypatch):
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)
    assert current_place() == Place(5, 8, 1, 2)
    dist.init_process_group("gloo", store=dist.FileStore(str(tmp_path / "store"), 1), rank=0, world_size=1)
    try:
        assert current_place() == Place(0, 1, 1, 2)
    finally:
        dist.destroy_process_group()
