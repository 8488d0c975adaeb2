import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope import SaveError
from kinetoscope.metadata import KEY, splice

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
OBJECTS = st.dictionaries(st.text().filter(lambda key: key != KEY), JSON, max_size=4)


def spliced(text, metadata):
    target = io.BytesIO()
    splice(io.BytesIO(text), target, metadata)
    return target.getvalue()


@given(OBJECTS, OBJECTS, st.sampled_from([None, 2]), st.sampled_from(["", " \n", "\t\r\n"]))
def test_a_trace_gains_one_key_and_keeps_all_others(trace, metadata, indent, blank):
    text = blank + json.dumps(trace, indent=indent)
    assert json.loads(spliced(text.encode(), metadata)) == {KEY: metadata, **trace}


def test_the_rest_of_the_trace_is_copied_unread():
    rest = b'"traceEvents": [\n  {"name": "bro"ken \xff' + b"x" * 3_000_000
    assert spliced(b"{" + rest, {"run": 'é"'}) == b'{"kinetoscope": {"run": "\\u00e9\\""},\n' + rest


@pytest.mark.parametrize("text", [b"", b"[{}]", b"not a trace"])
def test_what_is_no_object_is_refused(text):
    with pytest.raises(SaveError, match="not a trace"):
        spliced(text, {})
