"""Replayed kernels of real recordings against the tables of TraceLens, and inferred layers against what was recorded."""

from __future__ import annotations

import ast
import csv
import json
import re
from collections import Counter
from functools import cache

import numpy as np
import polars as pl
import pytest

from kinetoscope_tb.api import open_profile
from kinetoscope_tb.measures.calls.module_calls import ModuleCalls
from kinetoscope_tb.measures.calls.op_calls import UNATTRIBUTED
from kinetoscope_tb.measures.graphs.layers import inferred_layers, layers_of
from kinetoscope_tb.measures.graphs.replayed_calls import join_captures
from kinetoscope_tb.measures.graphs.replayed_kernels import each_replayed_kernel
from kinetoscope_tb.measures.graphs.replays import replays
from kinetoscope_tb.measures.time.step_subset import counted_steps, rows_of_steps
from kinetoscope_tb.names.kernel_families import FAMILIES, kernel_family
from kinetoscope_tb.timeline.area.groups import NO_OPERATOR, groups
from kinetoscope_tb.timeline.core.build import timeline
from kinetoscope_tb.timeline.details.details import details
from kinetoscope_tb.timeline.details.row_links import filter_of
from kinetoscope_tb.timeline.search.search import search
from kinetoscope_tb.trace import Trace
from kinetoscope_tb.trace.model import NO_CAPTURES
from kinetoscope_tb.views import VIEWS
from support.real_traces import FOLDER, MISSING

INFERENCE = FOLDER.parent / "inference"
PAIRS = {
    "vllm_prefilldecode_piecewise": "graph_execution.json.gz",
    "xdit_flux1_aiter_sage": "profile_trace_rank_0.json.gz",
}
SGLANG = "sglang_prefilldecode/sglang_Qwen3-8B_prefilldecode.json.gz"
_WRAPPERS = ("aten::upsample_nearest2d",)
"""Calls that wrap one call of the same name: we count the outer one with its inputs, TraceLens the inner one."""

_FLOAT32 = 2e-6  # relative rounding of the tables, which hold sums of times in µs as 32-bit floats
_ROUNDING_NS = 60

pytestmark = pytest.mark.skipif(not INFERENCE.is_dir(), reason=MISSING)


@cache
def _profile(path: str):
    return open_profile(str(INFERENCE / path), None, None, None)


def _trace(path: str) -> Trace:
    return _profile(path)._trace


def _shapes(text: str) -> str:
    """Shapes as a trace has them: `((2, 3), ())` → `[[2, 3], []]`; a list of tensors is one more list."""
    return json.dumps(ast.literal_eval(text))


def _of_tables(folder: str, name: str, keys: list[str]) -> dict[tuple[str, ...], tuple[int, float]]:
    csv.field_size_limit(1 << 30)
    sums: dict[tuple[str, ...], tuple[int, float]] = {}
    with (INFERENCE / folder / "perf_csvs" / name).open() as file:
        for row in csv.DictReader(file):
            key = tuple(_shapes(row[key]) if key == "Input Dims" else row[key] for key in keys)
            calls, total = sums.get(key, (0, 0.0))
            count = row.get("Count") or row["operation_count"]
            sums[key] = calls + int(count), total + 1000 * float(row["total_direct_kernel_time_sum"])
    return sums


@pytest.mark.parametrize("folder", PAIRS)
def test_operators_equal_the_reference_tables(folder: str) -> None:
    frame = _profile(f"{folder}/{PAIRS[folder]}").operators.filter(pl.col("device_self_ns") > 0)
    ours = {(name,): (total,) for name, total in frame.select("name", "device_self_ns").rows()}
    theirs = _of_tables(folder, "ops_summary.csv", ["name"])
    assert set(ours) == set(theirs)
    for name, (_, total) in theirs.items():
        assert ours[name][0] == pytest.approx(total, rel=_FLOAT32, abs=_ROUNDING_NS), name


