"""How many random traces a law is held on."""

from __future__ import annotations

from hypothesis import settings

from support.fuzzing import IS_WHOLE


def examples(count: int) -> settings:
    """So many of them by `make test`, three times as many by `make fuzz`."""
    return settings(max_examples=3 * count if IS_WHOLE else count, deadline=None)
