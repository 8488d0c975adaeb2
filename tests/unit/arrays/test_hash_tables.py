"""The hash tables of the compiled library: keys that collide in one of them by construction spread like any others.

Linear probing puts keys that collide into one run of occupied slots, as long as there are keys. The seed is drawn by
chance, and of a hundred seeds one makes equidistant keys neighbors; so several are tried.
"""

import os
from statistics import median

import numpy as np
import pytest

from kinetoscope_tb.arrays.gather import NONE
from kinetoscope_tb.arrays.native import Function
from kinetoscope_tb.reader.perfetto import wire
from kinetoscope_tb.reader.scan.chunk import scan_chunk

KEYS, SLOTS = 4096, 1 << 14
WORD = 1 << 64


def longest_run(occupied):
    """How many slots in a row are occupied."""
    ends = np.flatnonzero(np.diff(np.concatenate([[0], occupied.astype(np.int8), [0]])))
    return int((ends[1::2] - ends[::2]).max(initial=0))


def multiples(factor, step):
    """Keys that become multiples of a power of two in a product with an odd number."""
    inverse = pow(factor, -1, WORD)
    return np.array([nth * step * inverse % WORD for nth in range(1, KEYS + 1)], np.uint64).view(np.int64)


HOSTILE = {
    "Fibonacci hashing": multiples(0x9E3779B97F4A7C15, 1),
    "the same with a shift": multiples(0x9E3779B97F4A7C15 * 0xFF51AFD7ED558CCD % WORD, 1 << 50),
    "equal low bits": np.arange(1, KEYS + 1) << 50,
    "equal high bits": np.arange(1, KEYS + 1),
    "the top bit": np.concatenate([np.arange(KEYS // 2), np.arange(KEYS // 2) | -(2**63)]),
}


def seeds():
    return [int.from_bytes(os.urandom(8), "little") >> 1 | 1 << 62 | 1 for _ in range(5)]


@pytest.mark.parametrize("keys", HOSTILE.values(), ids=HOSTILE)
def test_numbers_spread(keys):
    runs = []
    for seed in seeds():
        table, first = np.full(SLOTS, NONE, np.int32), np.empty(KEYS, np.int64)
        found = Function("number_values")(keys, seed, table, first, np.empty(keys.size, np.int32))
        assert found == np.unique(keys).size
        runs.append(longest_run(table >= 0))
    assert median(runs) < 64


@pytest.mark.parametrize("keys", HOSTILE.values(), ids=HOSTILE)
def test_ids_of_perfetto_spread(keys, monkeypatch):
    runs = {}
    for seed in seeds():
        monkeypatch.setattr(wire, "SEED", seed)
        slots = np.full(SLOTS, NONE, np.int32)
        wire.place_ids(slots, keys, 0, keys.size)
        runs.setdefault("ids", []).append(longest_run(slots >= 0))
        rows = np.zeros((7, keys.size), np.int64)
        for field in (wire.TEXT_SCOPE, wire.TEXT_FIELD, wire.TEXT_ID):
            slots[:], rows[:] = NONE, 0
            rows[field] = keys
            wire.place_interned(slots, rows, 0, keys.size)
            runs.setdefault(field, []).append(longest_run(slots >= 0))
    assert all(median(of_table) < 64 for of_table in runs.values())


def test_texts_spread():
    """Pairs of words, of which the second takes back what the first changes in a product with any odd number."""
    words = (b"aaaaaaaabbbbbbbb", b"aaaaaaa\xe1bbb\xe2bbb\xe2")
    texts = [b"7 bytes" + b"".join(words[nth >> at & 1] for at in range(10)) for nth in range(1024)]
    events = b",".join(b'{"ph":"X","name":"%s","ts":1,"dur":1}' % text for text in texts)
    runs = []
    scan_chunk(memoryview(events), 0, b'"ph"', lambda out, *_: runs.append(longest_run(out.slots > 0)), is_last=True)
    assert max(runs) < 64
