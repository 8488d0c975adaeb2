"""No file holds up another one: readings that nobody waits for end, and small files get their turn."""

import gzip
import threading
import time

import pytest

from kinetoscope_tb.discovery import Logdir, TraceFile
from kinetoscope_tb.engine.answers import NotReady
from kinetoscope_tb.engine.engine import Engine
from kinetoscope_tb.engine.read_queue import LARGE_BYTES, LONG_S, ReadQueue
from kinetoscope_tb.engine.trace_cache import LOOKS_EVERY_S, POLLED_WITHIN_S, POLLED_WITHIN_S_WHILE_OTHERS_WAIT
from kinetoscope_tb.engine.workers import Workers
from kinetoscope_tb.errors import TraceError
from kinetoscope_tb.reader import Progress, read
from kinetoscope_tb.trace import Trace
from support.build import TraceBuilder
from support.reading import one_process
from support.waiting import LIMIT_S as LONG_WAIT_S


class Reader:
    """Stands for the reader: begins each file when it is told to, and reports until the file may end."""

    def __init__(self):
        self.changed = threading.Condition()
        self.begun, self.ended, self.free = [], [], set()

    def __call__(self, path, progress):
        with self.changed:
            self.begun.append(path)
            self.changed.notify_all()
        try:
            while True:
                progress(Progress("reading", 1, 100))
                with self.changed:
                    if path in self.free or self.changed.wait_for(lambda: path in self.free, 0.002):
                        return TraceBuilder().build()
        finally:
            with self.changed:
                self.ended.append(path)
                self.changed.notify_all()

    def finish(self, *paths):
        with self.changed:
            self.free.update(paths)
            self.changed.notify_all()

    def wait(self, condition):
        with self.changed:
            assert self.changed.wait_for(condition, LONG_WAIT_S)


class Held:
    """An engine with a clock that the test sets."""

    def __init__(self):
        self.now, self.reader = 1000.0, Reader()
        self.engine = Engine([Logdir("/nowhere")], read=one_process(self.reader), clock=lambda: self.now, patience_s=0)

    def ask(self, path, size=100):
        """The trace, or None while it is read."""
        try:
            return self.engine.trace(TraceFile("run", "worker", "span", str(path), str(path), size, 1))
        except NotReady:
            return None

    def read(self, path, size=100):
        """Ask until it is there."""
        self.reader.finish(str(path))
        self.engine._patience_s = LONG_WAIT_S
        trace = self.ask(path, size)
        self.engine._patience_s = 0
        assert isinstance(trace, Trace)

    def begin(self, *paths, size=100):
        for path in paths:
            self.ask(path, size)
            self.reader.wait(lambda path=path: str(path) in self.reader.begun)


@pytest.fixture
def held():
    held = Held()
    yield held
    held.reader.finish(*map(str, held.reader.begun), "large", "other", "third", "small", "slow")


def test_a_large_file_leaves_a_thread_to_small_ones(held):
    held.begin("large", size=LARGE_BYTES)
    for name in ("a", "b", "c"):
        held.read(name)
    assert held.reader.ended == ["a", "b", "c"]


def test_two_large_files_leave_a_thread_to_small_ones(held):
    held.begin("large", "other", size=LARGE_BYTES)
    held.read("small")
    assert "large" not in held.reader.ended  # the one that came first is read to its end
    held.reader.wait(lambda: held.reader.begun.count("other") == 2)
    held.read("large", LARGE_BYTES)
    held.read("other", LARGE_BYTES)


def test_small_files_that_take_long_leave_a_thread_to_others(held):
    held.begin("slow", "other")
    held.ask("small")
    held.now += LONG_S + 1
    held.read("small")
    assert held.reader.ended[:2] == ["other", "small"]
    held.read("slow")
    held.read("other")


def test_a_large_file_is_read_however_many_small_ones_come(held):
    held.begin("large", "other", size=LARGE_BYTES)
    for number in range(20):
        held.read(f"small {number}")
    held.read("large", LARGE_BYTES)
    for number in range(20, 40):
        held.read(f"small {number}")
    held.read("other", LARGE_BYTES)


