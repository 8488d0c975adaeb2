"""While a hostile file lies in a logdir, everything else is listed and answers as without it."""

import pytest

from contract.running import put, serving
from support import hostile
from support.waiting import wait_for

GOOD = {"run": "good", "worker": "rank0", "span": "5"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server of a logdir with one good trace, and its answers before hostile files came."""
    logdir = tmp_path_factory.mktemp("logdir")
    put(logdir, "good/rank0.5.pt.trace.json")
    with serving(f"--logdir={logdir}") as running:
        wait_for(lambda: running.plugin("runs").json["runs"])
        yield logdir, running, answers(running)


def answers(server):
    return [server.settled("state", **GOOD).json, server.settled("view", view="operators", **GOOD).json]


def listed(server):
    """The runs and the files that can't be used."""
    runs = server.plugin("runs").json
    return {run["name"] for run in runs["runs"]} | {problem["path"].partition("/")[0] for problem in runs["problems"]}


FILES = hostile.DATABASES | hostile.JSON


def test_other_recordings_are_listed_and_answer(server):
    logdir, running, before = server
    for name, maker in FILES.items():
        (logdir / name).mkdir()
        maker(logdir / name / ("rank0.sqlite" if name in hostile.DATABASES else "rank0.1.pt.trace.json"))
    wait_for(lambda: listed(running), is_right=lambda names: names == {"good", *FILES})
    assert answers(running) == before
    for name in FILES.keys() - {"shared_schema"}:
        span = "default" if name in hostile.DATABASES else "1"
        assert running.settled("state", run=name, worker="rank0", span=span).json["state"] in ("ready", "failed")
    assert answers(running) == before
    (logdir / "shared_schema/rank0.sqlite").rename(logdir / "shared_schema/any name.sqlite")
    wait_for(lambda: "any name" in running.plugin("runs").json["problems"][0]["path"])
    (problem,) = running.plugin("runs").json["problems"]
    assert "The schema of this SQLite database can't be read: page 2 is used twice." in problem["reason"]


def test_the_command_line_names_the_bad_file_and_lists_the_others(server, kinetoscope):
    logdir, _, _ = server
    status, _, err = kinetoscope("check", str(logdir / "shared_schema"))
    assert (status, "page 2 is used twice" in err) == (1, True)
    assert kinetoscope("view", "operators", str(logdir), "--run", "good")[0] == 0
