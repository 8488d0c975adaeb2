"""One recording gives one answer, whichever torch, vendor or tool wrote it; what a form has no place for is missing."""

import polars as pl
import pytest

from eras import ERAS
from eras.foreign import HCOM
from eras.recording import ALL_REDUCE, APPLY, GEMM
from kinetoscope_tb.measures.recording.torch_version import torch_version, writer
from kinetoscope_tb.views import VIEWS
from support.build import text

KNOWN = {
    "steps": """
        step  start_ns  total_ns  kernel_ns  memcpy_ns  memset_ns  communication_ns  runtime_ns  dataloader_ns  cpu_exec_ns  other_ns  is_complete
        1     100000    995000    305000     20000      8000       160000            180000      40000          110000       172000    True
        2     1100000   995000    305000     20000      8000       160000            180000      40000          110000       172000    True
        3     2100000   995000    305000     20000      8000       160000            180000      40000          110000       172000    True
    """,
    "operators": """
        name                                                 calls  device_self_ns  device_total_ns  host_self_ns  host_total_ns  host_self_bytes  device_total_bytes
        record_param_comms                                   3      360000          360000           60000         105000         0                0
        aten::addmm                                          3      300000          300000           120000        180000         0                1536
        GraphReplay                                          3      264000          264000           30000         120000         0                0
        aten::mm                                             3      240000          240000           105000        150000         0                0
        aten::add_                                           3      90000           90000            30000         90000          0                0
        aten::copy_                                          6      60000           60000            105000        150000         768              0
        [unattributed]                                       -      30000           30000            -             -              -                -
        aten::zero_                                          3      15000           15000            90000         120000         0                0
        AddmmBackward0                                       3      0               255000           90000         360000         0                0
        aten::linear                                         3      0               300000           90000         300000         0                1536
        c10d::allreduce_                                     3      0               360000           45000         150000         0                0
        aten::t                                              3      0               0                30000         30000          0                0
        aten::to                                             3      0               60000            30000         120000         0                0
        autograd::engine::evaluate_function: AddmmBackward0  3      0               255000           30000         390000         0                0
    """,
    "operators_by_shape": """
        name                                                 input_shapes                         calls  device_self_ns  host_total_ns
        record_param_comms                                   [[144], [], [], [], [], [], [], []]  3      360000          105000
        aten::addmm                                          [[16], [4, 8], [8, 16], [], []]      3      300000          180000
        GraphReplay                                          []                                   3      264000          120000
        aten::mm                                             [[16, 4], [4, 8]]                    3      240000          150000
        aten::add_                                           [[16, 8], [16, 8], []]               3      90000           90000
        aten::copy_                                          [[8, 8], [8, 8], []]                 3      60000           90000
        [unattributed]                                       -                                    -      30000           -
        aten::zero_                                          [[16, 8]]                            3      15000           120000
        AddmmBackward0                                       [[4, 16]]                            3      0               360000
        aten::linear                                         [[4, 8], [16, 8], [16]]              3      0               300000
        aten::copy_                                          [[4, 8], [4, 8], []]                 3      0               60000
        c10d::allreduce_                                     [[], [], [], [], []]                 3      0               150000
        aten::t                                              [[16, 8]]                            3      0               30000
        aten::to                                             [[8, 8], [8, 8], []]                 3      0               120000
        autograd::engine::evaluate_function: AddmmBackward0  [[4, 16]]                            3      0               390000
    """,
    "kernels": """
        name                     calls  total_ns  mean_ns  max_ns  min_ns  uses_tensor_cores  mean_blocks_per_sm  mean_occupancy_frac  is_communication
        GEMM                     6      540000    90000    100000  80000   no                 0.5                 0.25                 False
        ALL_REDUCE               3      360000    120000   120000  120000  no                 0.25                0.1                  True
        triton_poi_fused_relu_0  6      255000    42500    45000   40000   no                 0.5                 0.25                 False
        APPLY                    3      90000     30000    30000   30000   no                 0.5                 0.75                 False
        custom_kernel(float*)    3      30000     10000    10000   10000   unknown            0.5                 0.25                 False
    """,
    "kernels_by_op": """
        name                     op                  grid       block        registers_per_thread  shared_memory_bytes  occupancy_limiter  calls  total_ns
        ALL_REDUCE               record_param_comms  [2, 1, 1]  [288, 1, 1]  96                    0                    none               3      360000
        GEMM                     aten::addmm         [2, 1, 1]  [128, 1, 1]  80                    16384                REGS               3      300000
        triton_poi_fused_relu_0  GraphReplay         [2, 1, 1]  [128, 1, 1]  32                    0                    none               6      255000
        GEMM                     aten::mm            [2, 1, 1]  [128, 1, 1]  80                    16384                REGS               3      240000
        APPLY                    aten::add_          [2, 1, 1]  [128, 1, 1]  32                    0                    WARPS              3      90000
        custom_kernel(float*)    -                   [2, 1, 1]  [128, 1, 1]  32                    0                    none               3      30000
    """,
    "memory": """
        name      start_ns  is_host  device  address          bytes  total_allocated  total_reserved  op
        [memory]  162000    True     -1      139637976731648  256    256              0               aten::copy_
        [memory]  197000    True     -1      139637976731648  -256   0                0               -
        [memory]  222000    False    0       139637976731649  512    512              2048            aten::addmm
        [memory]  1022000   False    0       139637976731649  -512   0                2048            -
    """,
    "backward": """
        name                                                 sequence  fwd_thread
        aten::linear                                         10        0
        aten::addmm                                          10        0
        autograd::engine::evaluate_function: AddmmBackward0  10        1
        AddmmBackward0                                       10        1
    """,
    "python": """
        name                 start_ns  dur_ns  python_id  module_id
        train.py(10): step   105000    980000  2          -1
        nn.Module: Linear_0  198000    104000  3          0
    """,
}
WITHOUT_CALLS = {  # host self time where no runtime calls lie on the operators' threads: nothing is taken off
    "record_param_comms": "105000",
    "aten::addmm": "180000",
    "GraphReplay": "120000",
    "aten::mm": "150000",
    "aten::add_": "90000",
    "aten::copy_": "150000",
    "aten::zero_": "120000",
}
WITHOUT_RUNTIME = {"runtime_ns": "0", "cpu_exec_ns": "190000", "other_ns": "272000"}  # what hid behind the calls
COLUMNS_OF = {  # what a form may lack → the columns that are missing then
    "launch shape": {"kernels_by_op": ["grid", "block"]},
    "registers": {"kernels_by_op": ["registers_per_thread", "shared_memory_bytes"]},
    "blocks": {"kernels": ["mean_blocks_per_sm"]},
    "occupancy": {"kernels": ["mean_occupancy_frac"]},
    "limiter": {"kernels_by_op": ["occupancy_limiter"]},
    "shapes": {"operators_by_shape": ["input_shapes"]},
    "memory": {"operators": ["host_self_bytes", "device_total_bytes"]},
    "addresses": {"memory": ["address", "total_allocated", "total_reserved"]},
}
WHOLE = {"memory": "memory", "sequence": "backward", "python": "python"}  # what a form may lack → the rows
HEALTH = {"memory": "memory_off", "shapes": "shapes_off", "stacks": "stacks_off"}  # … → the finding that says so