@pytest.mark.parametrize("others_wait", [False, True])
def test_reading_ends_when_nobody_asks_for_the_file_any_more(held, others_wait):
    jobs = ("other", "third") if others_wait else ("other",)
    limit = POLLED_WITHIN_S_WHILE_OTHERS_WAIT if others_wait else POLLED_WITHIN_S
    held.begin("large", "other", size=LARGE_BYTES)
    for _ in range(2):
        for name in jobs:
            held.ask(name, LARGE_BYTES)
        assert not held.reader.ended
        held.now += 0.6 * limit
    held.reader.wait(lambda: held.reader.ended == ["large"])
    for name in (*jobs, "large"):
        held.read(name, LARGE_BYTES)
    assert held.reader.begun.count("large") == 2


def test_a_file_that_waits_and_that_nobody_asks_for_any_more_is_never_begun(held):
    held.begin("large", "other", size=LARGE_BYTES)
    held.ask("third", LARGE_BYTES)
    for _ in range(2):
        held.now += 0.6 * POLLED_WITHIN_S_WHILE_OTHERS_WAIT
        for name in ("large", "other", "fourth"):
            held.ask(name, LARGE_BYTES)
    for name in ("large", "other", "fourth"):
        held.read(name, LARGE_BYTES)
    assert "third" not in held.reader.begun
    held.read("third", LARGE_BYTES)


@pytest.mark.parametrize("is_replaced", [False, True])
def test_reading_ends_when_the_file_is_deleted_or_replaced(held, tmp_path, is_replaced):
    path = tmp_path / "t.json"
    path.write_text("old")
    held.begin(path)
    if is_replaced:
        (tmp_path / "new").write_text("new")
        (tmp_path / "new").replace(path)
    else:
        path.unlink()
    held.now += LOOKS_EVERY_S + 1
    held.reader.wait(lambda: held.reader.ended == [str(path)])
    held.read(path)
    assert held.reader.begun == [str(path)] * 2


def test_a_file_that_grows_is_read_to_its_end(held, tmp_path):
    path = tmp_path / "t.json"
    path.write_text("old")
    held.begin(path)
    with path.open("a") as file:
        file.write("new")
    held.now += LOOKS_EVERY_S + 1
    held.read(path)
    assert held.reader.begun == [str(path)]


def test_jobs_about_one_thing_leave_threads_to_others():
    workers, free, begun = Workers(3, most_alike=2), threading.Event(), threading.Semaphore(0)

    def wait():
        begun.release()
        assert free.wait(LONG_WAIT_S)

    slow = [workers.submit(wait, about="one") for _ in range(5)]
    for _ in range(2):
        assert begun.acquire(timeout=LONG_WAIT_S)
    assert workers.submit(lambda: "done", about="another").result(LONG_WAIT_S) == "done"
    free.set()
    assert [job.result(LONG_WAIT_S) for job in slow] == [None] * 5


def test_threads_end_when_nothing_waits_and_the_next_job_starts_one(monkeypatch):
    for module in ("workers", "read_queue"):
        monkeypatch.setattr(f"kinetoscope_tb.engine.{module}.IDLE_S", 0.01)
    workers, files = Workers(2), ReadQueue(time.monotonic)
    jobs = [
        lambda: workers.submit(threading.current_thread),
        *(
            lambda is_large=is_large: files.submit(
                lambda check: threading.current_thread(), lambda others_wait: True, is_large=is_large
            )
            for is_large in (True, False)
        ),
    ]
    for job in (*jobs, *jobs):
        thread = job().result(LONG_WAIT_S)
        thread.join(LONG_WAIT_S)
        assert not thread.is_alive()


class Enough(TraceError):
    pass


def test_a_reading_can_be_ended_before_any_text_is_there(tmp_path):
    path, reports = tmp_path / "t.json.gz", []
    path.write_bytes(gzip.compress(b"", mtime=0) * 50_000)

    def progress(report):
        reports.append(report)
        if len(reports) == 3:
            raise Enough(str(path), "enough")

    with pytest.raises(Enough):
        read(path, progress=progress)
    assert reports[-1].read_bytes < path.stat().st_size / 2
