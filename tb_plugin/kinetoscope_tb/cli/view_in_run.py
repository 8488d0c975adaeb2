"""The rows of a view that other recordings of the run change, as `kinetoscope summary` and the page have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..answer.pace_of_others import RANK_STEPS, WHAT_IF, what_if_in_run
from ..answer.recording import recording_answer
from ..answer.run import rows_in_run
from ..discovery import Listing, TraceFile
from ..engine.answers import cached_frames
from ..trace import Trace
from ..views import EVERY_VIEW
from .ranks import answer_of_run, side_by_side
from .traces import open_trace

if TYPE_CHECKING:
    import polars as pl

    from ..answer.model import Answer
    from ..view import View


__all__ = ["RecordingOfRun", "in_run", "side_by_side"]


class RecordingOfRun(NamedTuple):
    """A recording of a run with several ranks; `device_name` is what their devices are called, if not as recorded."""

    listing: Listing
    file: TraceFile
    trace: Trace
    device_name: str | None


def in_run(view: View, frame: pl.DataFrame, recording: RecordingOfRun, arguments: Mapping[str, Any]) -> pl.DataFrame:
    """The rows of the view with what the other recordings say; `frame` is the view without them."""
    listing, file, trace, device_name = recording

    def answer_of(other: TraceFile) -> Answer:
        with open_trace(other, device_name) as read:
            return recording_answer(read, EVERY_VIEW, cached_frames).of_file(other, other.shown)

    def frame_of(name: str, choice: Mapping[str, object]) -> pl.DataFrame:
        return EVERY_VIEW[name].frame(trace, choice)

    if view.id == WHAT_IF:
        rank_steps = EVERY_VIEW[RANK_STEPS].frame(side_by_side(listing, file, "span"), {})
        return what_if_in_run(frame, arguments.get("less"), file.worker, rank_steps, frame_of)
    answer = recording_answer(trace, EVERY_VIEW, cached_frames).of_file(file, file.shown)
    return rows_in_run(view, answer_of_run(answer, listing, file, answer_of))
