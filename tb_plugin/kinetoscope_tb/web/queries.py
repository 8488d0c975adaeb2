"""Query parameters, checked."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..errors import BadParameter, Changed
from .encode import short_stamp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from werkzeug.wrappers import Request

    from ..discovery import TraceFile
    from ..engine.engine import Engine

NAMES = ("run", "worker", "span")
STAMPED_NAMES = (*NAMES, "stamp")  # of the file in the state in which the page opened it


def query_of(
    request: Request, names: tuple[str, ...], *, others: bool = False, optional: tuple[str, ...] = ()
) -> dict[str, str]:
    """The request's parameters.

    Raises:
        BadParameter: One is missing, repeated or unknown.
    """
    query = request.args.to_dict(flat=False)
    for name in names:
        if name not in query:
            raise BadParameter(f"The parameter {name!r} is missing; {request.path} needs {', '.join(names)}.")
    if "run" in names:
        optional += ("capture",)
    for name, values in query.items():
        if len(values) > 1:
            raise BadParameter(f"The parameter {name!r} is given {len(values)} times; give it once.")
        if name not in names + optional and not others:
            takes = ", ".join(names + optional) or "none"
            raise BadParameter(f"There is no parameter {name!r} here; {request.path} takes {takes}.")
    return {name: values[0] for name, values in query.items()}


def file_of(engine: Engine, query: Mapping[str, str]) -> TraceFile:
    """The file that a request is about, with the capture that it chooses.

    Raises:
        NotFound: There is no such run, worker or span, or no such capture among the files of the run.
        NotReady: The first listing isn't done.
    """
    file = engine.find(query["run"], query["worker"], query["span"])
    return engine.with_capture(file, query["capture"]) if query.get("capture") else file


def current_file(engine: Engine, query: Mapping[str, str]) -> TraceFile:
    """The file of a request, if its stamp is still `stamp`: then the numbers in the request refer to its content.

    Raises:
        NotFound: There is no such run, worker or span.
        Changed: The file changed since it was opened.
        NotReady: The first listing isn't done.
    """
    file = file_of(engine, query)
    if short_stamp(file.version) != query["stamp"]:
        raise Changed(f"The trace {query['span']!r} of {query['worker']!r} changed since it was opened. Open it again.")
    return file


def whole_number(query: Mapping[str, str], name: str, meaning: str) -> int:
    """A parameter that is a number of at most 18 digits, 0 or more.

    Raises:
        BadParameter: It is something else.
    """
    if not re.fullmatch(r"\d{1,18}", query[name], re.ASCII):
        raise BadParameter(f"{name}={query[name]!r} isn't possible; it is {meaning}.")
    return int(query[name])


def time_parameter(query: Mapping[str, str], name: str) -> int:
    """A parameter that is a time in ns of at most 18 digits; it may be before the trace's origin.

    Raises:
        BadParameter: It is something else.
    """
    if not re.fullmatch(r"-?\d{1,18}", query[name], re.ASCII):
        raise BadParameter(f"{name}={query[name]!r} isn't possible; it is a time in ns.")
    return int(query[name])
