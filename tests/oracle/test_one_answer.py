"""Every screen's headline, and the step that savings are of, are those of the answer: on all samples here, and the
headline on planted recordings in planted/.
"""

from pathlib import Path

import pytest

from kinetoscope_tb.engine.files import read_traces
from support.one_answer import check_length_without_profiler, check_screens, check_words
from support.read_once import shared_readings  # noqa: F401  a fixture

SAMPLES = Path(__file__).parents[2] / "samples"
ALIKE = "cpu_pairs"  # of its trainings one in ten is enough here
OF_PAIRS = sorted(SAMPLES.glob(f"{ALIKE}/*.pt.trace.json.gz"))[::10]
OTHERS = [path for pattern in ("*.json.gz", "*.pickle.gz") for path in sorted(SAMPLES.rglob(pattern))]
RECORDINGS = [*(path for path in OTHERS if path.parent.name != ALIKE), *OF_PAIRS]


@pytest.mark.usefixtures("shared_readings")
@pytest.mark.parametrize("name", ["h100/training", "h100/server", "gloo_2ranks", "h100_snapshots/full.pickle.gz"])
def test_every_screen_says_first_what_the_answer_says(name):
    check_screens(SAMPLES / name)


def for_each(recordings):
    """Give a test the trace of each recording: the tests of a recording follow each other, so it is read once for all."""
    names = [str(path.relative_to(SAMPLES)) for path in recordings]
    return pytest.mark.parametrize("trace", recordings, ids=names, indirect=True, scope="module")


@pytest.fixture(scope="module")
def trace(request):
    """A recording, read once for all tests of it."""
    return next(read_traces(str(request.param)))


@for_each(RECORDINGS)
def test_the_first_words_are_the_verdict_and_the_first_row_of_its_view(trace):
    check_words(trace)


@for_each([path for path in RECORDINGS if path.name.endswith(".pt.trace.json.gz")])
def test_a_step_without_the_profiler_is_as_long_everywhere(trace):
    check_length_without_profiler(trace)
