"""A machine's clock that goes back: nothing lasts less than no time, and a file that is written then is read again."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import kinetoscope.events
from kinetoscope.events import EventLog
from kinetoscope.journal.status import rank_statuses
from kinetoscope.scheduling.request import WORK
from kinetoscope_tb.discovery import Logdir
from kinetoscope_tb.engine.engine import Engine
from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

DAY_S = 24 * 3600
NOW_NS = 1_790_857_026_000_000_000


def test_a_range_of_the_recorder_lasts_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([NOW_NS, NOW_NS - DAY_S * 10**9])
    monkeypatch.setattr(kinetoscope.events.time, "time_ns", lambda: next(times))
    log = EventLog()
    event = log.begin("forward", (), None)
    assert event is not None
    shown = []
    log.listener = shown.append
    log.end(event, "range")
    assert [one.dur_ns for one in shown] == [0]


def test_no_age_and_no_step_of_a_job_is_negative(tmp_path: Path) -> None:
    head = {"version": "1", "global_rank": 0, "world_size": 1, "host": "here", "pid": 4711, "listens": True}
    lines = [head, ["s", 1, NOW_NS, NOW_NS + 10**9], ["s", 2, NOW_NS + 10**9, NOW_NS - DAY_S * 10**9]]
    journal = tmp_path / WORK / "rank0.jsonl"
    journal.parent.mkdir()
    journal.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (rank,) = rank_statuses(tmp_path, now_s=NOW_NS / 1e9 - DAY_S)
    assert rank.age_s == 0
    assert not [value for value in (rank.current_step_s, rank.usual_step_s) if value is not None and value < 0]


def test_a_trace_that_is_written_again_in_the_past_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "run" / "rank0.1.pt.trace.json"
    path.parent.mkdir()
    now = [0.0]
    engine = Engine((Logdir(str(tmp_path)),), clock=lambda: now[0], patience_s=30)
    calls = []
    for name, time_s in (("aten::a", NOW_NS // 10**9), ("aten::b", NOW_NS // 10**9 - DAY_S)):
        path.write_text(TraceBuilder().op(name, 0, 10).text())
        os.utime(path, (time_s, time_s))
        now[0] += 100
        (file,) = engine.listing().files
        calls.append(engine.frame(VIEWS["operators"], file, {})["name"].to_list())
    assert calls == [["aten::a"], ["aten::b"]]
