"""The last minutes of a process are readable after it is killed at any instant."""

import json
import sys
from pathlib import Path

from support.processes import Started, ended

KILLS = Path(__file__).with_name("ring_kills.py")


def test_a_ring_is_readable_after_each_of_many_kills_of_its_writer():
    code, out, words = ended(Started(str(KILLS), "60"))
    sys.stderr.write(words)
    assert (code, json.loads(out)) == (0, [])
