"""What one screen says of a run, each other one says: claims, actions, and what a part of a claim saves."""

import json

import pytest
from werkzeug.test import Client

import kinetoscope_tb
from kinetoscope_tb.discovery import Logdir
from kinetoscope_tb.names.python_frames import function_name
from kinetoscope_tb.web.app import Site
from support.waiting import wait_for
from support.waiting_run import LATE, LOADING, write_waiting_run

WORDS = ("rule", "title", "evidence", "action", "saving_ns")
SAVED = ("saved_ns", "saved_low_ns", "saved_high_ns")


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("KINETOSCOPE_CACHE", str(tmp_path / "cache"))
    write_waiting_run(tmp_path / "runs" / "job")
    return str(tmp_path / "runs")


@pytest.fixture
def rows(kinetoscope):
    """The rows of a view, as the command prints them."""

    def ask(path, view, *options):
        _, out, _ = kinetoscope("view", view, path, "--format", "json", *options)
        data = json.loads(out)["data"]
        return [dict(zip(data, values, strict=True)) for values in zip(*data.values(), strict=True)]

    return ask


def claims_of(summary, about):
    claims = [claim for claim in (summary["verdict"], *summary["also"]) if claim["about"] == about]
    return [tuple({**claim, "rule": claim["id"]}[name] for name in WORDS) for claim in claims]


@pytest.mark.parametrize(("view", "about"), [("advice", "recording"), ("run_advice", "run")])
def test_rows_about_a_run_are_the_claims_of_its_summary(run, kinetoscope, rows, view, about):
    summary = json.loads(kinetoscope("summary", run, "--format", "json")[1])
    claims = claims_of(summary, about)
    assert claims
    assert [tuple(row[name] for name in WORDS) for row in rows(run, view)] == claims
    assert kinetoscope_tb.open(run).view(view).select(WORDS).rows() == claims


def test_the_action_about_a_late_rank_is_that_of_its_own_recording(run, rows):
    late = [row for row in rows(run, "run_advice") if row["rule"] == "straggler"]
    assert {row["filter"] for row in late} == {"rank1", "rank2"}
    for row in late:
        assert f"is in `{function_name(LATE[int(row['filter'][-1])])}`." in row["title"]
        assert "Check what runs on its host" not in row["action"]


@pytest.mark.parametrize("less", ["data_loading:50", "data_loading:100", "data_loading:50,communication:50"])
def test_sliders_save_no_more_than_other_ranks_leave_wherever_they_are_asked_for(run, rows, less):
    alone = rows(run, "what_if", "--less", less, "--worker", "rank0")[0]
    bounded = rows(run, "what_if", "--less", less)[0]
    assert kinetoscope_tb.open(run).view("what_if", less=less).row(0, named=True) == bounded
    assert served(run, "what_if", less=less) == bounded
    if less.endswith("100"):
        assert alone["saved_ns"] > LOADING * 0.9
        claim = next(row for row in rows(run, "advice") if row["rule"] == "data_loading")
        assert bounded["saved_ns"] == claim["saving_ns"] < alone["saved_ns"]
    assert all(bounded[name] <= alone[name] for name in SAVED)
    assert bounded["step_ns"] == bounded["now_ns"] - bounded["saved_ns"]


def served(path, view, **query):
    client = Client(Site([Logdir(path, "")], None).application("/view"))
    place = {"run": "job", "worker": "rank0", "span": "1"}

    def data():
        answer = client.get("/view", query_string={"view": view, **place, **query}).json
        return answer["data"] if answer["state"] == "ready" else None

    return {name: values[0] for name, values in wait_for(data).items()}
