"""Answers as JSON text, and errors as JSON values; neither needs a trace."""

from __future__ import annotations

import json
from typing import Any

from ..errors import KinetoscopeError

_OUR_FAULT = "This failed because of a bug in Kinetoscope."


def failure(error: Exception, view: str | None = None) -> dict[str, Any]:
    """An error as JSON; for bugs of ours, without details."""
    if isinstance(error, KinetoscopeError):
        code, message = error.code, str(error)
    else:
        code, message = "internal_error", f"{_OUR_FAULT} See the server's log for details, and please report it."
    return {"state": "failed", **({} if view is None else {"view": view}), "code": code, "message": message}


def json_text(value: object) -> str:
    """JSON without spaces; texts as they are, but half a surrogate pair as JSON escapes it, since UTF-8 has none."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode(errors="backslashreplace").decode()
