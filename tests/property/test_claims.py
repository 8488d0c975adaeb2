"""What no claim may depend on: names of operators for kernels, numbers of devices and ranks; and what bounds a saving."""

import gzip
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blind.all_kinds  # noqa: F401  (`drawn` knows them by it)
from blind.cases import drawn
from kinetoscope_tb.advice.trace_advice import trace_advice
from kinetoscope_tb.answer.pace_of_others import PaceOfOthers, what_if_in_run
from kinetoscope_tb.answer.recording import recording_answer, rows_of
from kinetoscope_tb.answer.run import with_ranks
from kinetoscope_tb.diagnostics.diagnose import diagnose
from kinetoscope_tb.engine.answers import cached_frames
from kinetoscope_tb.reader import read_blocks
from kinetoscope_tb.views import EVERY_VIEW, RUN_VIEWS
from kinetoscope_tb.views.overview.what_if import what_if
from support.examples import examples
from support.simulated import Truth, run_of, simulated
from support.strategies import builders

SAMPLES = Path(__file__).parents[2] / "samples"
H100 = sorted(SAMPLES.glob("h100/*/*.json.gz"))
RECORDINGS = [*H100, *sorted(SAMPLES.glob("h100_pairs/*.json.gz"))[::8], *sorted(SAMPLES.glob("*_*/*/*.json.gz"))]
OF_KERNELS = {"mixed_precision", "small_kernels", "kernel_times_vary", "longer_steps", "uneven_devices"}
"""Rules that rest on the kernels themselves. The others need the shapes of known operators, or say who launches."""


def events_of(path):
    content = path.read_bytes()
    return json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)


def trace_of(recording):
    return read_blocks([json.dumps(recording).encode()], path="made.pt.trace.json")


def claims(trace):
    return trace_advice(trace, diagnose).advice


def with_operators(recording, name_of):
    """The recording with other names of its operators; those that mark steps and communication keep theirs."""
    events = [
        {**event, "name": name_of(event["name"])}
        if event.get("cat") == "cpu_op"
        and not re.match(r"ProfilerStep|nccl|c10d|record_param_comms|enumerate", event["name"])
        else event
        for event in recording["traceEvents"]
    ]
    return {**recording, "traceEvents": events}


def about_kernels(trace):
    return [(claim.rule, claim.title, claim.size_ns) for claim in claims(trace) if claim.rule in OF_KERNELS]


@pytest.mark.parametrize("path", H100, ids=lambda path: path.parent.name)
@pytest.mark.parametrize("name_of", [lambda name: f"x::{len(name)}", lambda _: ""], ids=["other names", "none"])
def test_names_of_operators_change_no_claim_about_kernels(path, name_of):
    recording = events_of(path)
    assert about_kernels(trace_of(with_operators(recording, name_of))) == about_kernels(trace_of(recording))


@pytest.mark.parametrize(
    "kind", ["float_products", "two_speeds", "falling_clocks", "devices_take_turns", "poor_product", "casts"]
)
def test_without_names_of_operators_claims_about_kernels_stay_and_no_others_appear(kind, tmp_path):
    recording = events_of(drawn(kind, 3).record(tmp_path))
    whole, nameless = trace_of(recording), trace_of(with_operators(recording, lambda _: ""))
    assert about_kernels(nameless) == about_kernels(whole)
    assert {claim.rule for claim in claims(nameless)} <= {claim.rule for claim in claims(whole)}


@examples(25)
@given(builders())
def test_names_of_operators_change_no_claim_about_the_kernels_of_any_recording(builder):
    recording = json.loads(builder.text())
    assert about_kernels(trace_of(with_operators(recording, "x::{}".format))) == about_kernels(trace_of(recording))


def with_devices(recording, numbers):
    """The recording with other numbers of its devices."""

    def moved(event):
        device = event.get("args", {}).get("device")
        return {**event, "args": {**event["args"], "device": numbers[device]}} if device in numbers else event

    devices = [
        {**device, "id": numbers.get(device["id"], device["id"])} for device in recording.get("deviceProperties", ())
    ]
    return {**recording, "deviceProperties": devices, "traceEvents": list(map(moved, recording["traceEvents"]))}


def without_numbers(trace):
    """Claims with their sizes; without the devices' numbers, which may also order what is equal."""
    return sorted((claim.rule, claim.confidence, claim.saving_ns, claim.size_ns) for claim in claims(trace))


@examples(25)
@given(builders(), st.permutations([0, 1]))
def test_numbers_of_devices_change_no_claim(builder, numbers):
    recording = json.loads(builder.text())
    renumbered = with_devices(recording, dict(enumerate(numbers)))
    assert list(map(str, without_numbers(trace_of(renumbered)))) == list(map(str, without_numbers(trace_of(recording))))


@settings(max_examples=12, deadline=None)
@given(st.permutations(range(4)), st.dictionaries(st.integers(0, 3), st.integers(1, 8), min_size=1, max_size=2))
def test_numbers_of_ranks_change_only_the_numbers(numbers, late):
    truth = Truth(
        late={(rank, None): 1_000_000 * ms for rank, ms in late.items()}, noise=0.0, jitter_ns=0, offset_ns=(0,) * 4
    )
    renumbered = replace(truth, late={(numbers[rank], step): ns for (rank, step), ns in truth.late.items()})
    first, second = (RUN_VIEWS["run_advice"].run(run_of(simulated(each))) for each in (truth, renumbered))
    columns = ["rule", "saving_ns", "confidence"]
    assert first.select(columns).rows() == second.select(columns).rows()
    assert sorted(f"rank{numbers[int(name[4:])]}" for name in first["filter"].drop_nulls()) == sorted(
        second["filter"].drop_nulls()
    )


