import pytest

from kinetoscope_tb.reader.writer_fingerprint import Samples
from support.build import TraceBuilder


def marks(text, block=1 << 30):
    samples = Samples()
    data = text.encode()
    for _ in samples.pass_on(data[i : i + block] for i in range(0, len(data), block)):
        pass
    return samples.fingerprint()


def test_blocks_pass_as_they_are():
    assert list(Samples().pass_on([b"ab", b"", b"c"])) == [b"ab", b"", b"c"]


def test_keys_and_categories_of_events_are_marks_and_those_before_them_are_not():
    fingerprint = marks(
        '{"note": {"Seq": 1}, "traceEvents": [{"cat": "cpu_op", "args": {"Ev Idx": 2, "a": "\\"b\\": 1"}}]}'
    )
    assert fingerprint.keys == {"cat", "args", "Ev Idx", "a"}
    assert fingerprint.categories == {"cpu_op"}


@pytest.mark.parametrize("block", [1000, 99_991, 1 << 20])
def test_samples_do_not_depend_on_the_size_of_blocks(block):
    builder = TraceBuilder()
    for i in range(20_000):
        builder.op("a" * 50, i * 10, 5, **{f"key {i // 100}": 1})
    text = builder.text()
    assert len(text) > 3 << 20
    fingerprint = marks(text, block)
    assert fingerprint == marks(text)
    assert {"key 0", "key 199"} <= fingerprint.keys


def times(*fractions):
    return marks('{"traceEvents": [' + ", ".join(f'{{"ts": 1{f}}}' for f in fractions) + "]}").forms


def test_decimals_tell_how_times_were_written():
    some = range(1, 1000, 7)
    assert times("", "") == {"whole_times"}
    assert times(*(f".{n:03d}" for n in some)) == set()
    assert times(*(f".{n}" for n in some)) == {"bare_fractions"}
    assert times(*(f".{n:03d}".rstrip("0") for n in some)) == set()
    assert times(".5", ".50", ".512") == set()  # too few to tell


def test_the_place_of_the_base_time_is_told():
    base = '"baseTimeNanoseconds": 5'
    assert marks(f'{{{base}, "traceEvents": []}}').forms == {"base_first"}
    assert marks(f'{{"traceEvents": [], {base}}}').forms == {"base_last"}
    assert marks('{"traceEvents": []}').forms == set()
