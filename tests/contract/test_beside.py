"""`kinetoscope index --beside`: summaries that lie with their recordings, for whoever opens the run next."""

import shutil
from concurrent.futures import Future
from pathlib import Path

import boto3
import pytest

from kinetoscope_tb.discovery import Logdir, list_path
from kinetoscope_tb.engine.cache.pack import FILE_NAME
from kinetoscope_tb.engine.engine import Engine
from kinetoscope_tb.engine.summary_loader import ExecutorFactory, files_of, load_summaries, ranks_of
from kinetoscope_tb.views import RUN_VIEWS
from support.places import S3
from support.simulated import Truth, simulated, write

RANKS = 3


def names(folder):
    return sorted(path.name for path in folder.iterdir())


class Nobody:
    """Hands that read nothing."""

    def submit(self, job, path):
        raise AssertionError(f"{path} was to be read")

    def shutdown(self, wait=True, *, cancel_futures=False):
        pass


def opened(folder, executor=Nobody):
    """The run as somebody sees it who has an empty cache; and what is told of the summaries beside it."""
    listing, notes = list_path(str(folder)), []
    files = files_of(listing, listing.files[0], "span")
    outcomes = load_summaries(files, None, ExecutorFactory(executor, 1), on_problem=notes.append)
    return ranks_of(listing, files[0], files, outcomes, notes)


@pytest.fixture
def indexed(tmp_path, kinetoscope, monkeypatch):
    """A run whose summaries lie beside it."""
    monkeypatch.setenv("KINETOSCOPE_CACHE", "off")
    write(simulated(Truth(ranks=RANKS, steps=3)), tmp_path / "logs" / "run")
    status, out, err = kinetoscope("index", str(tmp_path / "logs"), "--beside")
    assert (status, err) == (0, "")
    assert f"{RANKS} of them summarized" in out
    return tmp_path / "logs" / "run"


class Reading:
    """Hands that read at once, and remember what."""

    def __init__(self, read):
        self.read = read

    def submit(self, job, path):
        self.read.append(Path(path).name)
        future = Future()
        future.set_result(job(path))
        return future

    def shutdown(self, wait=True, *, cancel_futures=False):
        pass


def test_a_copy_of_the_run_opens_without_its_recordings_being_read(indexed, tmp_path):
    first = opened(indexed)
    assert first.notes == ()
    assert first.matches["members"].to_list() == [RANKS] * 3
    copy = shutil.copytree(indexed, tmp_path / "elsewhere", copy_function=shutil.copyfile)  # at other times
    assert opened(copy).calls.equals(first.calls)
    assert [file.shown for file in list_path(str(indexed)).files] == [f"rank{r}.1.pt.trace.json" for r in range(RANKS)]


def test_nobody_else_writes_into_a_logdir(tmp_path, kinetoscope, monkeypatch):
    monkeypatch.setenv("KINETOSCOPE_CACHE", str(tmp_path / "cache"))
    write(simulated(Truth(ranks=RANKS, steps=3)), tmp_path / "logs" / "run")
    before = names(tmp_path / "logs" / "run")
    assert kinetoscope("index", str(tmp_path / "logs"))[0] == 0
    assert kinetoscope("view", "stragglers", str(tmp_path / "logs"))[0] == 0
    assert names(tmp_path / "logs" / "run") == before


def test_a_recording_that_changed_is_read_and_the_page_says_so(indexed):
    changed = indexed / "rank1.1.pt.trace.json"
    changed.write_text(changed.read_text(encoding="utf-8") + " ", encoding="utf-8")
    write(simulated(Truth(ranks=4, steps=3)), indexed.parent / "more")
    shutil.copy(indexed.parent / "more" / "rank3.1.pt.trace.json", indexed)
    read = []
    run = opened(indexed, lambda: Reading(read))
    assert sorted(read) == ["rank1.1.pt.trace.json", "rank3.1.pt.trace.json"]
    assert "1 recordings that changed" in run.notes[0]
    health = RUN_VIEWS["run_health"].run(run)
    assert health.filter(health["rule"] == "summaries_unused")["count"].to_list() == [1]


