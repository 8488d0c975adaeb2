"""`kinetoscope prune`: what it says, and that it removes nothing unless it should."""

import json
import time

import pytest

from kinetoscope.output.manifest import compile_run

TRACE = b'{"kinetoscope": {}, "traceEvents": []}'


@pytest.fixture
def logdir(tmp_path):
    """A run with three windows: 50, 40 and 1 days old."""
    status = tmp_path / "job/.work/status"
    status.mkdir(parents=True)
    windows = []
    for span, days in ((1, 50), (2, 40), (3, 1)):
        (tmp_path / f"job/rank0.{span}.pt.trace.json").write_bytes(TRACE)
        window = {"span": span, "state": "saved", "file": f"rank0.{span}.pt.trace.json", "bytes": len(TRACE)}
        windows.append({**window, "saved_ns": time.time_ns() - days * 86_400 * 10**9})
    facts = {"global_rank": 0, "world_size": 1, "attempt": "x", "state": "ended", "windows": windows}
    (status / "rank0.json").write_text(json.dumps(facts))
    compile_run(tmp_path / "job")
    return tmp_path


def traces(logdir):
    return sorted(path.name for path in logdir.rglob("*.pt.trace.json"))


def test_it_says_what_it_removes(kinetoscope, logdir):
    words = ("prune", str(logdir), "--keep-days", "30")
    status, out, _ = kinetoscope(*words, "--dry-run")
    assert status == 0
    assert out.splitlines() == [
        f"Would remove {logdir / 'job'}, steps up to 1: 1 file, 38 B, 50.0 days old",
        f"Would remove {logdir / 'job'}, steps up to 2: 1 file, 38 B, 40.0 days old",
        "Would remove 2 windows, 76 B; 38 B stay.",
    ]
    assert len(traces(logdir)) == 3
    assert kinetoscope(*words)[:2] == (0, out.replace("Would remove", "Removed"))
    assert traces(logdir) == ["rank0.3.pt.trace.json"]
    assert kinetoscope(*words)[1] == "Removed 0 windows, 0 B; 38 B stay.\n"


def test_the_newest_window_stays_whatever_it_takes(kinetoscope, logdir):
    _, out, _ = kinetoscope("prune", str(logdir), "--keep-bytes", "10")
    assert out.endswith("38 B stay.\nThat is more than 10 B: the newest window of each run always stays.\n")
    assert traces(logdir) == ["rank0.3.pt.trace.json"]


def test_files_of_others_are_named(kinetoscope, logdir):
    other = logdir / "job/rank0.1.pt.trace.json"
    other.write_bytes(b"x" * len(TRACE))
    _, out, err = kinetoscope("prune", str(logdir), "--keep-days", "30")
    assert err == f"Left {other}: it doesn't begin as the recorder's files do.\n"
    assert out.endswith("Removed 1 window, 38 B; 38 B stay.\n")
    assert other.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [((), "Say what may stay"), (("--keep-bytes", "much"), "'much' isn't a size"), (("--keep-days", "-1"), "-1")],
)
def test_wrong_limits_are_refused(kinetoscope, logdir, words, message):
    status, _, err = kinetoscope("prune", str(logdir), *words)
    assert status in (1, 2)
    assert message in err
    assert len(traces(logdir)) == 3
