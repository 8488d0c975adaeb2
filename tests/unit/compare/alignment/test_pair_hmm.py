"""Posteriors against the sum over every path through two short sequences."""

from collections import defaultdict

import numpy as np
import pytest

from kinetoscope_tb.compare.alignment import pair_hmm
from kinetoscope_tb.compare.alignment.pair_hmm import MoveOdds, probable_pairs


def random_odds(generator, first, second, moves):
    """Odds of moves between sequences of different units."""
    parts = {}
    for units, others in moves:
        numbers, columns = np.arange(first) - units + 1, np.arange(second) - others + 1
        numbers[: units - 1], columns[: others - 1] = -1, -1
        parts[units, others] = MoveOdds.of(numbers, columns, np.exp(3 * generator.standard_normal((first, second))))
    return parts


def posteriors_of_all_paths(odds, first, second):
    """The posterior of each pair, by walking along every path."""
    weights, total = defaultdict(float), 0.0
    next_states = {
        "match": {"match": 1 - 2 * pair_hmm._ALONE, "alone": pair_hmm._ALONE, "other": pair_hmm._ALONE},
        "alone": {"match": pair_hmm._AGAIN, "alone": pair_hmm._STILL_ALONE, "other": pair_hmm._ALONE_TOO},
        "other": {"match": 1 - pair_hmm._STILL_ALONE, "other": pair_hmm._STILL_ALONE},
    }

    def walk(i, j, state, weight, pairs):
        nonlocal total
        if (i, j) == (first, second):
            total += weight
            for pair in pairs:
                weights[pair] += weight
            return
        steps = next_states[state]
        if i < first and "alone" in steps:
            walk(i + 1, j, "alone", weight * steps["alone"], pairs)
        if j < second:
            walk(i, j + 1, "other", weight * steps["other"], pairs)
        for units, others in odds:
            if i + units <= first and j + others <= second:
                move = odds[units, others]
                new = [(i + a, j + b) for a in range(units) for b in range(others)]
                own = move.table[move.rows[i + units - 1] + move.columns[j + others - 1]]
                walk(i + units, j + others, "match", weight * steps["match"] * own, [*pairs, *new])

    walk(0, 0, "match", 1.0, [])
    return {pair: weight / total for pair, weight in weights.items()}


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("moves", [[(1, 1)], [(1, 1), (1, 2), (2, 1), (1, 3), (3, 1)]])
def test_posteriors_are_those_of_all_paths(monkeypatch, seed, moves):
    monkeypatch.setattr(pair_hmm, "BOUND", 0.0)
    monkeypatch.setattr(pair_hmm, "_LEAST", 0.0)
    generator = np.random.default_rng(seed)
    first, second = generator.integers(1, 5, 2).tolist()
    odds = random_odds(generator, first, second, moves)
    pairs = probable_pairs(odds, (first, second))
    found = dict(zip(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True), pairs.posterior, strict=True))
    assert found == pytest.approx(posteriors_of_all_paths(odds, first, second), abs=1e-9)


def test_long_sequences_neither_overflow_nor_vanish():
    size = 3000
    codes = np.arange(size) % 7
    table = np.full((7, 7), 1e-6)
    np.fill_diagonal(table, 50.0)
    pairs = probable_pairs({(1, 1): MoveOdds.of(codes, codes, table)}, (size, size))
    assert (pairs.first == np.arange(size)).all()
    assert (pairs.second == pairs.first).all()
    assert pairs.posterior.min() > 0.95


def test_what_is_left_out_on_one_side_is_left_alone():
    codes = np.arange(40)
    table = np.full((40, 40), 1e-4)
    np.fill_diagonal(table, 20.0)
    others = np.delete(codes, slice(10, 20))
    pairs = probable_pairs({(1, 1): MoveOdds.of(codes, others, table)}, (40, 30))
    assert pairs.first.tolist() == others.tolist()


@pytest.mark.parametrize("rows", [7, 16, 64])
def test_blocks_and_bands_change_nothing_near_the_path(monkeypatch, rows):
    generator = np.random.default_rng(0)
    first = generator.integers(0, 30, 400)
    second = np.delete(first, generator.integers(0, 400, 60))
    table = np.full((30, 30), 1e-3)
    np.fill_diagonal(table, 20.0)
    moves = {(1, 1): MoveOdds.of(first, second, table)}
    whole = probable_pairs(moves, (first.size, second.size))
    monkeypatch.setattr(pair_hmm, "isqrt", lambda _: 0)
    monkeypatch.setattr(pair_hmm, "_LEAST_ROWS", rows)
    monkeypatch.setattr(pair_hmm, "_MOST_CELLS", 192 * 401)
    parts = probable_pairs(moves, (first.size, second.size))
    assert (parts.first == whole.first).all()
    assert (parts.second == whole.second).all()
    assert parts.posterior == pytest.approx(whole.posterior, abs=1e-3)


def test_the_band_follows_a_guess_and_reaches_the_end():
    guess = np.interp(np.arange(1001), [0, 500, 501, 1000], [0, 100, 19_000, 20_000])
    base = pair_hmm._base(guess, 2048, 20_001)
    assert (base % 64 == 0).all()
    assert base[0] == 0
    assert base[-1] + 2048 >= 20_001
    assert (np.diff(base) >= 0).all()
    assert np.diff(base).max() <= 1024
    assert (np.abs(guess - base)[600:] < 2048).all()


@pytest.mark.parametrize("may_join", [True, False])
def test_a_unit_that_belongs_to_either_neighbor_joins_both(may_join):
    table = np.full((4, 3), 1e-6)
    table[0, 0] = table[2, 1] = 50.0
    fused = np.full((3, 4), 1e-6)  # the run of units 0 and 1 is unit 0 of the other side, as well as 1 and 2 are unit 1
    fused[1, 0] = fused[2, 1] = 50.0
    units, others, runs = np.array([0, 1, 2]), np.array([0, 1]), np.array([-1, 1, 2])
    moves = {(1, 1): MoveOdds.of(units, others, table), (2, 1): MoveOdds.of(runs, others, fused)}
    joins = np.full(3, may_join), np.full(2, may_join)
    pairs = probable_pairs(moves, (3, 2), joins)
    found = list(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))
    assert found == ([(0, 0), (1, 0), (1, 1), (2, 1)] if may_join else [(0, 0), (2, 1)])
