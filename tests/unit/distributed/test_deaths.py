"""Who ended first: rules for what clocks, journals and messages tell."""

from dataclasses import replace

import pytest

from kinetoscope.journal.ending import Ending, ErrorText
from kinetoscope.journal.status import RankStatus
from kinetoscope_tb.distributed.deaths.exceptions import kind_of_exception
from kinetoscope_tb.distributed.deaths.verdict import CANNOT_TELL, CULPRIT, STOPPED_FROM_OUTSIDE, death_verdict
from kinetoscope_tb.distributed.why import NOTHING_OPEN, answer_why
from kinetoscope_tb.reader.flight_recorder.files import DumpFolder
from kinetoscope_tb.reader.flight_recorder.hang_report import KEY
from kinetoscope_tb.reader.flight_recorder.schema import parse_dump

SECOND = 1_000_000_000
BEGAN_NS = 1_795_650_000 * SECOND
PEER = "[gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:1929"
LATE = "[gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete"
WORLD = 4


def rank(number, end=None, at_s=0.0, *, state=None, reason=None, host="node0", completed=5, ignored=None, age_s=1.0):
    """What is known of a rank that ended at a time."""
    ending = None if end is None else Ending(BEGAN_NS + int(at_s * SECOND), **end)
    is_dead = end is not None and ("signal" in end or "exit_code" in end) and "exception" not in end
    raised = None if end is None else end.get("exception")
    return RankStatus(
        rank=number,
        world_size=WORLD,
        host=host,
        pid=100 + number,
        state=state or ("dead" if is_dead else "running" if end is None else "ended"),
        reason=reason or (f"exception: {raised.type}" if raised else None),
        ending=ending,
        ignored_signal=ignored,
        completed=completed,
        step_s=None,
        usual_step_s=None,
        current_step_s=None,
        saved_steps=0,
        recording_since_step=None,
        is_recording=False,
        is_recovered=False,
        listens=False,
        records=True,
        doubt=None,
        age_s=age_s,
        written_ns=BEGAN_NS + int(at_s * SECOND),
    )


def raised(message, kind="RuntimeError", **more):
    return {"exception": ErrorText(kind, message), **more}


def at(function, **more):
    return {"calls": (("/site-packages/torch/x.py", 1, function), ("/job/train.py", 9, "__main__.main")), **more}


def judged(*statuses):
    answer = death_verdict(statuses)
    return answer.outcome, answer.kind, answer.ranks


def lost(*numbers, at_s=0.5):
    return [rank(number, raised(PEER), at_s) for number in numbers]


@pytest.mark.parametrize(
    ("message", "kind", "function", "expected"),
    [
        (PEER, "RuntimeError", "f", "peer lost"),
        (LATE, "RuntimeError", "f", "timeout"),
        ("Broken pipe", "torch.distributed.DistNetworkError", "f", "peer lost"),
        ("The client socket has timed out after 600000ms", "torch.distributed.DistNetworkError", "f", "timeout"),
        ("NCCL communicator was aborted on rank 3.", "torch.distributed.DistBackendError", "f", "peer lost"),
        ("[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)", "RuntimeError", "f", "timeout"),
        ("RPC ran for more than set timeout (60000 ms)", "RuntimeError", "f", "timeout"),
        ("Connection reset by peer", "RuntimeError", "torch.distributed.distributed_c10d.recv", "peer lost"),
        # Of the rank's own:
        ("Connection reset by peer", "ConnectionResetError", "urllib3.connection.read", "exception"),
        ("Read timed out.", "requests.exceptions.ReadTimeout", "requests.adapters.send", "exception"),
        ("Tensors must be contiguous", "ValueError", "torch.distributed.distributed_c10d.all_reduce", "exception"),
        ("CUDA out of memory. Tried to allocate 2.00 GiB", "RuntimeError", "f", "device memory"),
        ("", "MemoryError", "f", "host memory"),
        ("CUDA error: device-side assert triggered\nCompile with …", "torch.AcceleratorError", "f", "device error"),
        ("CUDA error: an illegal memory access was encountered", "torch.AcceleratorError", "f", "device error"),
        ("Triton Error [CUDA]: an illegal memory access was encountered", "RuntimeError", "f", "device error"),
        ("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx`", "RuntimeError", "f", "device error"),
        ("CUDA error: uncorrectable ECC error encountered", "torch.AcceleratorError", "f", "device fault"),
        ("CUDA error: out of memory", "torch.AcceleratorError", "f", "device memory"),
        ("CUDA error: no kernel image is available for execution", "torch.AcceleratorError", "f", "exception"),
        ("PytorchStreamWriter failed writing file data/0", "RuntimeError", "f", "write failed"),
        ("DataLoader worker (pid 8) is killed by signal: Killed. ", "RuntimeError", "f", "loader worker"),
    ],
)
def test_an_exception_is_of_a_class_by_its_type_message_and_place(message, kind, function, expected):
    assert kind_of_exception(Ending(1, **raised(message, kind), **at(function))) == expected


