"""Damage to a file as such: its compression, its encoding, its name, and what is left of it."""

import bz2
import contextlib
import gzip
import io
import lzma
import random
import tarfile
import zlib

import pytest
import zstandard

from kinetoscope_tb.errors import NotATrace
from kinetoscope_tb.reader import read
from support.build import TraceBuilder

COMPRESS = {
    ".gz": gzip.compress,
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
}


def text(events=3):
    trace = TraceBuilder()
    for i in range(events):
        trace.op(f"op {i}", 10 * i, 5)
    return trace.text()


def rules(trace):
    return {diagnostic.rule: diagnostic.count for diagnostic in trace.diagnostics}


def of(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(data)
    return read(path)


@pytest.mark.parametrize("suffix", COMPRESS)
def test_compressed_files_are_read_in_one_or_more_parts(tmp_path, suffix):
    compress, data = COMPRESS[suffix], text().encode()
    for packed in (compress(data), compress(data[:300]) + compress(data[300:])):
        trace = of(tmp_path, f"t.json{suffix}", packed)
        assert trace.host_events["name"].to_list() == ["op 0", "op 1", "op 2"]
        assert trace.diagnostics == ()


def test_padding_between_xz_streams_is_skipped_and_a_huge_dictionary_refused(tmp_path):
    packed = lzma.compress(text().encode())
    trace = of(tmp_path, "t.json.xz", packed[: len(packed)] + bytes(8) + lzma.compress(b"\n") + bytes(4))
    assert (trace.host_events.height, trace.diagnostics) == (3, ())
    huge = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << 29}]
    with pytest.raises(NotATrace):
        of(tmp_path, "t.json.xz", lzma.compress(text().encode(), filters=huge))


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("name", ["t.json", "t.json.gz", "t.json.xz"])
def test_the_content_says_what_a_file_is_and_a_wrong_name_is_noted(tmp_path, suffix, name):
    trace = of(tmp_path, name, COMPRESS[suffix](text().encode()))
    assert trace.host_events.height == 3
    assert rules(trace) == ({} if name.endswith(suffix) else {"wrong_suffix": 1})


@pytest.mark.parametrize("lost", [0, 9])
def test_a_file_that_was_compressed_twice_is_read_as_far_as_it_goes(tmp_path, lost):
    inner = gzip.compress(text().encode())
    trace = of(tmp_path, "t.json.gz", gzip.compress(inner[: len(inner) - lost]))
    assert trace.host_events.height == 3  # nine bytes less lack the trailer
    found = rules(trace)
    assert found.pop("wrong_suffix") == 1
    assert bool(found) == bool(lost)


def test_plain_text_that_is_named_gz_is_read(tmp_path):
    trace = of(tmp_path, "t.json.gz", text().encode())
    assert trace.host_events.height == 3
    assert rules(trace) == {"wrong_suffix": 1}


@pytest.mark.parametrize("suffix", COMPRESS)
def test_a_truncated_compressed_file_keeps_what_it_still_holds(tmp_path, suffix):
    numbers = random.Random(1)
    trace = TraceBuilder()
    for i in range(20_000):
        trace.op(f"op {numbers.getrandbits(64):x}", 1000 * i, numbers.randrange(900))
    packed = COMPRESS[suffix](trace.text().encode())
    damaged = of(tmp_path, f"t.json{suffix}", packed[: len(packed) // 2])
    assert 1000 < damaged.host_events.height < 20_000
    assert rules(damaged)["truncated"] == 1
    assert suffix == ".zst" or rules(damaged)["damaged_compression"] == 1


@pytest.mark.parametrize("suffix", COMPRESS)
def test_damaged_compression_is_a_finding_or_an_error_and_nothing_else(tmp_path, suffix):
    sound = COMPRESS[suffix](text(300).encode())
    for at in range(20, len(sound), 97):
        packed = sound[:at] + b"\x55\xaa" + sound[at + 2 :]
        with contextlib.suppress(NotATrace):
            assert of(tmp_path, f"t.json{suffix}", packed).diagnostics


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le"])
@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_utf_16_and_utf_32_are_converted(tmp_path, encoding, compress):
    data = text().replace("op 1", "Größe 🙂").encode(encoding)
    trace = of(tmp_path, "t", compress(data))
    assert trace.host_events["name"].to_list() == ["op 0", "Größe 🙂", "op 2"]
    assert rules(trace) == {"converted_encoding": 1}


def test_a_byte_order_mark_is_noted(tmp_path):
    trace = of(tmp_path, "t.json", text().encode("utf-8-sig"))
    assert trace.host_events.height == 3
    assert rules(trace) == {"byte_order_mark": 1}


def test_an_unfinished_file_is_read_and_said_to_be_one(tmp_path):
    trace = of(tmp_path, "t.json.tmp", text().encode()[:-40])
    assert trace.host_events.height == 2
    assert rules(trace) == {"unfinished_file": 1, "truncated": 1}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" \n",
        b"\0" * 5000,
        b"\xef\xbb\xbf",
        pytest.param(gzip.compress(b""), id="gzip of nothing"),
        b"\x1f\x8b",
        b"BZh9",
    ],
)
def test_a_file_without_anything_in_it_is_no_trace(tmp_path, data):
    with pytest.raises(NotATrace):
        of(tmp_path, "t.json", data)


def problem(tmp_path, data, name="t.json"):
    with pytest.raises(NotATrace) as caught:
        of(tmp_path, name, data)
    return str(caught.value)


def tar_of(data):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        member = tarfile.TarInfo("t.json")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935\nsize 12345\n"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(tar_of(b"{}"), "it is a tar archive; unpack it first.", id="tar"),
        pytest.param(gzip.compress(tar_of(b"{}")), "it is a tar archive; unpack it first.", id="tar in gzip"),
        pytest.param(gzip.compress(b"PK\x03\x04" + b"\0" * 99), "it is a zip archive; unpack it", id="zip in gzip"),
        pytest.param(b"\x04\x22\x4d\x18" + b"d" * 99, "compressed with lz4, which isn't read; decompress it", id="lz4"),
        pytest.param(zlib.compress(b"{}" * 99), "it is zlib data, which isn't read; decompress it", id="zlib"),
        pytest.param(lzma.compress(gzip.compress(b"{}")), "compressed another time, with gzip", id="gzip in xz"),
        pytest.param(gzip.compress(bz2.compress(b"{}")), "compressed another time, with bzip2", id="bzip2 in gzip"),
        pytest.param(LFS, "pointer of Git LFS in place of the file. Get the file with `git lfs pull`", id="Git LFS"),
        pytest.param(b"/annex/objects/SHA256E-s9--4d7a.json\n", "Get the file with `git annex get`", id="git-annex"),
        pytest.param(b"\0" * 9000, " bytes are zero: perhaps it was copied before it was written", id="zeros"),
        pytest.param(b"\0" * 4096 + text().encode(), "its first 4,096 bytes are zero", id="zeros before text"),
        pytest.param(b"\0\1\2" + b"d" * 99, "this isn't JSON", id="a zero byte"),
        pytest.param(b"x^2 + 1", "this isn't JSON", id="text"),
    ],
)
def test_what_has_to_be_unpacked_or_fetched_first_is_named(tmp_path, data, words):
    assert words in problem(tmp_path, data)
