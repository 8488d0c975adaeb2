"""Why allocations failed on a real H100, where the reason is known (`samples/h100_snapshots`)."""

from pathlib import Path

import pytest

from kinetoscope_tb.reader import read
from kinetoscope_tb.views.memory.snapshot_failure import snapshot_failure

FOLDER = Path(__file__).parents[2] / "samples" / "h100_snapshots"
H100_BYTES = 85_017_493_504
CAUSES = {  # without the memory of the device, and with it
    "full": ("full_or_outside", "full"),
    "fragmented": ("fragmented", "fragmented"),
    "private_pool": ("private_pool", "private_pool"),
    "other_stream": ("other_stream", "other_stream"),
    "outside": ("full_or_outside", "outside"),
    "too_large": ("too_large", "too_large"),
    "leak": ("leak", "leak"),
    "limit": ("limit", "limit"),
    "expandable": ("full_or_outside", "full"),
}


@pytest.mark.parametrize("name", CAUSES)
def test_the_cause_of_a_failure_is_named(name):
    trace = read(FOLDER / f"{name}.pickle.gz")
    for capacity, cause in zip((None, H100_BYTES), CAUSES[name], strict=True):
        row = snapshot_failure(trace, device_memory_bytes=capacity).row(0, named=True)
        assert row["cause"] == cause
        assert "how_made.py" in row["finding"] or cause == "leak"


def test_a_training_without_a_failure_has_none():
    assert snapshot_failure(read(FOLDER / "training_all.pickle.gz")).is_empty()
