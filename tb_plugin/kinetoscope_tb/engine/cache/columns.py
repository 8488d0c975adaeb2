"""Columns as bytes, in a format whose every length is checked before it is used.

    magic · blocks · head · length of the head (8) · its checksum (4) · magic

The head is JSON: the positions of the blocks and columns, and other values. A block is a sequence of columns,
compressed with zstd if that makes it smaller. In files that are mapped into memory each block has one column, aligned
and uncompressed.

The bytes are untrusted, and checksums are no signatures. So nothing is allocated before its size was checked against
the size of the file, columns have one of a few types, and texts are UTF-8. Callers check the values.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, pairwise
from typing import IO, Any

import numpy as np
import polars as pl
import zstandard
from numpy.typing import NDArray

from ...arrays.gather import category_codes
from .values import BrokenEntry, mapping, parse_json, sequence, whole

MAGIC_BYTES = 18
MOST_HEAD_BYTES = 1 << 22
MOST_JSON_BYTES = 1 << 26  # of a column that is JSON
MOST_GROWTH = 32  # largest expansion of each byte of a file
GROWTH_SLACK = 1 << 16  # bytes of expansion that any file may have

_TAIL = struct.Struct(f"<QI{MAGIC_BYTES}s")
TAIL_BYTES = _TAIL.size
_BLOCK_BYTES = 1 << 20  # smaller columns share a block
_ALIGNED = 64  # bytes: a cache line
_THREADS = 4  # that decompress large entries
_MUCH = 4 << 20
_WINDOW_BYTES = 1 << 23  # zstd's
_NARROW = [np.dtype(name) for name in ("i1", "<i2", "<i4", "<i8")]
_DTYPES = {d.str: d for d in (*_NARROW, *map(np.dtype, ("u1", "<u2", "<u4", "<u8", "<f4", "<f8")))}
_INTEGERS: dict[Any, Any] = {
    kind: np.dtype(name) for kind, name in ((pl.Int64, "i8"), (pl.Int32, "i4"), (pl.Int16, "i2"), (pl.Int8, "i1"))
}

Read = Callable[[int, int], "bytes | memoryview"]
Column = list[Any]
"""The position of a column: block, byte offset, type, number of values."""


class Writer:
    """Writes columns to a file, and then the head.

    Args:
        file: The file, positioned where this begins.
        magic: Identifies the kind of file, in MAGIC_BYTES bytes.
        is_mapped: Whether columns are written so that they can be mapped into memory.
    """

    def __init__(self, file: IO[bytes], magic: bytes, *, is_mapped: bool = False) -> None:
        self._file, self._magic, self._is_mapped = file, magic, is_mapped
        self._pending: list[Any] = []
        self._pending_bytes = 0
        self._blocks: list[tuple[int, int, int, int]] = []
        self._at = file.write(magic)
        self._size = 0
        self._compressor = zstandard.ZstdCompressor(level=1, write_content_size=False)

    def array(self, values: NDArray[Any]) -> Column:
        """Write numbers in their own type."""
        data = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
        if data.dtype.str not in _DTYPES:
            raise TypeError(f"{values.dtype} can't be written as a column")
        column = [len(self._blocks), self._pending_bytes, data.dtype.str, int(data.size)]
        if data.nbytes:
            self._pending.append(data.reshape(-1).view("u1").data)
            self._pending_bytes += data.nbytes
        if self._pending_bytes >= _BLOCK_BYTES or self._is_mapped:
            self._flush()
        return column

    def integers(self, values: NDArray[np.integer]) -> Column:
        """Write integers in the smallest type that fits."""
        least, most = (int(values.min()), int(values.max())) if values.size else (0, 0)
        fits = (d for d in _NARROW if np.iinfo(d).min <= least and most <= np.iinfo(d).max)
        return self.array(values.astype(next(fits)))

    def texts(self, texts: pl.Series) -> dict[str, Column]:
        """Write texts, some of which may be null."""
        lengths = texts.str.len_chars().cast(pl.Int64).fill_null(-1).to_numpy()
        whole = "".join(texts.drop_nulls().to_list()).encode()
        return {"lengths": self.integers(lengths), "utf8": self.array(np.frombuffer(whole, "u1"))}

    def json(self, value: Any, default: Callable[[Any], Any] | None = None) -> Column:
        """Write a JSON value that may be long; `default` converts other objects.

        Raises:
            ValueError, TypeError, RecursionError: It can't be written as JSON.
        """
        return self.array(np.frombuffer(json.dumps(value, default=default).encode(), "u1"))

    def frame(self, frame: pl.DataFrame) -> dict[str, Any]:
        """Write a frame; only texts may be null.

        Raises:
            TypeError: A column has another type.
        """
        # By `select`, since a frame keeps the rows of a scalar column that is taken by its name.
        columns = {name: self._column(frame.select(name).to_series()) for name in frame.columns}
        return {"rows": frame.height, "columns": columns}

    def _column(self, column: pl.Series) -> Any:
        if isinstance(column.dtype, pl.Enum):
            return {"codes": self.integers(category_codes(column)), "categories": self.texts(column.dtype.categories)}
        if column.dtype == pl.String:
            return self.texts(column)
        values = column.explode() if isinstance(column.dtype, pl.Array) else column
        if values.null_count() or not (values.dtype.is_integer() or values.dtype in (pl.Float64, pl.Boolean)):
            raise TypeError(f"{column.name} ({column.dtype}) can't be written as a column")
        if values.dtype == pl.Float64:
            return self.array(values.to_numpy())
        return self.integers(values.cast(pl.Int64).to_numpy())

    def end(self, head: Mapping[str, Any]) -> None:
        """Write the head: JSON values, among them what the other methods returned.

        Raises:
            ValueError: The head is too large.
        """
        self._flush()
        missing = -(-(self._size - GROWTH_SLACK) // MOST_GROWTH) - self._at
        if missing > 0:  # pad: the reader rejects too large an expansion
            self._at += self._file.write(bytes(missing))
        text = json.dumps({**head, "blocks": self._blocks}).encode()
        if len(text) > MOST_HEAD_BYTES:
            raise ValueError("the head is too large")
        self._file.write(text)
        self._file.write(_TAIL.pack(len(text), zlib.crc32(text), self._magic))

    def _flush(self) -> None:
        """Write the pending columns as a block."""
        if not self._pending and not self._is_mapped:
            return
        size = self._pending_bytes
        data = self._pending[0] if len(self._pending) == 1 else b"".join(self._pending)
        if self._is_mapped:
            self._at += self._file.write(bytes(-self._at % _ALIGNED))
        else:
            smaller = self._compressor.compress(data)
            data = smaller if len(smaller) < size else data
        self._blocks.append((self._at, len(data), size, zlib.crc32(data)))
        self._at += self._file.write(data)
        self._size += size
        self._pending, self._pending_bytes = [], 0


class Reader:
    """Reads the output of a `Writer`.

    Args:
        read: Returns this many bytes from an offset; fewer only if the file was truncated.
        size: Size in bytes.
        magic: The expected kind of file.

    Attributes:
        head: The values in the head.

    Raises:
        BrokenEntry: The file is of another kind, damaged or forged.
    """

    def __init__(self, read: Read, size: int, magic: bytes) -> None:
        start, self.head = read_head(read, size, magic)
        self._blocks = _read_blocks(read, self.head.get("blocks"), start)

    @classmethod
    def of(cls, data: bytes | memoryview, magic: bytes) -> Reader:
        """Read from memory, or from a mapped file."""
        return cls(reading(data), len(data), magic)

    def array(self, column: Any, dtype: str, size: int | None = None) -> NDArray[Any]:
        """Numbers of exactly this type and count; not copied.

        Raises:
            BrokenEntry: The column differs, or is missing.
        """
        if not (isinstance(column, list) and len(column) == 4 and isinstance(column[2], str)):
            raise BrokenEntry("its head has no position of a column")
        stored_dtype = _DTYPES.get(column[2])
        at = whole(column[1], 0)
        count = whole(column[3], 0)
        if stored_dtype is None or column[2] != dtype:
            raise BrokenEntry(f"a column is of type {column[2][:20]!r}")
        if size is not None and count != size:
            raise BrokenEntry(f"a column has {count} values instead of {size}")
        if not count:
            return np.empty(0, stored_dtype)
        block = self._blocks[whole(column[0], 0, len(self._blocks) - 1)]
        if count > (len(block) - at) // stored_dtype.itemsize:
            raise BrokenEntry("a column is longer than what holds it")
        values = np.frombuffer(block, stored_dtype, count, at)
        return values if values.flags.aligned else values.copy()

    def integers(self, column: Any, most_bytes: int, size: int) -> NDArray[np.signedinteger]:
        """Integers of a type of at most this many bytes; not copied.

        Raises:
            BrokenEntry: The column differs, or is missing.
        """
        code = column[2] if isinstance(column, list) and len(column) == 4 else None
        dtype = _DTYPES.get(code) if isinstance(code, str) else None
        if dtype is None or dtype.kind != "i" or dtype.itemsize > most_bytes:
            raise BrokenEntry("a column isn't one of such integers")
        return self.array(column, dtype.str, size)

    def json(self, column: Any) -> Any:
        """A JSON value.

        Raises:
            BrokenEntry: It isn't JSON, or is missing.
        """
        data = self.array(column, "|u1")
        if data.size > MOST_JSON_BYTES:
            raise BrokenEntry("its JSON is too long")
        return parse_json(data.tobytes())

    def texts(self, column: Any, size: int | None = None) -> list[str | None]:
        """Exactly this many texts.

        Raises:
            BrokenEntry: They aren't texts, or are missing.
        """
        column = mapping(column)
        lengths_place = column.get("lengths")
        if size is None:
            size = whole(lengths_place[3], 0) if isinstance(lengths_place, list) and len(lengths_place) == 4 else 0
        lengths = self.integers(lengths_place, 8, size).tolist()
        data = self.array(column.get("utf8"), "|u1").tobytes()
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise BrokenEntry("a text isn't UTF-8") from error
        ends = list(accumulate((max(length, 0) for length in lengths), initial=0))
        if ends[-1] != len(text) or min(lengths, default=0) < -1:
            raise BrokenEntry("texts aren't as long as what holds them")
        return [None if n < 0 else text[begin:end] for n, (begin, end) in zip(lengths, pairwise(ends), strict=True)]

    def frame(self, column: Any, schema: Mapping[str, Any]) -> pl.DataFrame:
        """A frame of exactly these columns; `pl.Enum` itself is an enum of any texts.

        Raises:
            BrokenEntry: The frame differs, or is missing.
        """
        column = mapping(column)
        rows = whole(column.get("rows"), 0, 1 << 31)
        columns = mapping(column.get("columns"))
        if list(columns) != list(schema):
            raise BrokenEntry("a frame has other columns")
        return pl.DataFrame([self._series(name, columns[name], kind, rows) for name, kind in schema.items()])

    def _series(self, name: str, column: Any, kind: Any, rows: int) -> pl.Series:
        dtype = _INTEGERS.get(kind)
        if dtype is not None:
            return pl.Series(name, self.integers(column, dtype.itemsize, rows).astype(dtype))
        if kind == pl.Enum:
            return self._enum(name, mapping(column), kind, rows)
        if kind == pl.String:
            return pl.Series(name, self.texts(column, rows), pl.String)
        if kind == pl.Float64:
            return pl.Series(name, self.array(column, "<f8", rows).copy())
        if kind == pl.Boolean:
            values = self.integers(column, 1, rows)
            _fail_if_beyond(values, 0, 1, name)
            return pl.Series(name, values.astype(bool))
        if isinstance(kind, pl.Array):
            values = self.integers(column, 8, rows * kind.shape[0]).astype(np.int64)
            return pl.Series(name, values.reshape(rows, kind.shape[0]), kind)
        raise TypeError(f"{name} ({kind}) can't be read from a column")

    def _enum(self, name: str, column: Mapping[str, Any], kind: Any, rows: int) -> pl.Series:
        texts = self.texts(column.get("categories"))
        if None in texts or len(set(texts)) != len(texts):
            raise BrokenEntry(f"the texts of {name} aren't apart")
        enum = pl.Enum(pl.Series(texts, dtype=pl.String))
        if isinstance(kind, pl.Enum) and enum != kind:
            raise BrokenEntry(f"{name} has other texts")
        codes = self.integers(column.get("codes"), 4, rows)
        _fail_if_beyond(codes, -1, len(texts) - 1, name)
        physical = pl.Series(dtype=enum).to_physical().to_numpy().dtype
        missing = codes < 0
        numbers = pl.Series(name, np.where(missing, 0, codes).astype(physical))
        return (numbers.set(pl.Series(missing), None) if missing.any() else numbers).cat.to(enum)


def _fail_if_beyond(values: NDArray[np.signedinteger], least: int, most: int, name: str) -> None:
    if values.size and not least <= int(values.min()) <= int(values.max()) <= most:
        raise BrokenEntry(f"a value of {name[:20]!r} is out of range")


def reading(data: bytes | memoryview) -> Read:
    """Reads from memory, without copying where that is possible."""
    view = memoryview(data)
    return lambda start, count: view[start : start + count]


def read_head(read: Read, size: int, magic: bytes) -> tuple[int, dict[str, Any]]:
    """The offset of the head, and its values.

    Raises:
        BrokenEntry: The file is of another kind, or damaged.
    """
    if size < len(magic) + TAIL_BYTES:
        raise BrokenEntry("it is too short")
    length, checksum = _head_length(bytes(read(size - TAIL_BYTES, TAIL_BYTES)), magic, size)
    start = size - TAIL_BYTES - length
    text = bytes(read(start, length))
    if zlib.crc32(text) != checksum:
        raise BrokenEntry("its head was damaged")
    return start, dict(mapping(parse_json(text)))


def _head_length(tail: bytes, magic: bytes, size: int) -> tuple[int, int]:
    """Length and checksum of the head, from the last TAIL_BYTES of a file of this size.

    Raises:
        BrokenEntry: The file is of another kind, or damaged.
    """
    length, checksum, end = _TAIL.unpack(tail) if len(tail) == TAIL_BYTES else (0, 0, b"")
    if end != magic or length > min(MOST_HEAD_BYTES, size - TAIL_BYTES - len(magic)):
        raise BrokenEntry("it has no head")
    return int(length), int(checksum)


def _read_blocks(read: Read, value: Any, end: int) -> list[Any]:
    """The blocks; all of them end before `end`, where the head begins."""
    extents = []
    for extent in sequence(value):
        start, length, size, checksum = sequence(extent, 4)
        extents.append((whole(start, 0, end), whole(length, 0, end), whole(size, 0), whole(checksum, 0)))
    if any(start + length > end or length > size for start, length, size, _ in extents):
        raise BrokenEntry("a block is beyond its end")
    size = sum(size for _, _, size, _ in extents)
    if sum(length for _, length, _, _ in extents) > end or size > MOST_GROWTH * end + GROWTH_SLACK:
        raise BrokenEntry("it claims more content than it can have")
    parts = [(read(start, length), size, checksum) for start, length, size, checksum in extents]
    if size < _MUCH or len(extents) < 2:
        return [_block(*part) for part in parts]
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(_block, *zip(*parts, strict=True)))


def _block(data: bytes | memoryview, size: int, checksum: int) -> Any:
    """A block's bytes: a view if they aren't compressed."""
    if zlib.crc32(data) != checksum:
        raise BrokenEntry("a block was damaged")
    if len(data) == size:
        return data
    out = bytearray(size)
    view, at = memoryview(out), 0
    try:
        with zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES).stream_reader(data) as reader:
            while at < size and (count := reader.readinto(view[at:])):
                at += count
            if at < size or reader.read(1):
                raise BrokenEntry("a block is of another size")
    except zstandard.ZstdError as error:
        raise BrokenEntry("a block can't be decompressed") from error
    return out
