"""Where the culprit is, and what the journals of a run say of its ranks."""

from types import SimpleNamespace

import pytest

from kinetoscope_tb.distributed.hangs.evidence import evidence, rows
from kinetoscope_tb.distributed.hangs.sentences import sentence
from kinetoscope_tb.distributed.hangs.verdict import CANNOT_TELL, CULPRIT, NOTHING_OPEN, SLOW_WORK, verdict
from kinetoscope_tb.reader.flight_recorder.files import DumpFolder
from kinetoscope_tb.reader.flight_recorder.hang_report import KEY
from kinetoscope_tb.reader.flight_recorder.schema import parse_dump
from support.flight_recorder import BEGAN_NS, LAYOUTS, Simulation, changed, stopped

WORLD = LAYOUTS[0]
CULPRIT_RANK, STEP = 2, 7
RANKS = range(len(WORLD.ranks))
LOAD = [["/venv/site-packages/torch/serialization.py", 9, "torch.serialization.load", 140.0]]


def report(rank, **changes):
    own = ["/job/train.py", 88 if rank == CULPRIT_RANK else 90, "__main__.main", 141.0]
    return {
        "world_size": len(RANKS),
        "reason": "step",
        "written_ns": BEGAN_NS + 141 * 10**9,
        "step": {"number": STEP, "seconds": 150.0},
        "stack": [*(LOAD if rank == CULPRIT_RANK else []), own],
        "threads": [{"name": "MainThread", "state": "S", "waits_in": "futex_do_wait"}],
        **changes,
    }


def status(rank, *, completed=STEP, state="running", reason=None, is_stopped=None, host="node3"):
    return SimpleNamespace(
        rank=rank,
        completed=completed,
        state=state,
        reason=reason,
        pid=4711,
        host=host,
        is_stopped=is_stopped,
        age_s=2.0,
        written_ns=BEGAN_NS + 160 * 10**9,
        current_step_s=41.0,
    )


def judged(*, without=(), changes=None, statuses=(), backend="gloo"):
    """The verdict on a job in which a rank stops."""
    job = Simulation(WORLD.groups, stopped(WORLD, CULPRIT_RANK, 3), backend, 1).run()
    dumps = [
        parse_dump({**job.dump(rank), KEY: report(rank, **(changes or {}).get(rank, {}))}, rank, "")
        for rank in RANKS
        if rank not in without
    ]
    return verdict(DumpFolder(tuple(dumps), (), tuple(statuses)))


def test_the_sentence_says_where_the_culprit_is():
    answer = judged()
    assert answer.culprits == (CULPRIT_RANK,)
    assert "; it has been in torch.serialization.load (train.py:88) for 141 s; ranks" in sentence(answer)
    table = rows(answer)
    assert [row.line for row in table] == [f"/job/train.py:{88 if r == CULPRIT_RANK else 90}" for r in RANKS]
    assert table[CULPRIT_RANK].function == "torch.serialization.load"
    text = "\n".join(evidence(answer))
    assert (
        f"rank {CULPRIT_RANK} had been in step {STEP} for 150 s, in torch.serialization.load (/job/train.py:88)" in text
    )
    assert "aren't recorded" not in text


def test_an_uninterruptible_wait_is_told():
    threads = [{"name": "MainThread", "state": "D", "waits_in": "nfs_wait_bit_killable"}]
    answer = judged(changes={CULPRIT_RANK: {"threads": threads}})
    assert " for 141 s, in the kernel's nfs_wait_bit_killable; " in sentence(answer)


@pytest.mark.parametrize("function", ["pipe_write", "anon_pipe_write", "fifo_pipe_write"])
def test_a_write_to_a_pipe_that_nobody_reads_is_told(function):
    threads = [{"name": "MainThread", "state": "S", "waits_in": function}]
    answer = judged(changes={CULPRIT_RANK: {"threads": threads}})
    assert " for 141 s, in a write to a full pipe; " in sentence(answer)
    assert f" in {function} (S): the pipe that it writes to, often its own output, is read too slowly" in "\n".join(
        evidence(answer)
    )


