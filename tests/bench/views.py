"""Every view of a trace, in a process of its own: `views.py PATH`; prints what it measured as JSON, a list by view.

CPU seconds of the first answer after loading and of a second one, wall milliseconds of asking the engine again, and of
writing that answer as JSON. Other programs on the machine disturb wall times, not CPU times. `rows` is null where the
trace lacks what the view needs.
"""

import json
import sys
import time

from kinetoscope_tb.discovery import list_path
from kinetoscope_tb.engine.answers import Missing, NotReady, compute
from kinetoscope_tb.engine.engine import Engine
from kinetoscope_tb.engine.files import read_traces
from kinetoscope_tb.views import VIEWS
from kinetoscope_tb.web import encode
from kinetoscope_tb.web.json_text import json_text

AGAIN = 5


def cpu_s(view, trace) -> float:
    """CPU seconds of one answer."""
    begun = time.process_time()
    compute(view, trace, {})
    return time.process_time() - begun


def again(engine: Engine, view, file) -> dict[str, float | int | None]:
    """Rows, and least wall milliseconds of a question that was answered before, and of its answer as JSON."""
    while True:
        try:
            frame = engine.frame(view, file, {})
            break
        except NotReady:
            time.sleep(0.01)
    asked, written = [], []
    for _ in range(AGAIN):
        begun = time.perf_counter()
        frame = engine.frame(view, file, {})
        asked.append(time.perf_counter() - begun)
        json_text(encode.view_answer(view, frame))
        written.append(time.perf_counter() - begun - asked[-1])
    rows = None if isinstance(frame, Missing) else frame.height
    return {"rows": rows, "again_ms": 1000 * min(asked), "json_ms": 1000 * min(written)}


def main() -> None:
    """Load, ask, print."""
    path = sys.argv[1]
    trace = next(read_traces(path))
    (file,) = list_path(path).files
    engine = Engine((), read=lambda _path, _progress, _process=None: iter([trace]))
    rows = []
    for view in VIEWS.values():
        measured = {"view": view.id, "first_s": cpu_s(view, trace), "second_s": cpu_s(view, trace)}
        rows.append(measured | again(engine, view, file))
    print(json.dumps({"events": trace.meta.events, "views": rows}))


if __name__ == "__main__":
    main()
