"""Files with communication patterns, at the top of a logdir and in the user's configuration."""

import pytest

from kinetoscope_tb.discovery import Logdir, list_path, list_traces
from kinetoscope_tb.names.communication_patterns import FILE_NAME, CommunicationPatterns
from support.logdirs import listed, make


@pytest.fixture
def configuration(tmp_path, monkeypatch):
    folder = tmp_path / "configuration"
    folder.mkdir()
    monkeypatch.setattr("kinetoscope_tb.discovery.scanner.user_config_path", lambda *_, **__: folder)
    return folder / FILE_NAME


@pytest.fixture
def logdir(tmp_path, configuration):
    make(tmp_path / "logs", "run/rank0.1.pt.trace.json")
    return tmp_path / "logs"


def kernels(listing):
    return [file.patterns.kernels for file in listing.files]


def test_a_logdir_has_patterns_at_its_top(logdir):
    (logdir / FILE_NAME).write_text("mine\n")
    make(logdir / "run", FILE_NAME, content=b"below")
    assert kernels(listed(logdir)) == [("mine",)]


def test_patterns_of_the_command_the_logdir_and_the_user_add_up(logdir, configuration):
    (logdir / FILE_NAME).write_text("of_logdir\nof_both\n")
    configuration.write_text("of_user\nof_both\n")
    assert kernels(list_path(str(logdir), CommunicationPatterns(("of_command",)))) == [
        ("of_command", "of_logdir", "of_both", "of_user")
    ]


def test_of_two_logdirs_each_has_its_own(tmp_path, configuration):
    for name in "ab":
        make(tmp_path / name, "run/rank0.1.pt.trace.json")
        (tmp_path / name / FILE_NAME).write_text(f"of_{name}")
    both = list_traces([Logdir(str(tmp_path / name), name) for name in "ab"])
    assert kernels(both) == [("of_a",), ("of_b",)]


def test_a_trace_given_by_path_has_the_patterns_beside_it(logdir):
    (logdir / "run" / FILE_NAME).write_text("beside")
    assert kernels(list_path(str(logdir / "run" / "rank0.1.pt.trace.json"))) == [("beside",)]


def test_a_changed_file_counts_at_the_next_listing(logdir):
    versions = []
    for text in ("", "mine", "mine and more", "mine"):
        (logdir / FILE_NAME).write_text(text)
        versions.append(str(listed(logdir).files[0].version))
    assert len(set(versions)) == 3
    assert versions[1] == versions[3]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"good\n(\n", f"{FILE_NAME}: Line 2: '(' isn't a regular expression"),
        (b"\xff\xfe", f"{FILE_NAME}: Its communication patterns can't be used: the file isn't UTF-8"),
        (b"#" * 70_000, f"{FILE_NAME}: Its communication patterns can't be used: the file is longer than 64 KiB"),
    ],
)
def test_what_is_wrong_with_a_file_is_a_problem_and_its_traces_are_listed(logdir, content, problem):
    (logdir / FILE_NAME).write_bytes(content)
    listing = listed(logdir)
    assert len(listing.files) == 1
    assert [f"{p.path}: {p.reason}".startswith(problem) for p in listing.problems] == [True]
    assert kernels(listing) == [("good",) if content.startswith(b"good") else ()]


def test_the_user_s_file_is_named_without_this_machine_s_folders(logdir, configuration):
    configuration.write_text("(")
    assert [p.path for p in listed(logdir).problems] == [f"{FILE_NAME} of the user's configuration"]
