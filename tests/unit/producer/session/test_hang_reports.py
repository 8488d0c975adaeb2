"""Reports of steps that last too long: when, how many, and what is in them."""

import json
import threading
import time
from types import SimpleNamespace

import pytest

from kinetoscope import Tracer, UsageError, on_request
from kinetoscope.events import EventLog
from kinetoscope.job.rank_info import RankInfo
from kinetoscope.session.hang_reports import HangReports, with_key
from support.waiting import wait_for

SECOND = 1_000_000_000


class Training:
    """A recording whose steps are set by hand; the thread that makes it is the training's."""

    def __init__(self, run, usual_s=0.1, after_s=30.0):
        self.run, self.step, self.began_ns = run, 5, time.monotonic_ns()
        self.log = EventLog()
        self.reports = HangReports(
            SimpleNamespace(
                trace_writer=SimpleNamespace(known_rank_and_folder=(RankInfo(3, 8), run), saved=[run / "rank3.4.json"]),
                counter=SimpleNamespace(current_step=lambda: (self.step, self.began_ns)),
                annotations=SimpleNamespace(log=self.log),
                owner=SimpleNamespace(ids=(0, threading.get_ident())),
            ),
            lambda: None if usual_s is None else round(usual_s * SECOND),
        )
        self.reports.set_limit(after_s)

    def stand(self, seconds, *, step=None):
        """Be in a step for some time, while another thread looks."""
        self.step = self.step if step is None else step
        self.began_ns = time.monotonic_ns() - round(seconds * SECOND)
        looking = threading.Thread(target=self.reports.check)
        looking.start()
        looking.join()

    @property
    def names(self):
        return sorted(path.name for path in self.run.glob("hang/*"))


def test_a_step_is_reported_once_and_the_next_one_too(tmp_path):
    training = Training(tmp_path)
    for seconds in (2, 29, 31, 32, 90):
        training.stand(seconds)
        assert training.names == (["rank3.5.json"] if seconds > 30 else [])
    training.stand(1, step=6)
    training.stand(31)
    assert training.names == ["rank3.5.json", "rank3.6.json"]


@pytest.mark.parametrize(("usual_s", "seconds"), [(2.0, 39), (None, 10_000), (0.1, 29)])
def test_slow_steps_and_the_first_one_have_time(tmp_path, usual_s, seconds):
    training = Training(tmp_path, usual_s)
    training.stand(seconds)
    assert training.names == []


def test_a_report_says_where_the_training_is(tmp_path):
    training = Training(tmp_path)
    training.log.begin("save checkpoint", (), None)
    training.stand(20)
    training.stand(31)
    report = json.loads((tmp_path / "hang/rank3.5.json").read_text())["kinetoscope_hang"]
    assert (report["rank"], report["world_size"], report["reason"]) == (3, 8, "step")
    assert report["step"] == {"number": 5, "seconds": 31.0, "usual_s": 0.1}
    assert report["last_saved"] == "rank3.4.json"
    assert [marker["name"] for marker in report["markers"]] == ["save checkpoint"]
    assert any(line[0] == __file__ and line[2].endswith("stand") for line in report["stack"])
    main = next(thread for thread in report["threads"] if thread["name"] == "MainThread")
    assert report["stack"][-1][:3] == main["stack"][-1]


def test_of_many_slow_steps_the_newest_files_stay(tmp_path):
    training = Training(tmp_path)
    for step in range(5, 20):
        training.stand(31, step=step)
    assert training.names == sorted(f"rank3.{step}.json" for step in range(12, 20))


def test_a_folder_that_can_not_be_written_is_tried_once(tmp_path):
    (tmp_path / "hang").write_text("a file in its place")
    training = Training(tmp_path)
    training.began_ns -= 31 * SECOND
    with pytest.raises(OSError, match="hang"):
        training.reports.check()
    training.reports.check()


def test_a_key_is_added_at_the_end():
    assert json.loads(with_key(b"{}", "a", 1)) == {"a": 1}
    assert json.loads(with_key(b'{"b": {"c": 2} }\n', "a", 1)) == {"b": {"c": 2}, "a": 1}


def test_a_training_that_goes_on_leaves_the_report_of_its_slow_step(tmp_path):
    with Tracer(tmp_path, run="job", schedule=on_request, system=(), hang_after_s=1.0) as tracer:
        for step in range(4):
            if step == 3:
                wait_for((tmp_path / "job/hang/rank0.3.json").exists)
            tracer.step()
    report = json.loads((tmp_path / "job/hang/rank0.3.json").read_text())["kinetoscope_hang"]
    assert any(line[0] == __file__ for line in report["stack"])


def test_reports_can_be_switched_off(tmp_path):
    training = Training(tmp_path, after_s=None)
    training.stand(10_000)
    assert training.names == []
    with pytest.raises(UsageError, match="hang_after_s"):
        Tracer(tmp_path, hang_after_s=0)
