"""Torch's own validator beside the rules of Trace health: what it finds in a file, they find."""

import re
from functools import cache
from pathlib import Path

import pytest

from kinetoscope_tb.diagnostics.diagnose import diagnose
from kinetoscope_tb.reader import read
from support.build import TraceBuilder
from support.real_traces import FOLDER

validator = pytest.importorskip("torch.profiler._trace_validator")

OURS = {  # what each of torch's rules is called here, as docs/which-traces-open.md tells
    "_check_gpu_kernel_causality": {"device_before_launch"},
    "_check_stream_wait_corr_id_populated": {"waits_without_record"},
    "_check_stream_sync_overlap": {"sync_overlaps_kernel"},
    "_check_stream_wait_corr_id_in_past": {"waits_for_later_record", "waits_for_lost_record"},
    "_check_nccl_metadata": {"collectives_without_metadata"},
    "_check_backward_seq_id_uniqueness": {"backward_shares_sequence"},
}
COUNT_ALIKE = ("_check_stream_wait_corr_id_populated", "_check_stream_wait_corr_id_in_past", "_check_nccl_metadata")
SAMPLES = Path(__file__).parents[2] / "samples"
TOLD = (
    "dlrm_8gpu_nccl/worker[01]_*",
    "hta_cuda_sync*",
    "hta_no_distributedInfo*",
    "kineto_h100_before*",
    "ncompass_h100*",
)
REAL = [path for pattern in TOLD for path in FOLDER.rglob(pattern)]  # those that some rule has something to say of


@cache
def violations_of(path):
    """How often each of torch's rules is broken, by torch; and by ours."""
    _, violations = validator.validate_trace(str(path))
    names = [each.rule_name for each in violations if not is_of_two_launches(each)]
    counts = {diagnostic.rule: diagnostic.count for diagnostic in diagnose(read(path))}
    own = {rule: sum(counts.get(name, 0) for name in names) for rule, names in OURS.items()}
    return {rule: names.count(rule) for rule in OURS}, own


def is_of_two_launches(violation):
    """Whether torch compares an operator's first kernel with another kernel's launch, which it does where a library
    launches the first one by the driver: both have the operator's `External id`, but not one correlation."""
    correlations = re.findall(r"correlation=(\d+)", violation.message)
    return violation.rule_name == "_check_gpu_kernel_causality" and len(set(correlations)) == 2


def test_all_rules_of_torch_are_known():
    assert {rule.__name__ for rule in validator._RULES} == set(OURS)


@pytest.mark.parametrize("path", sorted([*REAL, *SAMPLES.glob("*/*/*.gz")]), ids=lambda p: "-".join(p.parts[-3:]))
def test_what_torch_finds_in_real_traces_is_found_here(path):
    torch_s, ours = violations_of(path)
    assert {rule for rule, count in torch_s.items() if count} == {rule for rule, count in ours.items() if count}
    assert [torch_s[rule] for rule in COUNT_ALIKE] == [ours[rule] for rule in COUNT_ALIKE]


def gpu():
    return TraceBuilder().op("aten::mm", 10, 50).launch(20, 5, 1, **{"External id": 4})


def waiting(kind, record=None):
    args = {"cuda_sync_kind": kind, "wait_on_cuda_event_record_corr_id": record}
    kernel = gpu().launch(45, 1, 8, name="cudaEventRecord").kernel("k", 30, 10, 1)
    return kernel.device("cuda_sync", "wait", 35, 9, 9, **args)


def backward(*threads):
    builder = gpu().kernel("k", 30, 10, 1)
    for name, thread in zip("AB", threads, strict=True):
        args = {"Sequence number": 5, "Fwd thread id": thread}
        builder.op(f"autograd::engine::evaluate_function: {name}", 70, 5, **args)
    return builder


@pytest.mark.parametrize(
    ("rule", "builder"),
    [
        ("_check_gpu_kernel_causality", gpu().kernel("k", 15, 10, 1, **{"External id": 4})),
        ("_check_stream_wait_corr_id_populated", waiting("Stream Wait Event", -1)),
        ("_check_stream_wait_corr_id_populated", waiting("Event Sync", -1)),
        ("_check_stream_wait_corr_id_in_past", waiting("Stream Wait Event", 8)),
        ("_check_stream_wait_corr_id_in_past", waiting("Stream Wait Event", 77)),
        ("_check_stream_sync_overlap", waiting("Stream Sync")),
        ("_check_nccl_metadata", gpu().kernel("k", 30, 10, 1).op("record_param_comms", 70, 5, dtype="Float")),
        ("_check_backward_seq_id_uniqueness", backward(1, 1)),
    ],
)
def test_what_breaks_a_rule_of_torch_breaks_ours_and_no_other(tmp_path, rule, builder):
    path = tmp_path / "rank0.1.pt.trace.json"
    path.write_text(builder.text())
    torch_s, ours = violations_of(path)
    assert {name for name, count in torch_s.items() if count} == {rule}
    assert {name for name, count in ours.items() if count} == {rule}


def test_numbers_of_backward_operators_are_of_their_forward_thread_which_torch_s_rule_passes_over(tmp_path):
    path = tmp_path / "rank0.1.pt.trace.json"
    path.write_text(backward(1, 2).text())
    torch_s, ours = violations_of(path)
    assert (torch_s["_check_backward_seq_id_uniqueness"], ours["_check_backward_seq_id_uniqueness"]) == (1, 0)