def test_the_first_failure_counts_and_not_what_follows_from_it():
    assert judged(rank(2, {"signal": 9}, 0.4), *lost(0, 1), rank(3, raised("bad", "KeyError"), 3)) == (
        CULPRIT,
        "killed",
        (2,),
    )


def test_ranks_that_raise_in_the_same_line_of_the_same_step_are_one_cause_however_far_apart():
    def failed(number, at_s, function="__main__.load", **more):
        return rank(number, raised("bad file", "OSError", **at(function)), at_s, **more)

    assert judged(failed(0, 0), failed(2, 9), *lost(1, 3, at_s=10)) == (CULPRIT, "exception", (0, 2))
    for other in (
        failed(2, 9, completed=6),
        failed(2, 9, "torch.distributed.distributed_c10d.all_reduce"),
        rank(2, raised("bad file", "KeyError", **at("__main__.load")), 9),
        rank(2, raised("bad file", "OSError", calls=(("/job/train.py", 30, "__main__.main"),)), 9),
    ):
        assert judged(failed(0, 0), other, *lost(1, 3, at_s=10)) == (CULPRIT, "exception", (0,))


def test_one_that_was_killed_while_the_kernel_counted_a_kill_had_no_memory_left():
    assert judged(rank(2, {"signal": 9, "oom_kills": 1}), *lost(0, 1, 3)) == (CULPRIT, "out of memory", (2,))


def test_clocks_of_two_machines_do_not_say_who_was_first_of_two_that_ended_together():
    first, second = rank(0, {"signal": 11}, 1.0), rank(3, raised("bad", "KeyError"), 1.05, host="node1")
    assert judged(first, second, *lost(1, 2, at_s=2)) == (CANNOT_TELL, "order", (0, 3))
    second = rank(3, raised("bad", "KeyError"), 1.05)
    assert judged(first, second, *lost(1, 2, at_s=2)) == (CULPRIT, "crash", (0,))


def test_a_rank_that_ignored_the_launcher_s_signal_and_was_killed_is_none():
    assert judged(rank(0, raised("bad", "KeyError")), rank(1, {"signal": 9}, 30, ignored="sigterm")) == (
        CULPRIT,
        "exception",
        (0,),
    )
    both = [rank(number, {"signal": 9}, 30, ignored="sigterm") for number in range(2)]
    assert judged(*both) == (STOPPED_FROM_OUTSIDE, "stopped", (0, 1))


def test_a_rank_without_a_word_ended_soon_after_it_last_wrote():
    dead = rank(1, state="dead")
    assert judged(dead, *lost(0, 2, 3)) == (CULPRIT, "unknown", (1,))
    assert judged(dead, *lost(0, 2), rank(3, {"signal": 9}, 1)) == (CANNOT_TELL, "order", (1, 3))
    assert judged(dead, *lost(0, 2), rank(3, {"signal": 9}, 4)) == (CULPRIT, "unknown", (1,))


def test_a_machine_that_is_silent_since_before_the_others_lost_it_is_gone():
    silent = [rank(number, host="node1", age_s=60.0) for number in (2, 3)]
    assert judged(*silent, *lost(0, 1)) == (CULPRIT, "gone", (2, 3))
    alive = [rank(number, host="node1", at_s=1.0) for number in (2, 3)]
    assert judged(*alive, *lost(0, 1)) == (CANNOT_TELL, "nobody else", ())


