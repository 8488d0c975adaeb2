"""Codes of errors are words as people spell them."""

import pytest

from kinetoscope_tb.errors import KinetoscopeError, NotATrace, TraceError
from kinetoscope_tb.web.capture import NotJSON, TooLarge


@pytest.mark.parametrize(
    ("kind", "code"),
    [(NotATrace, "not_a_trace"), (NotJSON, "not_json"), (TooLarge, "too_large"), (TraceError, "trace_error")],
)
def test_a_code_is_the_name_in_snake_case(kind, code):
    assert kind.code.fget(kind.__new__(kind)) == code


def test_no_code_is_spelled_letter_by_letter():
    kinds = [KinetoscopeError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    words = [word for kind in kinds for word in kind.code.fget(kind.__new__(kind)).split("_")]
    assert len(kinds) > 10
    assert not [word for word in words if len(word) == 1 and word != "a"]
