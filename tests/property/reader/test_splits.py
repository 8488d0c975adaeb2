"""However the text is split, and by however many threads it is scanned, the trace is the same, also of damaged text."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from kinetoscope_tb.errors import TraceError
from kinetoscope_tb.reader import read_blocks
from kinetoscope_tb.trace.model import COLLECTED
from property.reader.test_damage import built

TEXT = built()


def read_split(text, cuts, threads):
    borders = [0, *sorted(cuts), len(text)]
    blocks = [text[begin:end] for begin, end in pairwise(borders)]
    try:
        return read_blocks(blocks, path="split.json", threads=threads)
    except TraceError as error:
        return str(error)


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_no_split_changes_the_trace(data):
    text = bytearray(TEXT)
    for at in data.draw(st.lists(st.integers(0, len(text) - 1), max_size=2)):
        text[at] = data.draw(st.integers(0, 255))
    text = bytes(text[: data.draw(st.sampled_from([len(text), len(text) // 2]))])
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=40))
    whole = read_split(text, [], 1)
    split = read_split(text, cuts, data.draw(st.integers(1, 4)))
    if isinstance(whole, str) or isinstance(split, str):
        assert whole == split
        return
    assert split.meta == whole.meta
    assert split.diagnostics == whole.diagnostics
    for frame in (*COLLECTED, "threads"):
        assert getattr(split, frame).equals(getattr(whole, frame)), frame
