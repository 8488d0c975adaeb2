"""How much memory results take: each array once, however it is reached."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from kinetoscope_tb.trace.results import bytes_of


@dataclass(frozen=True)
class Held:
    values: np.ndarray

    @cached_property
    def doubled(self):
        return 2 * self.values


def test_arrays_and_frames_are_found_wherever_they_are():
    values = np.arange(100)
    assert bytes_of([values]) == 800
    assert bytes_of([{"a": [values, (np.arange(10),)]}]) == 880
    assert bytes_of([pl.DataFrame({"a": np.arange(50)})]) == 400
    assert bytes_of(["text", 1, None, object()]) == 0


def test_each_array_counts_once_also_as_a_view():
    values = np.arange(100)
    assert bytes_of([values, values, [values[:50]]]) == 800
    assert bytes_of([values[:50]]) == 800  # it holds the whole
    assert bytes_of([values, np.arange(10)], apart_from=[{"a": values}]) == 80


def test_a_cached_property_counts_once_it_is_there():
    held = Held(np.arange(100))
    assert bytes_of([held]) == 800
    assert held.doubled.size == 100
    assert bytes_of([held]) == 1600


def test_what_belongs_to_a_frame_or_a_file_counts_there():
    frame = pl.DataFrame({"a": np.arange(50)})
    assert bytes_of([frame["a"].to_numpy()]) == 0
    assert bytes_of([np.frombuffer(b"12345678", np.int64)]) == 0
