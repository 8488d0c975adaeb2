"""Where traces are looked for: logdirs, folders, links and single files."""

import os

import fsspec
import pytest

from kinetoscope_tb.discovery import Logdir, list_path, list_paths, list_traces, logdirs_of, parse_logdirs
from kinetoscope_tb.errors import LogdirError, NotFound
from support.logdirs import listed, make, names


def test_a_name_that_no_address_can_hold_is_a_problem(tmp_path):
    folder = os.fsencode(tmp_path)
    with open(folder + b"/rank\xff.pt.trace.json", "wb") as file:  # noqa: PTH123
        file.write(b"{}")
    listing = listed(tmp_path)
    assert listing.files == ()
    assert [p.path for p in listing.problems] == [r"rank\udcff.pt.trace.json"]


def test_a_trace_whose_name_no_address_can_hold_is_said_whatever_its_name(tmp_path):
    folder = os.fsencode(tmp_path)
    for name, content in [(b"odd\xff\xfe.json", b'{"traceEvents": ['), (b"other\xff.json", b"{}")]:
        with open(folder + b"/" + name, "wb") as file:  # noqa: PTH123
            file.write(content)
    with pytest.raises(LogdirError, match=r"isn't UTF-8.*Rename it"):
        list_path(str(tmp_path))
    assert [p.path for p in listed(tmp_path).problems] == [r"odd\udcff\udcfe.json"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes")
def test_a_pipe_is_not_called_an_empty_file(tmp_path):
    make(tmp_path, "rank0.pt.trace.json")
    os.mkfifo(tmp_path / "rank1.pt.trace.json")
    listing = listed(tmp_path)
    assert [file.worker for file in listing.files] == ["rank0"]
    assert [(p.path, p.reason) for p in listing.problems] == [
        ("rank1.pt.trace.json", "this is a named pipe, not a file. Write its content into a file first.")
    ]


@pytest.mark.parametrize("path", ["link.json", "folder/rank0.pt.trace.json"])
def test_of_a_link_that_leads_to_nothing_its_target_is_named(tmp_path, path):
    (tmp_path / "link.json").symlink_to(tmp_path / "gone")
    (tmp_path / "folder").symlink_to(tmp_path / "gone")
    with pytest.raises(LogdirError, match=f"the link .* leads to {tmp_path / 'gone'}, which doesn't exist"):
        list_path(str(tmp_path / path))


@pytest.mark.parametrize("target", [".", "../logs"])
def test_a_link_to_where_the_listing_begins_is_not_entered(tmp_path, target):
    make(tmp_path, "logs/rank0.pt.trace.json")
    (tmp_path / "logs/self").symlink_to(target)
    assert names(listed(tmp_path / "logs")) == [("logs", "rank0", "default")]


def test_links_in_a_circle_end_and_a_folder_is_listed_once(tmp_path):
    make(tmp_path, "logs/r/rank0.pt.trace.json", "elsewhere/rank1.pt.trace.json")
    (tmp_path / "logs/r/up").symlink_to(tmp_path / "logs")
    (tmp_path / "logs/z").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "logs/nothing.pt.trace.json").symlink_to(tmp_path / "gone")
    assert names(listed(tmp_path / "logs")) == [("r", "rank0", "default"), ("z", "rank1", "default")]


def test_a_logdir_that_does_not_exist_is_a_problem_not_an_exception(tmp_path):
    listing = listed(tmp_path / "gone")
    assert listing.files == ()
    assert [p.path for p in listing.problems] == [str(tmp_path / "gone")]


