"""Annotations projected onto streams: from the first to the last GPU event launched inside each of them.

Torch writes such spans since 1.13 (`gpu_user_annotation`). Names that it wrote are left out here, so that no range is
drawn twice; other writers' ranges and those of older recordings have no others.
"""

from __future__ import annotations

import polars as pl

from ...measures.calls.annotation_ranges import AnnotationRanges
from ...trace import Trace


def projected_annotations(trace: Trace) -> pl.DataFrame:
    """Rows of annotations in host_events (`row`) with their name and span on a device's stream."""
    spans = AnnotationRanges.of(trace).stream_spans(trace)
    names = trace.host_events["name"].gather(spans["row"])
    is_written = names.cast(pl.String).is_in(_written_names(trace).implode())
    return spans.with_columns(name=names).filter(~is_written)


def _written_names(trace: Trace) -> pl.Series:
    """The names of the spans that the recording holds."""
    is_span = pl.col("category").cast(pl.String).str.to_lowercase() == "gpu_user_annotation"
    return trace.others.filter(is_span)["name"].cast(pl.String).unique()
