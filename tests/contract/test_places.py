"""Traces that are not on this disk: a real S3 API, web servers, fsspec's memory; each of them may fail."""

import gzip
import json
import sys

import boto3
import fsspec
import pytest
from werkzeug.test import Client
from werkzeug.wrappers import Response

from contract.opening import opening
from contract.running import a_trace, put, serving
from kinetoscope_tb.discovery import Logdir, list_traces, parse_logdirs
from kinetoscope_tb.engine.engine import Engine
from kinetoscope_tb.errors import TraceError
from kinetoscope_tb.filesystem import StoredFile, prefetch, stored_bytes
from kinetoscope_tb.reader import read
from kinetoscope_tb.web.app import Applications
from support.places import DENIED, S3, Answers, web_server
from support.waiting import LIMIT_S, wait_for

KEY = "logs/job/rank0.5.pt.trace.json.gz"
URL = f"s3://bucket/{KEY}"
BYTES = bytes(range(256)) * 200


@pytest.fixture
def s3(monkeypatch):
    """An S3 with a trace in it, which the usual environment variables lead to."""
    import s3fs

    with S3().running() as server:
        for name, value in server.environ.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(prefetch, "WAITS_S", (0, 0))
        s3fs.S3FileSystem.clear_instance_cache()
        server.client = boto3.client("s3")
        server.client.create_bucket(Bucket="bucket")
        server.client.put_object(Bucket="bucket", Key=KEY, Body=gzip.compress(a_trace().text().encode()))
        server.client.put_object(Bucket="bucket", Key="bytes", Body=BYTES)
        server.asked.clear()
        yield server
        server.client.close()
        s3fs.S3FileSystem.clear_instance_cache()


def everything(file):
    parts = []
    while part := file.read(1000):
        parts.append(part)
    return b"".join(parts)


# ---- S3


@pytest.mark.parametrize("path", ["s3://bucket/logs", "s3://bucket", URL])
def test_the_command_line_reads_from_s3(s3, kinetoscope, tmp_path, path):
    put(tmp_path, "rank0.5.pt.trace.json")
    far = kinetoscope("view", "steps", path, "--format", "json")
    near = kinetoscope("view", "steps", str(tmp_path), "--format", "json")
    assert far == near


def test_the_plugin_s_routes_answer_from_s3(s3):
    app = Applications(Engine(parse_logdirs("s3://bucket/logs/"), patience_s=LIMIT_S))
    runs = Client(app["/runs"]).get("/runs").json
    assert [run["name"] for run in runs["runs"]] == ["job"]
    span = runs["runs"][0]["workers"][0]["spans"][0]
    assert (span["name"], span["file"]) == ("5", "job/rank0.5.pt.trace.json.gz")
    query = {"run": "job", "worker": "rank0", "span": "5"}
    assert Client(app["/state"]).get("/state", query_string=query).json["steps"] == ["5", "6"]
    steps = Client(app["/view"]).get("/view", query_string={"view": "steps", **query}).json
    assert steps["data"]["step"] == ["5", "6"]
    assert Client(app["/state"]).get("/state", query_string={**query, "run": "../bytes"}).status_code == 404


def test_a_page_without_tensorboard_opens_from_s3(s3):
    with opening("s3://bucket/logs") as page:
        assert page.place == {}  # listing may take long: the page shows that
        page.enter()
        runs = wait_for(lambda: page.ask("runs").json, is_right=lambda runs: runs["newest"] == "job")
        assert runs["problems"] == []
        assert page.settled("state", run="job", worker="rank0", span="5").json["steps"] == ["5", "6"]


def test_the_tab_is_there_in_a_tensorboard_on_s3(s3):
    with serving("--logdir=s3://bucket/logs") as server:
        wait_for(
            lambda: server.plugin("runs").json, is_right=lambda runs: [run["name"] for run in runs["runs"]] == ["job"]
        )
        listed = wait_for(
            lambda: server.ask("data/plugins_listing").json["pytorch_profiler"],
            is_right=lambda plugin: plugin["enabled"],
        )
        assert listed["tab_name"] == "PYTORCH_PROFILER"
        state = server.settled("state", run="job", worker="rank0", span="5").json
        assert (state["state"], state["steps"]) == ("ready", ["5", "6"])


def test_what_appears_and_vanishes_on_s3_shows_up(s3):
    engine = Engine([Logdir("s3://bucket/logs")], patience_s=LIMIT_S, clock=iter(range(10**6)).__next__)

    def shown():
        for _ in range(100):  # the clock ticks with every look at it
            listing = engine.listing()
        return [file.shown for file in listing.files]

    assert shown() == ["job/rank0.5.pt.trace.json.gz"]
    s3.client.put_object(Bucket="bucket", Key="logs/new/rank1.7.pt.trace.json", Body=a_trace().text())
    assert shown() == ["job/rank0.5.pt.trace.json.gz", "new/rank1.7.pt.trace.json"]
    s3.client.delete_object(Bucket="bucket", Key=KEY)
    assert shown() == ["new/rank1.7.pt.trace.json"]


