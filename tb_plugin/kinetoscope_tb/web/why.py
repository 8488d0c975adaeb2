"""The route `why`: what `kinetoscope why` says of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..discovery.jobs import job_called
from ..errors import LogdirError, NotFound
from .queries import query_of

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

    from ..engine.engine import Engine
    from .responses import Handler

_NO_JOB = "No Tracer has recorded into this run, or its folder isn't on this machine's disks."


def _why(engine: Engine, request: Request) -> object:
    """Why the job of a run stands still or ended, and its last minutes."""
    query = query_of(request, (), optional=("run",))
    try:
        folder = job_called(engine.logdirs, query.get("run", "")).folder
        from .why_answer import why_answer  # 40 modules: a run without Tracer doesn't wait for them

        return why_answer(folder, engine.parsed_files)
    except (NotFound, LogdirError):
        return {"state": "missing", "hint": _NO_JOB}


ROUTES: dict[str, Handler] = {"/why": _why}
