"""Files that cost a reader much more than their size, written byte by byte as no program writes them."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

PAGE = 4096
LEAST_LOCAL = (PAGE - 12) * 32 // 255 - 23
STRINGS = "CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)"
RANGES = "CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, globalTid INT, textId INT, text TEXT)"


def write_bomb(path: Path) -> None:
    """A trace of ten gigabytes: its events begin, and spaces follow in as many gzip members as are needed."""
    member = gzip.compress(b" " * (64 << 20), compresslevel=9, mtime=0)
    with path.open("wb") as file:
        file.write(gzip.compress(b'{"traceEvents": [', mtime=0))
        for _ in range(10_000_000_000 // (64 << 20) + 1):
            file.write(member)


def varint(value: int) -> bytes:
    """A number as SQLite stores it."""
    groups = [value & 127]
    while value := value >> 7:
        groups.append(value & 127 | 128)
    return bytes(reversed(groups))


def record(*values: int | str | None, longer: int = 0) -> bytes:
    """A row; `longer` is by how much its last text is longer than its bytes here."""
    kinds, data = [], b""
    for nth, value in enumerate(values):
        if value is None:
            kinds.append(0)
        elif isinstance(value, int):
            kinds.append(6)
            data += struct.pack(">q", value)
        else:
            kinds.append(13 + 2 * (len(value) + longer * (nth == len(values) - 1)))
            data += value.encode()
    head = b"".join(map(varint, kinds))
    return varint(len(head) + 1) + head + data


class Pages:
    """A database that is being put together; page 1 comes last."""

    def __init__(self, page: int = PAGE) -> None:
        self.page, self.pages = page, [b""]

    def add(self, content: bytes) -> int:
        """Append a page; returns its number."""
        self.pages.append(content.ljust(self.page, b"\0"))
        return len(self.pages)

    def leaf(self, cells: Sequence[bytes], head: int = 0) -> bytes:
        """A page of rows, the last of them first."""
        at, places, content = self.page, [], b""
        for cell in cells:
            at -= len(cell)
            places.append(at)
            content = cell + content
        start = struct.pack(">BHHHB", 13, 0, len(cells), at % 65536, 0) + struct.pack(f">{len(cells)}H", *places)
        return bytes(head) + start.ljust(self.page - head - len(content), b"\0") + content

    def inner(self, children: Sequence[int], head: int = 0) -> bytes:
        """A page that refers to others."""
        cells = [struct.pack(">I", child) + varint(nth + 1) for nth, child in enumerate(children[:-1])]
        content = bytearray(self.leaf(cells, head))
        places = bytes(content[head + 8 : head + 8 + 2 * len(cells)])
        content[head] = 5
        content[head + 8 : head + 12 + len(places)] = struct.pack(">I", children[-1]) + places
        return bytes(content)

    def table(self, cells: Iterable[bytes]) -> int:
        """The first page of a table with these rows."""
        leaves, page, used = [], [], 8
        for cell in cells:
            if used + len(cell) + 2 > self.page:
                leaves.append(self.add(self.leaf(page)))
                page, used = [], 8
            page.append(cell)
            used += len(cell) + 2
        leaves.append(self.add(self.leaf(page)))
        while len(leaves) > 1:
            leaves = [self.add(self.inner(leaves[at : at + 200])) for at in range(0, len(leaves), 200)]
        return leaves[0]

    def write(self, path: Path, tables: Sequence[tuple[str, int]]) -> Path:
        """Write the file, with tables by their definitions and first pages."""
        rows = [("table", (name := sql.split()[2]), name, root, sql) for sql, root in tables]
        cells = [row_of(nth + 1, record(*row)) for nth, row in enumerate(rows)]
        return self.write_first(path, self.leaf(cells, head=100))

    def write_first(self, path: Path, first: bytes) -> Path:
        """Write the file, with this first page."""
        numbers = struct.pack(">HBBBBBB", 1 if self.page == 1 << 16 else self.page, 1, 1, 0, 64, 32, 32)
        header = (
            b"SQLite format 3\0" + numbers + struct.pack(">II", 1, len(self.pages)) + bytes(24) + struct.pack(">I", 1)
        )
        self.pages[0] = header.ljust(100, b"\0") + first[100:]
        path.write_bytes(b"".join(self.pages))
        return path


def row_of(number: int, content: bytes, overflow: int = 0, longer: int = 0) -> bytes:
    """A row in a page; `longer` is the size of its part on overflow pages."""
    return varint(len(content) + longer) + varint(number) + content + (struct.pack(">I", overflow) if longer else b"")


def chain(pages: Pages, count: int) -> int:
    """Overflow pages full of text; returns the first."""
    first = len(pages.pages) + 1
    for nth in range(count):
        following = first + nth + 1 if nth + 1 < count else 0
        pages.add(struct.pack(">I", following) + b"x" * (pages.page - 4))
    return first


def shared_texts(path: Path, rows: int = 2400, *, as_names: bool = False) -> Path:
    """Rows whose texts of 1 MB are all in the same pages; as_names: those of StringIds."""
    pages = Pages()
    first, size = chain(pages, 256), 256 * (PAGE - 4)

    def with_text(number: int, *values: int | None) -> bytes:
        fits = LEAST_LOCAL - len(record(*values, "", longer=size))
        return row_of(number, record(*values, f"{number:.<{fits}}", longer=size), first, size)

    numbers = range(1, rows + 1)
    short = [row_of(n, record(n, n + 1, 59, 1 << 24, n if as_names else None, None)) for n in numbers]
    texts = [with_text(n, None) for n in numbers]
    long = [with_text(n, n, n + 1, 59, 1 << 24, None) for n in numbers]
    strings = pages.table(texts if as_names else [row_of(1, record(None, "a name"))])
    return pages.write(path, [(STRINGS, strings), (RANGES, pages.table(short if as_names else long))])


def shared_name(path: Path, rows: int = 30_000) -> Path:
    """Ranges that all have the same long name of StringIds."""
    pages = Pages(1 << 16)
    strings = pages.table([row_of(1, record(None, "x" * 60_000))])
    ranges = [row_of(n, record(n, n + 1, 59, 1 << 24, 1, None)) for n in range(1, rows + 1)]
    return pages.write(path, [(STRINGS, strings), (RANGES, pages.table(ranges))])


def overlapping_rows(path: Path, leaves: int = 12) -> Path:
    """Rows whose texts are the rows behind them in their page."""
    pages = Pages(1 << 16)
    numbers = []
    for leaf in range(leaves):
        cells = [
            row_of(2000 * leaf + n + 1, record(5, 6, 59, 1, None, "", longer=20_000), 0, 20_000)[:-4]
            for n in range(700)
        ]
        page = bytearray(pages.leaf([b"x" * 22_000, *cells[::-1]]))
        count = struct.unpack_from(">H", page, 3)[0] - 1
        places = struct.unpack_from(f">{count}H", page, 10)[::-1]
        struct.pack_into(">H", page, 3, count)
        struct.pack_into(f">{count}H", page, 8, *places)
        numbers.append(pages.add(bytes(page)))
    root = pages.add(pages.inner(numbers))
    return pages.write(path, [(STRINGS, pages.table([row_of(1, record(None, "a"))])), (RANGES, root)])


def shared_pages(path: Path, levels: int = 6, children: int = 200) -> Path:
    """A table whose pages refer to the same pages again, level by level."""
    pages = Pages()
    page = pages.table([row_of(n, record(n, n + 1, 59, 1 << 24, 1, "a")) for n in range(1, 30)])
    for _ in range(levels):
        page = pages.add(pages.inner([page] * children))
    return pages.write(path, [(STRINGS, pages.table([row_of(1, record(None, "a"))])), (RANGES, page)])


def shared_schema(path: Path, levels: int = 6, children: int = 200) -> Path:
    """A schema whose pages refer to the same pages again: SQLite reads children ** levels definitions of tables."""
    pages = Pages()
    rows = [("table", f"t{n}", f"t{n}", 2, f"CREATE TABLE IF NOT EXISTS t{n} (a)") for n in range(3)]
    page = pages.table([row_of(n + 1, record(*row)) for n, row in enumerate(rows)])
    for _ in range(levels - 1):
        page = pages.add(pages.inner([page] * children))
    return pages.write_first(path, pages.inner([page] * children, head=100))


def endless_text(path: Path) -> Path:
    """A text of 2^39 bytes, whose pages follow one another in a circle."""
    pages = Pages()
    number = pages.add(struct.pack(">I", 2) + b"x" * (PAGE - 4))
    size = 1 << 39
    text = record(1, 2, 59, 1 << 24, None, "", longer=size)
    local = LEAST_LOCAL + (len(text) + size - LEAST_LOCAL) % (PAGE - 4)
    local = local if local <= PAGE - 35 else LEAST_LOCAL
    row = row_of(1, text + b"x" * (local - len(text)), number, size - (local - len(text)))
    good = row_of(2, record(5, 9, 59, 1 << 24, None, "good"))
    return pages.write(
        path, [(STRINGS, pages.table([row_of(1, record(None, "a"))])), (RANGES, pages.table([row, good]))]
    )


DATABASES = {
    "shared_schema": shared_schema,
    "shared_texts": shared_texts,
    "shared_names": lambda path: shared_texts(path, as_names=True),
    "shared_name": shared_name,
    "overlapping_rows": overlapping_rows,
    "shared_pages": shared_pages,
    "endless_text": endless_text,
}


def empty_lists(path: Path, before: bytes, after: bytes, count: int = 4_000_000) -> Path:
    """A compressed list of so many lists, a thousandth of its text in size."""
    path.write_bytes(gzip.compress(before + b"[]," * count + b"[]" + after, 6))
    return path


SIDE_CARS = {
    "lists": lambda path: empty_lists(path, b'{"1": [', b"]}"),
    "lists_of_nodes": lambda path: empty_lists(path, b'{"1": [' + b'[]],"1":['.join([b"[]," * 9_000] * 30), b"]}", 9),
}
"""Files beside a trace."""

EVENT = b'{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 5'
JSON = {
    "metadata": lambda path: empty_lists(path, b'{"a": [', b'], "traceEvents": [' + EVENT + b"}]}"),
    "metadata_at_the_end": lambda path: empty_lists(path, b'{"traceEvents": [' + EVENT + b'}], "a": [', b"]}"),
    "shapes": lambda path: empty_lists(path, b'{"traceEvents": [' + EVENT + b', "args": {"Input Dims": [', b"]}}]}"),
    "memory_timeline": lambda path: empty_lists(path, b"[[1], [[", b"]]]"),
}