@pytest.mark.parametrize(
    ("operation", "file", "words"),
    [
        ("read", "/mnt/data/7.tar", ", in a read from /mnt/data/7.tar; "),
        ("read", "10.0.0.5:443", ", in a read from 10.0.0.5:443; "),
        ("read", "[fe80::1]:443", ", in a read from [fe80::1]:443; "),
        ("read", "pipe:[123]", ", in a read from a pipe; "),
        ("read", "socket:[123]", ", in a read from a socket; "),
        ("read", "anon_inode:[eventfd]", "; "),
        ("write", "/mnt/out/7.pt", ", in a write to /mnt/out/7.pt; "),
        ("flush", "/mnt/out/7.pt", ", in a flush of /mnt/out/7.pt; "),
        ("lock", "/home/me/.cache/lock", ", waiting for the lock on /home/me/.cache/lock; "),
        ("connect", "10.0.0.5:29500", ", connecting to 10.0.0.5:29500; "),
    ],
)
def test_what_a_culprit_s_system_call_waits_for_is_told(operation, file, words):
    threads = [{"name": "MainThread", "state": "S", "waits_for": {"operation": operation, "file": file}}]
    answer = judged(changes={CULPRIT_RANK: {"threads": threads}})
    assert f" for 141 s{words}" in sentence(answer)


def test_a_wait_that_nothing_interrupts_is_for_its_file_if_that_is_known():
    wait = {"waits_in": "nfs_wait_bit_killable", "waits_for": {"operation": "read", "file": "/mnt/data/7.tar"}}
    answer = judged(changes={CULPRIT_RANK: {"threads": [{"name": "MainThread", "state": "D", **wait}]}})
    assert " for 141 s, in a read from /mnt/data/7.tar; " in sentence(answer)
    assert "has its main thread in nfs_wait_bit_killable (D), in a read from /mnt/data/7.tar" in "\n".join(
        evidence(answer)
    )


def test_a_terminal_that_is_paused_is_told():
    wait = {"waits_in": "wait_woken", "waits_for": {"operation": "write", "file": "/dev/pts/3"}}
    answer = judged(changes={CULPRIT_RANK: {"threads": [{"name": "MainThread", "state": "S", **wait}]}})
    assert " for 141 s, in a write to /dev/pts/3, a terminal that takes no more output; " in sentence(answer)
    assert ": the terminal is paused, as by Ctrl-S (Ctrl-Q goes on), or " in "\n".join(evidence(answer))


def test_a_culprit_that_waits_in_a_receive_is_none():
    other = 0
    stuck = {"message": {"operation": "recv", "peer": other}}
    answer = judged(changes={CULPRIT_RANK: stuck})
    assert (answer.outcome, answer.kind) == (CULPRIT, "order")  # the other one waits for it in the collective
    assert set(answer.culprits) == {other, CULPRIT_RANK}
    assert f"rank {CULPRIT_RANK} waits for rank {other} in recv {CULPRIT_RANK}<-{other}" in sentence(answer)


@pytest.mark.parametrize(
    "later",
    [{"completed": STEP + 1}, {"state": "ended", "reason": "end"}],
    ids=["the next step", "the end"],
)
def test_a_job_that_went_on_has_no_culprit(later):
    answer = judged(statuses=[status(rank, **later) for rank in RANKS])
    assert (answer.outcome, answer.kind, answer.culprits) == (NOTHING_OPEN, "went on", ())
    assert sentence(answer).startswith("No rank waits any more: ranks 0–")
    assert {row.open for row in rows(answer)} == {"went on"}


USER = ["/job/train.py", 88, "__main__.main", 42.0]
SAVE = [["/venv/site-packages/torch/serialization.py", 9, "torch.serialization.save", 41.0]]


def test_a_rank_that_saves_a_checkpoint_is_no_culprit():
    answer = judged(changes={CULPRIT_RANK: {"stack": [*SAVE, USER]}}, statuses=[status(rank) for rank in RANKS])
    assert (answer.outcome, answer.kind, answer.culprits) == (SLOW_WORK, "slow work", ())
    assert sentence(answer).startswith(
        f"Rank {CULPRIT_RANK} has been saving a checkpoint (train.py:88) for 41 s; ranks"
    )
    assert rows(answer)[CULPRIT_RANK].open == "saving a checkpoint"
    assert "Healthy jobs do that too. If the step lasts for 10 minutes, it counts as a hang." in evidence(answer)


def test_a_checkpoint_has_the_file_that_it_is_written_to():
    wait = {"operation": "write", "file": "/mnt/checkpoints/7.pt"}
    changes = {"stack": [*SAVE, USER], "threads": [{"name": "MainThread", "state": "S", "waits_for": wait}]}
    answer = judged(changes={CULPRIT_RANK: changes}, statuses=[status(rank) for rank in RANKS])
    words = "saving a checkpoint (train.py:88) for 41 s, in a write to /mnt/checkpoints/7.pt; ranks"
    assert sentence(answer).startswith(f"Rank {CULPRIT_RANK} has been {words}")


