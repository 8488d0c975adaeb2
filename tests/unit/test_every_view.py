"""What holds of every view, so that a new one is tested the moment it is named."""

import json

import polars as pl
import pytest

from build import TraceBuilder
from kinetoscope_tb.analyses import VIEWS
from kinetoscope_tb.errors import BadParameter
from kinetoscope_tb.tables import INSTANT
from kinetoscope_tb.views import catalogue

each = pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)


def rich():
    """A trace in which no part is empty."""
    return (
        TraceBuilder(
            deviceProperties=[{"id": 0, "name": "GPU", "totalGlobalMem": 1 << 30, "computeMajor": 9, "computeMinor": 0}]
        )
        .window(0, 400)
        .step(1, at=0, dur=100)
        .step(2, at=100, dur=100)
        .op("aten::mm", at=10, dur=30, **{"Input Dims": [[2, 2], [2, 2]], "External id": 1})
        .launch(at=15, dur=5, correlation=1)
        .kernel("ampere_sgemm", at=25, dur=50, correlation=1, **{"blocks per SM": 2.0, "est. achieved occupancy %": 40})
        .op("aten::mm", at=110, dur=30)
        .launch(at=115, dur=5, correlation=2)
        .memcpy(at=125, dur=50, correlation=2, bytes=4096)
        .memory(64, at=12)
        .python("f.py(1): f", at=5, dur=60)
        .module("Linear_0", at=8, dur=40)
        .build()
    )


@each
def test_the_id_is_the_name_of_module_and_function(view):
    assert VIEWS[view.id] is view
    assert view.run.__module__ == f"kinetoscope_tb.analyses.{view.id}"


@each
def test_it_returns_its_table(view):
    frame = view.run(rich())
    view.table.of(frame)
    assert view.id == "health" or not frame.is_empty()  # nothing to say is the best answer


@each
def test_a_key_names_each_row_once(view):
    frame = view.run(rich())
    assert view.table.key
    assert frame.select(view.table.key).is_duplicated().sum() == 0


@each
def test_every_value_of_every_parameter_runs(view):
    others = {"number": ("0", "-1", "100000000000000000"), "text": ("", "aten::mm", "\U0001f525")}
    for parameter in view.parameters:
        for value in parameter.choices or others[parameter.kind]:
            view.table.of(view.run(rich(), **view.arguments({parameter.name: value})))


@each
def test_an_unknown_parameter_is_refused(view):
    with pytest.raises(BadParameter, match="no parameter 'nonsense'"):
        view.arguments({"nonsense": "1"})


@each
def test_a_trace_without_what_it_needs_is_missing_with_a_hint(view):
    trace = TraceBuilder().event("overhead", "Buffer Flush", at=0, dur=1).build()
    if view.needs:
        assert view.is_missing(trace)
        assert view.hint.endswith(".")
    else:
        view.table.of(view.run(trace))


@each
def test_a_variant_belongs_to_a_view(view):
    assert view.variant_of is None or VIEWS[view.variant_of].variant


@each
def test_a_part_belongs_to_a_view_of_the_list(view):
    owner = VIEWS[view.part_of or view.detail_of or view.id]
    assert view.id == owner.id or not (owner.part_of or owner.detail_of or owner.variant_of)


@each
def test_a_detail_takes_a_key_of_the_rows_that_it_belongs_to(view):
    if view.detail_of:
        assert {p.name for p in view.parameters} & set(VIEWS[view.detail_of].table.key)


@each
def test_the_row_around_another_exists_and_leads_to_a_root(view):
    frame = view.run(rich())
    if view.table.parent:
        above = dict(enumerate(frame[view.table.parent]))
        for row in above:
            seen = set()
            while row is not None:
                assert 0 <= row < frame.height
                assert row not in seen
                seen.add(row)
                row = above[row]


@each
def test_a_curve_goes_forward_in_time(view):
    frame = view.run(rich())
    if view.table.curves:
        when = next(c.name for c in view.table.columns if c.kind is INSTANT)
        groups = frame.partition_by(view.table.series) if view.table.series else [frame]
        assert all(group[when].is_sorted() for group in groups)


@each
def test_numbers_are_real_or_missing(view):
    floats = view.run(rich()).select(pl.col(pl.Float64))
    assert all(not column.is_nan().any() for column in floats)


def test_the_catalogue_is_json():
    described = json.loads(json.dumps(catalogue(VIEWS.values())))
    assert [entry["id"] for entry in described] == list(VIEWS)
    assert all(column["doc"] for entry in described for column in entry["columns"])
