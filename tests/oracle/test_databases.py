"""Databases that SQLite wrote have the rows that SQLite reads, whatever their pages, texts and tables look like."""

import random
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from kinetoscope_tb.filesystem import LONGEST, Database
from kinetoscope_tb.reader.nsight.scan import page_groups, read_cells
from kinetoscope_tb.reader.scan.scanner import MISSING
from support.nsight import connected

INTEGERS = (0, 1, -1, 127, 128, -129, 2**15, -(2**23) - 1, 2**31, 2**47 - 1, -(2**47) - 1, 2**63 - 1, -(2**62))
FORMS = [
    (512, "UTF-8", "NONE"),
    (1024, "UTF-16le", "FULL"),
    (4096, "UTF-8", "INCREMENTAL"),
    (8192, "UTF-16be", "NONE"),
    (65536, "UTF-8", "NONE"),
]


def value(chooser, page):
    kind = chooser.randrange(7)
    lengths = (0, 1, 40, *(min(size, LONGEST // 2) for size in (page // 3, page - 40, page + 1, 3 * page)))
    return {
        0: None,
        1: chooser.choice(INTEGERS),
        2: chooser.random() * 1e9,
        3: "é€x" * (chooser.choice(lengths) // 6),
        4: chooser.randbytes(chooser.choice(lengths)),
        5: chooser.randrange(-(2**63), 2**63),
        6: f"name {chooser.randrange(9)}",
    }[kind]


@pytest.fixture(params=FORMS, ids=lambda form: "-".join(map(str, form)))
def path(request, tmp_path):
    page, encoding, vacuum = request.param
    chooser = random.Random(page)
    with connected(tmp_path / "a.sqlite") as db:
        for pragma in (f"page_size = {page}", f"encoding = '{encoding}'", f"auto_vacuum = {vacuum}"):
            db.execute(f"PRAGMA {pragma}")
        db.execute('CREATE TABLE "plain one" (a, b INTEGER, -- the second, (of three\n "c "" d" TEXT)')
        db.execute("CREATE TABLE keyed (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
        db.execute("BEGIN")
        for _ in range(300):
            db.execute('INSERT INTO "plain one" VALUES (?, ?, ?)', [value(chooser, page) for _ in range(3)])
        numbers = chooser.sample(range(-(2**40), 2**40), 400)
        db.executemany("INSERT INTO keyed VALUES (?, ?)", [(number, f"text {number}") for number in numbers])
        db.execute('DELETE FROM "plain one" WHERE rowid % 7 = 3')
        db.execute("COMMIT")
    return tmp_path / "a.sqlite"


def test_all_rows_are_those_of_sqlite(path):
    with closing(sqlite3.connect(path)) as db, closing(Database(str(path))) as database:
        for name, table in database.schema().tables.items():
            expected = db.execute(f'SELECT rowid, * FROM "{name}" ORDER BY rowid').fetchall()
            rows = [(row, *values) for row, values in database.rows(table, pytest.fail)]
            assert rows == [
                tuple(cell[:LONGEST] if isinstance(cell, bytes) else cell for cell in row) for row in expected
            ]
            assert database.last_row(table) == expected[-1][0]
            for row, *values in expected[:: len(expected) // 9]:
                assert database.row(table, row) == values
                assert database.row(table, row + 1) in (
                    None,
                    *(values for other, *values in expected if other == row + 1),
                )


def test_columns_are_those_of_sqlite(path):
    with closing(sqlite3.connect(path)) as db, closing(Database(str(path))) as database:
        table = database.schema().tables["plain one"]
        columns = ('c " d', "b", "absent")
        for pages in page_groups(database.row_pages(table.root, pytest.fail)):
            cells = read_cells(database, table, columns, pages)
            assert not cells.damaged
            marks = ", ".join(map(str, cells.row.tolist()))
            rows = db.execute(f'SELECT "c "" d", b FROM "plain one" WHERE rowid IN ({marks}) ORDER BY rowid').fetchall()
            whole = np.flatnonzero(~cells.is_spilled).tolist()
            texts, numbers = cells.texts(0), cells.integers(1)
            assert [texts[at] for at in whole] == [
                row[0] if isinstance(row[0], str) else None for row in take(rows, whole)
            ]
            assert numbers[whole].tolist() == [
                row[1] if isinstance(row[1], int) else MISSING for row in take(rows, whole)
            ]
            assert cells.integers(2).tolist() == [MISSING] * len(rows)
            visited = bytearray(database.pages + 1)
            for at in np.flatnonzero(cells.is_spilled).tolist():
                assert cells.whole_row(at, visited)["b"] == (
                    rows[at][1][:LONGEST] if isinstance(rows[at][1], bytes) else rows[at][1]
                )


def take(rows, places):
    return [rows[at] for at in places]


@pytest.mark.parametrize(
    ("columns", "more"),
    [
        ("id INTEGER PRIMARY KEY, b", ""),
        ("b, id integer primary key asc", ""),
        ("id INTEGER PRIMARY KEY DESC, b", ""),
        ("id INT PRIMARY KEY, b", ""),
        ("b DEFAULT (1 + 2), [id] INTEGER CONSTRAINT k PRIMARY KEY", ""),
        ('"id" INTEGER, b VARCHAR(10, 2) DEFAULT \'a,)\', CONSTRAINT k PRIMARY KEY ("ID")', ""),
        ("id INTEGER, b, PRIMARY KEY (id, b)", ""),
        ("id INTEGER, b INTEGER, UNIQUE (b), CHECK (b > 0), FOREIGN KEY (b) REFERENCES other (id)", ""),
        ("id INTEGER /* PRIMARY KEY */, `b` -- x\n", "STRICT"),
    ],
)
def test_the_columns_of_a_table_are_those_that_sqlite_knows(columns, more, tmp_path):
    if more == "STRICT":
        columns, more = columns.replace("`b`", "`b` TEXT"), more if sqlite3.sqlite_version_info >= (3, 37) else ""
    with connected(tmp_path / "a.sqlite") as db:
        db.execute(f"CREATE TABLE t ({columns}) {more}")
        db.execute("INSERT INTO t (id, b) VALUES (?, ?)", (77, "5"))
        expected = [row[1] for row in db.execute("PRAGMA table_info(t)")]
        values = db.execute("SELECT * FROM t").fetchone()
    with closing(Database(str(tmp_path / "a.sqlite"))) as database:
        table = database.schema().tables["t"]
        assert list(table.columns) == expected
        assert next(database.rows(table, pytest.fail))[1] == list(values)
