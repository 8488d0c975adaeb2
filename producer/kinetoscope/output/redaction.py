"""Removes secrets from a run's metadata: program arguments and URLs.

`run.json` is visible to everyone who may see the traces, and copied along with them. A value that looks like a secret
by its name or form is replaced; better one harmless value too many than a password.

This module imports nothing but the standard library.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

REDACTED = "***"

_WORDS = r"token(?!iz)|key|passw|passphrase|pwd|secret|credential|authorization|\bauth\b|cookie"
_SECRET = re.compile(_WORDS, re.I)
# The bounds keep the time linear for any text: names of secrets are short.
_ASSIGNED = re.compile(
    rf"""(?<![\w.$@-])([\w.$@-]{{0,80}}?(?:{_WORDS})[\w.$@-]{{0,80}}(?<!Error)["']?\s{{0,9}}[:=]\s{{0,9}})("[^"]*"|'[^']*'|[^,;&}}\])\s]+)""",
    re.I,
)
_AUTHORIZED = re.compile(r"\b(bearer|basic)(\s{1,9})[^\s\"']+", re.I)
_CREDENTIALS = re.compile(r"(?<=://)[^/\s?#\"']*@")
_SIGNED = re.compile(r"([?&][\w.-]{0,80}?(?:sig|token|key|secret|credential|passw)[\w.-]{0,80}=)[^&\s\"']+", re.I)
_USER = re.compile(r"(?<![\w/.+-])[\w.+-]+:[^\s@/:]+@(?=[\w\[])")
_FORMS = re.compile(
    r"\b(?:hf_\w{16,}|(?:sk|pk|rk)[-_][\w-]{16,}|gh[pousr]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|xox\w-[\w-]{10,}"
    r"|A[KS]IA[0-9A-Z]{12,}|AIza[\w-]{20,}|eyJ[\w-]{5,}\.[\w-]+(?:\.[\w-]*)?)"
)


def redacted_arguments(arguments: Iterable[object]) -> list[str]:
    """Return a program's arguments without secrets: `--api-key=x`, `--password x`, `a.token=x`, `{"secret": "x"}`."""
    safe_arguments: list[str] = []
    is_secret = False
    for argument in map(str, arguments):
        is_option = argument.startswith("--") or (argument.startswith("-") and not is_secret)
        if is_secret and not is_option:
            safe_arguments.append(REDACTED)
            continue
        name, sign, _ = argument.partition("=")
        is_name = re.fullmatch(r"[-+~\w.@/]+", name) is not None
        is_secret = is_option and not sign and is_name and _is_secret(name)
        safe_arguments.append(
            f"{name}={REDACTED}" if sign and is_name and _is_secret(name) else redacted_text(argument)
        )
    return safe_arguments


def redacted_text(text: str) -> str:
    """Return a text without assigned secrets, and without values that have the form of a secret."""
    text = _AUTHORIZED.sub(rf"\1\2{REDACTED}", redacted_urls(text))
    return _FORMS.sub(REDACTED, _ASSIGNED.sub(_without_value, text))


def redacted_urls(value: Any) -> Any:
    """Return JSON values with users, passwords and signatures removed from URLs."""
    if isinstance(value, str):
        text = _USER.sub(f"{REDACTED}@", _CREDENTIALS.sub(f"{REDACTED}@", value))
        return _SIGNED.sub(rf"\1{REDACTED}", text)
    if isinstance(value, dict):
        return {key: redacted_urls(inner) for key, inner in value.items()}
    return [redacted_urls(inner) for inner in value] if isinstance(value, list | tuple) else value


def _without_value(match: re.Match[str]) -> str:
    name, value = match.groups()
    if value.startswith("//"):  # a URL's
        return match[0]
    mark = value[0] if value[0] in "\"'" else ""
    return f"{name}{mark}{REDACTED}{mark}"


def _is_secret(name: str) -> bool:
    return _SECRET.search(name) is not None
