"""Every screen's headline, and the step that savings are of, are those of the answer: on all samples here, and the
headline on planted recordings in planted/.
"""

from pathlib import Path

import pytest

from support.one_answer import check_length_without_profiler, check_screens, check_words

SAMPLES = Path(__file__).parents[2] / "samples"
ALIKE = "cpu_pairs"  # of its trainings one in ten is enough here
OF_PAIRS = sorted(SAMPLES.glob(f"{ALIKE}/*.pt.trace.json.gz"))[::10]
OTHERS = [path for pattern in ("*.json.gz", "*.pickle.gz") for path in sorted(SAMPLES.rglob(pattern))]
RECORDINGS = [*(path for path in OTHERS if path.parent.name != ALIKE), *OF_PAIRS]


@pytest.mark.parametrize("name", ["h100/training", "h100/server", "gloo_2ranks", "h100_snapshots/full.pickle.gz"])
def test_every_screen_says_first_what_the_answer_says(name):
    check_screens(SAMPLES / name)


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: str(path.relative_to(SAMPLES)))
def test_the_first_words_are_the_verdict_and_the_first_row_of_its_view(path):
    check_words(path)


@pytest.mark.parametrize(
    "path",
    [path for path in RECORDINGS if path.name.endswith(".pt.trace.json.gz")],
    ids=lambda path: str(path.relative_to(SAMPLES)),
)
def test_a_step_without_the_profiler_is_as_long_everywhere(path):
    check_length_without_profiler(path)
