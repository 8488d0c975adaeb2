"""Other writers' files under names that every tool finds."""

import gzip
import json
import os

import pytest

from kinetoscope.naming import parse
from kinetoscope_tb.discovery import list_path
from kinetoscope_tb.errors import LogdirError
from kinetoscope_tb.export.publish import PublishError, publish
from support.build import TraceBuilder


def text(**top):
    return TraceBuilder(**top).op("aten::mm", 0, 10).text()


@pytest.fixture
def put(tmp_path):
    def write(name, content=None, **top):
        path = tmp_path / "there" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = (text(**top) if content is None else content).encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


def published(tmp_path, **options):
    done = publish(str(tmp_path / "there"), str(tmp_path / "runs"), **options)
    names = sorted(p.relative_to(tmp_path / "runs").as_posix() for p in (tmp_path / "runs").rglob("*") if p.is_file())
    return done, names


@pytest.mark.parametrize(
    ("name", "becomes"),
    [
        ("titan/iteration_20/rank3_trace.json.gz", "titan/rank3.20.pt.trace.json.gz"),
        ("tune/iteration_20/r3-2024-12-9-18-44.1733769848514071115.pt.trace.json.gz", "tune/rank3.20.pt.trace.json.gz"),
        ("megatron/rank-3.json.gz", "megatron/rank3.pt.trace.json.gz"),
        ("accelerate/profile_3.json", "accelerate/rank3.pt.trace.json"),
        ("olmo/rank-3-step-40.chrome_trace.json.gz", "olmo/rank3.40.pt.trace.json.gz"),
        ("verl/prof_start_5_end_9_rank_1.json", "verl/rank1.5.pt.trace.json"),
        ("mosaic/ep2-ba64-rank5.json", "mosaic/rank5.64.pt.trace.json"),
        ("sglang/1782843274.77-TP-0-DECODE.trace.json.gz", "sglang/TP-0-DECODE.pt.trace.json.gz"),
        ("script/trace.json", "script/trace.pt.trace.json"),
        ("lightning/fit-0-x.17337.pt.trace.json", "lightning/fit-0-x.17337.pt.trace.json"),
    ],
)
def test_each_writer_s_name_becomes_the_one_form(tmp_path, put, name, becomes):
    put(name)
    _, names = published(tmp_path)
    assert names == [becomes]
    assert parse(names[0].rpartition("/")[2]) is not None


def test_the_rank_in_a_file_counts_more_than_its_name(tmp_path, put):
    put("job/host_12.5.pt.trace.json", distributedInfo={"rank": 3, "world_size": 8})
    put("job/fit-0-x.5.pt.trace.json", distributedInfo={"rank": 7, "world_size": 8})
    assert published(tmp_path)[1] == ["job/rank3.5.pt.trace.json", "job/rank7.5.pt.trace.json"]


def test_a_name_with_a_role_remains(tmp_path, put):
    for name in ("s/1-TP-1-DECODE.trace.json.gz", "s/1-TP-1-EXTEND.trace.json.gz"):
        put(name, distributedInfo={"rank": 1, "world_size": 2})
    put("s/capture_traces/bs_16_rank1.json.gz", distributedInfo={"rank": 1, "world_size": 2})
    assert published(tmp_path)[1] == [
        "s/TP-1-DECODE.1.pt.trace.json.gz",
        "s/TP-1-EXTEND.1.pt.trace.json.gz",
        "s/capture_traces/rank1.16.pt.trace.json.gz",
    ]


def test_the_same_bytes_get_a_second_name_and_a_second_call_adds_only_what_is_new(tmp_path, put):
    source = put("job/rank-0.json.gz")
    (done,) = published(tmp_path)[0]
    assert (done.how, done.is_failed) == ("linked", False)
    assert (tmp_path / "runs/job/rank0.pt.trace.json.gz").samefile(source)
    put("job/rank-1.json.gz")
    assert [one.how for one in published(tmp_path)[0]] == ["there", "linked"]
    put("job/rank-1.json.gz", distributedInfo={"rank": 1})
    source.unlink()
    put("job/rank-0.json.gz", text() + " " * 100_000)
    failed, _ = published(tmp_path)[0]
    assert failed.is_failed
    assert "another file has this name" in failed.how