def known(view, lacks):
    """The known answer as lists of cells, the names of its columns first, without what the era lacks."""
    header, *rows = ([c.strip() for c in line.split("  ") if c.strip()] for line in KNOWN[view].strip().splitlines())
    rows = [dict(zip(header, row, strict=True)) for row in rows]
    for row in rows:
        row["name"] = {"GEMM": GEMM, "ALL_REDUCE": HCOM if "NCCL" in lacks else ALL_REDUCE, "APPLY": APPLY}.get(
            row.get("name"), row.get("name")
        )
        if "runtime" in lacks and view == "operators":
            row["host_self_ns"] = WITHOUT_CALLS.get(row["name"], row["host_self_ns"])
        if "runtime" in lacks and view == "steps":
            row |= WITHOUT_RUNTIME
        if "span" in lacks and view == "steps":  # nothing says when the recording began: the first step is its zero
            row["start_ns"] = str(int(row["start_ns"]) - 100_000)
        row |= {column: "-" for lack in lacks for column in COLUMNS_OF.get(lack, {}).get(view, [])}
    absent = {WHOLE[lack] for lack in lacks if lack in WHOLE}
    return [header, *([row[name] for name in header] for row in rows if view not in absent)]


def cells(frame, names):
    return [[c.strip() for c in line.split("  ") if c.strip()] for line in text(frame.select(names)).splitlines()]


