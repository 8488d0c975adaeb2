import logging
import threading

from kinetoscope.signals.background_tasks import BackgroundTasks, Task
from support.waiting import LIMIT_S


def test_what_fails_again_and_again_is_given_up_and_the_rest_goes_on(caplog):
    caplog.set_level(logging.DEBUG, "kinetoscope")
    failures, enough, other = [], threading.Event(), threading.Event()

    def fails():
        failures.append(1)
        raise OSError("no such disk")

    def works():
        if len(failures) == 10:
            (other if enough.is_set() else enough).set()

    watch = BackgroundTasks([Task("Failing", fails, 0.0), Task("Working", works, 0.0)])
    watch.begin()
    assert enough.wait(LIMIT_S)
    assert other.wait(LIMIT_S)
    watch.end()
    assert len(failures) == 10
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert warnings == ["Failing failed for good: no such disk"]
    assert not any(thread.name == "kinetoscope-background" for thread in threading.enumerate())