@pytest.mark.parametrize("path", ["s3://nothing-here/logs", "s3://bucket/nothing"])
def test_a_missing_bucket_or_folder_is_a_problem_that_says_so(s3, kinetoscope, path):
    listing = list_traces([Logdir(path)])
    assert [(p.path, p.reason) for p in listing.problems] == [
        (path, "It can't be opened: there is nothing with this name.")
    ]
    status, out, _ = kinetoscope("view", "steps", path, "--format", "json")
    assert (status, json.loads(out)["code"]) == (1, "logdir_error")


def test_denied_access_says_how_to_be_let_in(s3):
    s3.answer = lambda request: Response(DENIED, 403, content_type="application/xml")
    reason = list_traces([Logdir("s3://bucket/logs")]).problems[0].reason
    assert "Access Denied" in reason
    assert "AWS_PROFILE" in reason
    with pytest.raises(TraceError, match=r"can't be opened: .*AWS_PROFILE"):
        StoredFile(URL)


def test_without_credentials_it_says_what_to_set(s3, monkeypatch, tmp_path):
    import s3fs

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    s3fs.S3FileSystem.clear_instance_cache()
    assert "AWS_ACCESS_KEY_ID" in list_traces([Logdir("s3://bucket/logs")]).problems[0].reason


def test_blocks_are_fetched_ahead_and_put_together_in_order(s3):
    file = prefetch.PrefetchedFile("s3://bucket/bytes", block_bytes=1000)
    assert file.size == len(BYTES)
    assert everything(file) == BYTES
    file.close()
    starts = sorted(int(part.removeprefix("bytes=").partition("-")[0]) for part in s3.ranges())
    assert starts == list(range(0, len(BYTES), 1000))


@pytest.mark.parametrize(("start", "count"), [(0, 10), (51_190, 100), (60_000, 10)])
def test_a_part_of_an_object_can_be_had(s3, start, count):
    assert stored_bytes("s3://bucket/bytes", start, count) == BYTES[start : start + count]


def fail_once(s3, starts, response):
    """Let the request for the part that starts there fail the first time, or the first times."""
    left = [f"bytes={start}-" for start in starts]

    def answer(request):
        byte_range = request.headers.get("Range", "")
        part = next((part for part in left if byte_range.startswith(part)), None)
        if part is None:
            return None
        left.remove(part)
        return response()

    s3.answer = answer


@pytest.mark.parametrize(
    "response",
    [
        lambda: Response("<Error><Code>InternalError</Code></Error>", 500),
        lambda: Response("<Error><Code>SlowDown</Code></Error>", 503),
        lambda: Response(b"too short", 206),
    ],
    ids=["500", "slow down", "short"],
)
def test_what_fails_for_a_moment_is_asked_for_again_from_where_it_failed(s3, response):
    fail_once(s3, [7000, 7000, 20000], response)
    file = prefetch.PrefetchedFile("s3://bucket/bytes", block_bytes=1000)
    assert everything(file) == BYTES
    file.close()
    again = sorted(part for part in s3.ranges() if s3.ranges().count(part) > 1)
    assert set(again) == {"bytes=7000-7999", "bytes=20000-20999"}


def test_what_fails_for_good_is_an_error_of_this_file(s3):
    s3.answer = lambda request: Response("<Error/>", 500) if "Range" in request.headers else None
    with pytest.raises(TraceError, match=f"^{URL}: the file can't be read: "):
        read(URL)


def test_an_object_that_vanishes_while_it_is_read_is_an_error_that_says_so(s3):
    file = prefetch.PrefetchedFile("s3://bucket/bytes", block_bytes=1000)
    file.read(1)
    s3.client.delete_object(Bucket="bucket", Key="bytes")
    with pytest.raises(TraceError, match=r"changed while it was read\. It was deleted"):
        everything(file)
    file.close()


def test_an_object_that_is_written_anew_while_it_is_read_is_an_error_that_says_so(s3):
    file = prefetch.PrefetchedFile("s3://bucket/bytes", block_bytes=1000)
    file.read(1)
    s3.client.put_object(Bucket="bucket", Key="bytes", Body=BYTES[::-1])
    with pytest.raises(TraceError, match=r"changed while it was read\. It was rewritten"):
        everything(file)
    file.close()


# ---- the web


