"""Files that cost other readers much more than their size cost ours little, and say what is wrong with them."""

import json
import subprocess
import sys

import pytest

from kinetoscope_tb.discovery.header_probe import Heads
from kinetoscope_tb.errors import NotATrace, TraceError
from kinetoscope_tb.filesystem import entry_at
from kinetoscope_tb.reader import node_notes, read
from kinetoscope_tb.reader.node_notes import read_node_notes
from support import hostile
from support.nsight import connected, export_json
from unit.reader.test_nsight import three_steps

MOST_MB, MOST_CPU_S = 160, 20
READ = """
import json, resource, sys
from kinetoscope_tb.errors import TraceError
from kinetoscope_tb.reader import read
from kinetoscope_tb.reader.node_notes import read_node_notes

resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]), int(sys.argv[1])))
outcomes = {}
for path in sys.argv[2:]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        if "kernel_py_stacks" in path:
            outcome = read_node_notes(path).rows()
        else:
            outcome = [diagnostic.rule for diagnostic in read(path).diagnostics]
    except TraceError as error:
        outcome = str(error)
    outcomes[path] = outcome, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
print(json.dumps(outcomes))
"""


def outcomes(*paths):
    """What reading each file came to, and how much more memory than before it took, in a process of its own."""
    command = [sys.executable, "-c", READ, str(MOST_CPU_S), *map(str, paths)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout)


@pytest.mark.skipif(sys.platform == "win32", reason="needs the resource module")
def test_memory_and_time_grow_with_the_file(tmp_path):
    first = export_json(tmp_path / "first.sqlite", three_steps().text())
    paths = [maker(tmp_path / f"{name}.sqlite") for name, maker in hostile.DATABASES.items()]
    paths += [maker(tmp_path / f"{name}.kernel_py_stacks.json") for name, maker in hostile.SIDE_CARS.items()]
    paths += [maker(tmp_path / f"{name}.json") for name, maker in hostile.JSON.items()]
    for path, (outcome, more_mb) in outcomes(first, *paths).items():
        assert more_mb < MOST_MB, (path, outcome, more_mb)


@pytest.mark.parametrize(
    ("maker", "ranges", "problem"),
    [
        ("shared_texts", 1, "NVTX_EVENTS (page 2 is used twice)"),
        ("shared_names", 2400, "StringIds (page 2 is used twice)"),
        ("shared_pages", 29, "NVTX_EVENTS (page 2 is used twice)"),
        ("endless_text", 1, "NVTX_EVENTS (page 2 is used twice)"),
        ("overlapping_rows", None, "NVTX_EVENTS (page 2 can't be read)"),
        ("shared_name", 30_000, None),
    ],
)
def test_what_is_left_out_is_named(maker, ranges, problem, tmp_path):
    trace = read(hostile.DATABASES[maker](tmp_path / "rank0.sqlite"))
    damage = [d for d in trace.diagnostics if d.rule == "damaged_table"]
    assert (len(damage), problem is None or problem in damage[0].consequence) == (problem is not None, True)
    assert trace.host_events.height == ranges or ranges is None


def test_a_schema_whose_pages_are_shared_is_refused(tmp_path):
    path = hostile.shared_schema(tmp_path / "rank0.sqlite")
    with pytest.raises(NotATrace, match="schema of this SQLite database can't be read: page 2 is used twice"):
        read(path)
    assert "page 2 is used twice" in Heads().head(entry_at(str(path))).problem


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("CREATE VIEW {table} AS SELECT * FROM other", "it is a view"),
        ("CREATE TABLE {table} (start INT, end INT, busy AS (end - start))", "it has computed columns"),
        ("CREATE TABLE {table} (start INT, end INT, id PRIMARY KEY) WITHOUT ROWID", r"WITHOUT ROWID"),
        ("CREATE VIRTUAL TABLE {table} USING fts5(start)", "it is a virtual table"),
    ],
)
def test_tables_that_are_no_ordinary_tables_are_named(change, reason, tmp_path):
    path = export_json(tmp_path / "rank0.sqlite", three_steps().text())
    with connected(path) as db:
        db.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME TO other")
        db.execute(change.format(table="CUPTI_ACTIVITY_KIND_KERNEL"))
    (finding,) = [d for d in read(path).diagnostics if d.rule == "unreadable_tables"]
    assert (finding.level, finding.count) == ("loss", 1)
    assert f"CUPTI_ACTIVITY_KIND_KERNEL: {reason}" in finding.consequence.replace("its rows have no numbers (", "")
    with connected(path) as db:
        db.execute("DROP TABLE StringIds")
        db.execute("CREATE VIEW StringIds AS SELECT 1 AS id, 'a' AS value")
    with pytest.raises(TraceError, match="StringIds: it is a view"):
        read(path)


def test_a_note_of_a_side_car_that_is_too_long_is_refused(tmp_path):
    with pytest.raises(TraceError, match="a note about a graph in it is longer than 1 MiB"):
        read_node_notes(str(hostile.SIDE_CARS["lists"](tmp_path / "kernel_py_stacks.json")))


def test_notes_are_read_across_blocks_and_a_bad_one_costs_itself(tmp_path, monkeypatch):
    notes = {"7": "a.py:1:f\nb.py:2:g", "9": [{"name": "mlp"}], "x": "no node", "10": 5, "11": "\ud800", "12": ["mark"]}
    text = json.dumps(notes)[:-1] + ', "13": ' + "9" * 5000 + ', "7": "last"}'
    (tmp_path / "kernel_py_stacks.json").write_text(text)
    expected = [(9, "mlp", None), (11, None, "\N{REPLACEMENT CHARACTER}"), (12, "mark", None), (7, None, "last")]
    assert read_node_notes(str(tmp_path / "kernel_py_stacks.json")).rows() == expected
    monkeypatch.setattr(node_notes, "_BLOCK_BYTES", 7)
    assert read_node_notes(str(tmp_path / "kernel_py_stacks.json")).rows() == expected
