"""The route `why`: what `kinetoscope why` says of a run."""

from __future__ import annotations

from importlib import import_module
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
        module = import_module(".why_answer", __package__)  # 40 modules: a run without Tracer doesn't wait for them
        answer: object = module.why_answer(folder, engine.parsed_files)
    except (NotFound, LogdirError):
        return {"state": "missing", "hint": _NO_JOB}
    return answer


ROUTES: dict[str, Handler] = {"/why": _why}