def test_of_ranks_that_gave_up_waiting_the_one_that_did_not_wait_is_the_cause():
    late = [rank(number, raised(LATE), 9) for number in (0, 3)]
    waits = rank(1, at("torch.distributed.distributed_c10d.all_reduce"), 9.1, state="ended", reason="sigterm")
    loads = rank(2, at("torch.serialization.load"), 9.1, state="ended", reason="sigterm")
    assert judged(*late, waits, loads) == (CULPRIT, "absent", (2,))
    assert judged(*late, waits) == (CANNOT_TELL, "timeout", (1,))
    assert judged(*late, loads, rank(1, at("m.f"), 9.1, state="ended", reason="sigterm"))[:2] == (
        CANNOT_TELL,
        "timeout",
    )


def test_a_barrier_that_is_monitored_names_the_ranks():
    message = "[Rank 0]: Ranks 1, 2 failed to pass monitoredBarrier in 2000 ms"
    assert judged(rank(0, raised(message)), *lost(3)) == (CULPRIT, "absent", (1, 2))


def test_a_rank_that_left_its_loop_or_never_began_is_the_cause_for_those_that_lost_it():
    left = rank(1, state="ended", reason="end")
    assert judged(left, *lost(0, 2, 3)) == (CULPRIT, "left", (1,))
    assert judged(*lost(0, 2, 3)) == (CULPRIT, "never started", (1,))


def test_if_all_lost_their_connections_it_is_the_network():
    assert judged(*lost(0, 1, 2, 3)) == (CANNOT_TELL, "nobody else", ())


def test_an_abort_of_several_is_that_of_a_watchdog():
    aborts = [rank(number, {"signal": 6}, number) for number in range(3)]
    assert judged(aborts[0], *lost(1, 2, 3)) == (CULPRIT, "abort", (0,))
    assert judged(*aborts, *lost(3)) == (CANNOT_TELL, "abort", (0, 1, 2))


def test_a_signal_to_a_single_rank_is_the_cause_and_one_to_all_came_from_outside():
    stopped = [rank(number, {}, 0.01 * number, state="ended", reason="sigterm") for number in range(4)]
    assert judged(*stopped) == (STOPPED_FROM_OUTSIDE, "stopped", (0, 1, 2, 3))
    assert judged(stopped[0], *lost(1, 2, 3)) == (CULPRIT, "stopped", (0,))
    interrupt = rank(0, raised("", "KeyboardInterrupt"))
    assert judged(interrupt, *stopped[1:]) == (STOPPED_FROM_OUTSIDE, "stopped", (0, 1, 2, 3))


def test_a_good_end_is_none():
    good = [rank(0, state="ended", reason="end"), rank(1, {"exception": ErrorText("SystemExit", "0"), "exit_code": 0})]
    handled = rank(2, raised("stop", "StopTraining"), state="ended", reason="end")
    assert death_verdict([*good, handled]) is None
    answer = answer_why(DumpFolder((), (), (*good, handled)))
    assert (answer.outcome, answer.kind, answer.sentence) == (
        NOTHING_OPEN,
        "ended",
        "The job ended well: all ranks closed their recordings.",
    )
    # In flight when `stop` was called, and the others died of it:
    assert judged(handled, *lost(0, 1, 3)) == (CULPRIT, "exception", (2,))


def dump_at_end(number, size):
    """What a rank that lost its peer wrote then."""
    entry = {"record_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": 1, "input_sizes": [[size]]}
    call = {**entry, "profiling_name": "gloo:all_reduce", "input_dtypes": ["Float"], "retired": True}
    report = {"world_size": WORLD, "written_ns": BEGAN_NS, "step": {"number": 5}, "reason": "end"}
    return parse_dump({"entries": [call], KEY: {**report, "groups": {"0": list(range(WORLD))}}}, number, "")


@pytest.mark.parametrize(
    ("sizes", "outcome", "kind", "culprits"),
    [
        ({0: 4, 1: 64, 2: 4, 3: 4}, CULPRIT, "size", (1,)),
        ({1: 64, 2: 4, 3: 4}, CANNOT_TELL, "size", ()),
        ({0: 4, 1: 4, 2: 4, 3: 4}, CULPRIT, "abort", (0,)),
    ],
)
def test_a_rank_that_aborts_in_a_collective_of_different_sizes_is_not_the_cause(sizes, outcome, kind, culprits):
    statuses = (rank(0, {"signal": 6}), *lost(1, 2, 3))
    ends = tuple(dump_at_end(number, size) for number, size in sizes.items())
    answer = answer_why(DumpFolder((), (), statuses, {}, ends))
    assert (answer.outcome, answer.kind, answer.culprits) == (outcome, kind, culprits)
    killed = answer_why(DumpFolder((), (), (rank(0, {"signal": 9}), *lost(1, 2, 3)), {}, ends))
    assert (killed.kind, killed.culprits) == ("killed", (0,))


