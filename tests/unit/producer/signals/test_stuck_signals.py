"""Signals that reach a process which can't answer them."""

import os
import signal
import sys
import threading

import pytest

from kinetoscope.signals.stuck_signals import PATIENCE_S, StuckSignals
from support.waiting import wait_for

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")


@pytest.fixture
def listening():
    """The reports about signals whose handlers do nothing, and a clock."""
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    reports, now = [], [0.0]
    signals = StuckSignals(reports.append, lambda: now[0])
    signals.begin()
    yield signals, reports, now
    signals.end()
    signal.signal(signal.SIGTERM, before)


def test_a_signal_without_effect_is_reported_once(listening):
    signals, reports, now = listening
    signals.check()
    for _ in range(2):
        os.kill(os.getpid(), signal.SIGTERM)
    wait_for(lambda: signals.first_ns)
    now[0] = PATIENCE_S / 2
    signals.check()
    assert reports == []
    for now[0] in (PATIENCE_S, 3 * PATIENCE_S):
        signals.check()
    assert reports == ["sigterm"]


def test_a_forked_process_has_signals_of_its_own(listening):
    signals, reports, now = listening
    pid = os.fork()
    if not pid:
        signal.raise_signal(signal.SIGTERM)  # its handler does nothing
        os._exit(0 if signal.set_wakeup_fd(-1) == -1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    signals.check()
    now[0] = PATIENCE_S
    signals.check()
    assert reports == []


def test_its_thread_and_its_pipe_end_with_it(listening):
    signals, _, _ = listening
    descriptors = signals._pipe
    signals.end()
    wait_for(lambda: not any(thread.name == "kinetoscope-signals" for thread in threading.enumerate()))
    for descriptor in descriptors:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)


def test_who_listened_before_goes_on_to(listening):
    signals, _, _ = listening
    signals.end()
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    try:
        signal.set_wakeup_fd(writing)
        second = StuckSignals(pytest.fail)
        second.begin()
        second.check()
        second.end()
        assert signal.set_wakeup_fd(-1) == writing
    finally:
        signal.set_wakeup_fd(-1)
        os.close(reading)
        os.close(writing)
