import os

import pytest

from kinetoscope_tb.discovery import Logdir, list_given, list_traces, parse_logdirs
from kinetoscope_tb.errors import LogdirError, NotFound


def make(root, *paths, content=b"{}"):
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def listed(root):
    return list_traces([Logdir(str(root))])


def names(listing):
    return [(f.run, f.worker, f.span) for f in listing.files]


def test_a_folder_is_a_run_and_numbers_are_in_the_order_of_numbers(tmp_path):
    make(tmp_path, *(f"job/rank{r}.{s}.pt.trace.json.gz" for r in (10, 2) for s in (10, 2)))
    assert names(listed(tmp_path)) == [
        ("job", "rank2", "2"),
        ("job", "rank2", "10"),
        ("job", "rank10", "2"),
        ("job", "rank10", "10"),
    ]


def test_the_logdir_itself_is_a_run_of_its_own_name(tmp_path):
    make(tmp_path / "mine", "rank0.pt.trace.json", "deep/er/rank0.pt.trace.json")
    assert names(listed(tmp_path / "mine")) == [("deep/er", "rank0", "default"), ("mine", "rank0", "default")]


@pytest.mark.parametrize(
    ("path", "run", "worker", "span"),
    [
        ("r/host_4711.1733770537022695153.pt.trace.json", "r", "host_4711", "1733770537022695153"),
        ("r/iteration_20/rank3_trace.json", "r", "rank3", "20"),
        ("r/iteration_20/rank3.7.pt.trace.json", "r/iteration_20", "rank3", "7"),
        ("r/rank-3-step-40.chrome_trace.json.gz", "r", "rank-3", "40"),
        ("r/prof_start_5_end_9_rank_1.json", "r", "rank_1", "5"),
        ("r/ep2-ba64-rank5.json", "r", "rank5", "64"),
        ("r/1782843274.77-TP-0-DECODE.trace.json.gz", "r", "TP-0-DECODE", "1782843274.77"),
        ("r/trace_12.json", "r", "trace", "12"),
        ("r/My_Trace.json", "r", "My_Trace", "default"),
        ("r/rank-3.json", "r", "rank-3", "default"),
    ],
)
def test_names_of_many_writers(tmp_path, path, run, worker, span):
    make(tmp_path, path)
    assert names(listed(tmp_path)) == [(run, worker, span)]


def test_hidden_and_foreign_files_are_left_alone(tmp_path):
    make(tmp_path, "r/.rank0.pt.trace.json", ".git/rank0.pt.trace.json", "r/config.json", "r/events.out.tfevents.1")
    assert listed(tmp_path).files == ()
    assert listed(tmp_path).problems == ()


@pytest.mark.parametrize("name", ["rank0.5.pt.trace.json.tmp", "rank0.5.pt.trace.json.gz.tmp-1234"])
def test_what_a_broken_recording_left_is_a_problem(tmp_path, name):
    make(tmp_path, f"r/{name}")
    listing = listed(tmp_path)
    assert listing.files == ()
    assert [p.path for p in listing.problems] == [f"r/{name}"]
    assert "isn't complete" in listing.problems[0].reason


def test_an_empty_file_is_a_problem(tmp_path):
    make(tmp_path, "r/rank0.5.pt.trace.json", content=b"")
    assert [p.path for p in listed(tmp_path).problems] == ["r/rank0.5.pt.trace.json"]


def test_two_files_of_one_span_are_a_problem_and_one_is_shown(tmp_path):
    make(tmp_path, "r/rank0.5.pt.trace.json", "r/rank0.5.pt.trace.json.gz")
    listing = listed(tmp_path)
    assert [f.shown for f in listing.files] == ["r/rank0.5.pt.trace.json"]
    assert [p.path for p in listing.problems] == ["r/rank0.5.pt.trace.json.gz"]


def test_a_name_that_no_address_can_hold_is_a_problem(tmp_path):
    folder = os.fsencode(tmp_path)
    with open(folder + b"/rank\xff.pt.trace.json", "wb") as file:  # noqa: PTH123
        file.write(b"{}")
    listing = listed(tmp_path)
    assert listing.files == ()
    assert [p.path for p in listing.problems] == [r"rank\udcff.pt.trace.json"]


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
    import fsspec

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


def test_names_are_looked_up_never_opened(tmp_path):
    make(tmp_path, "logs/r/rank0.pt.trace.json", "secret/rank0.pt.trace.json")
    listing = listed(tmp_path / "logs")
    assert listing.find("r", "rank0", "default").shown == "r/rank0.pt.trace.json"
    for asked in [("../secret", "rank0", "default"), ("r", "../../secret/rank0", "default"), ("r", "rank0", "../x")]:
        with pytest.raises(NotFound):
            listing.find(*asked)


def test_any_file_may_be_named(tmp_path):
    make(tmp_path, "some/odd.json", "some/rank0.5.pt.trace.json.gz")
    assert names(list_given(str(tmp_path / "some/odd.json"))) == [("some", "odd", "default")]
    assert names(list_given(str(tmp_path / "some/rank0.5.pt.trace.json.gz"))) == [("some", "rank0", "5")]


@pytest.mark.parametrize("path", ["gone", "empty", "trace/zero"])
def test_naming_what_holds_no_trace_is_an_error_that_says_what_to_do(tmp_path, path):
    make(tmp_path, "empty/trace.json", content=b"")
    with pytest.raises(LogdirError, match="There is no trace in"):
        list_given(str(tmp_path / path))
