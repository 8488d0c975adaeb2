"""Where chance comes from."""

from __future__ import annotations

import zlib

import numpy as np


def generator(seed: int, name: str) -> np.random.Generator:
    """Chance for one recording: it doesn't depend on the others."""
    return np.random.default_rng([seed, zlib.crc32(name.encode())])
