"""Reports of steps that last too long: how many, and what is in them."""

import json
import threading
import time
from functools import partial
from types import SimpleNamespace

import pytest

from kinetoscope import Tracer, UsageError, on_request
from kinetoscope.events import EventLog
from kinetoscope.job.rank_info import RankInfo
from kinetoscope.journal.status import rank_statuses
from kinetoscope.session import hang_reports
from kinetoscope.session.hang_reports import HangReports, with_key
from kinetoscope.signals.call_stacks import CallTimes
from kinetoscope.signals.hang_detector import Excess
from support.waiting import wait_for

SECOND = 1_000_000_000


class Training:
    """A recording whose steps are set by hand; the thread that makes it is the training's."""

    def __init__(self, run, rank_and_folder=True):
        self.run, self.step, self.began_ns = run, 5, time.monotonic_ns()
        self.log, self.news = EventLog(), []
        known = (RankInfo(3, 8), run) if rank_and_folder else None
        self.reports = HangReports(
            SimpleNamespace(
                trace_writer=SimpleNamespace(known_rank_and_folder=known, saved=[run / "rank3.4.json"]),
                counter=SimpleNamespace(current_step=lambda: (self.step, self.began_ns)),
                annotations=SimpleNamespace(log=self.log),
                owner=SimpleNamespace(ids=(0, threading.get_ident())),
            ),
            lambda: 100_000_000,
            lambda kind, value: self.news.append((kind, value)),
            lambda: None,
        )

    def stand(self, seconds, *, step=5):
        """Be in a step for some time, while another thread writes a report."""
        self.step, self.began_ns = step, time.monotonic_ns() - round(seconds * SECOND)
        problems = []
        writing = threading.Thread(target=self._write, args=(problems,))
        writing.start()
        writing.join()
        for problem in problems:
            raise problem

    def _write(self, problems):
        try:
            self.reports.watch()
            self.reports.write("step", Excess(limit_s=30.0, previous_check_s=29.5))
        except OSError as error:
            problems.append(error)

    @property
    def names(self):
        return sorted(path.name for path in self.run.glob("hang/*"))


def report(file):
    return json.loads(file.read_text())["kinetoscope_hang"]


def test_a_rank_that_ends_badly_writes_its_collectives(tmp_path, monkeypatch):
    training, calls = Training(tmp_path), [["train.py", 88, "__main__.train"]]
    training.reports.write_end(calls)
    assert training.names == []  # it has none
    monkeypatch.setattr(hang_reports, "flight_recorder_dump", lambda: b'{"entries": [7]}')
    monkeypatch.setattr(hang_reports, "group_ranks", lambda: {"0": [0, 3]})
    training.reports.write_end(calls)
    assert training.names == ["rank3.end.json"]
    assert json.loads((tmp_path / "hang/rank3.end.json").read_text())["entries"] == [7]
    facts = report(tmp_path / "hang/rank3.end.json")
    assert (facts["reason"], facts["groups"], facts["stack"]) == ("end", {"0": [0, 3]}, [[*calls[0], 0.0]])
    assert training.news == []


def test_a_report_says_where_the_training_is(tmp_path):
    training = Training(tmp_path)
    training.log.begin("save checkpoint", (), None)
    training.stand(31)
    facts = report(tmp_path / "hang/rank3.5.json")
    assert (facts["rank"], facts["world_size"], facts["reason"]) == (3, 8, "step")
    assert facts["written_ns"] - facts["step"].pop("start_ns") >= 31 * SECOND
    assert facts["step"].pop("seconds") >= 31
    assert facts["step"] == {"number": 5, "usual_s": 0.1, "limit_s": 30.0, "previous_check_s": 29.5}
    assert facts["last_saved"] == "rank3.4.json"
    assert [marker["name"] for marker in facts["markers"]] == ["save checkpoint"]
    assert any(line[0] == __file__ and line[2].endswith("stand") for line in facts["stack"])
    main = next(thread for thread in facts["threads"] if thread["name"] == "MainThread")
    assert facts["stack"][-1][:3] == main["stack"][-1]


def test_the_journal_says_it_too(tmp_path):
    training = Training(tmp_path, rank_and_folder=False)  # of a first step in which the job forms its group
    training.stand(31)
    ((kind, value),) = training.news
    assert (kind, value["step"], value["seconds"] >= 31) == ("hanging", 5, True)
    assert any(line.startswith(f"stand ({__file__}:") for line in value["stack"])
    assert training.names == []


def test_a_later_report_of_a_step_replaces_the_earlier_one(tmp_path):
    training = Training(tmp_path)
    training.stand(31)
    training.stand(61)
    assert report(tmp_path / "hang/rank3.5.json")["step"]["seconds"] >= 61
    first, second = (value["seconds"] for _, value in training.news)
    assert first >= 31
    assert second >= 61


def test_the_time_at_a_line_is_that_of_its_step(tmp_path, monkeypatch):
    now_s, training = 0.0, Training(tmp_path)
    monkeypatch.setattr(hang_reports, "CallTimes", partial(CallTimes, lambda: now_s))
    seconds = []
    for now_s, step in ((0.0, 5), (20.0, 5), (50.0, 6)):  # noqa: B007  the clock reads it
        training.stand(31, step=step)
        seconds.append(report(tmp_path / f"hang/rank3.{step}.json")["stack"][-1][-1])
    assert seconds == [0.0, 20.0, 0.0]


def test_of_many_slow_steps_the_newest_files_stay(tmp_path):
    training = Training(tmp_path)
    for step in (*range(5, 20), 19):
        training.stand(31, step=step)
    assert training.names == sorted(f"rank3.{step}.json" for step in range(12, 20))


def test_a_folder_that_can_not_be_written_costs_the_file_alone(tmp_path):
    (tmp_path / "hang").write_text("a file in its place")
    training = Training(tmp_path)
    with pytest.raises(OSError, match="hang"):
        training.stand(31)
    assert len(training.news) == 1


def test_a_key_is_added_at_the_end():
    assert json.loads(with_key(b"{}", "a", 1)) == {"a": 1}
    assert json.loads(with_key(b'{"b": {"c": 2} }\n', "a", 1)) == {"b": {"c": 2}, "a": 1}


def test_a_training_that_goes_on_leaves_the_report_of_its_slow_step(tmp_path):
    with Tracer(tmp_path, run="job", schedule=on_request, system=(), hang_after_s=1.0) as tracer:
        for step in range(4):
            if step == 3:
                wait_for((tmp_path / "job/hang/rank0.3.json").exists)
            tracer.step()
    assert any(line[0] == __file__ for line in report(tmp_path / "job/hang/rank0.3.json")["stack"])


def test_a_tracer_refuses_a_limit_that_is_no_duration(tmp_path):
    with pytest.raises(UsageError, match="hang_after_s"):
        Tracer(tmp_path, hang_after_s=0)


def test_the_journal_says_soon_that_a_reported_step_ended(tmp_path):
    tracer = Tracer(tmp_path, run="job", schedule=on_request, system=(), hang_after_s=0.5)
    task = tracer._supervisor._journal_task
    assert task.every_s == 1.0
    with tracer:
        tracer.step()
        wait_for(
            (tmp_path / "job" / "hang" / "rank0.1.json").exists
        )  # a busy machine may have one of the first step, too
        wait_for(lambda: task.every_s == 0.2)
        tracer.step()
        wait_for(lambda: task.every_s == 1.0)
        assert rank_statuses(tmp_path / "job")[0].completed == 2
