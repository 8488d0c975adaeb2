"""A remote file as a stream of bytes, prefetched while it is read, without a local copy.

A few blocks are requested at a time. Failed requests are retried from where they failed, with growing delays. If the
file changes meanwhile, reading fails: old and new content don't fit together.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Any, TypeVar

from ..errors import TraceError
from .folders import remote_stamp
from .urls import file_system, is_gone, is_transient, kind_of

Result = TypeVar("Result")

BLOCK_BYTES = 4 << 20
MOST_AT_ONCE = 4
WAITS_S = (0.25, 0.5, 1.0, 2.0)  # before each retry

_SKIPPED_AT_ONCE = 1 << 20
_NO_RANGES = "range requests"  # in the words of fsspec's ValueError


class PrefetchedFile:
    """A remote file, read from front to back.

    Args:
        url: The file.
        start: The offset to begin at.
        block_bytes: Size of a request; at most `MOST_AT_ONCE` blocks are in memory besides the one being read.

    Attributes:
        size: The file's size, or None if the storage doesn't report it.
    """

    def __init__(self, url: str, start: int = 0, block_bytes: int = BLOCK_BYTES) -> None:
        self._block_bytes = block_bytes
        self._closed = threading.Event()
        self._remote = _retry(lambda: _Remote(url), self._closed)
        self.size = self._remote.size
        self._block, self._ended = memoryview(b""), False
        self._blocks: deque[Future[bytes]] = deque()
        self._reached = self._requested = start
        self._pool = ThreadPoolExecutor(self._remote.at_once, "kinetoscope-fetch")

    def close(self) -> None:
        """Stop fetching."""
        self._closed.set()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._remote.close()

    def read(self, at_most: int) -> bytes:
        """The next bytes; fewer than requested only at the end of the file."""
        parts, size_left = [], at_most
        while size_left and (self._block or self._next_block()):
            parts.append(self._block[:size_left])
            self._block = self._block[size_left:]
            size_left -= len(parts[-1])
        return b"".join(parts)

    def _next_block(self) -> bool:
        """Take the next block, and request more after it; False at the end."""
        if self._ended:
            return False
        self._prefetch()
        if self._blocks:
            try:
                data = self._blocks.popleft().result()
            except ValueError as error:
                if _NO_RANGES not in str(error):
                    raise
                return self._stream_instead()
            self._reached += len(data)
            self._block = memoryview(data)
            self._prefetch()
            if data:
                return True
        self._ended = True
        _retry(self._remote.fail_if_changed, self._closed)
        return False

    def _prefetch(self) -> None:
        while len(self._blocks) < MOST_AT_ONCE and (self.size is None or self._requested < self.size):
            start, self._requested = self._requested, self._requested + self._block_bytes
            end = self._requested if self.size is None else min(self._requested, self.size)
            self._blocks.append(self._pool.submit(self._fetch, start, end))

    def _fetch(self, start: int, end: int) -> bytes:
        return _retry(lambda: self._remote.fetch(start, end), self._closed)

    def _stream_instead(self) -> bool:
        """Continue without range requests: this server only sends whole files."""
        self._pool.shutdown(wait=True, cancel_futures=True)  # two can't read one stream
        self._blocks.clear()
        self._remote.stream()
        self._requested = self._reached
        self._pool = ThreadPoolExecutor(1, "kinetoscope-fetch")
        return self._next_block()


def remote_bytes(url: str, start: int, count: int, tries: int | None = None) -> bytes:
    """A part of a remote file; less than requested only at its end."""
    waits = WAITS_S if tries is None else WAITS_S[: tries - 1]
    never = threading.Event()
    remote = _retry(lambda: _Remote(url), never, waits)
    end = start + count if remote.size is None else min(start + count, remote.size)
    if end <= start:
        return b""
    try:
        return _retry(lambda: remote.fetch(start, end), never, waits)
    except ValueError as error:
        if _NO_RANGES not in str(error):
            raise
        remote.stream()
        return _retry(lambda: remote.fetch(start, end), never, waits)
    finally:
        remote.close()


class _Remote:
    """One remote file: requests parts of it, none of them twice."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._files, self._key = file_system(url)
        info = self._info()
        self.size: int | None = info.get("size")
        self._stamp = remote_stamp(info)
        self._is_http = kind_of(url) == "http"
        self._is_stream = self.size is None or info.get("partial") is False
        self._stream: IO[bytes] | None = None
        self._streamed = 0
        self._end: int | None = None  # where a stream of unknown size ended

    @property
    def at_once(self) -> int:
        """How many parts may be requested at the same time."""
        return 1 if self._is_stream or not getattr(self._files, "async_impl", False) else MOST_AT_ONCE

    def stream(self) -> None:
        """From now on request the whole file; its parts must then be read in order."""
        self._is_stream = True

    def close(self) -> None:
        """Close the stream, if there is one."""
        if self._stream is not None:
            self._stream.close()

    def fetch(self, start: int, end: int) -> bytes:
        """The bytes from `start` to `end`; fewer only at the end of a file of unknown size."""
        try:
            if self._is_stream:
                return self._from_stream(start, end)
            data = self._part(start, end)
        except Exception:
            self.fail_if_changed()
            raise
        if len(data) < end - start:
            self.fail_if_changed()
            raise EOFError(f"the connection ended after {len(data)} of {end - start} bytes")
        return bytes(data)

    def fail_if_changed(self) -> None:
        """Check that the file is unchanged since it was opened.

        Raises:
            TraceError: It changed or was deleted.
        """
        try:
            info = self._info()
        except OSError as error:
            if not is_gone(error):
                raise
            raise self._change_error("It was deleted") from error
        if remote_stamp(info) != self._stamp:
            raise self._change_error("It was rewritten")

    def _change_error(self, how: str) -> TraceError:
        return TraceError(self.url, f"the file changed while it was read. {how}; open it again once it is complete.")

    def _info(self) -> dict[str, Any]:
        self._files.invalidate_cache(self._key)
        info: dict[str, Any] = self._files.info(self._key)
        if info["type"] == "directory":
            raise IsADirectoryError(self.url)
        return info

    def _part(self, start: int, end: int) -> bytes:
        if not self._is_http:
            part: bytes = self._files.cat_file(self._key, start=start, end=end)
            return part
        # A server without range requests answers with the whole file; fsspec's file then stops where ours does.
        with self._files.open(self._key, block_size=end - start, cache_type="none", size=self.size) as file:
            file.seek(start)
            return bytes(file.read(end - start))

    def _from_stream(self, start: int, end: int) -> bytes:
        if self._end is not None and start >= self._end:
            return b""
        if self._stream is None or self._streamed > start:
            self._stream, self._streamed = self._files.open(self._key, block_size=0), 0
        try:
            while self._streamed < start:
                bytes_read = self._stream.read(min(_SKIPPED_AT_ONCE, start - self._streamed))
                if not bytes_read:
                    raise EOFError("the connection ended early")
                self._streamed += len(bytes_read)
            parts, left = [], end - start
            while left and (part := self._stream.read(left)):
                parts.append(part)
                left -= len(part)
            if left and self.size is not None:
                raise EOFError("the connection ended early")
        except BaseException:
            self._stream.close()
            self._stream = None
            raise
        self._streamed = end - left
        if left and self.size is None:
            self._end = self._streamed
        return b"".join(parts)


def _retry(ask: Callable[[], Result], end: threading.Event, waits: Sequence[float] | None = None) -> Result:
    """The result of `ask`, retried after transient errors, until it is closed."""
    for wait in WAITS_S if waits is None else waits:
        try:
            return ask()
        except TraceError:
            raise
        except Exception as error:
            if not is_transient(error) or end.wait(wait):
                raise
    return ask()