def missing(frame, *columns):
    """The frame with null where a column says NONE."""
    return frame.with_columns(pl.when(pl.col(c) != -1).then(pl.col(c)).alias(c) for c in columns)


def named_ops(trace, column="op"):
    names = trace.host_events["name"].cast(str)
    return names.gather(pl.Series(column, trace.memory[column]).replace(-1, None)).alias("op")


@pytest.mark.parametrize("view", ["steps", "operators", "operators_by_shape", "kernels", "kernels_by_op"])
@pytest.mark.parametrize("era", ERAS, ids=lambda era: era.name)
def test_views_of_every_era_are_the_same(era, view):
    table = VIEWS[view].run(era.trace)
    expected = known(view, era.lacks)
    if "shapes" in era.lacks and view == "operators_by_shape":
        expected = [
            ["name", "input_shapes", "calls"],
            *([*row[:1], "-", *row[1:2]] for row in known("operators", era.lacks)[1:]),
        ]
    assert cells(table, expected[0]) == expected, "\n" + text(table)


@pytest.mark.parametrize("era", ERAS, ids=lambda era: era.name)
def test_memory_of_every_era_is_the_same(era):
    trace = era.trace
    rows = missing(trace.memory, "address", "total_allocated", "total_reserved").with_columns(
        named_ops(trace), is_host=pl.col("device_type") == 0
    )
    expected = known("memory", era.lacks)
    assert cells(rows.head(4), expected[0]) == expected
    assert rows.height == 3 * (len(expected) - 1)


@pytest.mark.parametrize("era", ERAS, ids=lambda era: era.name)
def test_backward_and_python_rows_of_every_era_are_the_same(era):
    trace = era.trace
    expected = known("backward", era.lacks)
    assert cells(trace.host_events.filter(pl.col("sequence") == 10), expected[0]) == expected
    expected = known("python", era.lacks)
    assert cells(trace.python_calls.head(2), expected[0]) == expected


@pytest.mark.parametrize("era", ERAS, ids=lambda era: era.name)
def test_nothing_is_lost_of_any_era_and_what_it_lacks_is_said(era):
    trace = era.trace
    assert [diagnostic.rule for diagnostic in trace.diagnostics if diagnostic.level == "loss"] == []
    rules = set(VIEWS["health"].run(trace)["rule"])
    for lack, rule in HEALTH.items():
        assert (rule in rules) == (lack in era.lacks), rule


@pytest.mark.parametrize("era", [e for e in ERAS if e.name.startswith("torch ")], ids=lambda era: era.name)
def test_about_which_torch_wrote_it_is_told(era):
    oldest, _, newest = torch_version(era.trace).removeprefix("≈ ").partition("–")
    release = era.writer.torch
    assert tuple(map(int, oldest.split("."))) <= release <= tuple(map(int, (newest or oldest).split(".")))


def test_who_wrote_it_is_told_where_that_is_not_the_usual_exporter():
    writers = {era.name: writer(era.trace) for era in ERAS}
    assert {name: by for name, by in writers.items() if by} == {
        "Python exporter": "torch's exporter in Python (use_python_export)",
        "CUPTI monitor": "torch's CUPTI monitor",
        "on demand": "kineto on demand",
        "legacy": "torch's autograd profiler without kineto",
        "Ascend": "torch_npu",
    }
    assert [torch_version(era.trace) for era in ERAS if era.name in ("legacy", "Ascend")] == [None, None]
