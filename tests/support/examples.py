"""How many random traces a law is held on."""

from __future__ import annotations

from hypothesis import settings

from support.fuzzing import IS_WHOLE


def examples(count: int) -> settings:
    """So many of them by `make fuzz`; by `make test` a third, each of which reads a trace and computes views of it."""
    return settings(max_examples=count if IS_WHOLE else -(-count // 3), deadline=None)
