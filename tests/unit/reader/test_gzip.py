"""gzip files with wrong checksums, cut off, or followed by something else: whatever inflates is read."""

import bz2
import gzip
import lzma
import random
import zlib

import fsspec
import pytest

from kinetoscope_tb.discovery.header_probe import head_in
from kinetoscope_tb.errors import NotATrace
from kinetoscope_tb.reader import read
from kinetoscope_tb.reader.input.gunzip import GzipDamage, inflate
from support.build import TraceBuilder


def trace_text(events=3):
    trace, numbers = TraceBuilder(), random.Random(1)
    for i in range(events):
        trace.op(f"op {numbers.getrandbits(64):x}", 1000 * i, numbers.randrange(900))
    return trace.text().encode()


def inflated(data, read_bytes=1 << 16):
    at, damage = 4, GzipDamage()

    def read_next(at_most):
        nonlocal at
        part = data[at : at + min(at_most, read_bytes)]
        at += len(part)
        return part

    return b"".join(inflate(read_next, data[:4], damage)), damage


def in_memory(path, data):
    fsspec.filesystem("memory").pipe(path, data)
    return f"memory:/{path}"


@pytest.fixture(params=["local", "remote"])
def place(request, tmp_path):
    def put(data):
        if request.param == "remote":
            return in_memory("/gzip/t.json.gz", data)
        path = tmp_path / "t.json.gz"
        path.write_bytes(data)
        return path

    return put


@pytest.mark.parametrize("events", [3, 20_000])
@pytest.mark.parametrize(("from_end", "words"), [(8, "checksum (CRC-32) at byte"), (1, "length at byte")])
def test_a_wrong_checksum_loses_nothing_and_is_a_finding(place, events, from_end, words):
    packed = bytearray(gzip.compress(trace_text(events)))
    packed[-from_end] ^= 1
    trace = read(place(bytes(packed)))
    assert trace.host_events.height == events
    (diagnostic,) = trace.diagnostics
    assert (diagnostic.rule, diagnostic.count) == ("wrong_checksum", 1)
    assert (
        f"{words} {len(packed) - (8 if from_end > 4 else 4)} of the compressed file is wrong" in diagnostic.consequence
    )


def test_a_file_with_a_wrong_checksum_is_listed_as_the_trace_that_it_is():
    packed = gzip.compress(TraceBuilder(schemaVersion=1).op("op", 0, 5).text().encode())
    assert head_in(packed[:-8] + bytes(8))[0] == head_in(packed)[0]
    assert head_in(packed)[0].is_trace


def test_a_wrong_checksum_of_one_member_does_not_lose_the_others():
    text = trace_text(50)
    first, second = gzip.compress(text[:200]), gzip.compress(text[200:])
    got, damage = inflated(first[:-8] + bytes(8) + second)
    assert got == text
    assert (damage.wrong_trailers, damage.problem) == (1, "")
    assert damage.first_wrong == f"checksum (CRC-32) at byte {len(first) - 8} and the length at byte {len(first) - 4}"


def test_all_that_inflates_of_a_truncated_file_is_read(place):
    packed = gzip.compress(trace_text(5000))
    for cut in (len(packed) // 2, len(packed) - 9, len(packed) - 8, len(packed) - 1):
        trace = read(place(packed[:cut]))
        whole = zlib.decompressobj(wbits=31).decompress(packed[:cut])
        rules = {diagnostic.rule: diagnostic for diagnostic in trace.diagnostics}
        assert "ends too early" in rules["damaged_compression"].consequence
        assert trace.host_events.height == whole.count(b'"ph"') - ("truncated" in rules and not whole.endswith(b"}}"))
        assert inflated(packed[:cut])[0] == whole


def test_a_part_of_the_file_that_cannot_be_read_is_stated_and_one_that_was_never_written_is_unknown(place):
    packed = gzip.compress(trace_text(5000), compresslevel=1)
    behind = packed + b"garbage" * (len(packed) // 7)
    for file, lost in ((behind, "the data after it, 50 % of the file, is lost"), (packed[:-9], "an unknown part")):
        rules = {diagnostic.rule: diagnostic for diagnostic in read(place(file)).diagnostics}
        assert lost in rules["damaged_compression"].consequence


EXTRA = {"words": b"garbage", "half a magic": b"\x1f", "a header cut off": b"\x1f\x8b\x08\0\0\0\0\0\0"}


@pytest.mark.parametrize("extra", EXTRA)
def test_what_follows_the_last_member_and_is_no_gzip_loses_nothing(place, extra):
    packed = gzip.compress(trace_text())
    trace = read(place(packed + EXTRA[extra]))
    assert trace.host_events.height == 3
    (diagnostic,) = trace.diagnostics
    assert diagnostic.rule == "damaged_compression"
    assert f"ends at byte {len(packed)}" in diagnostic.consequence


HEADERS = {
    "extra": (4, b"\5\0EXTRA"),
    "name": (8, b"trace.json\0"),
    "comment": (16, b"a comment\0"),
    "header checksum": (2, b"\1\2"),
    "all": (30, b"\5\0EXTRA" + b"trace.json\0" + b"a comment\0" + b"\1\2"),
}


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("read_bytes", [1, 7, 1 << 16])
def test_every_part_of_a_header_is_skipped_wherever_a_read_cuts_it(header, read_bytes):
    flags, fields = HEADERS[header]
    packed = gzip.compress(trace_text())
    with_fields = packed[:3] + bytes([flags]) + packed[4:10] + fields + packed[10:]
    got, damage = inflated(with_fields + bytes(5) + packed, read_bytes)
    assert got == 2 * trace_text()
    assert damage == GzipDamage()
    for cut in range(4, 10 + len(fields)):
        assert inflated(with_fields[:cut], read_bytes) == (
            b"",
            GzipDamage("ends at byte 0, inside the header of its first member"),
        )


def test_damage_in_the_middle_keeps_what_comes_before():
    text = random.Random(2).randbytes(3_000_000).hex().encode()
    packed = bytearray(gzip.compress(text))
    middle = len(packed) // 2
    packed[middle : middle + 2000] = b"\xff" * 2000
    got, damage = inflated(bytes(packed))
    assert "is damaged before byte" in damage.problem or damage.wrong_trailers
    assert got[: len(text) // 2 - 200_000] == text[: len(text) // 2 - 200_000]


DAMAGED = "is damaged or ends before any text"


@pytest.mark.parametrize(
    ("name", "compress", "text", "kept_bytes", "what"),
    [
        ("gzip", gzip.compress, b"", 10, DAMAGED),
        ("gzip", gzip.compress, trace_text(), 14, DAMAGED),
        ("gzip", gzip.compress, b"", None, "holds no text"),
        ("gzip", gzip.compress, gzip.compress(b"", mtime=0), None, "holds no text"),
        ("bzip2", bz2.compress, trace_text(), 20, DAMAGED),
        ("bzip2", bz2.compress, b"", None, "holds no text"),
        ("xz", lzma.compress, trace_text(), 20, DAMAGED),
        ("xz", lzma.compress, b"", None, "holds no text"),
    ],
    ids=["header", "cut", "empty", "twice", "bzip2 cut", "bzip2 empty", "xz cut", "xz empty"],
)
def test_compressed_data_without_text_is_no_empty_text(tmp_path, name, compress, text, kept_bytes, what):
    path = tmp_path / "t.json.gz"
    path.write_bytes(compress(text)[:kept_bytes])
    with pytest.raises(NotATrace, match=f"its {name} data {what}. Copy the file again"):
        read(path)
