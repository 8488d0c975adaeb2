"""Entries in a folder: found again, renewed, removed, and never anyone else's files."""

import errno
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from platformdirs import user_cache_path

from kinetoscope_tb.engine.cache import Cache, configured_cache, is_worth_caching, version
from kinetoscope_tb.engine.cache.folder import ABANDONED_AFTER_S, FEWEST_EVENTS
from support.build import TraceBuilder
from support.waiting import LIMIT_S

STAMP = (100, 1)


def a_trace(name="aten::mm"):
    return TraceBuilder().op(name, at=0, dur=10).build()


def names(trace):
    return trace.host_events["name"].to_list()


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "cache")


def entry_of(cache):
    (entry,) = cache.folder.glob("*.trace")
    return entry


def test_a_trace_is_found_by_its_path_and_stamp(cache):
    assert cache.open("/a", STAMP) is None
    cache.write(a_trace(), "/a", STAMP)
    assert names(cache.open("/a", STAMP)) == ["aten::mm"]
    assert cache.open("/b", STAMP) is None
    assert cache.open("/a", (100, 2)) is None
    assert cache.open("s3://a", (100, "etag")) is None


def test_a_file_that_changed_gets_an_entry_of_its_own(cache):
    cache.write(a_trace("old"), "/a", (100, 1))
    cache.write(a_trace("new"), "/a", (100, 2))
    assert names(cache.open("/a", (100, 1))) == ["old"]
    assert names(cache.open("/a", (100, 2))) == ["new"]


def test_an_entry_of_another_reader_is_not_looked_at(cache, monkeypatch):
    cache.write(a_trace(), "/a", STAMP)
    monkeypatch.setattr(version, "sources_version", lambda: "another")
    assert cache.open("/a", STAMP) is None


def test_the_version_follows_every_source(tmp_path, monkeypatch):
    copy = tmp_path / "kinetoscope_tb"
    shutil.copytree(version.PACKAGE, copy, ignore=shutil.ignore_patterns("static", "__pycache__"))
    monkeypatch.setattr(version, "PACKAGE", copy)
    versions = [version._sources_digest.__wrapped__()]
    for changed in ("reader/scan/tokens.py", "trace/model.py", "names/kernels.py", "engine/cache/trace_entry.py"):
        with (copy / changed).open("a") as file:
            file.write("# changed\n")
        versions.append(version._sources_digest.__wrapped__())
    (copy / "reader" / "added.py").touch()
    versions.append(version._sources_digest.__wrapped__())
    assert len(set(versions)) == len(versions)
    (copy / "views" / "overview" / "steps.py").unlink()
    assert version._sources_digest.__wrapped__() == versions[-1]


def test_the_version_covers_all_that_reading_imports():
    code = "import sys; import kinetoscope_tb.reader; print(*(m for m in sys.modules if m.startswith('kinetoscope')))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    paths = [name.replace(".", "/") + "/" for name in shown.stdout.split() if "." in name]
    covered = tuple("kinetoscope_tb/" + name.removesuffix(".py") + "/" for name in version.SOURCES)
    assert [path for path in paths if not path.startswith(covered)] == []


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-1], lambda b: b"", lambda b: b[:50] + b"\xff" + b[51:], lambda b: b"x"]
)
def test_a_broken_entry_is_no_entry_and_is_written_anew(cache, damage):
    cache.write(a_trace(), "/a", STAMP)
    entry = entry_of(cache)
    entry.write_bytes(damage(entry.read_bytes()))
    assert cache.open("/a", STAMP) is None
    assert [kept.path for kept in cache.entries()] in ([None], ["/a"])
    cache.write(a_trace(), "/a", STAMP)
    assert names(cache.open("/a", STAMP)) == ["aten::mm"]


