"""`kinetoscope index`: by processes, by a Dask cluster of which a worker is killed, and begun again."""

import os
import signal

import pytest

from kinetoscope_tb.discovery import list_path
from kinetoscope_tb.engine.cache import Cache
from kinetoscope_tb.engine.executors import executors
from kinetoscope_tb.engine.summary_loader import load_summaries, read_all
from support.simulated import Truth, simulated, write

RANKS = 12


@pytest.fixture(scope="module")
def logdir(tmp_path_factory):
    """A run, of which one rank holds no trace."""
    folder = tmp_path_factory.mktemp("logdir")
    write(simulated(Truth(ranks=RANKS, steps=2)), folder / "run")
    (folder / "run" / "rank3.1.pt.trace.json").write_text('{"traceEvents": 7}', encoding="utf-8")
    return folder


def test_a_run_is_summed_up_once_and_what_is_broken_is_told(kinetoscope, logdir, tmp_path, monkeypatch):
    monkeypatch.setenv("KINETOSCOPE_CACHE", str(tmp_path))
    status, out, err = kinetoscope("index", str(logdir), "--processes", "2")
    assert (status, out.split(",")[:2]) == (0, ["12 recordings", " 11 of them summarized"])
    assert "rank3" in err
    assert len(list(tmp_path.glob("*.ranks"))) == RANKS - 1
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.ranks")}
    assert kinetoscope("index", str(logdir), "--run", "run")[0] == 0
    assert before.keys() == {path.name for path in tmp_path.glob("*.ranks")}


def test_what_was_summed_up_is_not_read_again(kinetoscope, logdir, tmp_path, monkeypatch):
    files = [file for file in list_path(str(logdir)).files if file.worker != "rank3"]
    with executors("local", 2) as some:
        assert len(list(load_summaries(files[:5], Cache(tmp_path), some))) == 5
    monkeypatch.setenv("KINETOSCOPE_CACHE", str(tmp_path))
    read = []
    monkeypatch.setattr(
        "kinetoscope_tb.engine.summary_loader.read_traces", lambda path, **_: read.append(path) or 1 / 0
    )
    with executors("local", 2) as some:
        assert len(list(load_summaries(files[:5], Cache(tmp_path), some))) == 5
    assert read == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--run", "other"), "no run 'other'"),
        (("--engine", "spark"), "isn't possible"),
        (("--engine", "dask://"), "isn't possible"),
    ],
)
def test_what_cannot_be_is_refused(kinetoscope, logdir, tmp_path, monkeypatch, arguments, words):
    monkeypatch.setenv("KINETOSCOPE_CACHE", str(tmp_path))
    status, _, err = kinetoscope("index", str(logdir), *arguments)
    assert (status, words in err) == (1, True)


def test_without_a_cache_there_is_no_place_for_summaries(kinetoscope, logdir):
    status, _, err = kinetoscope("index", str(logdir))
    assert (status, "KINETOSCOPE_CACHE" in err) == (1, True)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no such signal here")
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_sums_up_all_though_one_of_its_workers_is_killed(logdir):
    distributed = pytest.importorskip("distributed")
    files = list_path(str(logdir)).files
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options, host="127.0.0.1", silence_logs=50) as cluster:
        with distributed.Client(cluster.scheduler_address, set_as_default=False) as client:
            victim = next(iter(client.run(os.getpid).values()))
        engine = cluster.scheduler_address.replace("tcp://", "dask://")
        with executors(engine, len(files)) as factory:
            outcomes = {}
            for file, one in read_all(files, factory):
                if not outcomes:
                    os.kill(victim, signal.SIGKILL)
                outcomes[file.worker] = type(one).__name__
    assert outcomes == {f"rank{rank}": "NotATrace" if rank == 3 else "PackedSummary" for rank in range(RANKS)}