@pytest.mark.parametrize("folder", PAIRS)
def test_an_operator_has_the_same_time_wherever_it_is_shown(folder: str) -> None:
    trace = _trace(f"{folder}/{PAIRS[folder]}")
    made, dur = timeline(trace), trace.device_events["dur_ns"].to_numpy()
    device_rows = np.arange(dur.size)
    device_slices = made.slices_of("device_events", device_rows)
    operators = dict(
        VIEWS["operators"].run(trace).select("name", "device_self_ns").filter(pl.col("device_self_ns") > 0).rows()
    )
    pivot = groups(trace, made, "operator")
    in_area: dict[str, int] = Counter()
    for code, spent in zip(pivot.code[device_slices].tolist(), dur.tolist(), strict=True):
        in_area[pivot.names[code].replace(NO_OPERATOR, UNATTRIBUTED)] += spent
    assert {name: spent for name, spent in in_area.items() if spent} == operators
    for name, spent in operators.items():
        hits = search(trace, made, json.dumps({"op": None if name == UNATTRIBUTED else name}), VIEWS).numbers
        assert dur[np.isin(device_slices, hits)].sum() == spent, name
    by_launcher = (
        VIEWS["kernels_by_op"].run(trace).group_by(pl.col("op").fill_null(UNATTRIBUTED)).agg(pl.col("total_ns").sum())
    )
    kernels = trace.device_events.with_columns(pl.col("op").replace(-1, None)).filter(kind="kernel")
    names = trace.all_host_events["name"].gather(kernels["op"]).cast(pl.String).fill_null(UNATTRIBUTED)
    assert dict(by_launcher.rows()) == dict(kernels.group_by(op=names).agg(pl.col("dur_ns").sum()).rows())


@pytest.mark.parametrize("folder", PAIRS)
def test_the_first_screen_names_the_operators_of_the_table(folder: str) -> None:
    trace = _trace(f"{folder}/{PAIRS[folder]}")
    counted = counted_steps(trace)
    first = VIEWS["top"].run(trace).filter(kind="operator")
    table = VIEWS["operators"].run(rows_of_steps(trace, counted)).filter(pl.col("name") != UNATTRIBUTED)
    expected = table.sort("device_self_ns", "name", descending=[True, False]).head(first.height)
    assert first["name"].to_list() == expected["name"].to_list()
    per_step = (expected["device_self_ns"] / len(counted)).round().cast(pl.Int64)
    assert first["mean_ns"].to_list() == per_step.to_list()
    alone = pl.concat([VIEWS["operators"].run(rows_of_steps(trace, [step])) for step in counted])
    summed = alone.group_by("name").agg(pl.col("device_self_ns", "calls").sum())
    assert dict(
        summed.filter(pl.col("name") != UNATTRIBUTED).select("name", pl.struct("device_self_ns", "calls")).rows()
    ) == dict(table.select("name", pl.struct("device_self_ns", "calls")).rows())