def test_a_web_server_s_folders_are_a_logdir(tmp_path, kinetoscope):
    put(tmp_path, "job one/rank0.5.pt.trace.json", "job one/rank0.10.pt.trace.json", "deep/er/any.json")
    (tmp_path / "job one/notes.json").write_text("{}")
    with web_server(tmp_path) as url:
        listing = list_traces([Logdir(url)])
        assert [(f.run, f.worker, f.span) for f in listing.files] == [
            ("deep/er", "any", "default"),
            ("job one", "rank0", "5"),
            ("job one", "rank0", "10"),
        ]
        assert listing.problems == ()
        assert {f.bytes for f in listing.files} == {len(a_trace().text())}
        near = kinetoscope("view", "steps", str(tmp_path / "deep/er/any.json"), "--format", "json")
        assert kinetoscope("view", "steps", f"{url}/deep/er/any.json?signed=1", "--format", "json") == near
        assert kinetoscope("view", "steps", f"{url}/deep", "--format", "json") == near


def test_a_server_that_gives_whole_files_only_is_read_as_a_stream(tmp_path):
    (tmp_path / "bytes").write_bytes(BYTES)
    with web_server(tmp_path) as url:
        file = prefetch.PrefetchedFile(f"{url}/bytes", block_bytes=1000)
        assert everything(file) == BYTES
        file.close()
        assert stored_bytes(f"{url}/bytes", 5000, 10) == BYTES[5000:5010]


def test_a_server_that_does_not_say_how_large_a_file_is_is_read_too():
    with Answers(lambda *_: (200, {"Content-Length": None}, BYTES)).running() as url:
        file = prefetch.PrefetchedFile(f"{url}/bytes", block_bytes=1000)
        assert file.size is None
        assert everything(file) == BYTES
        file.close()


def test_a_connection_that_breaks_is_taken_up_where_it_broke(monkeypatch):
    monkeypatch.setattr(prefetch, "WAITS_S", (0, 0))
    breaks = ["bytes=3000-3999", "bytes=9000-9999"]

    def answer(method, path, headers):
        byte_range = headers.get("Range")
        if method == "HEAD" or not byte_range:
            return 200, {"Accept-Ranges": "bytes"}, BYTES
        first, last = map(int, byte_range.removeprefix("bytes=").split("-"))
        part = BYTES[first : last + 1]
        if byte_range in breaks:
            breaks.remove(byte_range)
            return 206, {"Content-Length": str(len(part)), "Connection": "close"}, part[:500]
        return 206, {"Content-Range": f"bytes {first}-{last}/{len(BYTES)}"}, part

    server = Answers(answer)
    with server.running() as url:
        file = prefetch.PrefetchedFile(f"{url}/bytes", block_bytes=1000)
        assert everything(file) == BYTES
        file.close()
    assert breaks == []


@pytest.mark.parametrize(("status", "says"), [(404, "no such file"), (403, "the server answered 403"), (500, "500")])
def test_a_web_server_that_says_no_is_an_error_of_this_file(monkeypatch, status, says):
    monkeypatch.setattr(prefetch, "WAITS_S", (0, 0))
    with Answers(lambda *_: (status, {}, b"")).running() as url, pytest.raises(TraceError, match=says):
        StoredFile(f"{url}/rank0.json")


# ---- memory, and what isn't installed


def test_fsspec_s_memory_is_a_logdir(kinetoscope, tmp_path):
    put(tmp_path, "rank0.5.pt.trace.json")
    fsspec.filesystem("memory").pipe({"/far/job/rank0.5.pt.trace.json": a_trace().text().encode()})
    near = kinetoscope("view", "steps", str(tmp_path), "--format", "json")
    assert kinetoscope("view", "steps", "memory://far", "--format", "json") == near


@pytest.mark.parametrize(
    ("url", "package", "extra"),
    [
        ("s3://bucket/logs", "s3fs", "s3"),
        ("gs://bucket/logs", "gcsfs", "gcs"),
        ("az://container/logs", "adlfs", "azure"),
        ("abfs://container/logs", "adlfs", "azure"),
        ("hdfs://host/logs", "pyarrow", "hdfs"),
        ("https://host/logs", "aiohttp", "http"),
    ],
)
def test_a_missing_package_says_which_extra_to_install(monkeypatch, kinetoscope, url, package, extra):
    monkeypatch.delitem(sys.modules, "fsspec.implementations.http", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, url.partition("://")[0], raising=False)
    command = f"pip install 'kinetoscope[{extra}]'"
    assert command in list_traces([Logdir(url)]).problems[0].reason
    assert command in kinetoscope("view", "steps", url)[2]
    with pytest.raises(TraceError, match="can't be opened") as caught:
        StoredFile(f"{url}/rank0.json")
    assert command in str(caught.value)