def of_one_rank(status):
    return replace(status, world_size=1)


def test_a_failed_kernel_is_noticed_at_a_line_that_is_not_its_own():
    message = "CUDA error: device-side assert triggered\nCUDA kernel errors might be asynchronously reported"
    answer = answer_why(
        DumpFolder((), (), (of_one_rank(rank(0, raised(message, "torch.AcceleratorError", **at("f")))),))
    )
    assert answer.kind == "device error"
    assert "CUDA error: device-side assert triggered in step 5, noticed in f (train.py:9), at 20" in answer.sentence
    assert any("CUDA_LAUNCH_BLOCKING=1" in line for line in answer.evidence)


def test_a_sentence_leaves_out_other_processes_of_the_device_and_the_message_s_full_stop():
    message = (
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.18 GiB of which 1.00 GiB is "
        "free. Process 449 has 982.00 MiB memory in use. Process 456 has 982.00 MiB memory in use."
    )
    answer = answer_why(DumpFolder((), (), (of_one_rank(rank(0, raised(message, "torch.OutOfMemoryError"))),)))
    assert "of which 1.00 GiB is free in step 5 at 20" in answer.sentence


def hung(number, at_s):
    """What a rank wrote while its step lasted too long."""
    stack = [["/job/train.py", 5, "__main__.read_shard", 12.0]]
    step = {"number": 5, "seconds": 13.0, "usual_s": 0.0102}
    report = {
        "world_size": 1,
        "written_ns": BEGAN_NS + int(at_s * SECOND),
        "reason": "step",
        "stack": stack,
        "step": step,
    }
    return parse_dump({"entries": [], KEY: report}, number, "")


@pytest.mark.parametrize("end", [{"signal": 9}, {"signal": 15}, None])
def test_a_rank_that_hung_and_was_killed_then_is_a_hang(end):
    statuses = (of_one_rank(rank(0, end, 60, state="dead")),)  # None: nothing has written how
    answer = answer_why(DumpFolder((hung(0, 30),), (), statuses))
    assert (answer.outcome, answer.kind, answer.culprits) == (CULPRIT, "own code", (0,))
    assert answer.sentence.startswith("Rank 0 has been in read_shard (train.py:5) for 12 s; ")
    assert any(line.startswith("Then the job ended; rank 0 ") for line in answer.evidence)


def test_a_rank_that_was_only_slow_before_it_failed_is_no_hang():
    slow = DumpFolder((hung(0, 30),), (), (of_one_rank(rank(0, raised("bad", "KeyError"), 60)),))
    assert answer_why(slow).kind == "exception"
    later = DumpFolder((hung(0, 30),), (), (of_one_rank(rank(0, {"signal": 9}, 60, completed=6)),))
    assert answer_why(later).kind == "killed"


@pytest.mark.parametrize(
    ("is_stopped", "outcome", "kind", "words"),
    [
        (True, CULPRIT, "suspended", "Rank 0 has written nothing for 40 s, being stopped: by SIGSTOP"),
        (None, CANNOT_TELL, "silent", "Cannot tell: rank 0 has written nothing for 40 s."),
    ],
)
def test_a_process_that_writes_nothing_any_more_does_not_simply_run(is_stopped, outcome, kind, words):
    status = replace(of_one_rank(rank(0, state="silent", age_s=40.0)), is_stopped=is_stopped)
    answer = answer_why(DumpFolder((), (), (status,)))
    assert (answer.outcome, answer.kind) == (outcome, kind)
    assert answer.sentence.startswith(words)


def test_a_rank_that_stopped_after_a_slow_step_is_not_told_that_it_went_on():
    """It completed the slow step of which it wrote a report, and is silent since a later one."""
    status = replace(of_one_rank(rank(0, state="silent", completed=9, age_s=40.0)), is_stopped=True)
    answer = answer_why(DumpFolder((hung(0, 30),), (), (status,)))
    assert (answer.outcome, answer.kind, answer.culprits) == (CULPRIT, "suspended", (0,))