def test_a_folder_that_may_not_be_listed_does_not_hide_the_others(tmp_path, monkeypatch):
    make(tmp_path, "a/rank0.pt.trace.json", "b/rank0.pt.trace.json")
    scandir = os.scandir

    def refuse(path):
        if str(path).endswith("/a"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    listing = listed(tmp_path)
    assert names(listing) == [("b", "rank0", "default")]
    assert [(p.path, p.reason) for p in listing.problems] == [("a", "This folder can't be listed: Permission denied.")]


def test_a_remote_logdir_is_listed_like_a_local_one():
    files = fsspec.filesystem("memory")
    files.pipe({"/logs/r/rank0.2.pt.trace.json": b"{}", "/logs/r/rank0.10.pt.trace.json": b"{}", "/logs/r/.x": b"{}"})
    listing = list_traces([Logdir("memory://logs")])
    assert names(listing) == [("r", "rank0", "2"), ("r", "rank0", "10")]
    assert fsspec.open(listing.files[0].path).open().read() == b"{}"


@pytest.mark.parametrize(
    ("logdir", "spec", "expected"),
    [
        ("/x/", None, [Logdir("/x")]),
        ("/x,y", None, [Logdir("/x,y")]),
        ("gs://bucket/x/", None, [Logdir("gs://bucket/x")]),
        ("", "a:/x,b:/y", [Logdir("/x", "a"), Logdir("/y", "b")]),
        ("", "/x,/y:z", [Logdir("/x", "x"), Logdir("/y:z", "y:z")]),
        ("", "/x", [Logdir("/x")]),
        ("", "gs://b/x,n:gs://b/y", [Logdir("gs://b/x", "x"), Logdir("gs://b/y", "n")]),
        (None, None, []),
    ],
)
def test_the_flags_of_tensorboard(logdir, spec, expected):
    assert list(parse_logdirs(logdir, spec)) == expected


def test_names_of_a_logdir_spec_stand_before_the_runs(tmp_path):
    make(tmp_path, "x/r/rank0.pt.trace.json", "y/rank0.pt.trace.json")
    listing = list_traces(parse_logdirs("", f"a:{tmp_path}/x,b:{tmp_path}/y"))
    assert [(f.run, f.shown) for f in listing.files] == [
        ("a/r", "a/r/rank0.pt.trace.json"),
        ("b", "b/rank0.pt.trace.json"),
    ]


def test_logdirs_of_one_name_hide_nothing(tmp_path):
    make(tmp_path, *(f"{logdir}/r/rank0.pt.trace.json" for logdir in "xyz"))
    listing = list_traces(parse_logdirs("", ",".join(f"a:{tmp_path}/{logdir}" for logdir in "xyz")))
    assert {f.span: f.path for f in listing.files} == {
        "default": f"{tmp_path}/x/r/rank0.pt.trace.json",
        "default (a/r/rank0.pt.trace.json)": f"{tmp_path}/y/r/rank0.pt.trace.json",
        "default (a/r/rank0.pt.trace.json, 2)": f"{tmp_path}/z/r/rank0.pt.trace.json",
    }


@pytest.mark.parametrize(
    ("paths", "runs"),
    [
        (["a/job/rank0.pt.trace.json"], {"job"}),
        (["a/job/rank0.pt.trace.json", "a/job/rank1.pt.trace.json"], {"job"}),  # one run of two ranks
        (["a"], {"job"}),
        (["a", "b"], {"a/job", "b/job"}),
        (["a/job", "b/job"], {"a/job", "b/job"}),
        (["a/job/rank0.pt.trace.json", "b/job/rank0.pt.trace.json"], {"a/job", "b/job"}),
    ],
)
def test_what_several_paths_hold_stays_apart(tmp_path, paths, runs):
    make(tmp_path, *(f"{folder}/job/rank{rank}.pt.trace.json" for folder in "ab" for rank in (0, 1)))
    full_paths = [str(tmp_path / path) for path in paths]
    listing = list_paths(logdirs_of(full_paths), full_paths)
    assert set(listing.runs) == runs
    assert len({(file.run, file.worker, file.span) for file in listing.files}) == len(listing.files)
    assert {file.span for file in listing.files} == {"default"}


def test_urls_of_several_buckets_are_named_by_their_folders():
    urls = ["s3://one/runs/rank0.json", "s3://two/runs/"]
    assert logdirs_of(urls) == (Logdir(urls[0], "one/runs"), Logdir("s3://two/runs", "two/runs"))


def test_names_are_looked_up_never_opened(tmp_path):
    make(tmp_path, "logs/r/rank0.pt.trace.json", "secret/rank0.pt.trace.json")
    listing = listed(tmp_path / "logs")
    assert listing.find("r", "rank0", "default").shown == "r/rank0.pt.trace.json"
    for asked in [("../secret", "rank0", "default"), ("r", "../../secret/rank0", "default"), ("r", "rank0", "../x")]:
        with pytest.raises(NotFound):
            listing.find(*asked)


def test_any_file_may_be_named(tmp_path):
    make(tmp_path, "some/odd.json", "some/rank0.5.pt.trace.json.gz")
    assert names(list_path(str(tmp_path / "some/odd.json"))) == [("some", "odd", "default")]
    assert names(list_path(str(tmp_path / "some/rank0.5.pt.trace.json.gz"))) == [("some", "rank0", "5")]


@pytest.mark.parametrize("path", ["gone", "empty", "trace/zero"])
def test_naming_what_holds_no_trace_is_an_error_that_says_what_to_do(tmp_path, path):
    make(tmp_path, "empty/trace.json", content=b"")
    with pytest.raises(LogdirError, match=r"There is no (trace in|file or folder)"):
        list_path(str(tmp_path / path))


def test_every_real_trace_is_found(traces):
    listing = list_traces([Logdir(str(traces))])
    lie_there = {p.relative_to(traces).as_posix() for p in traces.rglob("*") if p.name.endswith((".json", ".json.gz"))}
    assert {f.shown for f in listing.files} == lie_there - {"derived_malformed/empty.pt.trace.json"}
    assert [p.path for p in listing.problems] == ["derived_malformed/empty.pt.trace.json"]
    assert list(listing.runs["runs/dlrm_8gpu_nccl"]) == [f"rank{rank}" for rank in range(8)]
