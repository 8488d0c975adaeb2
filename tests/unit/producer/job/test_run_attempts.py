import os
import threading

import pytest

from kinetoscope.job.run_attempts import (
    START_WINDOW_S,
    Attempt,
    LauncherFacts,
    claim_folder,
    join_attempt,
    launcher_facts,
)


def test_processes_of_one_attempt_share_a_folder_and_another_attempt_gets_its_own(tmp_path):
    assert [claim_folder(tmp_path, "run", "a") for _ in range(3)] == ["run"] * 3
    assert [claim_folder(tmp_path, "run", "b") for _ in range(2)] == ["run.1"] * 2
    assert claim_folder(tmp_path, "run", "c") == "run.2"
    assert claim_folder(tmp_path, "run", "a") == "run"
    assert claim_folder(tmp_path, "other/run", "c") == "other/run"


def test_processes_that_start_together_agree(tmp_path):
    names = {}
    barrier = threading.Barrier(16)

    def process(number):
        barrier.wait()
        names[number] = claim_folder(tmp_path, "run", f"job {number % 2}")

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
    assert claim_folder(tmp_path, "run", "a") == "run"
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "host_1.1.pt.trace.json").touch()
    assert claim_folder(tmp_path, "old", "a") == "old.1"
    assert claim_folder(tmp_path, "old", "b", overwrite=True) == "old"


def test_a_folder_that_can_not_be_created_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        claim_folder(tmp_path / "file", "run", "a")


TORCHRUN = {"TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_RESTART_COUNT": "0", "MASTER_PORT": "29500"}


def test_a_restart_says_something_else_and_ranks_of_one_attempt_the_same():
    first = {**TORCHRUN, "RANK": "1"}
    assert launcher_facts(first, 0) == launcher_facts({**first, "RANK": "2"}, 0)
    assert launcher_facts(first, 0) != launcher_facts({**first, "TORCHELASTIC_RESTART_COUNT": "1"}, 0)
    assert launcher_facts(first, 0) != launcher_facts(first, 1)
    assert launcher_facts({}, 0) == LauncherFacts("", is_unique=False)


def test_torchrun_within_slurm_says_what_both_do():
    slurm = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"}
    both = launcher_facts({**slurm, **TORCHRUN}, 0)
    assert both.is_unique
    assert both != launcher_facts({**slurm, **TORCHRUN, "TORCHELASTIC_RESTART_COUNT": "1"}, 0)
    assert not launcher_facts({"SLURM_JOB_ID": "7"}, 0).is_unique  # a batch script may start several


def test_two_jobs_that_torchrun_names_none_are_distinguished_by_its_folder_on_one_machine():
    def facts(folder, rank, size="2"):
        file = f"/tmp/torchelastic_a/{folder}/attempt_0/{rank}/error.json"
        more = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": size, "TORCHELASTIC_ERROR_FILE": file}
        return launcher_facts({**TORCHRUN, **more}, 0)

    assert facts("none_x", 0) == facts("none_x", 1)
    assert facts("none_x", 0).is_unique
    assert facts("none_x", 0) != facts("none_y", 0)
    assert facts("none_x", 0, "1") == facts("none_y", 1, "1")  # each machine has a folder of its own
    assert not facts("none_x", 0, "1").is_unique


DEFAULTS = LauncherFacts("none/0/host/29500", is_unique=False)
SECOND = 10**9


def attempt(token, began_s=0, agreed_by=""):
    return Attempt("run", token, (10**9 + began_s) * SECOND, agreed_by)


def joined(logdir, own, rank, facts=DEFAULTS):
    attempt, is_certain = join_attempt(logdir, facts, own, rank)
    return attempt.token, is_certain


def test_ranks_that_begin_together_meet_in_the_logdir_and_say_that_they_can_not_be_sure(tmp_path):
    assert joined(tmp_path, attempt("a"), 0) == ("a", False)
    assert joined(tmp_path, attempt("b", 5), 1) == ("a", False)
    assert joined(tmp_path, attempt("c", -START_WINDOW_S), 2) == ("a", False)


def test_a_job_that_begins_later_or_has_the_rank_already_is_another_one(tmp_path):
    assert joined(tmp_path, attempt("a"), 0) == ("a", False)
    assert joined(tmp_path, attempt("later", START_WINDOW_S + 9), 1) == ("later", False)
    assert joined(tmp_path, attempt("again", 1), 0) == ("again", False)
    assert joined(tmp_path, attempt("with it", 1), 1) == ("a", False)
    assert joined(tmp_path, attempt("its other rank", 2), 1) == ("again", False)


def test_a_rank_without_a_store_joins_those_with_one_which_are_certain(tmp_path):
    assert joined(tmp_path, attempt("agreed", 0, "group"), 0) == ("agreed", True)
    assert joined(tmp_path, attempt("agreed", 1, "group"), 1) == ("agreed", True)
    assert joined(tmp_path, attempt("own", 1), 2) == ("agreed", False)
    assert joined(tmp_path, attempt("another job's", 1, "group"), 0) == ("another job's", True)


def test_the_first_may_be_the_one_without_a_store(tmp_path):
    assert joined(tmp_path, attempt("own"), 2) == ("own", False)
    assert joined(tmp_path, attempt("agreed", 1, "group"), 0) == ("own", False)


def test_where_a_launcher_s_words_are_of_one_attempt_alone_all_is_sure(tmp_path):
    unique = LauncherFacts("slurm/7/0", is_unique=True)
    assert joined(tmp_path, attempt("agreed", 0, "group"), 0, unique) == ("agreed", True)
    assert joined(tmp_path, attempt("own", 500), 1, unique) == ("agreed", True)


HALF_A_PAIR = r'{"name": "a", "token": "\ud800", "started_ns": 1000000001000000000}'


def test_a_token_from_a_variable_that_is_no_utf8_claims_a_folder(tmp_path):
    token = os.fsdecode(b"/tmp/\xff/1")
    assert [claim_folder(tmp_path, "run", each) for each in (token, "other", token)] == ["run", "run.1", "run"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"name": 1}', '{"name": "a", "token": "b", "started_ns": "c"}', HALF_A_PAIR]
)
def test_an_unreadable_record_is_ignored(tmp_path, text):
    joined(tmp_path, attempt("a"), 0)
    (record,) = tmp_path.glob(".kinetoscope/*.0/attempt")
    record.write_text(text)
    assert joined(tmp_path, attempt("b"), 1) == ("b", False)
    assert record.read_text() == text


def test_threads_that_meet_at_once_are_one_attempt(tmp_path):
    tokens, barrier = {}, threading.Barrier(8)

    def process(rank):
        barrier.wait()
        tokens[rank] = joined(tmp_path, attempt(f"own {rank}"), rank)

    threads = [threading.Thread(target=process, args=(rank,)) for rank in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(tokens.values())) == 1