def test_beyond_the_capacity_the_entry_used_longest_ago_goes(tmp_path):
    cache = Cache(tmp_path)
    for nth, path in enumerate("abc"):
        cache.write(a_trace(), f"/{path}", STAMP)
        newest = max(tmp_path.glob("*.trace"), key=lambda entry: entry.stat().st_mtime_ns)
        os.utime(newest, (nth, nth))  # used long ago, one after the other
    assert cache.open("/a", STAMP)
    small = Cache(tmp_path, capacity_bytes=3 * cache.entries()[0].bytes + 100)
    small.write(a_trace(), "/d", STAMP)
    assert {entry.path for entry in cache.entries()} == {"/a", "/c", "/d"}
    assert small.open("/b", STAMP) is None


def test_a_trace_that_is_larger_than_the_capacity_drives_nothing_out(tmp_path):
    Cache(tmp_path).write(a_trace(), "/a", STAMP)
    Cache(tmp_path, capacity_bytes=10).write(a_trace(), "/b", STAMP)
    assert [entry.path for entry in Cache(tmp_path).entries()] == ["/a"]
    assert not list(tmp_path.glob("*.part"))


def test_the_default_capacity_is_a_part_of_the_free_disk(cache):
    assert 0 < cache.capacity_bytes() <= 4 << 30
    assert not cache.folder.exists()


def test_files_of_others_are_never_touched(tmp_path):
    foreign = ["notes.txt", "a.trace", "x" * 40 + ".trace", "0" * 40 + ".part", "deadbeef.part", ".hidden"]
    for name in foreign:
        (tmp_path / name).write_text("mine")
        os.utime(tmp_path / name, (0, 0))
    (tmp_path / ("0" * 40 + ".trace")).mkdir()
    cache = Cache(tmp_path, capacity_bytes=30_000)
    for path in "abcdefgh":
        cache.write(a_trace(), f"/{path}", STAMP)
    assert 0 < len(cache.entries()) < 8
    cache.clear()
    assert cache.entries() == []
    assert all((tmp_path / name).read_text() == "mine" for name in foreign)
    assert {path.name for path in tmp_path.iterdir()} == {*foreign, "0" * 40 + ".trace"}


def test_what_killed_processes_left_is_removed_after_an_hour(cache):
    cache.write(a_trace(), "/a", STAMP)
    old, young = (cache.folder / f".{'0' * 40}.trace.{random}.part" for random in ("01", "23"))
    for path, age in ((old, ABANDONED_AFTER_S + 60), (young, ABANDONED_AFTER_S - 60)):
        path.write_text("half an entry")
        os.utime(path, (time.time() - age,) * 2)
    Cache(cache.folder).write(a_trace(), "/b", STAMP)  # one that hasn't looked a moment ago
    assert (old.exists(), young.exists()) == (False, True)


def test_what_others_are_writing_takes_room_too(tmp_path):
    cache = Cache(tmp_path)
    for nth, path in enumerate("ab"):
        cache.write(a_trace(), f"/{path}", STAMP)
        newest = max(tmp_path.glob("*.trace"), key=lambda entry: entry.stat().st_mtime_ns)
        os.utime(newest, (nth, nth))
    size = cache.entries()[0].bytes
    part = tmp_path / f".{'0' * 40}.trace.01.part"
    part.write_bytes(bytes(size))
    small = Cache(tmp_path, capacity_bytes=3 * size + 100)
    small.write(a_trace(), "/c", STAMP)
    assert {entry.path for entry in cache.entries()} == {"/b", "/c"}
    assert small.unfinished_bytes() == size
    part.write_bytes(bytes(3 * size))
    small = Cache(tmp_path, capacity_bytes=3 * size + 100)
    small.write(a_trace(), "/d", STAMP)
    assert {entry.path for entry in cache.entries()} == {"/b", "/c"}  # nothing is driven out for what has no room
    assert part.exists()


needs_posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")


def others_may_write(cache, monkeypatch):
    cache.folder.chmod(0o777)


def somebody_else_s(cache, monkeypatch):
    number = os.geteuid() + 1
    monkeypatch.setattr("kinetoscope_tb.engine.cache.private_folders.os.geteuid", lambda: number)


def a_link_that_another_user_made(cache, monkeypatch):
    cache.folder.rename(cache.folder.with_name("elsewhere"))
    cache.folder.symlink_to(cache.folder.with_name("elsewhere"))
    somebody_else_s(cache, monkeypatch)


