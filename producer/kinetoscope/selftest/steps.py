"""The steps of a self-test's training, for which nobody needs torch."""

from __future__ import annotations

STEPS = 13
IN_WINDOW, AFTER_WINDOW, BETWEEN = 4, 5, 6
