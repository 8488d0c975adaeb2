"""Files of other programs that were misread: all that is said of them is true."""

import pytest

from kinetoscope_tb.diagnostics.verification import verdict
from kinetoscope_tb.discovery import list_path
from kinetoscope_tb.engine.answers import compute
from kinetoscope_tb.reader import read
from kinetoscope_tb.views import VIEWS
from support.real_traces import FOLDER, MISSING

CASES = FOLDER.parent / "cases"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason=MISSING)


def lanes(trace):
    return compute(VIEWS["lanes"], trace, {}).select("lane", "busy_ns").rows()


@pytest.mark.parametrize(
    ("folder", "writer", "length_ns", "busy"),
    [
        (
            "09_jax_trace",
            "JAX (XLA's profiler)",
            24_000_000,
            [
                ("python (7)", 20_000_000),
                ("XLA Modules (1)", 17_500_000),
                ("stream 13", 17_500_000),
                ("XLA Ops (2)", 15_000_000),
            ],
        ),
        (
            "14_cupti_rows_without_category",
            "a tracer of GPU kernels",
            14_960_000,
            [("stream 7", 8_000_000 + 50 * 60_000)],
        ),
    ],
)
def test_a_folder_with_one_foreign_file_is_listed_and_read_as_what_it_is(folder, writer, length_ns, busy):
    (file,) = list_path(str(CASES / folder)).files
    trace = read(file.path)
    assert trace.meta.foreign_writer == writer
    assert trace.window[1] - trace.window[0] == length_ns
    assert lanes(trace) == busy
    assert verdict(file, trace).state == "foreign"
    assert not [d for d in trace.diagnostics if d.level != "note"]
