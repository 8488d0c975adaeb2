"""Plain JSON → sorted events, on one core and on two: `scanning.py PATH`; prints what it measured as JSON.

The text is in memory already, so nothing but scanning is measured. Speeds by CPU time are those of a machine that does
nothing else; the speed of two by the clock is that of this machine now.
"""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kinetoscope_tb.reader.scan.chunk import first_key_of, scan_chunk, sorted_events
from kinetoscope_tb.reader.scan.ingest import _pieces, split_head

BLOCK = 4 << 20


def pieces(path):
    """The text of the events, cut as the reader cuts it; and the key that each begins with."""
    data = path.read_bytes()
    stream = iter([data[at : at + BLOCK] for at in range(0, len(data), BLOCK)])
    head, first = split_head(stream, str(path))
    return list(_pieces(first, stream, len(head))), first_key_of(first)


def scanned(piece, key):
    """CPU seconds of this thread for one piece."""
    begun = time.thread_time()
    scan_chunk(piece[1], piece[0], key, sorted_events, is_last=False)
    return time.thread_time() - begun


def main():
    """Scan twice, by one thread and by two."""
    texts, key = pieces(Path(sys.argv[1]))
    gigabytes = sum(len(text) for _, text in texts) / 1e9
    figures = {}
    for name, threads in (("one", 1), ("two", 2)):
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda piece: scanned(piece, key), texts[:threads]))  # each thread gets its arrays
            begun = time.perf_counter()
            cpu_s = sum(pool.map(lambda piece: scanned(piece, key), texts))
            wall_s = time.perf_counter() - begun
        figures[name] = {"cpu": threads * gigabytes / cpu_s, "wall": gigabytes / wall_s}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
