"""The replay keeps to physics, and without a change it tells what the recording told."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blind.cases import drawn
from planted.bases import BASES, base
from planted.gpu import CAUSES, pause_behind_reads, read_scalars
from planted.healthy import SMALL, busy_share, healthy
from planted.replay import DEVICE, QUEUE, ROW, repeat, simulate
from planted.sketch import PAUSE_NS, calibrate, duration_ns, lost_share, squeeze, without_waits
from support.real_traces import FOLDER, MISSING

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason=MISSING)

QUICK = ("vit_h100", "bert_mi300", "dlrm_v100", "particle_a100", "triton_mi300")


def check(replay):
    """A row starts after its launch and after its stream's earlier rows; a call returns after what it waits for."""
    program = replay.program
    launched = replay.begin[program.launch]
    assert (replay.row_begin > launched).all()
    assert (replay.row_end - replay.row_begin == program.dur).all()
    for stream in np.unique(program.stream):
        own = np.flatnonzero(program.stream == stream)
        own = own[np.argsort(program.begin[program.launch[own]], kind="stable")]
        assert (replay.row_begin[own][1:] >= replay.row_end[own][:-1]).all()
    for row in np.flatnonzero(program.after >= 0):
        assert replay.row_begin[row] >= replay.row_end[program.after[row]]
    for call, (kind, row) in program.waits.items():
        if kind == ROW:
            assert replay.end[call] >= replay.row_end[row]
        elif kind == DEVICE:
            earlier = replay.row_end[program.begin[program.launch] < program.begin[call]]
            assert (earlier <= replay.end[call]).all()


@pytest.mark.parametrize("name", QUICK)
def test_a_replay_without_a_change_takes_as_long_and_keeps_the_order(name):
    program = base(name)
    replay = simulate(program)
    check(replay)
    # What had been launched before the window isn't there, and calls wait no longer than they must.
    assert 0.9 * program.length < replay.last_ns() < 1.05 * program.length
    order = np.argsort(program.begin, kind="stable")
    assert (np.diff(replay.begin[order]) >= 0).all()


@pytest.mark.parametrize("name", ["vit_h100", "dlrm_v100"])
def test_starts_of_kernels_are_those_of_the_recording(name):
    from planted.replay import load, program_of

    document = load(FOLDER / BASES[name].path)
    step = next(e for e in document["traceEvents"] if e["name"] == BASES[name].step and "gpu" not in e.get("cat", ""))
    program = program_of(document, (step["ts"], step["ts"] + step["dur"]))
    starts = {
        e["args"]["correlation"]: e["ts"] - step["ts"]
        for e in document["traceEvents"]
        if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
    }
    recorded = np.array([starts[row.args["correlation"]] for row in program.rows])
    replayed = simulate(program).row_begin / 1000
    assert np.median(np.abs(replayed - recorded)) < 0.02 * step["dur"]


@given(seed=st.integers(0, 2**32 - 1), name=st.sampled_from(["vit_h100", "dlrm_v100", "triton_mi300"]))
@settings(max_examples=15, deadline=None)
def test_a_changed_program_keeps_to_physics(seed, name):
    rng = np.random.default_rng(seed)
    cause = CAUSES[int(rng.integers(len(CAUSES)))]
    program = healthy(name, rng, 0.9)
    planted = cause.plant(program, int(rng.integers(10_000, 5_000_000)) if cause.is_scaled else 500, rng)
    check(simulate(repeat(planted, 3, rng)))


@pytest.mark.parametrize("name", SMALL)
def test_a_healthy_program_keeps_its_device_busy(name):
    assert busy_share(healthy(name, np.random.default_rng(3), 0.93)) >= 0.93


@pytest.mark.parametrize("cause", [cause for cause in CAUSES if cause.is_scaled], ids=lambda cause: cause.id)
def test_a_plant_costs_the_share_that_it_should(cause):
    program = healthy("vit_h100", np.random.default_rng(1), 0.95, reads=cause.reads)
    share = sum(cause.shares) / 2
    planted = calibrate(program, lambda amount: cause.plant(program, amount, np.random.default_rng(2)), share)
    if not cause.stretches:
        assert duration_ns(program) / duration_ns(planted) == pytest.approx(1 - share, abs=0.07)


def test_the_queue_of_a_device_is_not_endless():
    program = healthy("triton_mi300", np.random.default_rng(0), 0.95, reads=False)
    program.waits = {}
    replay = simulate(repeat(program, 200, np.random.default_rng(0)))
    submitted = np.sort(replay.begin[replay.program.launch])
    started = np.sort(replay.row_begin)
    assert (np.searchsorted(submitted, started, "right") - np.arange(started.size) <= QUEUE + 1).all()


def test_the_same_seed_gives_the_same_bytes_and_another_one_others(tmp_path):
    texts = [
        drawn("planted_dropped_hole", seed).record(tmp_path / str(number)).read_bytes()
        for number, seed in enumerate((5, 5, 6))
    ]
    assert texts[0] == texts[1] != texts[2]


def test_reads_are_why_and_long_code_behind_them_is_as_well():
    """Either costs most of the time where both are there; where the code is as short as elsewhere, only the reads do."""
    program = healthy("vit_h100", np.random.default_rng(1), 0.95, reads=False)
    for plant, is_long in ((read_scalars, False), (pause_behind_reads, True)):
        planted = plant(program, 6_000_000 if is_long else 2_000_000, np.random.default_rng(2))
        by_reads = lost_share(without_waits(planted), planted)
        by_code = lost_share(squeeze(planted, PAUSE_NS), planted)
        assert by_reads > 0.2
        assert by_code > by_reads / 2 if is_long else by_code == 0