@needs_posix
@pytest.mark.parametrize("make", [others_may_write, somebody_else_s, a_link_that_another_user_made])
def test_a_folder_that_others_can_write_to_is_not_used(cache, monkeypatch, caplog, make):
    cache.write(a_trace(), "/a", STAMP)
    make(cache, monkeypatch)
    before = sorted(cache.folder.iterdir())
    assert cache.open("/a", STAMP) is None
    cache.write(a_trace(), "/b", STAMP)
    assert (cache.entries(), cache.clear()) == ([], 0)
    assert sorted(cache.folder.iterdir()) == before
    assert [record.levelname for record in caplog.records].count("WARNING") == 1
    assert "isn't used" in caplog.text
    assert cache.problem()


@needs_posix
def test_a_link_of_one_s_own_is_followed(cache):
    cache.folder.with_name("elsewhere").mkdir(mode=0o700)
    cache.folder.symlink_to(cache.folder.with_name("elsewhere"))
    cache.write(a_trace(), "/a", STAMP)
    assert cache.open("/a", STAMP)
    assert cache.problem() == ""


def a_link_to_it(entry):
    entry.rename(entry.with_name("moved"))
    entry.symlink_to(entry.with_name("moved"))


def a_pipe(entry):
    entry.unlink()
    os.mkfifo(entry)


def a_folder(entry):
    entry.unlink()
    entry.mkdir()


@needs_posix
@pytest.mark.parametrize("put", [a_link_to_it, a_pipe, a_folder])
def test_what_is_no_file_is_no_entry(cache, put):
    cache.write(a_trace(), "/a", STAMP)
    put(entry_of(cache))
    assert cache.open("/a", STAMP) is None
    assert cache.entries() == []


@needs_posix
def test_an_entry_of_another_user_is_not_used(cache, monkeypatch):
    cache.write(a_trace(), "/a", STAMP)
    monkeypatch.setattr("kinetoscope_tb.engine.cache.folder.is_mine", lambda info: False)
    assert cache.open("/a", STAMP) is None


def test_clearing_says_how_much_it_freed(cache):
    assert cache.clear() == 0
    cache.write(a_trace(), "/a", STAMP)
    assert cache.clear() > 1000
    assert cache.open("/a", STAMP) is None


def test_where_nothing_can_be_written_it_is_said_once(tmp_path, caplog):
    (tmp_path / "file").write_text("not a folder")
    cache = Cache(tmp_path / "file" / "cache")
    for path in ("/a", "/b"):
        assert cache.open(path, STAMP) is None
        cache.write(a_trace(), path, STAMP)
    assert [record.levelname for record in caplog.records].count("WARNING") == 1
    assert "Traces are read again" in caplog.text
    assert cache.entries() == []


def test_a_read_only_folder_still_gives_what_it_holds(cache, monkeypatch):
    def refused(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    cache.write(a_trace(), "/a", STAMP)
    monkeypatch.setattr("kinetoscope_tb.engine.cache.folder.atomic_write", refused)  # root may write everywhere
    monkeypatch.setattr("kinetoscope_tb.engine.cache.folder.os.utime", refused)
    cache.write(a_trace(), "/b", STAMP)
    assert cache.open("/a", STAMP)
    assert cache.open("/b", STAMP) is None


def test_a_full_disk_leaves_nothing_behind(cache, monkeypatch, caplog):
    def full(file, trace, source):
        file.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("kinetoscope_tb.engine.cache.trace_entry.write", full)
    cache.write(a_trace(), "/a", STAMP)
    assert list(cache.folder.iterdir()) == []
    assert "No space left on device" in caplog.text


def test_only_what_takes_time_to_read_is_worth_keeping():
    small = a_trace()
    assert small.meta.events < FEWEST_EVENTS
    assert not is_worth_caching(small, "/a")
    assert is_worth_caching(small, "s3://bucket/a")
    assert not is_worth_caching(small, "https://host/a?signature=secret")
    assert not is_worth_caching(small, "https://me:secret@host/a")


def test_entries_are_for_the_user_alone(cache):
    cache.write(a_trace(), "/a", STAMP)
    assert entry_of(cache).stat().st_mode & 0o077 == 0
    assert cache.folder.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"KINETOSCOPE_CACHE": "/x"}, "/x"),
        ({"KINETOSCOPE_CACHE": "~/x"}, str(Path.home() / "x")),
        ({"KINETOSCOPE_CACHE": "off"}, None),
        ({"KINETOSCOPE_CACHE": "OFF", "XDG_CACHE_HOME": "/y"}, None),
        ({"KINETOSCOPE_CACHE": "", "XDG_CACHE_HOME": "/y"}, "/y/kinetoscope"),
    ],
)
def test_the_environment_names_the_folder(environment, folder, environ):
    environ(environment)
    cache = configured_cache()
    assert (cache and str(cache.folder)) == folder


