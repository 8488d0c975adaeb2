"""Copies of traces in an S3 that is slow, fails or refuses; the writer process is real."""

import io
import json
import os
import signal
import sys
import threading
from pathlib import Path
from urllib.parse import unquote

import boto3
import pytest
import torch
from werkzeug.wrappers import Response

from kinetoscope import SaveError, Tracer, cyclic
from kinetoscope.journal.recover import finish_spools
from kinetoscope.output import upload as module
from kinetoscope.output.upload import object_url, upload
from support.places import DENIED, S3
from support.waiting import LIMIT_S, wait_for


@pytest.fixture
def s3(monkeypatch):
    """An S3 with an empty bucket, which the usual environment variables lead to."""
    import s3fs

    with S3().running() as server:
        for name, value in {**server.environ, "AWS_MAX_ATTEMPTS": "1"}.items():
            monkeypatch.setenv(name, value)
        s3fs.S3FileSystem.clear_instance_cache()
        server.client = boto3.client("s3")
        server.client.create_bucket(Bucket="bucket")
        empty(server)
        yield server
        empty(server)
        server.client.close()
        s3fs.S3FileSystem.clear_instance_cache()


def empty(s3):
    """Removes what is there: all servers of a process have the same memory."""
    for name in names(s3):
        s3.client.delete_object(Bucket="bucket", Key=name)


def names(s3):
    return [item["Key"] for item in s3.client.list_objects_v2(Bucket="bucket").get("Contents", [])]


def is_trace(request):
    return request.method in ("PUT", "POST") and "trace" in unquote(request.path)


def recorded(logdir, *, keep=-1, timeout_s=LIMIT_S):
    schedule = cyclic(warmup=0, active=1, repeat=2)
    with Tracer(logdir, run="run", schedule=schedule, remote="s3://bucket/logdir/", keep=keep) as tracer:
        for _ in tracer.steps(range(2)):
            torch.ones(2)
        tracer.close(timeout_s)
    manifest = logdir / "run" / "run.json"
    wait_for(manifest.exists)  # the writer process makes it when it starts
    return [window["ranks"]["0"] for window in json.loads(manifest.read_text())["windows"]]


def test_each_trace_and_the_manifest_are_copied(s3, tmp_path):
    windows = recorded(tmp_path, keep=0)
    assert names(s3) == [
        "logdir/run/rank0.1.pt.trace.json.gz",
        "logdir/run/rank0.2.pt.trace.json.gz",
        "logdir/run/run.json",
    ]
    assert [window["upload"]["state"] for window in windows] == ["uploaded"] * 2
    assert list((tmp_path / "run").glob("rank*")) == []
    body = s3.client.get_object(Bucket="bucket", Key="logdir/run/run.json")["Body"]
    assert [window["ranks"]["0"]["state"] for window in json.loads(body.read())["windows"]] == ["saved"] * 2


def test_a_place_that_refuses_costs_the_copies_and_nothing_else(s3, tmp_path, caplog):
    s3.answer = lambda request: Response(DENIED, 403) if is_trace(request) else None
    windows = recorded(tmp_path, keep=1)
    assert [window["state"] for window in windows] == ["saved"] * 2
    assert [window["upload"]["state"] for window in windows] == ["failed"] * 2
    assert "s3://bucket/logdir/run/rank0.1.pt.trace.json.gz wasn't written" in windows[0]["upload"]["problem"]
    assert len(list((tmp_path / "run").glob("rank*"))) == 2  # none is elsewhere, so none goes
    assert sum("wasn't written" in record.getMessage() for record in caplog.records) == 2


