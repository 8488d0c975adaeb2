import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope.naming import TraceName, file_name, folder_name, parse, parse_snapshot, snapshot_name, worker_of_rank

WORKERS = st.text(min_size=1, max_size=40).filter(lambda text: not re.search(r"[/\0]", text) and text[0] != ".")
SPANS = st.integers(0, 10**19 - 1)


@given(WORKERS, SPANS)
def test_a_name_survives_the_way_through_a_file_name(worker, span):
    name = TraceName(worker, span)
    assert parse(file_name(name)) == name


@given(st.from_regex(r"[a-z_-]{1,20}(\.[a-z0-9_]{1,9}[a-z])*", fullmatch=True))
def test_a_name_without_a_span_does_too(worker):
    assert parse(file_name(TraceName(worker))) == TraceName(worker)


@given(st.text(max_size=60))
def test_any_text_is_a_name_or_none(text):
    for filename in (text, text + ".pt.trace.json"):
        name = parse(filename)
        assert name is None or parse(file_name(name)) == name


@pytest.mark.parametrize(
    ("filename", "worker", "span"),
    [
        ("rank3.42.pt.trace.json.gz", "rank3", 42),
        ("rank0.007.pt.trace.json", "rank0", 7),
        ("worker0.1623143089861.pt.trace.json.gz", "worker0", 1623143089861),
        ("node-1.cluster.org_17212.1795225735073972605.pt.trace.json", "node-1.cluster.org_17212", 1795225735073972605),
        ("worker_0_epoch_1.pt.trace.json", "worker_0_epoch_1", None),
        ("Zürich 日本.3.pt.trace.json", "Zürich 日本", 3),
        ("rank0.٤.pt.trace.json", "rank0.٤", None),
        ("a.123456789012345678901.pt.trace.json", "a.123456789012345678901", None),
    ],
)
def test_workers_and_spans_are_recognized(filename, worker, span):
    assert parse(filename) == TraceName(worker, span)


@pytest.mark.parametrize(
    "filename",
    [
        "trace.json",
        "rank0_trace.json.gz",
        ".rank0.42.pt.trace.json.gz",
        "rank0.42.pt.trace.json.gz.tmp-1234",
        "rank0.42.pt.trace.json.tmp",
        "rank0.42.pt.trace.json.gz\n",
        ".pt.trace.json",
        "folder/rank0.42.pt.trace.json",
        "",
    ],
)
def test_other_files_are_no_traces(filename):
    assert parse(filename) is None


@pytest.mark.parametrize(
    ("worker", "span"), [("", 1), (".hidden", 1), ("a/b", 1), ("a", -1), ("a", 10**19), ("a.5", None)]
)
def test_a_name_that_no_file_can_have_is_refused(worker, span):
    with pytest.raises(ValueError, match="No file name"):
        TraceName(worker, span)


def test_a_rank_s_worker_is_called_after_it():
    assert file_name(TraceName(worker_of_rank(3), 42)) == "rank3.42.pt.trace.json.gz"


@given(st.text())
def test_any_text_becomes_one_visible_folder(text):
    name = folder_name(text)
    assert re.fullmatch(r"[^./\0][^/\0]{0,119}", name)
    assert folder_name(name) == name


def test_a_sensible_folder_name_stays_as_it_is():
    assert folder_name("resnet-50, lr=0.1 @größer") == "resnet-50, lr=0.1 @größer"


@pytest.mark.parametrize(
    ("trace", "failure", "name"),
    [
        ("rank0.42.pt.trace.json.gz", 0, "rank0.42.memory.pickle"),
        ("rank0.42.pt.trace.json", 1, "rank0.42.oom.memory.pickle"),
        ("rank0.42.pt.trace.json.gz", 3, "rank0.42.oom3.memory.pickle"),
        ("ep0-ba42-rank0.json", 0, "ep0-ba42-rank0.memory.pickle"),
        ("rank0.gz", 0, "rank0.memory.pickle"),
    ],
)
def test_a_snapshot_is_named_like_the_trace_of_its_span(trace, failure, name):
    assert snapshot_name(trace, failure) == name
    stem, mark = parse_snapshot(name)
    assert trace.startswith(stem)
    assert bool(mark) is bool(failure)
    assert snapshot_name(f"folder/{trace}", failure) == f"folder/{name}"


def test_a_compressed_snapshot_has_the_same_parts():
    assert parse_snapshot("rank0.42.oom.memory.pickle.gz") == ("rank0.42", ".oom")


def test_other_pickles_are_no_snapshots_of_the_recorder():
    assert parse_snapshot("snapshot.pickle") is None
    assert parse_snapshot("rank0.42.memory.pickle.tmp-1") is None