@pytest.fixture
def environ(monkeypatch):
    """Sets the variables that name the cache, and no others."""

    def put(variables):
        for name in ("KINETOSCOPE_CACHE", "KINETOSCOPE_CACHE_SIZE", "XDG_CACHE_HOME"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return put


def test_without_a_variable_it_is_the_user_s_cache_folder(environ):
    environ({})
    assert configured_cache().folder == user_cache_path("kinetoscope", appauthor=False, opinion=False)


def test_a_user_without_a_home_has_no_cache(environ, monkeypatch):
    environ({})
    monkeypatch.setattr("kinetoscope_tb.engine.cache.folder._default_folder", lambda: Path("~/.cache/kinetoscope"))
    assert configured_cache() is None


@pytest.mark.parametrize(
    ("text", "size"), [("123", 123), ("10k", 10240), ("1.5M", 1_572_864), ("20 GB", 20 << 30), ("1TiB", 1 << 40)]
)
def test_the_environment_names_the_capacity(text, size, environ):
    environ({"KINETOSCOPE_CACHE": "/x", "KINETOSCOPE_CACHE_SIZE": text})
    assert configured_cache().capacity_bytes() == size


def test_a_capacity_that_is_none_is_told_and_the_default_used(caplog, environ):
    environ({"KINETOSCOPE_CACHE": "/x", "KINETOSCOPE_CACHE_SIZE": "lots"})
    cache = configured_cache()
    assert "such as 500M or 20G" in caplog.text
    assert 0 < cache.capacity_bytes() <= 4 << 30


WRITER = """
import sys
from pathlib import Path
from kinetoscope_tb.engine.cache import Cache
from support.build import TraceBuilder
builder = TraceBuilder()
for i in range(3000):
    builder.op(f"op{i}", at=10 * i, dur=5, **{"Call stack": f"file_{i}.py({i}): function"})
trace, cache = builder.build(), Cache(Path(sys.argv[1]))
print("ready", flush=True)
for i in range(int(sys.argv[2])):
    cache.write(trace, f"/{i % 3}", (100, 1))
    got = cache.open(f"/{i % 3}", (100, 1))
    assert got is not None and got.host_events.equals(trace.host_events)
"""


def writer(folder, times):
    path = os.pathsep.join([str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", WRITER, str(folder), str(times)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}, text=True)


def test_whoever_is_killed_while_writing_leaves_no_broken_entry(cache, caplog):
    caplog.set_level("INFO")
    for after_s in (0.0, 0.003, 0.011, 0.029, 0.071):
        with writer(cache.folder, 10**6) as process:
            assert process.stdout.readline() == "ready\n"
            time.sleep(after_s)  # any moment will do, while it writes without a pause
            process.kill()
        for path in ("/0", "/1", "/2"):
            trace = cache.open(path, STAMP)
            assert trace is None or trace.host_events.height == 3000
        assert caplog.text == ""  # a broken one would be told


def test_two_processes_write_and_read_the_same_entries_at_once(cache):
    with writer(cache.folder, 40) as one, writer(cache.folder, 40) as other:
        assert (one.wait(LIMIT_S), other.wait(LIMIT_S)) == (0, 0)
    assert sorted(entry.path for entry in cache.entries()) == ["/0", "/1", "/2"]
    assert not list(cache.folder.glob("*.part"))
