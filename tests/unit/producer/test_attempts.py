import threading

import pytest

from kinetoscope.attempts import claimed, token_from


def test_processes_of_one_attempt_share_a_folder_and_another_attempt_gets_its_own(tmp_path):
    assert [claimed(tmp_path, "run", "a") for _ in range(3)] == ["run"] * 3
    assert [claimed(tmp_path, "run", "b") for _ in range(2)] == ["run.1"] * 2
    assert claimed(tmp_path, "run", "c") == "run.2"
    assert claimed(tmp_path, "run", "a") == "run"
    assert claimed(tmp_path, "other/run", "c") == "other/run"


def test_processes_that_start_together_agree(tmp_path):
    names = {}
    barrier = threading.Barrier(16)

    def process(number):
        barrier.wait()
        names[number] = claimed(tmp_path, "run", f"job {number % 2}")

    threads = [threading.Thread(target=process, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {names[0], names[1]} == {"run", "run.1"}
    assert all(names[number] == names[number % 2] for number in names)


def test_traces_of_others_are_left_alone_and_other_files_are_no_traces(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "events.out.tfevents.1").touch()
    assert claimed(tmp_path, "run", "a") == "run"
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "host_1.1.pt.trace.json").touch()
    assert claimed(tmp_path, "old", "a") == "old.1"
    assert claimed(tmp_path, "old", "b", overwrite=True) == "old"


def test_a_folder_that_can_not_be_made_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        claimed(tmp_path / "file", "run", "a")


def test_a_restart_has_another_token_and_ranks_of_one_attempt_have_the_same():
    first = {"TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_RESTART_COUNT": "0", "RANK": "1"}
    assert token_from(first, 0) == token_from({**first, "RANK": "2"}, 0)
    assert token_from(first, 0) != token_from({**first, "TORCHELASTIC_RESTART_COUNT": "1"}, 0)
    assert token_from(first, 0) != token_from(first, 1)
    assert token_from({}, 0) != token_from({}, 0)


def test_two_jobs_that_torchrun_calls_none_have_different_tokens():
    def token(folder, rank, size="2"):
        file = f"/tmp/torchelastic_a/{folder}/attempt_0/{rank}/error.json"
        job = {"TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_RESTART_COUNT": "0", "MASTER_PORT": "29500"}
        return token_from({**job, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": size, "TORCHELASTIC_ERROR_FILE": file}, 0)

    assert token("none_x", 0) == token("none_x", 1)
    assert token("none_x", 0) != token("none_y", 0)
    assert token("none_x", 0, "1") == token("none_y", 1, "1")  # each machine has a folder of its own