@pytest.mark.parametrize("folder", PAIRS)
def test_a_drawer_leads_to_the_row_of_the_operator(folder: str) -> None:
    trace = _trace(f"{folder}/{PAIRS[folder]}")
    made = timeline(trace)
    rows = replays(trace).rows[:: max(1, replays(trace).rows.size // 20)]
    known = dict(each_replayed_kernel(trace).select("row", "op").rows())
    for row in rows.tolist():
        facts = details(trace, made, int(made.slices_of("device_events", np.array([row]))[0]), VIEWS.values())
        if known[row] is not None:
            links_to = [link["filter"] for link in facts["rows"] if link["view"] == "operators"]
            assert links_to == [filter_of(known[row])]
            assert facts["replayed"]["op"] == known[row]


@pytest.mark.parametrize("folder", PAIRS)
def test_shapes_equal_the_reference_tables(folder: str) -> None:
    frame = _profile(f"{folder}/{PAIRS[folder]}").operators_by_shape.filter(pl.col("device_self_ns") > 0)
    ours: dict[tuple[str, ...], float] = {}
    for name, shapes, total in frame.select("name", "input_shapes", "device_self_ns").rows():
        key = name, json.dumps(json.loads(shapes)) if shapes else "[]"
        ours[key] = ours.get(key, 0) + total
    theirs = _of_tables(folder, "ops_unique_args.csv", ["name", "Input Dims"])
    ours, theirs = ({key: of[key] for key in of if key[0] not in _WRAPPERS} for of in (ours, theirs))
    assert set(ours) == set(theirs)
    for key, (_, total) in theirs.items():
        assert ours[key] == pytest.approx(total, rel=_FLOAT32, abs=_ROUNDING_NS), key


@pytest.mark.parametrize("folder", PAIRS)
def test_nearly_all_replayed_time_has_an_operator_with_shapes_and_a_module(folder: str) -> None:
    rows = each_replayed_kernel(_trace(f"{folder}/{PAIRS[folder]}"))
    known = rows.filter(pl.all_horizontal(pl.col("op", "input_shapes", "module", "line").is_not_null()))
    assert known["dur_ns"].sum() >= 0.99 * rows["dur_ns"].sum()
    assert set(known["provenance"]) == {"capture"}
    assert set(known["confidence"]) == {"high"}


def test_what_only_tables_of_others_name() -> None:
    """TraceLens names work outside operators after its runtime call, and cuts the numbers that end SGLang's names."""
    frame = _profile(SGLANG).operators.filter(pl.col("device_self_ns") > 0)
    ours = dict(frame.select("name", "device_self_ns").rows())
    theirs = {
        name: total for (name,), (_, total) in _of_tables("sglang_prefilldecode", "ops_summary.csv", ["name"]).items()
    }
    calls = {name for name in theirs if name.startswith("hip")}
    assert ours.pop(UNATTRIBUTED) == pytest.approx(sum(theirs.pop(name) for name in calls), abs=_ROUNDING_NS)
    cut = {re.sub(r"^(sglang_profiler::.*)_\d+$", r"\1", name): total for name, total in ours.items()}
    assert set(cut) == set(theirs)


def test_matmuls_inside_graphs_have_the_work_that_the_reference_has() -> None:
    """TraceLens counts the bias of a product too: 0.02 % more here. It lists a product with its wrapper of vLLM: twice."""
    folder = "vllm_prefilldecode_piecewise"
    row = _profile(f"{folder}/{PAIRS[folder]}").limits.row(by_predicate=pl.col("part") == "gemm", named=True)
    csv.field_size_limit(1 << 30)
    with (INFERENCE / folder / "perf_csvs" / "GEMM.csv").open() as file:
        gemms = [one for one in csv.DictReader(file) if one["name"].startswith("aten::")]
    assert row["known_frac"] == 1
    assert row["work_flop"] == pytest.approx(
        sum(1e9 * float(one["GFLOPS_first"]) * int(one["name_count"]) for one in gemms), rel=5e-4
    )


def test_attention_outside_graphs_has_the_work_that_the_reference_has() -> None:
    """TraceLens leaves out half of the diagonal of causal attention: 1.3 % of 77 queries, 0.06 % of all of it."""
    folder = "xdit_flux1_aiter_sage"
    table = _profile(f"{folder}/{PAIRS[folder]}").operator_efficiency
    ours = table.filter(pl.col("name") == "aten::_scaled_dot_product_flash_attention").sort("calls", descending=True)
    with (INFERENCE / folder / "perf_csvs" / "SDPA_fwd.csv").open() as file:
        theirs = sorted(csv.DictReader(file), key=lambda row: -int(row["name_count"]))
    assert ours["calls"].to_list() == [int(row["name_count"]) for row in theirs]
    for row, reference in zip(ours.rows(named=True), theirs, strict=True):
        heads, length, size = (int(reference[f"param: {name}"]) for name in ("H_Q", "N_Q", "d_h_qk"))
        half_diagonal = 2 * heads * length * 2 * size / 2 if reference["param: causal"] == "True" else 0
        assert row["work_flop"] == pytest.approx(1e9 * float(reference["GFLOPS_first"]) + half_diagonal, rel=1e-9)
        assert row["work_bytes"] == float(reference["Data Moved (MB)_first"]) * 2**20


def _withheld(path: str) -> tuple[Trace, pl.DataFrame]:
    trace = join_captures(_trace(path).recording, NO_CAPTURES)
    return trace, each_replayed_kernel(trace)


@pytest.mark.parametrize(
    ("path", "layers"),
    [
        ("vllm_prefilldecode_piecewise/graph_execution.json.gz", 24),
        ("xdit_flux1_aiter_sage/profile_trace_rank_0.json.gz", 57),
        ("../traces/single/tracelens_vllm_decode_graph_execution.json.gz", 24),
    ],
)
def test_without_a_capture_nearly_all_replayed_time_has_a_layer(path: str, layers: int) -> None:
    trace, rows = _withheld(path)
    assigned = rows.filter(pl.col("layer").is_not_null())
    assert assigned["dur_ns"].sum() >= 0.9 * rows["dur_ns"].sum()
    assert assigned["layer"].n_unique() == layers
    assert set(assigned["provenance"]) == {"inferred"}
    assert set(assigned["confidence"]) == {"low"}
    assert inferred_layers(trace).layer.max() == layers - 1


_FAMILIES = {  # by operators that captures name; of a fused kernel, by the operators that its name lists
    "attention": r"sage_|rotary_embedding",
    "gemm": r"^aten::(add)?mm$",
    "moe": r"moe_forward|SortTokens|TopK",
    "normalization": r"norm|_mean_(.*_)?pow_",
    "other": r"^triton_",
}


@pytest.mark.parametrize("folder", PAIRS)
def test_without_a_capture_families_are_those_of_the_operators_that_it_names(folder: str) -> None:
    path = f"{folder}/{PAIRS[folder]}"
    _, guessed = _withheld(path)
    rows = guessed.join(each_replayed_kernel(_trace(path)).select("row", known="op"), "row").filter(
        pl.col("layer").is_not_null()
    )
    named = rows["known"].cast(pl.String).unique().to_list()
    family = {op: next(name for name, words in _FAMILIES.items() if re.search(words, op)) for op in named if op}
    right = rows["family"].cast(pl.String) == rows["known"].cast(pl.String).replace(family)
    assert {"attention", "gemm", "normalization"} <= set(family.values())
    assert rows.filter(right)["dur_ns"].sum() >= 0.98 * rows["dur_ns"].sum()


def test_layers_of_a_diffusion_model_have_the_attention_that_its_capture_names() -> None:
    path = "xdit_flux1_aiter_sage/profile_trace_rank_0.json.gz"
    _, guessed = _withheld(path)
    known = each_replayed_kernel(_trace(path)).select("row", "op")
    attention = guessed.join(known.filter(pl.col("op") == "sage_fwd_1"), "row", "semi")
    each = replays(_trace(path)).launch.size
    assert attention["layer"].to_list() == list(range(57)) * each  # 19 double and 38 single blocks


def test_layers_that_are_inferred_are_the_modules_that_were_recorded() -> None:
    """SGLang without graphs: its modules say the layer of each kernel."""
    trace = _trace(SGLANG)
    modules = ModuleCalls.of(trace)
    node, _ = modules.of_rows(modules.forest.rows_at_launch(trace))
    layer_of = [re.search(r"DecoderLayer_(\d+)", path) for path in modules.paths()]
    recorded = np.array([int(found[1]) if n >= 0 and (found := layer_of[n]) else -1 for n in node.tolist()])
    rows = np.flatnonzero((trace.device_events["kind"] == "kernel").to_numpy())
    names = trace.device_events["name"].gather(rows)
    family = np.array([FAMILIES.index(kernel_family(name)) for name in names.cast(pl.String)])
    inferred, recorded = layers_of(names.to_physical().cast(pl.Int64).to_numpy(), family), recorded[rows]
    time = trace.device_events["dur_ns"].gather(rows).to_numpy()
    is_known = inferred >= 0
    assert time[is_known].sum() >= 0.9 * time.sum()
    assert time[is_known & (inferred == recorded)].sum() >= 0.98 * time[is_known].sum()
    assert Counter(recorded[is_known].tolist()).keys() >= set(range(36))
