"""`kinetoscope why`: exit status, text and JSON."""

import json

import pytest

from support.flight_recorder import LAYOUTS, Simulation, stopped

MESH = LAYOUTS[2]


@pytest.fixture
def dumps(tmp_path):
    """The dumps of a job in which rank 5 stops."""
    return Simulation(MESH.groups, stopped(MESH, 5, 10)).run().write(tmp_path / "dumps")


def test_a_culprit_is_exit_status_2(kinetoscope, dumps):
    status, out, err = kinetoscope("why", str(dumps))
    assert (status, err) == (2, "")
    lines = out.splitlines()
    assert lines[0].startswith("Rank 5 never came to all_reduce 4 of mesh_dp (ranks 1, 3, 5 and 7,")
    assert lines[1].split() == ["rank", "group", "last", "completed", "open", "since", "waits", "for"]
    assert lines[7].split()[:2] == ["5", "mesh_tp"]
    assert "nothing open" in lines[7]
    assert lines[10].startswith("Rank 5 has nothing open; its last operation is all_reduce 4 of mesh_tp")


def test_json_has_the_same(kinetoscope, dumps):
    status, out, _ = kinetoscope("why", str(dumps), "--format", "json")
    answer = json.loads(out)
    assert (status, answer["exit_status"], answer["outcome"], answer["kind"]) == (2, 2, "culprit", "absent")
    assert (answer["culprits"], answer["suspects"]) == ([5], [])
    assert answer["ranks"][7]["waits_for"] == [5]
    assert answer["files"] == []


def test_cannot_tell_is_exit_status_3_and_says_which_files_are_not_used(kinetoscope, dumps):
    (dumps / "nccl_trace_rank_5").write_bytes(b"\x80\x02cos\nsystem\nX\x07\0\0\0version\x85R.\x1b[2J")
    status, out, _ = kinetoscope("why", str(dumps))
    assert status == 3
    assert out.startswith("Cannot tell: no dump says whether rank 5 came to ")
    assert "GLOBAL of os.system is refused: it names code" in out
    assert "\x1b" not in out


def test_nothing_open_is_exit_status_0(kinetoscope, tmp_path):
    folder = Simulation(MESH.groups, MESH.programs()).run().write(tmp_path / "dumps", text=True)
    status, out, _ = kinetoscope("why", str(folder))
    assert (status, out.splitlines()[0].endswith("no rank waits for another one in a collective.")) == (0, True)


def test_a_run_says_where_the_culprit_is(kinetoscope, dumps, tmp_path):
    """Of a run, what Tracer wrote counts; other dumps below it don't."""
    job = Simulation(MESH.groups, stopped(MESH, 5, 10)).run()
    folder = tmp_path / "job" / "hang"
    folder.mkdir(parents=True)
    dumps.rename(tmp_path / "job" / "dumps")
    for rank in range(8):
        report = {"world_size": 8, "written_ns": 1, "step": {"number": 3}, "stack": [["/a/train.py", 9, "main", 29.0]]}
        (folder / f"rank{rank}.3.json").write_text(json.dumps({**job.dump(rank), "kinetoscope_hang": report}))
    status, out, _ = kinetoscope("why", str(tmp_path / "job"))
    lines = out.splitlines()
    assert status == 2
    assert "; it has been in main (train.py:9) for 29 s; ranks" in lines[0]
    assert lines[1].split()[-2:] == ["in", "line"]
    assert lines[7].split()[-2:] == ["main", "/a/train.py:9"]


def test_a_folder_without_dumps_is_a_failure(kinetoscope, tmp_path):
    (tmp_path / "notes_1.txt").write_text("no dump")
    status, out, err = kinetoscope("why", str(tmp_path))
    assert (status, out) == (1, "")
    assert "has no dump of torch's flight recorder" in err


def journal(run, rank, *news):
    """Write the journal of a rank that ended, in JSON lines as the recorder does."""
    header = {"global_rank": rank, "world_size": 2, "host": "node", "pid": 7 + rank}
    lines = [header, ["s", 4, 1, 2], *(["n", "ending", value, value["ns"]] for value in news), ["e", reason(news), 9]]
    file = run / ".work" / f"rank{rank}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def reason(news):
    return f"exception: {news[-1]['exception']['type']}" if news else "end"


def test_a_run_that_died_says_who_was_first(kinetoscope, tmp_path):
    began_ns = 1_795_650_000_000_000_000
    bad = {"type": "KeyError", "message": "'x'\x1b[2J"}
    lost = {"type": "RuntimeError", "message": "[gloo/pair.cc:553] Connection closed by peer"}
    journal(tmp_path, 0, {"ns": began_ns + 10**9, "exception": lost})
    journal(tmp_path, 1, {"ns": began_ns, "exception": bad, "calls": [["/job/train.py", 88, "__main__.load"]]})
    status, out, err = kinetoscope("why", str(tmp_path))
    lines = out.splitlines()
    assert (status, err) == (2, "")
    assert lines[0].startswith("Rank 1 raised KeyError: 'x'")
    assert " in step 5, in load (train.py:88), at 2026-" in lines[0]
    assert lines[0].endswith("; then rank 0 lost the connection to another rank.")
    assert lines[1].split()[:2] == ["rank", "host"]
    assert "\x1b" not in out
    status, out, _ = kinetoscope("why", str(tmp_path), "--format", "json")
    answer = json.loads(out)
    assert (answer["outcome"], answer["kind"], answer["culprits"], answer["suspects"]) == (
        "culprit",
        "exception",
        [1],
        [],
    )
    assert (answer["ranks"][1]["line"], answer["ranks"][1]["steps"]) == ("/job/train.py:88", 5)


def test_a_run_that_ended_well_has_no_culprit(kinetoscope, tmp_path):
    for rank in range(2):
        journal(tmp_path, rank)
    status, out, _ = kinetoscope("why", str(tmp_path))
    assert (status, out.splitlines()[0]) == (0, "The job ended well: all ranks closed their recordings.")