def test_a_rank_that_saves_a_checkpoint_and_is_gone_is_the_culprit():
    answer = judged(changes={CULPRIT_RANK: {"stack": SAVE}}, statuses=[status(rank, state="dead") for rank in RANKS])
    assert answer.culprits == (CULPRIT_RANK,)


@pytest.mark.parametrize("state", [{"state": "ended", "reason": "sigterm"}, {"state": "dead"}, {}])
def test_a_job_that_ended_otherwise_has_its_culprit(state):
    assert judged(statuses=[status(rank, **state) for rank in RANKS]).culprits == (CULPRIT_RANK,)


def test_where_only_the_culprit_went_on_nobody_is_named():
    answer = judged(statuses=[status(rank, completed=STEP + (rank == CULPRIT_RANK)) for rank in RANKS])
    assert (answer.outcome, answer.culprits) == (CANNOT_TELL, ())
    assert any(line.endswith("isn't used: ask again.") for line in evidence(answer))


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({}, "wrote no report of this step. It was alive 2 s ago: it is stopped, or code in C holds Python's lock"),
        (
            {"is_stopped": False},
            "It was alive 2 s ago: code in C holds Python's lock, or its steps are not that long yet.",
        ),
        ({"is_stopped": True}, "It was alive 2 s ago, and is stopped: by SIGSTOP, by a debugger, or by Ctrl-Z"),
        ({"state": "dead"}, "Its process is gone, and had not closed its recording."),
        ({"state": "ended", "reason": "exception: ValueError"}, "It closed its recording: exception: ValueError."),
    ],
)
def test_a_rank_without_a_file_is_told_by_its_journal(state, words):
    last = RANKS[-1]  # that there is such a rank, the others' reports say
    job = Simulation(WORLD.groups, stopped(WORLD, last, 3), "gloo", 1).run()
    dumps = [parse_dump({**job.dump(rank), KEY: report(rank)}, rank, "") for rank in RANKS if rank != last]
    answer = verdict(DumpFolder(tuple(dumps), (), (status(last, **state),)))
    assert (answer.outcome, answer.kind, answer.culprits) == (CULPRIT, "no dump", (last,))
    assert any(words in line for line in evidence(answer))


@pytest.mark.parametrize("state", [{}, {"state": "ended", "reason": "end"}])
def test_a_report_of_an_earlier_slow_step_is_none_of_this_one(state):
    old = {"step": {"number": 2, "seconds": 40.0}}
    answer = judged(
        changes={CULPRIT_RANK: old}, statuses=[status(r, **(state if r == CULPRIT_RANK else {})) for r in RANKS]
    )
    assert (answer.outcome, answer.kind, answer.culprits) == (CULPRIT, "no dump", (CULPRIT_RANK,))
    assert any(f"Rank {CULPRIT_RANK} (process 4711 on node3) wrote no report of" in line for line in evidence(answer))


@pytest.mark.parametrize(
    ("changes", "kind", "culprits"),
    [
        ({}, "not yet", ()),
        ({"is_stopped": True}, "no dump", (CULPRIT_RANK,)),
        ({"age_s": 6.0}, "no dump", (CULPRIT_RANK,)),
        ({"written_ns": BEGAN_NS + 160 * 10**9}, "no dump", (CULPRIT_RANK,)),
    ],
)
def test_a_rank_that_lives_is_not_named_before_it_could_write(changes, kind, culprits):
    statuses = [status(rank) for rank in RANKS]
    for item in statuses:
        vars(item).update({"written_ns": BEGAN_NS + 141 * 10**9, **(changes if item.rank == CULPRIT_RANK else {})})
    answer = judged(without=(CULPRIT_RANK,), statuses=statuses)
    assert (answer.kind, answer.culprits) == (kind, culprits)
    assert (kind == "not yet") == sentence(answer).endswith(": ask again.")


def test_as_long_as_one_rank_can_still_write_nobody_is_named():
    late, gone = CULPRIT_RANK, CULPRIT_RANK + 1
    statuses = [status(rank) for rank in RANKS]
    for item in statuses:
        vars(item).update({"written_ns": BEGAN_NS + 141 * 10**9, "age_s": 6.0 if item.rank == gone else 2.0})
    answer = judged(without=(late, gone), statuses=statuses)
    assert (answer.outcome, answer.kind, answer.ranks) == (CANNOT_TELL, "not yet", (late,))
    assert sentence(answer).startswith(f"Cannot tell: rank {late} has written no report of this step yet, ")
    vars(statuses[late]).update({"age_s": 6.0})
    assert judged(without=(late, gone), statuses=statuses).ranks == (late, gone)