def test_the_training_does_not_wait_for_a_slow_place(s3, tmp_path, scratch):
    free = threading.Event()
    s3.answer = lambda request: free.wait(LIMIT_S) and None if is_trace(request) else None
    windows = recorded(tmp_path, timeout_s=0.2)  # it ends while the copies are held
    assert [window["state"] for window in windows if window["state"] != "saving"] in ([], ["saved"], ["saved"] * 2)
    assert names(s3) == []
    free.set()
    wait_for(lambda: len(names(s3)) == 3 and not list(scratch.iterdir()))


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc for the writer process")
@pytest.mark.parametrize("has_arrived", [False, True])
def test_recover_finishes_the_upload_that_a_killed_writer_was_in(s3, tmp_path, scratch, has_arrived):
    arrived, free = threading.Event(), threading.Event()

    def hold(request):
        if not is_trace(request):
            return None
        body = request.environ["wsgi.input"].read(int(request.headers["Content-Length"]))  # the whole object
        request.environ["wsgi.input"] = io.BytesIO(body)
        arrived.set()
        free.wait(LIMIT_S)
        return None if has_arrived else Response("", 500)

    s3.answer = hold
    recorded(tmp_path, timeout_s=0.2)
    assert arrived.wait(LIMIT_S)
    children = [pid for task in Path("/proc/self/task").glob("*/children") for pid in task.read_text().split()]
    (writer,) = (int(pid) for pid in children if os.fsencode(scratch) in Path(f"/proc/{pid}/cmdline").read_bytes())
    os.kill(writer, signal.SIGKILL)
    os.waitpid(writer, 0)
    free.set()
    wait_for(lambda: bool(names(s3)) == has_arrived)
    s3.answer = lambda request: None
    (finished,) = finish_spools(tmp_path / "run", url_prefixes=["s3://bucket/logdir"])
    assert [window["upload"]["state"] for window in finished.windows] == ["uploaded"] * 2
    for name in ("rank0.1.pt.trace.json.gz", "rank0.2.pt.trace.json.gz"):
        body = s3.client.get_object(Bucket="bucket", Key=f"logdir/run/{name}")["Body"].read()
        assert body == (tmp_path / "run" / name).read_bytes()


def test_a_failed_upload_is_retried_with_growing_pauses(s3, tmp_path, monkeypatch):
    pauses, failures = [], iter([500, 503])
    monkeypatch.setattr("kinetoscope.output.upload.time.sleep", pauses.append)
    monkeypatch.setattr("s3fs.core.S3FileSystem.retries", 1)
    s3.answer = lambda request: (
        Response("<Error><Code>InternalError</Code></Error>", status)
        if is_trace(request) and (status := next(failures, None))
        else None
    )
    path = tmp_path / "file"
    path.write_text("trace")
    upload(path, "s3://bucket/a/trace", overwrite=False)
    assert names(s3) == ["a/trace"]
    assert len(pauses) == 2
    assert pauses[0] < pauses[1]


def test_what_is_there_stays_unless_it_may_be_overwritten(s3, tmp_path):
    path = tmp_path / "file"
    for text in ("first", "other"):
        path.write_text(text)
        if text == "other":
            with pytest.raises(SaveError, match="exists already"):
                upload(path, "s3://bucket/trace", overwrite=False)
            upload(path, "s3://bucket/trace", overwrite=True)
        else:
            upload(path, "s3://bucket/trace", overwrite=False)
    assert s3.client.get_object(Bucket="bucket", Key="trace")["Body"].read() == b"other"


def test_an_upload_without_an_answer_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_LEAST_LIMIT_S", 0.05)
    monkeypatch.setattr(module, "_put", lambda *_, **__: threading.Event().wait(5))
    path = tmp_path / "file"
    path.write_text("trace")
    with pytest.raises(SaveError, match="no end after"):
        upload(path, "s3://bucket/trace", overwrite=False, tries=1)


@pytest.mark.parametrize("url", ["nosuch://bucket/trace", "s3://"])
def test_an_address_that_can_not_be_is_refused_in_words(tmp_path, url, s3):
    path = tmp_path / "file"
    path.write_text("trace")
    with pytest.raises(SaveError, match="wasn't written"):
        upload(path, url, overwrite=False, tries=1)


def test_slashes_in_front_are_stripped():
    assert object_url("s3://bucket/a/", "/b/c") == "s3://bucket/a/b/c"
