"""Which files are traces: by their name, and by how they begin."""

import gzip

import fsspec
import pytest

from kinetoscope_tb.discovery import Heads, Listing, Logdir, list_traces
from kinetoscope_tb.discovery.header_probe import head_in
from kinetoscope_tb.filesystem import stored_bytes
from support.logdirs import begins, listed, make, names
from support.perfetto import training


def test_hidden_and_foreign_files_are_left_alone(tmp_path):
    make(tmp_path, "r/.rank0.pt.trace.json", ".git/rank0.pt.trace.json", "r/events.out.tfevents.1")
    make(tmp_path, "r/config.json", "r/trace_settings.json", "r/zero.json.tmp", content=b'{"a": 1}')
    make(tmp_path, "r/rank0_memory_snapshot.pickle", "r/zero.json", content=b"")
    assert listed(tmp_path).files == ()
    assert listed(tmp_path).problems == ()


@pytest.mark.parametrize("name", ["rank0.5.pt.trace.json.tmp", "rank0.5.pt.trace.json.gz.tmp-1234"])
def test_what_a_broken_recording_left_is_a_problem(tmp_path, name):
    make(tmp_path, f"r/{name}")
    listing = listed(tmp_path)
    assert listing.files == ()
    assert [p.path for p in listing.problems] == [f"r/{name}"]
    assert "isn't complete" in listing.problems[0].reason


@pytest.mark.parametrize("is_gzip", [False, True])
def test_perfetto_traces_are_known_by_their_first_bytes(tmp_path, is_gzip):
    data = training(1, 3).pftrace()
    make(tmp_path, "r/mine.json", content=gzip.compress(data) if is_gzip else data)
    make(tmp_path, "r/other.json", content=b"\n\tnotes about the run\n")
    assert names(listed(tmp_path)) == [("r", "mine", "default")]


def test_an_empty_file_is_a_problem(tmp_path):
    make(tmp_path, "r/rank0.5.pt.trace.json", content=b"")
    assert [p.path for p in listed(tmp_path).problems] == ["r/rank0.5.pt.trace.json"]


CHAKRA = b'{"schema": "1.1.1-chakra.0.0.4", "pid": 1, "time": "x", "start_ts": 2, "nodes": [{"id": 1, "name": "x"}]}'


@pytest.mark.parametrize(
    "content",
    [
        begins(),
        b'[{"ph": "X", "name": "op"}]',
        b' [\n{"name": "process_name", "ph": "M"},',
        b'{"schemaVersion": 1, "deviceProperties": [' + b'{"name": "H100"},' * 9000,
        b"\xef\xbb\xbf" + begins(),
        b"\xff\xfe" + begins().decode().encode("utf-16-le"),
        pytest.param(gzip.compress(begins()), id="gzip"),
        pytest.param(gzip.compress(begins())[:-9], id="cut gzip"),
    ],
)
def test_a_file_of_any_name_that_begins_like_a_trace_is_one(tmp_path, content):
    make(tmp_path, "r/anything.json", "r/more.json.gz", content=content)
    assert [f.worker for f in listed(tmp_path).files] == ["anything", "more"]


@pytest.mark.parametrize(
    "content",
    [
        CHAKRA,
        pytest.param(gzip.compress(CHAKRA), id="gzip"),
        b"{}",
        b"[]",
        b"[[1, 2], [3, 4]]",  # a memory timeline
        b'{"schemaVersion": 2, "mediaType": "application/vnd.docker"}',
        b"\x00\x01",
        b"\x1f\x8b no gzip at all",
    ],
)
def test_other_files_are_left_alone(tmp_path, content):
    make(tmp_path, "r/anything.json", "r/more.json.gz", content=content)
    assert listed(tmp_path) == Listing()


def test_execution_traces_that_are_called_like_traces_are_left_alone(tmp_path):
    make(tmp_path, "n/host/rank-3.json", "chakra/rank-3.json.gz", "r/my_trace.json", content=CHAKRA)
    make(tmp_path, "n/device/rank-3.json")
    assert names(listed(tmp_path)) == [("n/device", "rank-3", "default")]


def test_a_trace_with_damaged_gzip_at_its_beginning_is_a_problem(tmp_path):
    make(tmp_path, "r/rank0.5.pt.trace.json.gz", content=b"\x1f\x8b\x08\0" + b"\xff" * 99)
    listing = listed(tmp_path)
    assert listing.files == ()
    assert [p.path for p in listing.problems] == ["r/rank0.5.pt.trace.json.gz"]
    assert "gzip data is damaged" in listing.problems[0].reason


def test_a_trace_that_may_not_be_read_is_a_problem_until_it_may(tmp_path, monkeypatch):
    make(tmp_path, "r/rank0.5.pt.trace.json")
    heads = Heads()

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr("kinetoscope_tb.filesystem.files._local", refuse)
        refused = list_traces([Logdir(str(tmp_path))], heads)
    assert [(p.path, p.reason) for p in refused.problems] == [
        ("r/rank0.5.pt.trace.json", "the file can't be read: Permission denied.")
    ]
    assert names(list_traces([Logdir(str(tmp_path))], heads)) == [("r", "rank0", "5")]


def counted(monkeypatch):
    """Counts the heads that are read."""
    read = []

    def stored(path, start, count, **options):
        read.append(path)
        return stored_bytes(path, start, count, **options)

    monkeypatch.setattr("kinetoscope_tb.discovery.header_probe.stored_bytes", stored)
    return read


def test_a_file_is_looked_into_once_while_it_stays_as_it_is(tmp_path, monkeypatch):
    make(tmp_path, "r/a.json", "r/b.json")
    heads, read = Heads(), counted(monkeypatch)
    for _ in range(3):
        list_traces([Logdir(str(tmp_path))], heads)
    assert len(read) == 2
    make(tmp_path, "r/b.json", content=begins() + b" ")
    list_traces([Logdir(str(tmp_path))], heads)
    assert len(read) == 3


def test_what_is_remembered_has_a_bound(tmp_path, monkeypatch):
    make(tmp_path, *(f"r/{n}.json" for n in range(5)))
    heads, read = Heads(most=3), counted(monkeypatch)
    for _ in range(3):
        assert len(list_traces([Logdir(str(tmp_path))], heads).files) == 3
    assert len(read) == 3
    for path in sorted((tmp_path / "r").iterdir())[:3]:
        path.unlink()
    list_traces([Logdir(str(tmp_path))], heads)
    assert len(list_traces([Logdir(str(tmp_path))], heads).files) == 2


def test_of_a_remote_place_some_files_are_looked_into_for_each_listing():
    files = fsspec.filesystem("memory")
    files.pipe({f"/few/r/{n}.json": begins() for n in range(5)})
    heads = Heads(most_remote=2)
    seen = [len(list_traces([Logdir("memory://few")], heads).files) for _ in range(4)]
    assert seen == [2, 4, 5, 5]


def test_arguments_may_come_before_the_phase() -> None:
    text = b'[{"name": "x", "args": {"shape": {"n": 1}}, "ph": "X", "ts": 1.0, "dur": 2.0, "pid": 1, "tid": 7}]'
    assert head_in(text)[0].is_trace
    assert not head_in(b'[{"soil": {"depth": 1}, "ph": "acid"}]')[0].is_trace