@pytest.mark.parametrize("damage", ["cut", "another version", "garbage", "flipped", "empty", "holes", "long"])
def test_what_cannot_be_used_is_told_and_recordings_are_read(indexed, damage):
    pack = indexed / FILE_NAME
    data = pack.read_bytes()
    middle = len(data) // 4
    pack.write_bytes(
        {
            "cut": data[:-10],
            "another version": data,
            "garbage": b"\xff" * 1000,
            "flipped": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
            "empty": b"",
            "holes": data,
            "long": data[:-26] + (2**63 - 1).to_bytes(8, "little") + data[-18:],
        }[damage]
    )
    if damage == "holes":  # 40 GiB of nothing, which nobody reads
        with pack.open("r+b") as file:
            file.seek(40 << 30)
            file.write(data[-26:])
    read = []
    with pytest.MonkeyPatch.context() as patch:
        if damage == "another version":
            patch.setattr("kinetoscope_tb.engine.cache.pack.sources_version", lambda: "other")
        run = opened(indexed, lambda: Reading(read))
    assert FILE_NAME in run.notes[0]
    assert ("another version" in run.notes[0]) == (damage == "another version")
    assert "rank0.1.pt.trace.json" in read
    assert run.matches["members"].to_list() == [RANKS] * 3


def test_summaries_with_other_communication_patterns_are_not_used(indexed, kinetoscope):
    patterns, read = indexed / "communication_patterns.txt", []
    patterns.write_text("gemm\n")
    run = opened(indexed, lambda: Reading(read))
    assert len(read) == RANKS
    assert "with other communication patterns" in run.notes[0]
    assert kinetoscope("index", str(indexed), "--beside")[0] == 0
    assert opened(indexed).notes == ()
    patterns.unlink()
    assert "with other communication patterns" in opened(indexed, lambda: Reading(read)).notes[0]


def test_where_nothing_can_be_written_the_reason_is_told(tmp_path, kinetoscope, monkeypatch):
    monkeypatch.setenv("KINETOSCOPE_CACHE", "off")
    write(simulated(Truth(ranks=1, steps=1)), tmp_path / "run")
    (tmp_path / "run" / FILE_NAME).mkdir()
    status, out, err = kinetoscope("index", str(tmp_path), "--beside")
    assert (status, "can't be written" in err, "1 of them" in out) == (0, True, True)
    assert names(tmp_path / "run") == [FILE_NAME, "rank0.1.pt.trace.json"]


def test_on_an_object_store_a_second_home_reads_the_summaries_alone(tmp_path, kinetoscope, monkeypatch):
    import s3fs

    with S3().running() as server:
        for name, value in server.environ.items():
            monkeypatch.setenv(name, value)
        s3fs.S3FileSystem.clear_instance_cache()
        client = boto3.client("s3")
        client.create_bucket(Bucket="bucket")
        write(simulated(Truth(ranks=RANKS, steps=3)), tmp_path)
        for rank in range(RANKS):
            name = f"rank{rank}.1.pt.trace.json"
            client.upload_file(str(tmp_path / name), "bucket", f"logs/run/{name}")
        monkeypatch.setenv("KINETOSCOPE_CACHE", "off")
        status, _, err = kinetoscope("index", "s3://bucket/logs", "--beside")
        assert (status, err) == (0, "")
        s3fs.S3FileSystem.clear_instance_cache()
        server.asked.clear()
        engine = Engine([Logdir("s3://bucket/logs")], patience_s=60)
        file = engine.find("run", "rank0", "1")
        frame = engine.run_frame(RUN_VIEWS["rank_steps"], file, {})
        assert frame.height == RANKS * 3
        fetched = [request.path for request in server.asked if request.method == "GET" and "trace.json" in request.path]
        assert fetched == []
        s3fs.S3FileSystem.clear_instance_cache()


def test_a_link_in_the_place_of_the_summaries_is_replaced_not_followed(tmp_path, kinetoscope, monkeypatch):
    monkeypatch.setenv("KINETOSCOPE_CACHE", "off")
    run, mine = tmp_path / "logs" / "run", tmp_path / ".bashrc"
    mine.write_text("the user's own")
    write(simulated(Truth(ranks=RANKS, steps=3)), run)
    (run / FILE_NAME).symlink_to(mine)
    assert kinetoscope("index", str(tmp_path / "logs"), "--beside")[0] == 0
    assert mine.read_text() == "the user's own"
    assert not (run / FILE_NAME).is_symlink()
