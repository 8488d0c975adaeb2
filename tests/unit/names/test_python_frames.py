"""Names of Python's frames."""

import pytest

from kinetoscope_tb.names.python_frames import function_name


@pytest.mark.parametrize(
    ("frame", "name"),
    [
        ("<built-in function zoom_shift>", "zoom_shift"),
        ("<built-in method astype of numpy.ndarray object>", "ndarray.astype"),
        ("<built-in method item of Tensor object>", "Tensor.item"),
        ("<built-in method randn of type object>", "randn"),
        ("<built-in method collect of module object>", "collect"),
        ("<built-in method weird name>", "<built-in method weird name>"),
        ("normalize", "normalize"),
        ("<lambda>", "<lambda>"),
    ],
)
def test_built_in_functions_are_called_as_their_callers_write_them(frame, name):
    assert function_name(frame) == name