def hold_bounds(trace):
    findings = trace_advice(trace, diagnose)
    for claim in findings.advice:
        halves, wholes = (what_if(trace, less=f"{claim.rule}:{percent}") for percent in (50, 100))
        if halves.is_empty():
            continue
        half, whole = halves["saved_ns"].item(), wholes["saved_ns"].item()
        bound = findings.step_ns if claim.saving_ns is None else claim.saving_ns
        assert 0 <= half <= whole <= bound, (claim.rule, half, whole, bound)
        if claim.saving_range is None:
            continue
        low, high = (halves.select("saved_low_ns", "saved_high_ns").row(0)[end] for end in (0, 1))
        assert wholes.select("saved_low_ns", "saved_high_ns").row(0) == claim.saving_range, claim.rule
        assert low <= half <= high, (claim.rule, low, half, high)
        assert low <= claim.saving_range[0], claim.rule
        assert high <= claim.saving_range[1], claim.rule
    hold_bounds_together(trace, [claim.rule for claim in findings.advice if claim.saving_range])


def hold_bounds_together(trace, rules):
    """Some of several rules at once lies in its range, which is nowhere above that of all of them."""
    if len(rules) < 2:
        return
    tables = [what_if(trace, less=",".join(f"{rule}:{percent}" for rule in rules)) for percent in (50, 100)]
    half, whole = (table.select("saved_low_ns", "saved_ns", "saved_high_ns").row(0) for table in tables)
    assert 0 <= half[0] <= half[1] <= half[2], (rules, half)
    assert 0 <= whole[0] <= whole[1] <= whole[2], (rules, whole)
    assert all(np.less_equal(half, whole)), (rules, half, whole)


WORKER = "rank0"


def rank_steps(total_ns, wait_ns, slowest_ns):
    """The view of a rank that waits so long for another one, which takes so long without waiting."""
    step = {"step": "1", "is_complete": True, "total_ns": total_ns}
    rows = [
        {**step, "worker": WORKER, "exposed_wait_ns": wait_ns, "without_waiting_ns": max(0, total_ns - wait_ns)},
        {**step, "worker": "rank1", "exposed_wait_ns": 0, "without_waiting_ns": slowest_ns},
    ]
    return pl.DataFrame(rows, schema=EVERY_VIEW["rank_steps"].table.schema())


def hold_bounds_of_others(trace, wait_frac, most_frac):
    """In a run too, no part of a claim saves more than the claim, and no several ones more than other ranks leave."""
    answer = replace(recording_answer(trace, EVERY_VIEW, cached_frames), worker=WORKER)
    step_ns = answer.step_ns
    frame = rank_steps(step_ns, round(wait_frac * step_ns), step_ns - round(most_frac * step_ns))
    claims = with_ranks(answer, {"rank_steps": frame}, EVERY_VIEW, 2).claims

    def frame_of(view, arguments):
        return EVERY_VIEW[view].frame(trace, arguments)

    def saved(**percents):
        less = ",".join(f"{rule}:{percent}" for rule, percent in percents.items())
        in_run = what_if_in_run(frame_of("what_if", {"less": less}), less, WORKER, frame, frame_of)
        return in_run.select("saved_low_ns", "saved_ns", "saved_high_ns").row(0)

    rules = what_if(trace)["rule"].to_list()
    for claim in (claim for claim in claims if claim.id in rules and claim.saving_ns is not None):
        half, whole = (saved(**{claim.id: percent}) for percent in (50, 100))
        assert whole == (claim.saving_low_ns, claim.saving_ns, claim.saving_high_ns), claim.id
        assert None in half or all(np.less_equal(half, whole)), (claim.id, half, whole)
    pace = PaceOfOthers.of(rows_of(frame), WORKER)
    bounded = [claim.id for claim in answer.claims if pace.bounds(claim.id, claim.saving_ns) and claim.id in rules]
    if bounded:
        half, whole = (saved(**dict.fromkeys(bounded, percent)) for percent in (50, 100))
        assert half[1] <= whole[1] <= pace.most_ns, bounded
        rest = [rule for rule in rules if rule not in bounded]
        assert saved(**dict.fromkeys(rules, 100))[1] <= saved(**dict.fromkeys(rest, 100))[1] + pace.most_ns


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name[:30])
@pytest.mark.parametrize(("wait_frac", "most_frac"), [(1.0, 0.02), (0.2, 0.1)])
def test_no_part_of_a_claim_saves_more_than_other_ranks_leave_of_it(path, wait_frac, most_frac):
    hold_bounds_of_others(trace_of(events_of(path)), wait_frac, most_frac)


@examples(25)
@given(builders(), st.floats(0, 1), st.floats(0, 1))
def test_no_part_of_a_claim_saves_more_than_other_ranks_leave_in_any_recording(builder, wait_frac, most_frac):
    hold_bounds_of_others(builder.build(), wait_frac, most_frac)


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name[:30])
def test_half_saves_no_more_than_all_of_it_and_that_no_more_than_the_claim(path):
    hold_bounds(trace_of(events_of(path)))


@examples(40)
@given(builders())
def test_half_saves_no_more_than_all_in_any_recording(builder):
    hold_bounds(builder.build())
