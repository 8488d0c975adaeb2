"""File systems of URLs, as fsspec opens them. It imports slowly: `urls` imports this when there is a URL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fsspec.core import url_to_fs

from kinetoscope.optional_packages import optional_package

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem


def open_file_system(url: str, kind: str) -> tuple[AbstractFileSystem, str]:
    """The file system of a URL, and the file's path in it.

    Args:
        url: The URL.
        kind: From `urls.kind_of`.

    Raises:
        ImportError: A package is missing.
        ValueError: The protocol is unknown.
        OSError: A library that the package needs is missing.
    """
    return url_to_fs(url, **_options(kind))  # type: ignore[no-any-return]


def _options(kind: str) -> dict[str, Any]:
    if kind == "s3":  # twice, because s3fs and we retry too
        return {"config_kwargs": {"retries": {"max_attempts": 2, "mode": "standard"}}}
    if kind == "http":
        # No timeout for a download that makes progress, one for a silent connection; no decompression in transit.
        aiohttp = optional_package("aiohttp", "'kinetoscope[http]'")
        patience = aiohttp.ClientTimeout(total=None, sock_connect=20, sock_read=60)
        return {"client_kwargs": {"timeout": patience}, "headers": {"Accept-Encoding": "identity"}}
    return {}
