"""Kills the writer of a ring at many instants, and reads it each time: `ring_kills.py COUNT`; prints what was wrong.

The writer is a forked process that adds records as fast as it can, whose values depend on each other.
"""

import json
import os
import random
import signal
import sys
import time

from kinetoscope.output.ring import SLOTS, Ring, content_of, records


def write(ring):
    number = 0
    while True:
        ring.add_step(("s", number, 3 * number, 5 * number, 0, None, None))
        number += 1


def problem_after_kill(chance):
    """What is wrong with the ring of a writer that was killed after a while; empty if nothing is."""
    ring = Ring()
    pid = os.fork()
    if not pid:
        write(ring)
    time.sleep(chance.uniform(0, 0.01) if chance.random() < 0.95 else 0.1)  # some rings are full
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    found = sorted(records(content_of(ring.descriptor)))
    ring.close()
    numbers = [number for number, _, _ in found]
    if any((kind, values) != (1, (n, 3 * n, 5 * n)) for n, kind, values in found):
        return "a record has values that nobody wrote"
    missing = set(range(max(0, numbers[-1] - SLOTS + 1), numbers[-1] + 1)) - set(numbers) if numbers else {0}
    return f"records {sorted(missing)[:5]} are missing" if len(missing) > 1 else ""


chance = random.Random(7)
print(json.dumps([problem for _ in range(int(sys.argv[1])) if (problem := problem_after_kill(chance))]))  # noqa: T201
