"""URLs and their file systems.

Each protocol has its own library, with its own errors, settings and environment variables. Only this module handles
these differences.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from ..names.regex import regex

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_URL = regex(r"([a-zA-Z][0-9a-zA-Z.+-]*)://")

# The extra of pyproject.toml that a protocol needs, and how to set its credentials.
_EXTRAS = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gcs",
    "gcs": "gcs",
    "az": "azure",
    "abfs": "azure",
    "abfss": "azure",
    "adl": "azure",
    "hdfs": "hdfs",
    "http": "http",
    "https": "http",
}
_CREDENTIALS = {
    "s3": "Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; FSSPEC_S3_ANON=true for anonymous access",
    "gcs": "Run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS",
    "azure": "Set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or AZURE_STORAGE_CONNECTION_STRING",
}
_JAVA = "HDFS needs Java and Hadoop's libhdfs: set JAVA_HOME, HADOOP_HOME and CLASSPATH as Hadoop's guide says"

# Listing one prefix of these costs as much as listing all that is below it, page by page.
FLAT = {"s3", "gcs", "azure", "memory"}

_FINAL = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, ImportError, ValueError)
_WORTH_ANOTHER_TRY = {408, 425, 429}  # and everything from 500 on


def is_url(path: str) -> bool:
    """Whether the path names a protocol."""
    return _URL.match(path) is not None


def last_part(path: str) -> str:
    """The name of a file or folder, or all of the path if it has none."""
    if kind_of(path) == "http":
        address = urlsplit(path)  # a signed URL ends in its signature
        return unquote(PurePath(address.path).name) or address.netloc
    return PurePath(path.rstrip("/")).name or path


def printable(name: str) -> str:
    """A name with the bytes visible that aren't UTF-8."""
    return name.encode(errors="backslashreplace").decode()


def kind_of(url: str) -> str:
    """The extra that a URL needs, or its protocol if it needs none; empty for a local path."""
    match = _URL.match(url)
    return _EXTRAS.get(match[1].lower(), match[1].lower()) if match else ""


def file_system(url: str) -> tuple[AbstractFileSystem, str]:
    """The file system of a URL, and the file's path in it.

    Raises:
        ImportError: A package is missing; the message names the extra that installs it.
        ValueError: The protocol is unknown.
        OSError: A library that the package needs is missing.
    """
    module = import_module(".file_systems", __package__)  # with fsspec, which local files don't need
    kind = kind_of(url)
    try:
        files: tuple[AbstractFileSystem, str] = module.open_file_system(url, kind)
    except ImportError as error:
        if kind not in _EXTRAS.values():
            raise
        message = (
            f"{url.partition('://')[0]}:// needs a package that isn't installed: pip install 'kinetoscope[{kind}]'"
        )
        raise ImportError(message) from error
    except OSError as error:
        if kind != "hdfs":
            raise
        raise OSError(_JAVA) from error
    return files


def is_transient(error: BaseException) -> bool:
    """Whether a retry may help: the connection or the server failed, but didn't refuse."""
    error = _cause(error)
    status = _status(error)
    if status is not None:
        return status >= 500 or status in _WORTH_ANOTHER_TRY
    return not isinstance(error, _FINAL) and not _is_refused(error)


def is_gone(error: BaseException) -> bool:
    """Whether there is no such file; fsspec raises FileNotFoundError for every HTTP error."""
    cause = _cause(error)
    return isinstance(cause, FileNotFoundError) or _status(cause) == 404


def words(error: BaseException, url: str = "") -> str:
    """What went wrong, without a period; with what to do if access was denied."""
    error = _cause(error)
    lines = (getattr(error, "strerror", None) or str(error)).strip().splitlines()
    text = (lines[0] if lines else type(error).__name__).rstrip(".")
    status = _status(error)
    if is_gone(error) and is_url(url):
        return "there is nothing with this name"
    if status is not None:
        text = f"the server answered {status} {getattr(error, 'message', '')}".rstrip()
    advice = _CREDENTIALS.get(kind_of(url)) if status in (401, 403) or _is_refused(error) else None
    return f"{text}. {advice}" if advice else text


def _is_refused(error: BaseException) -> bool:
    """Whether access was denied: every library reports it differently."""
    message = f"{type(error).__name__} {error}"
    return (
        isinstance(error, PermissionError)
        or re.search("credentials|Authentication", message, re.IGNORECASE) is not None
    )


def _cause(error: BaseException) -> BaseException:
    """The original error: over HTTP fsspec turns every error into FileNotFoundError."""
    cause = error.__cause__
    is_http = isinstance(cause, OSError) or type(cause).__module__.startswith("aiohttp")
    return cause if isinstance(error, FileNotFoundError) and cause is not None and is_http else error


def _status(error: BaseException) -> int | None:
    """The HTTP status in an error of aiohttp, gcsfs or Azure."""
    values = (getattr(error, name, None) for name in ("status", "code", "status_code"))
    return next((int(value) for value in values if isinstance(value, int)), None)
