"""What the recorder's run.json adds to a listing."""

import json

import pytest

from kinetoscope.output.manifest import manifest
from kinetoscope_tb.discovery import Logdir, Manifests, list_path, list_traces
from kinetoscope_tb.engine.engine import Engine
from kinetoscope_tb.views import VIEWS

TRACE = '{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]}'


def status(rank, **windows):
    """One rank of eight; each window is `s<span>=(state, more)`."""
    facts = {"global_rank": rank, "world_size": 8, "state": "ended", "attempt": "a", "started_ns": 1, "run": "run"}
    spans = [{"span": int(span[1:]), "state": state, **more} for span, (state, more) in windows.items()]
    return {**facts, "windows": spans}


@pytest.fixture
def logdir(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    for span in (5, 9):
        (run / f"rank0.{span}.pt.trace.json").write_text(TRACE)
    ranks = [
        status(0, s5=("saved", {}), s9=("saved", {"problem": "1 repaired"})),
        *(status(rank, s5=("lost", {"problem": "No space left"})) for rank in (1, 2, 3, 6)),
        status(4, s5=("partial", {"reason": "sigterm"})),
        status(5, s5=("saving", {}), s9=("saved", {"upload": {"state": "failed", "problem": "denied"}})),
    ]
    ranks[2] |= {"state": "killed", "problem": "killed while it recorded"}
    (run / "run.json").write_text(json.dumps(manifest(ranks)))
    return tmp_path


def listed(path):
    return list_traces([Logdir(str(path))])


def test_a_run_s_manifest_is_no_trace_and_says_what_is_missing(logdir):
    listing = listed(logdir)
    assert [file.span for file in listing.files] == ["5", "9"]
    assert listing.problems == ()
    texts = {note.text: (note.rule, note.level, note.span, note.ranks) for note in listing.notes["run"]}
    lost = "Span 5: ranks 1–3, 6: the recording is lost: No space left."
    assert texts[lost] == ("rank_lost", "loss", "5", 4)
    assert texts["Span 5: rank 4: ended early: sigterm."] == ("rank_partial", "warning", "5", 1)
    assert texts["Span 9: rank 0: 1 repaired."] == ("rank_repaired", "warning", "9", 1)
    assert texts["Span 9: rank 5: not copied: denied."] == ("rank_not_copied", "note", "9", 1)
    assert texts["rank 2: killed while it recorded."] == ("rank_killed", "warning", "", 1)
    (missing,) = (note for note in listing.notes["run"] if note.rule == "rank_missing" and note.span == "5")
    assert missing.text.startswith("Span 5: rank 7: no trace: nothing was reported")


def test_a_rank_that_ended_in_order_misses_no_trace_that_is_there(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "rank0.5.pt.trace.json").write_text(TRACE)
    killed = status(2) | {"state": "killed", "problem": "killed while it recorded"}
    (run / "run.json").write_text(json.dumps(manifest([status(0, s5=("saved", {})), status(1), killed])))

    def missing():
        return {n.text.split(":")[1]: n.text for n in listed(tmp_path).notes["run"] if n.rule == "rank_missing"}

    assert missing()[" rank 1"] == "Span 5: rank 1: no trace: it had ended before."
    (run / "rank1.5.pt.trace.json").write_text(TRACE)
    (run / "rank2.5.pt.trace.json").write_text(TRACE)  # as `kinetoscope recover` makes it, without operators
    assert missing().keys() == {" rank 2", " ranks 3–7"}


def test_trace_health_has_the_notes_of_its_own_span(logdir):
    engine = Engine([Logdir(str(logdir))], patience_s=60)
    file = engine.listing().find("run", "rank0", "9")
    health = engine.frame(VIEWS["health"], file, {})
    rows = health.filter(health["rule"].str.starts_with("rank_")).select("rule", "level", "count").rows()
    assert set(rows) >= {("rank_repaired", "warning", 1), ("rank_not_copied", "note", 1), ("rank_killed", "warning", 1)}
    assert "rank_lost" not in [rule for rule, *_ in rows]


def test_a_run_without_a_trace_is_a_problem_that_says_why(tmp_path):
    (tmp_path / "run").mkdir()
    status_of_rank = {**status(0), "problem": "0 windows: the schedule needs 12 steps, the loop made 8"}
    (tmp_path / "run" / "run.json").write_text(json.dumps(manifest([{**status_of_rank, "world_size": 1}])))
    (problem,) = listed(tmp_path).problems
    assert problem.path == "run/run.json"
    assert problem.reason == "This run has no trace. rank 0: 0 windows: the schedule needs 12 steps, the loop made 8."


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[1]",
        '{"schema": "x"}',
        "[" * 100_000,
        '{"schema": 1, "ranks": [3, {"rank": "x", "problem": 1}], "windows": {"a": 1}}',
        '{"schema": 1, "ranks": [{"rank": 1, "left_out": [3, {"step": [], "problem": 1}]}, {"rank": 2, "left_out": {}}]}',
        '{"schema": 1, "windows": [{"span": "x"}, {"span": 1, "ranks": [1]}, {"span": 1, "ranks": {"x": {}, "1": 2}}]}',
        '{"schema": 1, "windows": [{"span": 5, "ranks": {"0": {"state": ["lost"], "upload": {"state": 1}}}}]}',
    ],
)
def test_what_is_no_manifest_says_nothing_and_hides_nothing(logdir, content):
    (logdir / "run" / "run.json").write_text(content)
    listing = listed(logdir)
    assert [file.span for file in listing.files] == ["5", "9"]
    assert not listing.notes.get("run")


def test_a_trace_that_is_called_like_a_manifest_is_a_trace(tmp_path):
    (tmp_path / "run.json").write_text(TRACE)
    assert [file.worker for file in listed(tmp_path).files] == ["run"]
    assert list_path(str(tmp_path / "run.json")).files


def test_a_manifest_is_read_again_when_it_has_changed(logdir):
    manifests = Manifests()
    assert list_traces([Logdir(str(logdir))], manifests=manifests).notes["run"]
    (logdir / "run" / "run.json").write_text(json.dumps(manifest([status(0)] * 8)))
    notes = list_traces([Logdir(str(logdir))], manifests=manifests).notes["run"]
    assert [note.rule for note in notes if note.span == "5"] == []


def test_memory_snapshots_that_were_lost_are_named_and_others_are_not(logdir):
    run = logdir / "run"
    content = json.loads((run / "run.json").read_text())
    lost = [{"rank": rank, "span": 5, "state": "lost", "problem": "No space left"} for rank in (1, 2)]
    whole = {"rank": 0, "span": 5, "state": "saved", "file": "rank0.5.memory.pickle"}
    odd = [{"rank": "0", "span": 5, "state": "lost"}, {"rank": 0, "span": None, "state": "lost"}, 3]
    (run / "run.json").write_text(json.dumps({**content, "snapshots": [*lost, whole, *odd]}))
    notes = [note for note in listed(logdir).notes["run"] if note.rule.startswith("snapshot_")]
    assert [(note.rule, note.level, note.text, note.ranks) for note in notes] == [
        (
            "snapshot_lost",
            "loss",
            "Memory snapshot of span 5: ranks 1–2: the recording is lost: No space left.",
            2,
        )
    ]