def test_copies_are_other_files_with_the_same_bytes(tmp_path, put):
    source = put("job/rank-0.json")
    assert [one.how for one in published(tmp_path, always_copy=True, run="a/b")[0]] == ["copied"]
    target = tmp_path / "runs/a/b/rank0.pt.trace.json"
    assert not target.samefile(source)
    assert target.read_bytes() == source.read_bytes()


def test_no_trace_takes_another_one_s_name(tmp_path, put):
    # Two stages of one rank, and a second folder that gets the same run's name.
    put("a/fit-0-x.5.pt.trace.json", distributedInfo={"rank": 0})
    put("a/val-0-x.5.pt.trace.json", distributedInfo={"rank": 0})
    put("b/fit-0-x.5.pt.trace.json", distributedInfo={"rank": 0})
    done, names = published(tmp_path, run="one")
    assert len(names) == 3
    assert len({one.target for one in done}) == 3
    assert sorted(list_path(str(tmp_path / "runs")).runs) == ["one"]


def test_spans_without_a_number_are_counted(tmp_path, put):
    put("m/rank-3.Jul_15_10_52_41.1074.pt.trace.json")
    put("m/rank-3.Jul_15_10_52_42.1074.pt.trace.json")
    assert published(tmp_path)[1] == ["m/rank3.1.pt.trace.json", "m/rank3.2.pt.trace.json"]


def test_what_can_t_be_published_is_said(tmp_path, put):
    put("job/rank-0.json", content=json.dumps({"no": "trace"}))
    with pytest.raises(LogdirError, match="no trace"):
        publish(str(tmp_path / "there"), str(tmp_path / "runs"))
    with pytest.raises(PublishError, match="local folder"):
        publish(str(tmp_path / "there"), "s3://bucket/runs")
    with pytest.raises(PublishError, match="published again"):
        publish(str(tmp_path / "there"), str(tmp_path / "there/runs"))
    put("job/rank-1.json")
    (tmp_path / "runs").write_text("a file where a folder should be")
    (done,) = publish(str(tmp_path / "there"), str(tmp_path / "runs"))
    assert done.is_failed


@pytest.mark.parametrize("always_copy", [False, True])
def test_a_link_to_a_file_that_is_no_trace_publishes_nothing_of_it(tmp_path, always_copy):
    key, logdir = tmp_path / "id_ed25519", tmp_path / "logdir"
    key.write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "rank0.1.pt.trace.json").symlink_to(key)
    (one,) = publish(str(tmp_path / "run"), str(logdir), always_copy=always_copy)
    assert (one.is_failed, "isn't a trace" in one.how) == (True, True)
    assert not list(logdir.rglob("*.json"))


def test_a_copy_follows_no_link_that_waits_for_it(tmp_path, put):
    put("run/rank0.1.pt.trace.json")
    mine, folder = tmp_path / ".bashrc", tmp_path / "logdir" / "run"
    mine.write_text("the user's own")
    folder.mkdir(parents=True)
    (folder / f".rank0.1.pt.trace.json.tmp-{os.getpid()}").symlink_to(mine)
    (folder / "rank0.1.pt.trace.json").symlink_to(tmp_path / "created")
    publish(str(tmp_path / "there"), str(tmp_path / "logdir"), always_copy=True)
    assert mine.read_text() == "the user's own"
    assert not (tmp_path / "created").exists()


@pytest.mark.parametrize("always_copy", [False, True])
def test_nothing_is_written_into_a_folder_that_a_link_names(tmp_path, put, always_copy):
    put("run/rank0.1.pt.trace.json")
    put("other/rank0.1.pt.trace.json")
    home, logdir = tmp_path / "home", tmp_path / "logdir"
    home.mkdir()
    logdir.mkdir()
    (logdir / "run").symlink_to(home)
    done = publish(str(tmp_path / "there"), str(logdir), always_copy=always_copy)
    assert {one.target.rpartition("/")[0].rpartition("/")[2]: one.is_failed for one in done} == {
        "run": True,
        "other": False,
    }
    assert not list(home.iterdir())
    assert "is a link, which Kinetoscope doesn't follow" in next(one.how for one in done if one.is_failed)
