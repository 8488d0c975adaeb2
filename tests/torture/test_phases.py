"""Everything that ends a training, in every phase of a recording."""

import signal

import pytest

from torture.truth import Rank, Truth, Window

FIRST, SECOND = {(0, 5): Window((2, 3, 4))}, {(0, 10): Window((7, 8, 9))}
PHASES = {  # phase: steps complete, windows complete, steps of the window that is open, and whether its last is whole
    "wait": (0, {}, ()),
    "warmup": (1, {}, ()),
    "window": (3, {}, (2, 3)),
    "last step": (4, {}, (2, 3, 4)),
    "export": (5, {}, (2, 3, 4)),
    "merging": (5, FIRST, ()),
    "between": (5, FIRST, ()),
    "second window": (8, FIRST, (7, 8)),
    "closing": (12, {**FIRST, **SECOND}, ()),
    "after": (12, {**FIRST, **SECOND}, ()),
}
POLITE = {  # event: exit status, and what it is called
    "SIGTERM": (-signal.SIGTERM, "sigterm"),
    "SIGHUP": (-signal.SIGHUP, "sighup"),
    "SIGINT": (130, "exception: KeyboardInterrupt"),
    "leave": (3, "exception: SystemExit"),
    "fail": (1, "exception: KeyError"),
}
POLITELY = [  # in our own end, signals alone
    (phase, event)
    for phase in PHASES
    for event in POLITE
    if phase != "export" and (phase != "closing" or event.startswith("SIG"))
]
SUDDEN = {
    "SIGKILL": -signal.SIGKILL,
    "segfault": -signal.SIGSEGV,
    "abort": -signal.SIGABRT,
    "exit_at_once": 3,
    "SIGUSR1": -signal.SIGUSR1,
    "SIGUSR2": -signal.SIGUSR2,
}
SUDDENLY = [(phase, event) for phase in PHASES for event in SUDDEN if event == "SIGKILL" or phase == "window"]
"""After each of them, none of the process's code runs: one stands for all."""


@pytest.mark.parametrize(("phase", "event"), POLITELY)
def test_what_ends_a_training_politely_loses_nothing(server, tmp_path, phase, event):
    status, reason = POLITE[event]
    completed, windows, steps = PHASES[phase]
    job = server.start(tmp_path, at=phase, event=event)
    assert job.ended() == status, job.words
    partial = {(0, completed): Window(steps, reason, is_complete=False)} if steps else {}
    is_over = phase in ("closing", "after")
    job.holds(Truth({**windows, **partial}, {0: Rank("ended", "end" if is_over else reason, completed or None)}))


@pytest.mark.parametrize("event", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_while_the_profiler_writes_waits_until_it_has(server, tmp_path, event):
    status, reason = POLITE[event]
    job = server.start(tmp_path, at="export", event=event)
    assert job.ended() == status, job.words
    job.holds(Truth(FIRST, {0: Rank("ended", reason, 5)}))


@pytest.mark.parametrize(("phase", "event"), SUDDENLY)
def test_what_ends_a_training_suddenly_loses_the_open_window_alone(server, tmp_path, phase, event):
    completed, windows, steps = PHASES[phase]
    job = server.start(tmp_path, at=phase, event=event)
    assert job.ended() == SUDDEN[event], job.words
    if phase == "wait":
        return job.holds(Truth(leaves_nothing=True))
    if phase in ("closing", "after"):
        return job.holds(Truth(windows, {0: Rank("ended", "end", completed)}))
    saved = max((span for _, span in windows), default=0)
    rank = Rank("dead", None, completed, recovered=completed - saved or None)
    names = ("rank 0", "since step 2" if completed < 6 else "since step 7") if steps else ()
    job.holds(Truth(windows, {0: rank}, lost=int(bool(steps)), names=names))
    return None


def test_a_window_that_is_saved_is_not_recovered_again_where_the_journal_lags(server, tmp_path):
    job = server.start(tmp_path, at="window", event="die_when_saved")
    assert job.ended() == -signal.SIGKILL, job.words
    job.holds(Truth(FIRST, {0: Rank("dead", None, 5)}))


@pytest.mark.parametrize("event", ["fork_and_leave", "fork_and_raise", "fork_and_kill"])
@pytest.mark.parametrize("phase", ["warmup", "window", "between", "second window", "after"])
def test_what_becomes_of_a_forked_process_changes_nothing(server, tmp_path, phase, event):
    job = server.start(tmp_path, at=phase, event=event)
    assert job.ended() == 0, job.words
    job.holds(Truth({**FIRST, **SECOND}, {0: Rank("ended", "end", 12)}))
