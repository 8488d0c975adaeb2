"""What views call the annotations of a server's iterations: one name per phase."""

from __future__ import annotations

import polars as pl

from ...names.annotations import annotation_name
from ...names.iterations import iteration_name
from ...trace.model import Trace
from ...trace.results import once_per_recording
from ..recording.server import inference_server


@once_per_recording
def labels_of_iterations(trace: Trace) -> dict[str, str]:
    """What views call the annotations that mark an iteration of a server: SGLang decode iteration."""
    annotations = trace.host_events.filter(pl.col("kind") == "annotation")["name"].unique().cast(pl.String).drop_nulls()
    marks = [text for text in annotations if iteration_name(text) is not None]
    return {text: annotation_name(text, inference_server(trace)).name for text in marks}