def test_a_majority_is_waited_for_as_long_as_a_rank_can_still_write():
    statuses = [status(rank) for rank in RANKS]
    for item in statuses:
        vars(item).update({"written_ns": BEGAN_NS + 141 * 10**9})
    job = Simulation(WORLD.groups, changed(WORLD, [CULPRIT_RANK], elements=7), "gloo", 1).run()
    dumps = [parse_dump({**job.dump(rank), KEY: report(rank)}, rank, "") for rank in RANKS]
    few = tuple(dumps[CULPRIT_RANK - 1 : CULPRIT_RANK + 1])
    answer = verdict(DumpFolder(few, (), tuple(statuses)))
    assert (answer.outcome, answer.kind, answer.culprits) == (CANNOT_TELL, "size", ())
    assert "no majority says who is right, and ranks 0 and 3 have written" in sentence(answer)
    assert verdict(DumpFolder(tuple(dumps), (), tuple(statuses))).culprits == (CULPRIT_RANK,)


def test_a_rank_that_can_still_write_is_waited_for_where_nothing_is_open():
    statuses = [status(0), status(1)]
    for item in statuses:
        vars(item).update({"written_ns": BEGAN_NS + 141 * 10**9})
    dump = parse_dump({"version": "2.10", "entries": [], KEY: report(0, world_size=2)}, 0, "")
    answer = verdict(DumpFolder((dump,), (), tuple(statuses)))
    assert (answer.outcome, answer.kind, answer.ranks) == (CANNOT_TELL, "not yet", (1,))
    assert sentence(answer) == "Cannot tell: rank 1 has written no report of this step yet: ask again."


def judged_in_own_code(places, *, entries=(), statuses=()):
    """The verdict on a job whose ranks wait for nothing, each at a place: (function, line, a library's function)."""
    dumps = []
    for rank, (function, line, library) in enumerate(places):
        inner = [["/venv/site-packages/torch/x.py", 9, library, 12.0]] if library else []
        stack = [*inner, ["/job/train.py", line, f"__main__.{function}", 12.0]]
        step = {"number": STEP, "seconds": 13.0, "usual_s": 0.0102}
        changes = {"world_size": len(places), "stack": stack, "step": step}
        dumps.append(parse_dump({"entries": list(entries), KEY: report(rank, **changes)}, rank, ""))
    return verdict(DumpFolder(tuple(dumps), (), tuple(statuses)))


ENDED = {
    "record_id": 0,
    "process_group": ["0", "default_pg"],
    "collective_seq_id": 1,
    "profiling_name": "nccl:all_reduce",
    "input_sizes": [[4]],
    "input_dtypes": ["Float"],
    "state": "completed",
    "retired": True,
}


def test_a_job_of_one_rank_that_hangs_is_named_with_its_line():
    answer = judged_in_own_code([("read_shard", 5, "")])
    assert (answer.outcome, answer.kind, answer.culprits) == (CULPRIT, "own code", (0,))
    assert sentence(answer) == (
        f"Rank 0 has been in read_shard (train.py:5) for 12 s; step {STEP} has taken 13 s so far, usually 10.2 ms."
    )


def test_a_job_of_one_rank_that_saves_a_checkpoint_is_only_slow():
    answer = judged_in_own_code([("main", 5, "torch.serialization.save")], statuses=[status(0)])
    assert (answer.outcome, answer.culprits) == (SLOW_WORK, ())
    assert sentence(answer) == (
        f"Rank 0 has been saving a checkpoint (train.py:5) for 12 s; step {STEP} has taken 13 s so far, usually 10.2 ms."
    )


def test_ranks_at_one_line_are_named_together_if_their_collectives_are_recorded():
    places = [("read_shard", 5, "")] * 3
    answer = judged_in_own_code(places, entries=[ENDED])
    assert (answer.outcome, answer.culprits) == (CULPRIT, (0, 1, 2))
    assert sentence(answer).startswith("Ranks 0–2 have been in read_shard (train.py:5) for 12 s; step ")
    unrecorded = judged_in_own_code(places)
    assert (unrecorded.outcome, unrecorded.culprits) == (NOTHING_OPEN, ())


@pytest.mark.parametrize(
    "places",
    [
        [("read_shard", 5, ""), ("write_log", 9, "")],
        [("train_step", 7, "torch.distributed.distributed_c10d.barrier")] * 2,
    ],
)
def test_ranks_at_several_lines_or_in_communication_are_not_named_but_their_lines_are(places):
    answer = judged_in_own_code(places, entries=[ENDED])
    assert (answer.outcome, answer.culprits) == (NOTHING_OPEN, ())
    assert f" been in {places[0][2] or places[0][0]} (train.py:{places[0][1]}) for 12 s" in sentence(answer)
