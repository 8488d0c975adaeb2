"""`kinetoscope otlp`: requests that OpenTelemetry's own schema takes, with the numbers of the view."""

import json

import pytest
from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from kinetoscope_tb.reader import read
from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder

ORIGIN = 1_700_000_000_000_000_000


def recording(rank, **top):
    trace = TraceBuilder(ORIGIN, kinetoscope={"host": "node1", "global_rank": rank}, **top)
    for number in range(3):
        trace.step(number, number * 1_000, 1_000).op("aten::mm", number * 1_000 + 100, 500 + rank)
    return trace


@pytest.fixture
def run_folder(tmp_path):
    folder = tmp_path / "job"
    folder.mkdir()
    for rank in range(2):
        (folder / f"rank{rank}.3.pt.trace.json").write_text(recording(rank).text())
    return folder


def values(attributes):
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in attributes}


def test_metrics_have_the_parts_of_every_complete_step_of_every_rank(kinetoscope, run_folder, tmp_path):
    out = tmp_path / "steps.json"
    status, said, _ = kinetoscope("otlp", str(run_folder), str(out), "--all")
    assert (status, said.startswith(f"{out}: 6 steps of 2 recordings, ")) == (0, True)
    request = Parse(out.read_text(), ExportMetricsServiceRequest())
    assert [values(one.resource.attributes)["kinetoscope.rank"] for one in request.resource_metrics] == [0, 1]
    for rank, resource in enumerate(request.resource_metrics):
        assert values(resource.resource.attributes) == {
            "service.name": "job",
            "service.instance.id": f"rank{rank}",
            "kinetoscope.span": "3",
            "host.name": "node1",
            "kinetoscope.rank": rank,
        }
        (scope,) = resource.scope_metrics
        assert {metric.unit for metric in scope.metrics} == {"ns"}
        rows = VIEWS["steps"].frame(read(str(run_folder / f"rank{rank}.3.pt.trace.json")), {})
        duration, part = (metric.gauge.data_points for metric in scope.metrics)
        assert [point.as_int for point in duration] == rows["total_ns"].to_list()
        begin = [ORIGIN + start for start in rows["start_ns"]]
        assert [point.start_time_unix_nano for point in duration] == begin
        assert [point.time_unix_nano for point in duration] == [begin[i] + rows["total_ns"][i] for i in range(3)]
        of_part = {(v["step"], v["category"]): point.as_int for point in part for v in [values(point.attributes)]}
        assert of_part == {
            (row["step"], name.removesuffix("_ns")): value
            for row in rows.rows(named=True)
            for name, value in row.items()
            if name.endswith("_ns") and name not in ("start_ns", "total_ns")
        }


def test_traces_have_a_span_for_each_step(kinetoscope, run_folder, tmp_path):
    out = tmp_path / "spans.json"
    assert kinetoscope("otlp", str(run_folder), str(out), "--signal", "traces", "--worker", "rank1")[0] == 0
    text = out.read_text()
    request = Parse(text, ExportTraceServiceRequest())
    spans = request.resource_spans[0].scope_spans[0].spans
    assert [span.name for span in spans] == ["step 0", "step 1", "step 2"]
    assert [span.end_time_unix_nano - span.start_time_unix_nano for span in spans] == [1_000] * 3
    written = json.loads(text)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert [(len(bytes.fromhex(span["traceId"])), len(bytes.fromhex(span["spanId"]))) for span in written] == [
        (16, 8)
    ] * 3
    assert len({span["traceId"] for span in written}) == 1
    assert len({span["spanId"] for span in written}) == 3
    assert kinetoscope("otlp", str(run_folder), str(out), "--signal", "traces", "--worker", "rank1")[0] == 0
    assert out.read_text() == text


def test_what_is_left_out_or_unknown_is_said(kinetoscope, tmp_path):
    path = tmp_path / "rank0.1.pt.trace.json"
    path.write_text(TraceBuilder(0).step(1, 0, 100).op("aten::mm", 10, 50).text())
    status, _, said = kinetoscope("otlp", str(path), str(tmp_path / "out.json"))
    assert status == 0
    assert "doesn't say when it was recorded: its times count from its begin." in said
