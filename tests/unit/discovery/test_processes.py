"""A file of several processes is a run of its own, as soon as that is known."""

import io
import json

import pytest

from kinetoscope_tb.discovery import Listing, list_path, with_processes
from kinetoscope_tb.errors import NotFound
from kinetoscope_tb.export.merge import merge
from kinetoscope_tb.names.processes import Process
from kinetoscope_tb.names.roles import is_frontend, is_no_rank
from support.build import TraceBuilder
from support.logdirs import listed, make, names
from support.merged import by_sglang, by_trace_fuse

PROCESSES = (Process("10", "rank0"), Process("20", "rank1"))
PART = json.loads(TraceBuilder().op("aten::mm", 0, 5).launch(1, 1, 1).kernel("k", 3, 2, 1).text())


def found(path):
    return with_processes(
        listed(path), lambda file: PROCESSES if "/merged." in file.path or "merged-" in file.path else ()
    )


def test_the_processes_of_a_file_are_the_workers_of_a_run_of_its_own(tmp_path):
    make(tmp_path, "job/rank0.5.pt.trace.json", "job/rank1.5.pt.trace.json", "job/merged.trace.json")
    assert names(listed(tmp_path))[0] == ("job", "merged", "default")
    assert names(found(tmp_path)) == [
        ("job", "rank0", "5"),
        ("job", "rank1", "5"),
        ("job/merged", "rank0", "default"),
        ("job/merged", "rank1", "default"),
    ]
    assert [file.process for file in found(tmp_path).files] == [None, None, "10", "20"]


def test_by_default_the_first_rank_is_shown_not_a_process_of_unknown_rank(tmp_path):
    make(tmp_path, "merged.trace.json")
    processes = (Process("10", "process 10"), Process("20", "rank2"), Process("9", "frontend"), Process("30", "rank1"))
    listing = with_processes(listed(tmp_path), lambda _: processes)
    file, choices = listing.newest(worker=None)
    assert file.worker == "rank1"
    assert choices == {"worker": ["rank1", "rank2", "process 10", "frontend"]}


def test_the_names_from_before_it_was_known_find_the_first_process(tmp_path):
    make(tmp_path, "job/merged.trace.json")
    listing = found(tmp_path)
    assert listing.find("job", "merged", "default").process == "10"
    assert list(listing.runs) == ["job/merged"]
    with pytest.raises(NotFound):
        listing.find("job", "other", "default")


def test_processes_of_one_file_have_versions_of_their_own(tmp_path):
    make(tmp_path, "job/merged.trace.json")
    first, second = found(tmp_path).files
    assert (first.path, first.stamp) == (second.path, second.stamp)
    assert first.version != second.version
    assert first.key != second.key


def test_a_file_may_not_take_the_run_of_a_folder(tmp_path):
    make(tmp_path, "job/merged.trace.json", "job/merged/rank0.5.pt.trace.json")
    assert list(found(tmp_path).runs) == ["job/merged", "job/merged (job/merged.trace.json)"]


def test_without_several_processes_nothing_changes(tmp_path):
    make(tmp_path, "job/rank0.5.pt.trace.json")
    listing = listed(tmp_path)
    assert with_processes(listing, lambda _: ()) is listing
    assert with_processes(Listing(), lambda _: PROCESSES) == Listing()


def test_our_own_merge_says_at_once_what_it_holds(tmp_path):
    for rank in (0, 1):
        (tmp_path / f"rank{rank}.5.pt.trace.json").write_text(json.dumps(PART))
    out = io.BytesIO()
    merge(list_path(str(tmp_path)).files, out)
    (tmp_path / "all.json").write_bytes(out.getvalue())
    run = tmp_path.name
    for listing in (list_path(str(tmp_path / "all.json")), list_path(str(tmp_path))):
        assert names(listing)[-2:] == [(f"{run}/all", "rank0", "default"), (f"{run}/all", "rank1", "default")]
    assert names(list_path(str(tmp_path)))[:2] == [(run, "rank0", "5"), (run, "rank1", "5")]


@pytest.mark.parametrize("tool", [by_sglang, by_trace_fuse])
def test_a_merge_beside_its_parts_is_no_further_worker_even_before_it_is_read(tmp_path, tool):
    make(tmp_path, *(f"job/1-TP-{rank}.trace.json" for rank in (0, 1)))
    (tmp_path / "job/merged-1.trace.json").write_text(json.dumps(tool([PART, PART])))
    assert names(listed(tmp_path)) == [
        ("job", "TP-0", "1"),
        ("job", "TP-1", "1"),
        ("job/merged-1", "merged-1", "default"),
    ]
    assert list(found(tmp_path).runs) == ["job", "job/merged-1"]


@pytest.mark.parametrize("text", ['["a"]', '["a", "a"]', '["a", 5]', '["a", "\\u12"]', '[["a"], "b"]', "5"])
def test_a_damaged_list_of_workers_is_none(tmp_path, text):
    make(tmp_path, "job/all.json", content=f'{{"mergedWorkers": {text}, "traceEvents": [{{"ph": "X"}}]}}'.encode())
    assert names(listed(tmp_path)) == [("job", "all", "default")]


def test_a_frontend_is_known_by_its_name():
    assert [is_frontend(name) for name in ("frontend", "frontend (100)", "host_1.async_llm")] == [True] * 3
    assert not any(map(is_frontend, ("rank0", "my frontend", "frontend2")))
    assert all(map(is_no_rank, ("frontend", "rank0.speedscope", "py-spy", "pyspy_3", "viztracer", "proton.rank1")))
    assert not any(map(is_no_rank, ("rank0", "host_1", "protons", "myviztracers")))
